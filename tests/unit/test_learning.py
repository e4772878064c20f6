"""Read-through: what was seen last of a document in a store without events is what the index says."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.documents import FetchedDocument
from groundwire.errors import Unavailable
from groundwire.fetching import prepare
from groundwire.learning import Learner, absence, sighting
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.fakes import MemoryIndex
from tests.unit.graphs import page

DRIVE = StorageRoot("policies", "sharepoint", "b!drive")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LEAVE = Location(DRIVE, "HR/Leave.md")


def seen(content: bytes, version: str, at: datetime = NOON) -> Node:
    return sighting(prepare(FetchedDocument(LEAVE, content, version)), at)


def stored(index: MemoryIndex) -> Node:
    return index.stored[LEAVE.uri]


def test_a_sighting_says_what_the_document_says() -> None:
    node = seen(b"---\ntitle: Leave\nincludes: [Travel.md, 7]\n---\nBody", "c:1")
    assert (node.title, node.version, node.mime_type, node.verdict) == (
        "Leave",
        "c:1",
        "text/markdown",
        "invalid",
    )
    assert [(each.raw, each.key) for each in node.includes] == [("Travel.md", "HR/Travel.md"), ("7", None)]
    assert [finding.code for finding in node.findings] == ["include_not_string"]
    assert node.indexed_at == "2026-03-02T12:00:00.000+00:00"


def test_what_was_learned_is_kept_and_nothing_is_announced_of_it() -> None:
    index = MemoryIndex()
    assert Learner(index).learn(seen(page("Travel.md"), "c:1")) == "learned"
    assert Learner(index).learn(seen(page("Travel.md"), "c:1", NOON + timedelta(hours=1))) == "unchanged"
    node = stored(index)
    assert node.announced == node.state
    assert node.owes == ()
    assert node.generation == node.edge_generation != ""


def test_an_earlier_sighting_never_replaces_a_later_one() -> None:
    index = MemoryIndex()
    Learner(index).learn(seen(b"new", "c:2", NOON + timedelta(milliseconds=1)))
    assert Learner(index).learn(seen(b"old", "c:1")) == "superseded"
    assert stored(index).version == "c:2"


def test_an_absence_leaves_a_tombstone_and_of_the_unknown_nothing() -> None:
    index = MemoryIndex()
    assert Learner(index).learn(absence(LEAVE, NOON)) == "unchanged"
    assert index.stored == {}
    Learner(index).learn(seen(b"x", "c:1"))
    assert Learner(index).learn(absence(LEAVE, NOON + timedelta(seconds=1))) == "learned"
    assert not stored(index).exists
    assert Learner(index).learn(seen(b"x", "c:1", NOON + timedelta(seconds=2))) == "learned"
    assert stored(index).exists


@given(
    events=st.permutations(
        [
            seen(b"1", "c:1", NOON),
            seen(page("a.md"), "c:2", NOON + timedelta(seconds=1)),
            absence(LEAVE, NOON + timedelta(seconds=2)),
            seen(page("b.md"), "c:3", NOON + timedelta(seconds=3)),
        ]
    ),
    again=st.lists(st.integers(0, 3), max_size=4),
)
def test_in_any_order_and_however_often_the_last_one_stays(events: list[Node], again: list[int]) -> None:
    index = MemoryIndex()
    for node in [*events, *(events[number] for number in again)]:
        Learner(index).learn(node)
    assert (stored(index).version, [each.key for each in stored(index).includes]) == ("c:3", ["HR/b.md"])


class Contended(MemoryIndex):
    """Another writer is always faster."""

    def replace(self, node: Node, seen: Node | None) -> bool:
        return False


def test_a_node_that_others_keep_changing_is_tried_again_later() -> None:
    with pytest.raises(Unavailable):
        Learner(Contended()).learn(seen(b"x", "c:1"))


class Overtaken(MemoryIndex):
    """Another writer comes in between, once."""

    def replace(self, node: Node, seen_before: Node | None) -> bool:
        if not self.stored:
            super().replace(seen(b"other", "c:0", NOON - timedelta(seconds=1)), None)
        return super().replace(node, seen_before)


def test_a_writer_in_between_is_looked_at_and_outdone() -> None:
    index = Overtaken()
    assert Learner(index).learn(seen(b"x", "c:1")) == "learned"
    assert (stored(index).version, index.writes) == ("c:1", 2)


def test_a_sharepoint_document_has_one_id_in_every_letter_case_and_no_other_store_has() -> None:
    assert document_id(LEAVE) == document_id(LEAVE.at("hr/LEAVE.MD"))
    for root in (StorageRoot("kb", "s3", "kb"), StorageRoot("kb", "gcs", "kb")):
        assert document_id(Location(root, "a.md")) != document_id(Location(root, "A.md"))
