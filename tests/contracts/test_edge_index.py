"""The contract of EdgeReader and EdgeWriter, on the fake and on DynamoDB."""

from dataclasses import replace
from itertools import count
from typing import Protocol

import pytest
from botocore.config import Config

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.errors import Unavailable
from groundwire.findings import finding
from groundwire.includes import Include
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.ports import EdgeWriter
from groundwire.roots import StorageRoot, StorageRoots
from tests.cloud import Cloud, session
from tests.fakes import MemoryIndex

SOON = Deadline.after(24 * 3600)
ROOT = StorageRoot("kb", "s3", "facilities-kb")
OTHER = StorageRoot("hr", "s3", "hr-kb", prefix="docs")
ROOTS = StorageRoots([ROOT, OTHER])
_generations = count(1)


class Index(EdgeWriter, Protocol):
    """Both halves of the index."""


def node(key: str, *includes: str, root: StorageRoot = ROOT) -> Node:
    """A document that includes others by their keys, as one writer would write it now."""
    declared = tuple(Include(n, f"./{each}", n + 3, 5, each) for n, each in enumerate(includes))
    token = f"g{next(_generations):04}"
    return Node(Location(root, key), "etag", includes=declared, generation=token, edge_generation=token)


def tombstone(key: str) -> Node:
    token = f"g{next(_generations):04}"
    return Node(Location(ROOT, key), None, generation=token, edge_generation=token)


def at(key: str) -> Location:
    return Location(ROOT, key)


def dynamo(cloud: Cloud, shards: int = 4) -> DynamoEdgeIndex:
    return DynamoEdgeIndex(cloud.dynamodb, cloud.table, ROOTS, shards)


@pytest.fixture(params=["memory", "dynamodb"])
def index(request: pytest.FixtureRequest) -> Index:
    """Each index in turn, empty."""
    if request.param == "memory":
        return MemoryIndex()
    return dynamo(request.getfixturevalue("cloud"))


def written(index: Index, *nodes: Node) -> None:
    """Writes each node over what is there."""
    for each in nodes:
        assert index.replace(each, index.node(each.location))


def including(index: Index, key: str, limit: int = 1_000) -> list[str]:
    found, _ = index.dependents(at(key), deadline=SOON, limit=limit)
    return [each.location.key for each in found]


def test_nothing_is_known_of_what_was_never_written(index: Index) -> None:
    assert index.node(at("a.md")) is None
    assert index.nodes([at("a.md")], deadline=SOON) == {}
    assert index.dependents(at("a.md"), deadline=SOON, limit=10) == ([], False)


def test_no_locations_no_nodes(index: Index) -> None:
    assert index.nodes([], deadline=SOON) == {}


@pytest.mark.parametrize("consistent", [False, True])
def test_what_is_written_is_read(index: Index, consistent: bool) -> None:
    a, b = node("a.md", "b.md"), node("b.md")
    written(index, a, b)
    assert index.node(a.location) == a
    wanted = [at("a.md"), at("gone.md"), at("b.md"), at("a.md")]
    found = index.nodes(wanted, deadline=SOON, consistent=consistent)
    assert found == {a.location.uri: a, b.location.uri: b}


def test_roots_do_not_share_documents(index: Index) -> None:
    ours, theirs = node("docs/a.md"), node("docs/a.md", root=OTHER)
    written(index, ours, theirs)
    assert index.nodes([ours.location, theirs.location], deadline=SOON) == {
        ours.location.uri: ours,
        theirs.location.uri: theirs,
    }


def test_every_field_comes_back(index: Index) -> None:
    full = Node(
        location=Location(OTHER, "docs/é/日本 +%25#?\x01.md"),
        version="9b2cf535f27731c974343645a3985328-2",
        version_id="IYV3p45BT0ac8hjHg1houSdS1a.Mro8e",
        size_bytes=5_368_709_120,
        mime_type="text/markdown",
        title='Kylmä "vesi"\n\x00',
        canonical_path="sops/kylmä.md",
        includes=(
            Include(0, "./b.md", 4, 5, "docs/b.md", None),
            Include(1, None, 5, 5, None, "include_not_string"),
            Include(2, "\x07", 6, 5, None, "include_control_character"),
            Include(3, "./b.md", 7, 5, "docs/b.md", "include_duplicate"),
        ),
        findings=(
            finding("include_control_character", "'\\x07' holds U+0007", line=6, column=5),
            finding("yaml_duplicate_key", "twice", line=2, loses_includes=True, hint="äö"),
        ),
        finding_count=2_000,
        verdict="invalid",
        fingerprint="e3b0c44298fc1c149afbf4c8996fb924:0",
        sequencer="0055AED6DCD90281E500000000000000000000",
        generation="1f2e3d4c5b6a7988",
        indexed_at="2026-03-02T08:15:00.000+00:00",
    )
    written(index, full)
    assert index.node(full.location) == full


def test_fields_that_are_empty_stay_empty(index: Index) -> None:
    bare = Node(at("a.md"), "", title="", generation="g")
    written(index, bare)
    read = index.node(at("a.md"))
    assert read == bare
    assert read is not None
    assert read.exists, "an empty version is a document of which nothing could be read"


def test_a_tombstone_is_known_and_includes_nothing(index: Index) -> None:
    written(index, node("a.md", "b.md"), tombstone("a.md"))
    stored = index.node(at("a.md"))
    assert stored is not None
    assert not stored.exists
    assert index.nodes([at("a.md")], deadline=SOON) == {at("a.md").uri: stored}
    assert including(index, "b.md") == []


def test_a_document_returns_after_its_tombstone(index: Index) -> None:
    written(index, node("a.md", "b.md"), tombstone("a.md"), node("a.md", "c.md"))
    assert (including(index, "b.md"), including(index, "c.md")) == ([], ["a.md"])


# -- races --------------------------------------------------------------------------------------


def test_who_saw_an_older_node_writes_nothing(index: Index) -> None:
    first, second, late = node("a.md", "b.md"), node("a.md", "c.md"), node("a.md", "d.md")
    written(index, first, second)
    assert not index.replace(late, first)
    assert index.node(at("a.md")) == second
    assert [including(index, key) for key in ("b.md", "c.md", "d.md")] == [[], ["a.md"], []]


def test_who_saw_nothing_does_not_overwrite(index: Index) -> None:
    first, late = node("a.md", "b.md"), node("a.md", "d.md")
    written(index, first)
    assert not index.replace(late, None)
    assert index.node(at("a.md")) == first
    assert including(index, "d.md") == []


def test_who_saw_a_node_that_is_gone_writes_nothing(index: Index) -> None:
    assert not index.replace(node("a.md"), node("a.md"))
    assert index.node(at("a.md")) is None


@pytest.mark.parametrize("before", [None, "b.md"])
def test_writing_the_same_node_again_is_success(index: Index, before: str | None) -> None:
    """A try whose answer was lost is tried again, and finds its own node."""
    seen = node("a.md", before) if before else None
    if seen:
        written(index, seen)
    mine = node("a.md", "c.md")
    assert index.replace(mine, seen)
    assert index.replace(mine, seen)
    assert (index.node(at("a.md")), including(index, "c.md"), including(index, "b.md")) == (
        mine,
        ["a.md"],
        [],
    )


# -- dependents ---------------------------------------------------------------------------------


def test_edges_are_replaced_with_the_node(index: Index) -> None:
    written(index, node("a.md", "b.md", "c.md"))
    assert (including(index, "b.md"), including(index, "c.md")) == (["a.md"], ["a.md"])
    written(index, node("a.md", "c.md", "d.md"))
    assert [including(index, key) for key in ("b.md", "c.md", "d.md")] == [[], ["a.md"], ["a.md"]]


def test_a_missing_target_has_dependents(index: Index) -> None:
    written(index, node("a.md", "never/uploaded.md"))
    assert including(index, "never/uploaded.md") == ["a.md"]


def test_only_entries_that_count_make_edges(index: Index) -> None:
    declared = (
        Include(0, "b.md", 1, 1, "b.md"),
        Include(1, "./b.md", 2, 1, "b.md", "include_duplicate"),
        Include(2, "../x", 3, 1, None, "include_escapes_root"),
        Include(3, "a.md", 4, 1, "a.md", "self_include"),
    )
    written(index, replace(node("a.md"), includes=declared))
    assert (including(index, "b.md"), including(index, "a.md")) == (["a.md"], ["a.md"])


def test_a_hundred_includes_are_all_followed_back(index: Index) -> None:
    targets = [f"t/{number:03}.md" for number in range(100)]
    ends_of_batches = [targets[n] for n in (0, 24, 25, 49, 50, 74, 75, 99)]
    written(index, node("a.md", *targets))
    assert [key for key in ends_of_batches if including(index, key) == ["a.md"]] == ends_of_batches
    written(index, node("a.md", *targets[50:]))
    assert [key for key in ends_of_batches if including(index, key) == ["a.md"]] == ends_of_batches[4:]


def test_dependents_are_sorted_cut_and_say_so(index: Index) -> None:
    keys = [f"p/{number:03}.md" for number in range(7)]
    written(index, *(node(key, "glossary.md") for key in reversed(keys)))
    assert including(index, "glossary.md") == keys
    for limit, expected, more in [(7, keys, False), (6, keys[:6], True), (1, keys[:1], True)]:
        found, cut = index.dependents(at("glossary.md"), deadline=SOON, limit=limit)
        assert ([each.location.key for each in found], cut) == (expected, more)


def test_dependents_belong_to_the_same_root(index: Index) -> None:
    written(index, node("docs/a.md", "docs/b.md"), node("docs/c.md", "docs/b.md", root=OTHER))
    assert including(index, "docs/b.md") == ["docs/a.md"]


def test_more_nodes_than_one_request_holds(index: Index) -> None:
    nodes = [node(f"n/{number:03}.md") for number in range(130)]
    written(index, *nodes)
    assert index.nodes((each.location for each in nodes), deadline=SOON) == {
        each.location.uri: each for each in nodes
    }


# -- an index that cannot answer ----------------------------------------------------------------


@pytest.fixture(params=["memory", "dynamodb"])
def unreachable(request: pytest.FixtureRequest) -> Index:
    """Each index in turn, with nobody there."""
    if request.param == "memory":
        down = MemoryIndex()
        down.reachable = False
        return down
    client = session().client(
        "dynamodb",
        endpoint_url="http://127.0.0.1:1",
        config=Config(connect_timeout=1, retries={"total_max_attempts": 1}),
    )
    return DynamoEdgeIndex(client, "table", ROOTS, 4)


def test_an_unreachable_index_never_says_that_nothing_is_there(unreachable: Index) -> None:
    for ask in (
        lambda: unreachable.nodes([at("a.md")], deadline=SOON),
        lambda: unreachable.node(at("a.md")),
        lambda: unreachable.dependents(at("a.md"), deadline=SOON, limit=1),
        lambda: unreachable.replace(node("a.md"), None),
    ):
        with pytest.raises(Unavailable):
            ask()
