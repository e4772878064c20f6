"""The include graph around a document, as the index has it: both directions, bounded, honest about cuts."""

import pytest

from groundwire.deadline import Deadline
from groundwire.errors import Unavailable
from groundwire.graph import Direction, Neighbourhood, neighbourhood
from groundwire.limits import GRAPH_NODES
from tests.fakes import MemoryIndex, MemoryStore
from tests.unit.graphs import at, indexed, page

DEADLINE = Deadline.after(24 * 3600)
FILES = {
    "a.md": page("b.md", "c.md", "gone.md", "/x", "b.md"),
    "b.md": page("a.md", "d.md", "b.md"),
    "c.md": page("d.md"),
    "d.md": b"",
    "other.md": page("other2.md"),
}


def around(
    key: str, direction: Direction = "includes", depth: int = 2, index: MemoryIndex | None = None
) -> Neighbourhood:
    index = index or indexed(MemoryStore(FILES))
    return neighbourhood(index.stored[at(key).uri], index, direction, depth, DEADLINE)


def keys(found: Neighbourhood) -> list[str]:
    return [uri.removeprefix("local://kb/") for uri in found.nodes]


def edges(found: Neighbourhood) -> list[tuple[str, str, str, int]]:
    def key(uri: str) -> str:
        return uri.removeprefix("local://kb/")

    return [(key(e.from_uri), key(e.to_uri), e.relative_path, e.depth) for e in found.edges]


def test_what_a_document_includes_in_order_of_distance() -> None:
    """A missing document is there without a node; refused and repeated includes are not."""
    found = around("a.md")
    assert keys(found) == ["a.md", "b.md", "c.md", "gone.md", "d.md"]
    assert [node is None for node in found.nodes.values()] == [False, False, False, True, False]
    assert edges(found) == [
        ("a.md", "b.md", "b.md", 1),
        ("a.md", "c.md", "c.md", 1),
        ("a.md", "gone.md", "gone.md", 1),
        ("b.md", "a.md", "a.md", 2),
        ("b.md", "d.md", "d.md", 2),
        ("b.md", "b.md", "b.md", 2),
        ("c.md", "d.md", "d.md", 2),
    ]
    assert (found.centre, found.direction, found.depth) == (at("a.md").uri, "includes", 2)
    assert not found.truncated


def test_who_includes_a_document() -> None:
    """Edges lead from the including to the included document in both directions."""
    found = around("d.md", "dependents", 3)
    assert keys(found) == ["d.md", "b.md", "c.md", "a.md"]
    assert edges(found) == [
        ("b.md", "d.md", "d.md", 1),
        ("c.md", "d.md", "d.md", 1),
        ("a.md", "b.md", "b.md", 2),
        ("b.md", "b.md", "b.md", 2),
        ("a.md", "c.md", "c.md", 2),
        ("b.md", "a.md", "a.md", 3),
    ]


@pytest.mark.parametrize("direction", ["includes", "dependents"])
def test_depth_0_is_the_document_alone(direction: Direction) -> None:
    found = around("a.md", direction, 0)
    assert (keys(found), edges(found), found.truncated) == (["a.md"], [], False)


@pytest.mark.parametrize("direction", ["includes", "dependents"])
def test_cycles_end(direction: Direction) -> None:
    index = indexed(MemoryStore({"a.md": page("b.md", "a.md"), "b.md": page("a.md")}))
    found = around("a.md", direction, 5, index)
    assert sorted(keys(found)) == ["a.md", "b.md"]


def test_a_tombstone_is_not_there() -> None:
    store = MemoryStore(FILES)
    index = indexed(store)
    gone = index.stored[at("b.md").uri]
    index.stored[at("b.md").uri] = type(gone)(gone.location, None)
    assert around("a.md", index=index).nodes[at("b.md").uri] is None


def test_more_documents_than_are_shown_are_said_to_be_more() -> None:
    """Whatever the breadth; edges lead only between documents that are shown."""
    files = {"a.md": page(*(f"p{n}.md" for n in range(100)))}
    files |= {f"p{n}.md": page(*(f"x{n}-{m}.md" for m in range(5))) for n in range(100)}
    found = around("a.md", index=indexed(MemoryStore(files)))
    assert (len(found.nodes), found.truncated) == (GRAPH_NODES, True)
    assert {uri for edge in found.edges for uri in (edge.from_uri, edge.to_uri)} == set(found.nodes)
    assert not around("a.md", depth=1, index=indexed(MemoryStore(files))).truncated


def test_more_dependents_than_are_shown_are_said_to_be_more() -> None:
    files = {"terms.md": b"", **{f"d{n:03}.md": page("terms.md") for n in range(GRAPH_NODES)}}
    found = around("terms.md", "dependents", 1, indexed(MemoryStore(files)))
    assert (len(found.nodes), found.truncated) == (GRAPH_NODES, True)


def test_an_index_that_does_not_answer_is_no_empty_graph() -> None:
    index = indexed(MemoryStore(FILES))
    index.reachable = False
    with pytest.raises(Unavailable):
        around("a.md", index=index)
