"""X-2, X-6: after any uploads, moves and deletions, with events that come twice, late, in the wrong order or
after a crash between any two calls of DynamoDB, the index equals a fresh scan of the bucket.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.includes import find
from groundwire.indexing import Indexer
from groundwire.placement import Placement
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots
from tests.fakes import MemoryBus, MemoryStore
from tests.table import Crash, MemoryTable

ROOT = StorageRoot("kb", "s3", "kb")
ROOTS = StorageRoots([ROOT])
NAMES = ("a.md", "b.md", "sops/c.md", "sops/\u00e9.md", "sops/e\u0301.md", "pic.png", "inbox/n.md")
PATHS = (
    "a.md",
    "./b.md",
    "../b.md",
    "sops/c.md",
    "c.md",
    "\u00e9.md",
    "gone.md",
    "/abs.md",
    "sops/\u00e9.md",
)


def document(includes: list[str], canonical: str | None, body: int) -> bytes:
    lines = [f"  - {path}" for path in includes]
    claim = [f"canonical_path: {canonical}"] if canonical else []
    return "\n".join(["---", *claim, *(["includes:", *lines] if lines else []), "---", "x" * body]).encode()


documents = st.builds(
    document,
    st.lists(st.sampled_from(PATHS), max_size=3),
    st.sampled_from((None, None, "a.md", "b.md", "sops/c.md")),
    st.integers(0, 2),
)
operations = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), documents),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


class Bucket:
    """A bucket whose changes put events on the bus, with sequencers that grow."""

    def __init__(self) -> None:
        self.store = MemoryStore({})
        self.events: list[tuple[str, str]] = []
        self._changes = 0
        copy, remove = self.store.copy, self.store.remove

        def copied(source: Location, destination: Location, version: str) -> str:
            self.happened(destination.key)
            return copy(source, destination, version)

        def removed(location: Location, version: str) -> None:
            self.happened(location.key)
            remove(location, version)

        self.store.copy, self.store.remove = copied, removed  # type: ignore[method-assign]

    def happened(self, key: str) -> None:
        self._changes += 1
        self.events.append((key, f"00{self._changes:06X}"))

    def apply(self, operation: tuple[str, str, Any]) -> None:
        kind, key, what = operation
        if kind == "put":
            self.store.files[key] = what
        elif key in self.store.files and kind == "delete":
            del self.store.files[key]
        elif key in self.store.files and what != key:
            self.store.files[what] = self.store.files.pop(key)
            self.happened(what)
        else:
            return
        self.happened(key)


class World:
    """An indexer over a table, and everything that waits to be delivered to it."""

    def __init__(self, bucket: Bucket, table: MemoryTable) -> None:
        self.bucket, self.table, self.bus = bucket, table, MemoryBus()
        self.index = DynamoEdgeIndex(table, "t", ROOTS, shards=2)  # type: ignore[arg-type]
        store = bucket.store
        self.indexer = Indexer(store, self.index, self.bus, self.bus, Placement(store, store))

    def deliver(self, event: tuple[str, str]) -> bool:
        """One delivery, which may die half-way; whether it was acknowledged."""
        return self._survives(lambda: self.indexer.object_changed(Location(ROOT, event[0]), event[1]))

    def heal_all(self) -> None:
        for _ in range(500):
            if not self.bus.heals:
                return
            target, cursor = self.bus.heals.pop(0)
            if not self._survives(lambda: self.indexer.heal(target, cursor)):  # noqa: B023 - run at once
                self.bus.heals.append((target, cursor))
        raise AssertionError("healing does not end")

    def _survives(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except Crash:
            return False
        return True

    def picture(self) -> dict[str, Any]:
        """What a reader sees: each living node without when it was written, and who includes it."""
        deadline = Deadline.after(60)
        keys = {
            *NAMES,
            *(k for p, s in self.table.items if s == "D" for k in [self.table.items[p, s]["key"]["S"]]),
        }
        seen: dict[str, Any] = {}
        for key in sorted(keys):
            location = Location(ROOT, key)
            node = self.index.node(location)
            parents, _ = self.index.dependents(location, deadline=deadline, limit=100)
            remarks = sorted((f.code, f.line or 0, f.message) for f in node.findings) if node else []
            living = node and node.exists
            seen[key] = (
                (node.version, node.verdict, node.includes, remarks, node.canonical_path)
                if node and living
                else None,
                [parent.location.key for parent in parents],
            )
        return seen


def check_targets(world: World) -> None:
    """What each node says of its targets is what the bucket's files say, whoever computed it."""
    files = world.bucket.store.files
    for key in files:
        node = world.index.node(Location(ROOT, key))
        assert node is not None
        for include in node.includes:
            if include.key and include.code in (None, "target_missing", "unicode_form_differs"):
                found, code = find(include.key, lambda key: key if key in files else None)
                assert (include.target, include.code) == (found or include.key, code)
        codes = {finding.code for finding in node.findings}
        claims = [k for k in files if (n := world.index.node(Location(ROOT, k))) and n.canonical_path]
        rivals = [
            k
            for k in claims
            if world.index.node(Location(ROOT, k)).canonical_path == node.canonical_path  # type: ignore[union-attr]
        ]
        assert ("canonical_path_conflict" in codes) == (len(rivals) > 1 and key in rivals)


def fresh_scan(store: MemoryStore) -> dict[str, Any]:
    """The picture of an index that has just been made from the bucket as it is."""
    bucket = Bucket()
    bucket.store.files.update(store.files)
    world = World(bucket, MemoryTable())
    for key in sorted(store.files):
        world.indexer.object_changed(Location(ROOT, key))
    world.heal_all()
    return world.picture()


@settings(max_examples=150)
@given(
    st.lists(operations, min_size=1, max_size=12),
    st.data(),
)
def test_the_index_equals_a_fresh_scan(changes: list[tuple[str, str, Any]], data: st.DataObject) -> None:
    bucket = Bucket()
    world = World(bucket, MemoryTable())
    waiting: list[tuple[str, str]] = []
    for change in changes:
        bucket.apply(change)
        waiting, bucket.events = waiting + bucket.events, []
        for _ in range(data.draw(st.integers(0, 2), label="deliveries now")):
            if waiting:
                event = waiting[data.draw(st.integers(0, len(waiting) - 1), label="which")]
                if data.draw(st.booleans(), label="crash"):
                    world.table.dies_at = data.draw(st.integers(0, 12), label="at call")
                    world.table.dies_after_writing = data.draw(st.booleans(), label="after writing")
                acknowledged = world.deliver(event)
                world.table.dies_at = None
                if acknowledged and not data.draw(st.booleans(), label="comes again"):
                    waiting.remove(event)
                waiting, bucket.events = waiting + bucket.events, []
    for event in data.draw(st.permutations(waiting), label="the rest"):
        assert world.deliver(event)
        while bucket.events:
            assert world.deliver(bucket.events.pop())
    world.heal_all()
    assert world.picture() == fresh_scan(bucket.store)
    check_targets(world)


@pytest.mark.parametrize("call", range(40))
@pytest.mark.parametrize("after_writing", [False, True])
def test_a_crash_at_every_call_of_one_change(call: int, after_writing: bool) -> None:
    bucket = Bucket()
    world = World(bucket, MemoryTable())
    for key, includes in (("b.md", []), ("a.md", ["b.md", "gone.md"]), ("sops/c.md", ["../b.md", "../a.md"])):
        bucket.apply(("put", key, document(includes, "a.md", 0)))
    while bucket.events:
        assert world.deliver(bucket.events.pop())
    world.heal_all()
    bucket.apply(("put", "a.md", document(["sops/c.md", "new.md"], "b.md", 1)))
    (event,) = bucket.events
    world.table.dies_at, world.table.dies_after_writing = call, after_writing
    world.deliver(event)
    world.table.dies_at = None
    assert world.deliver(event)
    world.heal_all()
    assert world.picture() == fresh_scan(bucket.store)
    check_targets(world)


def settled(*changes: tuple[str, str, Any]) -> World:
    """A world in which these changes happened one after the other, each with its healing."""
    world = World(Bucket(), MemoryTable())
    for change in changes:
        world.bucket.apply(change)
        events, world.bucket.events = world.bucket.events, []
        for event in events:
            assert world.deliver(event)
        world.heal_all()
    return world


def codes(world: World, key: str) -> list[str]:
    node = world.index.node(Location(ROOT, key))
    assert node is not None
    return [finding.code for finding in node.findings]


def test_a_target_in_another_unicode_form_heals_its_includer() -> None:
    includer = ("put", "sops/c.md", document(["\u00e9.md"], None, 0))
    world = settled(includer, ("put", "sops/e\u0301.md", b"x"))
    assert codes(world, "sops/c.md") == ["unicode_form_differs"]
    world.bucket.apply(("put", "sops/\u00e9.md", b"y"))
    assert world.deliver(world.bucket.events.pop())
    world.heal_all()
    assert codes(world, "sops/c.md") == []


def test_a_moved_target_says_where_it_is() -> None:
    world = settled(
        ("put", "b.md", b"long text"),
        ("put", "a.md", document(["b.md"], None, 0)),
        ("move", "b.md", "sops/c.md"),
    )
    node = world.index.node(Location(ROOT, "a.md"))
    assert node is not None
    (finding,) = node.findings
    assert (finding.code, finding.moved_to) == ("target_missing", "s3://kb/sops/c.md")


def test_a_verdict_is_published_when_it_changes_and_only_then() -> None:
    world = settled(("put", "a.md", document(["b.md"], None, 0)), ("put", "b.md", b"x"))
    assert world.bus.published == [
        ("s3://kb/a.md", "invalid"),
        ("s3://kb/b.md", "valid"),
        ("s3://kb/a.md", "valid"),
    ]
    world.bus.published.clear()
    world.indexer.object_changed(Location(ROOT, "a.md"))
    assert world.bus.published == []
    world.bucket.apply(("delete", "b.md", None))
    assert world.deliver(world.bucket.events.pop())
    world.heal_all()
    assert world.bus.published == [("s3://kb/b.md", "removed"), ("s3://kb/a.md", "invalid")]


def test_an_unchanged_document_is_not_written_again() -> None:
    world = settled(("put", "a.md", document(["b.md"], "a.md", 0)), ("put", "b.md", b"x"))
    before = dict(world.table.items)
    outcomes = {world.indexer.object_changed(Location(ROOT, key)) for key in ("a.md", "b.md")}
    assert outcomes == {"unchanged"}
    assert world.table.items == before
