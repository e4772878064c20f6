"""X-2, X-6: after any uploads, moves and deletions, with events that come twice, late, in the wrong order or
after a crash between any two calls of DynamoDB, the index equals a fresh scan of the bucket.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table import MemoryTable
from tests.worlds import NAMES, PATHS, Bucket, World, check_targets, document, fresh_scan

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


@settings(max_examples=150)
@given(
    st.lists(operations, min_size=1, max_size=12),
    st.data(),
)
def test_the_index_equals_a_fresh_scan(changes: list[tuple[str, str, Any]], data: st.DataObject) -> None:
    bucket = Bucket()
    table = MemoryTable()
    world = World(bucket, table)
    waiting: list[tuple[str, str]] = []
    for change in changes:
        bucket.apply(change)
        waiting, bucket.events = waiting + bucket.events, []
        for _ in range(data.draw(st.integers(0, 2), label="deliveries now")):
            if waiting:
                event = waiting[data.draw(st.integers(0, len(waiting) - 1), label="which")]
                if data.draw(st.booleans(), label="crash"):
                    table.dies_at = data.draw(st.integers(0, 12), label="at call")
                    table.dies_after_writing = data.draw(st.booleans(), label="after writing")
                acknowledged = world.deliver(event)
                table.dies_at = None
                if acknowledged and not data.draw(st.booleans(), label="comes again"):
                    waiting.remove(event)
                waiting, bucket.events = waiting + bucket.events, []
    for event in data.draw(st.permutations(waiting), label="the rest"):
        assert world.deliver(event)
        while bucket.events:
            assert world.deliver(bucket.events.pop())
    world.heal_all()
    assert world.picture() == fresh_scan(world, World(Bucket(), MemoryTable()))
    check_targets(world)


@pytest.mark.parametrize("call", range(40))
@pytest.mark.parametrize("after_writing", [False, True])
def test_a_crash_at_every_call_of_one_change(call: int, after_writing: bool) -> None:
    bucket = Bucket()
    table = MemoryTable()
    world = World(bucket, table)
    for key, includes in (("b.md", []), ("a.md", ["b.md", "gone.md"]), ("sops/c.md", ["../b.md", "../a.md"])):
        bucket.apply(("put", key, document(includes, "a.md", 0)))
    while bucket.events:
        assert world.deliver(bucket.events.pop())
    world.heal_all()
    bucket.apply(("put", "a.md", document(["sops/c.md", "new.md"], "b.md", 1)))
    (event,) = bucket.events
    table.dies_at, table.dies_after_writing = call, after_writing
    world.deliver(event)
    table.dies_at = None
    assert world.deliver(event)
    world.heal_all()
    assert world.picture() == fresh_scan(world, World(Bucket(), MemoryTable()))
    check_targets(world)


def settled(*changes: tuple[str, str, Any], table: MemoryTable | None = None) -> World:
    """A world in which these changes happened one after the other, each with its healing."""
    world = World(Bucket(), table or MemoryTable())
    for change in changes:
        world.bucket.apply(change)
        events, world.bucket.events = world.bucket.events, []
        for event in events:
            assert world.deliver(event)
        world.heal_all()
    return world


def codes(world: World, key: str) -> list[str]:
    node = world.index.node(world.at(key))
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
    node = world.index.node(world.at("a.md"))
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
    world.indexer.object_changed(world.at("a.md"))
    assert world.bus.published == []
    world.bucket.apply(("delete", "b.md", None))
    assert world.deliver(world.bucket.events.pop())
    world.heal_all()
    assert world.bus.published == [("s3://kb/b.md", "removed"), ("s3://kb/a.md", "invalid")]


def test_an_unchanged_document_is_not_written_again() -> None:
    table = MemoryTable()
    changes = (("put", "a.md", document(["b.md"], "a.md", 0)), ("put", "b.md", b"x"))
    world = settled(*changes, table=table)
    before = dict(table.items)
    outcomes = {world.indexer.object_changed(world.at(key)) for key in ("a.md", "b.md")}
    assert outcomes == {"unchanged"}
    assert table.items == before
