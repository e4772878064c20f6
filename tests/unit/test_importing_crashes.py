"""Importers that die at any call, or work at the same time, end in the same store (X-10)."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.deadline import Deadline
from groundwire.errors import FetchError
from groundwire.importing import Done
from groundwire.limits import IMPORT_CLAIM_S
from tests.table import Crash
from tests.unit.stores import AT, KEY, ONE, STORE, TWO, World


class Fate:
    """Lets the caller live for `calls` more calls, then ends it before the next one or after it."""

    def __init__(self, calls: int, *, after: bool = False) -> None:
        self._left, self._after = calls, after
        self.struck = False

    def __call__(self, call: Callable[[], Any]) -> Any:
        if self._left == 0 and not self.struck:
            self.struck = True
            if self._after:
                call()
            raise Crash
        self._left -= 1
        return call()


def _put_one(world: World) -> None:
    world.put(ONE)


def _put_two(world: World) -> None:
    world.put(ONE)
    world.look("m0")
    world.put(TWO)


def _deleted(world: World) -> None:
    world.put(ONE)
    world.look("m0")
    world.delete()


def _emptied(world: World) -> None:
    world.put(ONE)
    world.look("m0")
    world.put(b"")


STORIES: Mapping[str, Callable[[World], None]] = {
    "new": _put_one,
    "replaced": _put_two,
    "deleted": _deleted,
    "emptied": _emptied,
}


def _dies(world: World, fate: Fate, message: str = "m1") -> bool:
    """Whether the importer died over the message."""
    try:
        world.importer(fate).document_changed(AT, message=message, deadline=Deadline.after(60))
    except Crash:
        return True
    return False


def _deaths(story: str) -> int:
    """How many calls the story takes, each of which may be the last."""
    world, count = World(), 0
    STORIES[story](world)
    while True:
        again = World()
        STORIES[story](again)
        if not _dies(again, Fate(count)):
            return count
        count += 1


@pytest.mark.parametrize("story", STORIES)
def test_a_crash_at_any_call_and_a_second_try_end_in_the_same_store(story: str) -> None:
    assert _deaths(story) >= 5
    for calls in range(_deaths(story)):
        for after in (False, True):
            world = World()
            STORIES[story](world)
            assert _dies(world, Fate(calls, after=after))
            world.look()
            world.check()


@pytest.mark.parametrize("story", STORIES)
def test_two_crashes_at_any_calls_do_too(story: str) -> None:
    for first in range(2 * _deaths(story)):
        second = 0
        while True:
            world = World()
            STORIES[story](world)
            _dies(world, Fate(first // 2, after=first % 2 == 1))
            died = _dies(world, Fate(second // 2, after=second % 2 == 1))
            world.look()
            world.check()
            if not died:
                break
            second += 1


@pytest.mark.parametrize("story", ["new", "replaced"])
@pytest.mark.parametrize("then", ["deleted", "overwritten"])
def test_a_crash_is_mended_by_whatever_happens_next(story: str, then: str) -> None:
    for calls in range(_deaths(story)):
        for after in (False, True):
            world = World()
            STORIES[story](world)
            _dies(world, Fate(calls, after=after))
            world.delete() if then == "deleted" else world.put(b"three")
            world.look("m2")
            world.check()
            world.look("m1")
            world.check()


def test_looking_for_what_a_dead_one_left_spares_everything_else() -> None:
    world = World()
    world.put(ONE, "other.md")
    world.look("m0", "other.md")
    _put_two(world)
    assert _dies(world, Fate(5, after=True))
    assert world.record is not None
    assert world.record.claim is not None
    assert len(world.held) == 2, "it should have died right after its upload"
    held: list[int] = []

    def watching(call: Callable[[], Any]) -> Any:
        held.append(len(world.held))
        return call()

    world.importer(watching).document_changed(AT, message="m1", deadline=Deadline.after(60))
    assert min(held) == 1, "the old version is there until the new one is"
    assert len(world.stores.stores[STORE]) == 2
    assert world.look("m2", "other.md") == Done("unchanged")


# -- several at once ----------------------------------------------------------------------------


def test_a_second_message_leaves_the_work_to_the_first() -> None:
    world = World()
    world.put(ONE)
    outcomes: list[Done] = []

    def meanwhile(call: Callable[[], Any]) -> Any:
        answer = call()
        if world.record and world.record.claim and not outcomes:
            outcomes.append(world.look("m2"))
        return answer

    done = world.importer(meanwhile).document_changed(AT, message="m1", deadline=Deadline.after(60))
    assert (done, outcomes) == (Done("imported"), [Done("underway")])
    world.check()


def test_a_message_whose_importer_died_long_ago_is_not_waited_for() -> None:
    world = World()
    world.put(ONE)
    assert _dies(world, Fate(6))
    assert world.record is not None
    assert world.record.claim is not None
    assert world.look("m2") == Done("underway")
    world.seconds += IMPORT_CLAIM_S
    assert world.look("m2") == Done("imported")
    world.check()


def test_whoever_comes_second_starts_over() -> None:
    world = World()
    world.put(ONE)
    looked: list[Done] = []

    def meanwhile(call: Callable[[], Any]) -> Any:
        answer = call()
        if not looked:
            looked.append(world.look("m2"))
        return answer

    done = world.importer(meanwhile).document_changed(AT, message="m1", deadline=Deadline.after(60))
    assert (looked, done) == ([Done("imported")], Done("unchanged"))
    assert len(world.stores.contents) == 1


def test_nobody_relies_on_a_claim_that_a_removal_took() -> None:
    """The removal dies, the importer finds its claim gone, and the document is back as it was."""
    world = World()
    world.put(ONE)
    looked: list[Done] = []

    def meanwhile(call: Callable[[], Any]) -> Any:
        if world.record and world.record.claim and not looked:
            world.delete()
            assert _dies(world, Fate(2, after=True), "m2")
            world.put(ONE)
            looked.append(world.look("m3"))
        return call()

    with contextlib.suppress(FetchError):
        world.importer(meanwhile).document_changed(AT, message="m1", deadline=Deadline.after(60))
    world.look("m2")
    assert looked == [Done("imported")]
    world.check()


class Actor(threading.Thread):
    """An importer that makes one call, and then waits until it may make the next."""

    def __init__(self, world: World, message: str) -> None:
        super().__init__(daemon=True)
        self.message = message
        self.acknowledged = False
        self.dies = False
        self._world = world
        self._go, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        self.start()
        self._waits.acquire()

    def run(self) -> None:
        self._turn()
        try:
            importer = self._world.importer(self._call)
            importer.document_changed(AT, message=self.message, deadline=Deadline.after(60))
            self.acknowledged = True
        except (Crash, FetchError):
            pass
        finally:
            self._over = True
            self._waits.release()

    def step(self) -> bool:
        """Lets it make a call; whether it has more to do."""
        if not self._over:
            self._go.release()
            self._waits.acquire()
        return not self._over

    def _call(self, call: Callable[[], Any]) -> Any:
        self._turn()
        if self.dies:
            raise Crash
        return call()

    def _turn(self) -> None:
        self._waits.release()
        self._go.acquire()


def _removed(world: World) -> None:
    world.objects.files.pop(KEY, None)
    world.reindex()


CHANGES: Mapping[str, Callable[[World], None]] = {
    "nothing": lambda world: None,
    "overwritten": lambda world: world.put(b"three"),
    "deleted": _removed,
    "emptied": lambda world: world.put(b""),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("story", ["replaced", "deleted"])
def test_two_importers_in_any_order_end_in_the_same_store(story: str, change: str) -> None:
    """The first makes some calls, something happens, the second makes some, and both end."""
    for calls in range(_deaths(story) + 1):
        for others in range(_deaths("replaced") + 3):
            for first_ends_first in (True, False):
                world = World()
                STORIES[story](world)
                first = Actor(world, "m1")
                _make(first, calls)
                CHANGES[change](world)
                second = Actor(world, "m2")
                _make(second, others)
                for actor in (first, second) if first_ends_first else (second, first):
                    _make(actor, 99)
                for actor in (first, second):
                    if not actor.acknowledged:
                        world.look(actor.message)
                world.check()


def _make(actor: Actor, calls: int) -> None:
    for _ in range(calls):
        if not actor.step():
            break


class Stage:
    """A world in which things happen in any order, and the messages about it."""

    def __init__(self) -> None:
        self.world = World()
        self.waiting: list[str] = []
        self.actors: list[Actor] = []
        self._messages = 0

    def happen(self, kind: str, number: int) -> None:
        if kind == "put":
            self.world.objects.files[KEY] = (ONE, TWO, b"")[number % 3]
        elif kind == "delete":
            self.world.objects.files.pop(KEY, None)
        elif kind == "index":
            before = self.world.index.stored.get(AT.uri)
            self.world.reindex()
            if before != self.world.index.stored[AT.uri]:
                self._messages += 1
                self.waiting.append(f"m{self._messages}")
        elif kind == "begin" and self.waiting:
            self.actors.append(Actor(self.world, self.waiting.pop(number % len(self.waiting))))
        elif kind in ("step", "die") and self.actors:
            actor = self.actors[number % len(self.actors)]
            actor.dies = actor.dies or kind == "die"
            for _ in range(1 + number // 10):
                if not actor.step():
                    self._end(actor)
                    break

    def _end(self, actor: Actor) -> None:
        self.actors.remove(actor)
        if not actor.acknowledged:
            self.waiting.append(actor.message)

    def end(self) -> None:
        """Lets everybody finish, and every message come again until it is acknowledged."""
        for _ in range(200):
            self.happen("index", 0)
            while self.actors:
                self.happen("step", 99)
            if not self.waiting:
                return
            self.happen("begin", 0)
        raise AssertionError("messages come again for ever")


_HAPPENINGS = st.tuples(
    st.sampled_from(["put", "index", "index", "delete", "begin", "begin", "step", "step", "step"]),
    st.integers(0, 99),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_HAPPENINGS, max_size=60))
def test_any_number_of_importers_in_any_order_end_in_the_same_store(
    happenings: list[tuple[str, int]],
) -> None:
    stage = Stage()
    for kind, number in happenings:
        stage.happen(kind, number)
    stage.end()
    stage.world.check()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(_HAPPENINGS, st.tuples(st.just("die"), st.integers(0, 9))), max_size=60))
def test_dying_ones_too_once_the_store_was_swept(happenings: list[tuple[str, int]]) -> None:
    stage = Stage()
    for kind, number in happenings:
        stage.happen(kind, number)
    stage.end()
    stage.world.importer().sweep(None, deadline=Deadline.after(60))
    stage.world.check()
