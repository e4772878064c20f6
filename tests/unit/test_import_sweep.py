"""A sweep removes uploads that no record names, and nothing else (X-10)."""

from dataclasses import replace
from typing import Any

import pytest

from groundwire.catalogue import GROUNDWIRE_ID
from groundwire.deadline import Deadline
from groundwire.errors import CursorRefused
from groundwire.imports import Claim
from groundwire.limits import IMPORT_CLAIM_S, SWEEP_MARGIN_S
from groundwire.nodes import document_id
from tests.fakes import HandClock
from tests.unit.stores import AT, ONE, STORE, World


@pytest.fixture
def world() -> World:
    return World()


def _stray(world: World, identity: str | None = None) -> str:
    """An upload of ours that nobody wrote down."""
    entry = world.stores.add(STORE, "stray", metadata={GROUNDWIRE_ID: identity or document_id(AT)})
    return entry.name


def _sweep(world: World) -> tuple[int, int]:
    seen = removed = 0
    cursor: str | None = None
    while True:
        swept = world.importer().sweep(cursor, deadline=Deadline.after(60))
        seen, removed, cursor = seen + swept.seen, removed + swept.removed, swept.cursor
        if cursor is None:
            return seen, removed


def test_an_upload_that_nobody_wrote_down_is_swept(world: World) -> None:
    world.put(ONE)
    world.look()
    _stray(world)
    assert _sweep(world) == (2, 1)
    world.check()
    assert _sweep(world) == (1, 0)


def test_an_upload_of_a_document_that_is_gone_is_swept(world: World) -> None:
    world.put(ONE)
    world.look()
    world.delete()
    world.look("m2")
    _stray(world)
    assert _sweep(world) == (1, 1)
    world.check()


def test_what_an_importer_at_work_uploaded_is_left_to_it_for_an_hour(world: World) -> None:
    world.put(ONE)
    world.look()
    name = _stray(world)
    assert world.record is not None
    claimed = replace(world.record, claim=Claim("m2", "v", world.seconds), generation="x")
    world.records.replace(claimed, world.record)
    world.seconds += IMPORT_CLAIM_S - 1
    assert _sweep(world) == (2, 0)
    world.seconds += 1
    assert _sweep(world) == (2, 1)
    assert name not in world.stores.stores[STORE]
    assert world.held == [ONE]


def test_what_is_not_ours_is_left_alone_and_can_be_looked_up(world: World) -> None:
    """A store may be shared with another deployment, or with people."""
    theirs = _stray(world, "a" * 26)
    manual = world.stores.add(STORE, "By hand", metadata={"author": "Ann"})
    world.put(ONE)
    world.look()
    assert _sweep(world) == (3, 0)
    assert set(world.stores.stores[STORE]) >= {theirs, manual.name}
    found = world.catalogue.named([theirs, manual.name], deadline=Deadline.after(60))
    assert set(found) == {theirs, manual.name}


def test_a_long_sweep_goes_on_where_its_time_was_up(world: World) -> None:
    for _ in range(70):
        world.stores.add(STORE, "By hand")
    world.put(ONE)
    world.look()
    _stray(world)
    clock, pages = HandClock(), world.stores.page

    def slow(store: str, cursor: str | None, *, deadline: Deadline) -> Any:
        page = pages(store, cursor, deadline=deadline)
        clock.turn(20)
        return page

    world.stores.page = slow  # type: ignore[method-assign]
    looked, cursor = [], None
    for _ in range(2):
        swept = world.importer().sweep(cursor, deadline=Deadline.after(SWEEP_MARGIN_S + 30, clock))
        cursor = swept.cursor
        looked.append((swept.seen, swept.removed, cursor is None))
    assert looked == [(40, 0, False), (32, 1, True)]
    world.check()


def test_a_place_that_the_service_forgot_is_the_beginning(world: World) -> None:
    world.put(ONE)
    world.look()
    _stray(world)
    pages = world.stores.page

    def forgetful(store: str, cursor: str | None, *, deadline: Deadline) -> Any:
        if cursor == "forgotten":
            raise CursorRefused(store, "the cursor is not taken")
        return pages(store, cursor, deadline=deadline)

    world.stores.page = forgetful  # type: ignore[method-assign]
    swept = world.importer().sweep("forgotten", deadline=Deadline.after(60))
    assert (swept.seen, swept.removed, swept.cursor) == (2, 1, None)
