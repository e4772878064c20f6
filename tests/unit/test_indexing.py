"""Rules X-1 to X-4: an event is a hint; the object's current state becomes the node."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.errors import DocumentForbidden, Throttled, Unavailable
from groundwire.limits import HEAD_BYTES
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.fakes import MemoryIndex, MemoryStore, indexer_over, version_of

KB = StorageRoot("kb", "s3", "kb")
A = Location(KB, "sops/a.md")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGE = b"---\ntitle: Leak\ncanonical_path: sops/a.md\nincludes: [b.md, /x, 7, b.md]\n---\n"


class Workshop:
    """An indexer over a store and an index in memory."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.store = MemoryStore(files or {})
        self.index = MemoryIndex()
        self.indexer = indexer_over(self.store, self.index, now=lambda: NOW)

    def changed(self, sequencer: str | None = None, location: Location = A) -> str:
        return self.indexer.object_changed(location, sequencer)

    def node(self, location: Location = A) -> Node:
        node = self.index.node(location)
        assert node
        return node


def content(node: Node | None) -> Node | None:
    """What a node says of its object, and nothing of when it was looked at; None for one that is gone."""
    if node is None or not node.exists:
        return None
    return replace(node, sequencer="", generation="", edge_generation="", indexed_at="")


def test_a_new_object_becomes_a_node() -> None:
    """X-4."""
    work = Workshop({A.key: PAGE})
    assert work.changed("0A") == "indexed"
    node = work.node()
    assert (node.version, node.version_id, node.size_bytes) == (version_of(PAGE), None, len(PAGE))
    assert (node.mime_type, node.title, node.canonical_path) == ("text/markdown", "Leak", "sops/a.md")
    assert [(i.raw, i.key, i.code, i.line) for i in node.includes] == [
        ("b.md", "sops/b.md", "target_missing", 4),
        ("/x", None, "include_absolute", 4),
        ("7", None, "include_not_string", 4),
        ("b.md", "sops/b.md", "include_duplicate", 4),
    ]
    assert [f.code for f in node.findings] == [
        "include_not_string",
        "include_absolute",
        "include_duplicate",
        "target_missing",
    ]
    assert (node.finding_count, node.verdict) == (4, "invalid")
    assert node.fingerprint == f"{hashlib.sha256(PAGE).hexdigest()}:{len(PAGE)}"
    assert node.indexed_at == "2026-03-01T12:00:00.000+00:00"
    assert [target.key for target in node.targets()] == ["sops/b.md"]
    assert (node.owes, node.announced) == ((), node.state)
    assert node.generation != node.edge_generation, "judged by a write of its own, which puts no edges"


def test_a_target_that_is_there_is_not_missing() -> None:
    """I-5: what the index has decides, when the document is looked at."""
    work = Workshop({A.key: b"---\nincludes: [b.md, c.md]\n---\n", "sops/b.md": b""})
    work.changed("01", A.at("sops/b.md"))
    work.changed("02")
    assert [include.code for include in work.node().includes] == [None, "target_missing"]
    assert [(f.code, f.line) for f in work.node().findings] == [("target_missing", 2)]


def test_overwriting_replaces_and_deleting_leaves_a_tombstone() -> None:
    """X-1."""
    work = Workshop({A.key: PAGE})
    work.changed("01")
    work.store.files[A.key] = b"---\nincludes: [c.md]\n---\n"
    assert work.changed("02") == "indexed"
    assert [target.key for target in work.node().targets()] == ["sops/c.md"]
    del work.store.files[A.key]
    assert work.changed("03") == "removed"
    assert (work.node().exists, work.node().includes, work.node().sequencer[:2]) == (False, (), "03")
    assert work.changed("04") == "absent"
    work.store.files[A.key] = PAGE
    assert work.changed("05") == "indexed"
    assert work.node().exists


def test_an_object_that_was_never_there_writes_nothing() -> None:
    work = Workshop()
    assert work.changed("01") == "absent"
    assert work.index.stored == {}


def test_an_older_event_after_a_newer_one_is_superseded() -> None:
    """X-2: and costs no look at the object."""
    work = Workshop({A.key: PAGE})
    work.changed("0000000002")
    work.store.failures[A.key] = Unavailable
    before, writes = work.node(), work.index.writes
    assert work.changed("0000000001") == "superseded"
    assert (work.node(), work.index.writes) == (before, writes)


def test_the_same_event_twice_does_no_harm() -> None:
    work = Workshop({A.key: PAGE})
    work.changed("01")
    first = content(work.node())
    assert work.changed("01") == "indexed"
    assert content(work.node()) == first


@pytest.mark.parametrize(
    ("earlier", "later"),
    [("0A", "0B"), ("0a", "0B"), ("0A", "0A01"), ("0A", "0b"), ("00", "0F00"), ("9", "A"), ("0AFF", "0B")],
)
def test_sequencers_are_right_padded_and_letters_have_no_case(earlier: str, later: str) -> None:
    """S3 pads the shorter one with zeros on its right; so `0B` comes after `0AFF`."""
    work = Workshop({A.key: PAGE})
    work.changed(later)
    assert work.changed(earlier) == "superseded"
    work = Workshop({A.key: PAGE})
    work.changed(earlier)
    assert work.changed(later) == "indexed"


@pytest.mark.parametrize("same", [("0A", "0A00"), ("0A00", "0A"), ("0a", "0A")])
def test_equal_sequencers_supersede_nothing(same: tuple[str, str]) -> None:
    work = Workshop({A.key: PAGE})
    work.changed(same[0])
    assert work.changed(same[1]) == "indexed"


def test_a_repair_writes_nothing_where_nothing_changed() -> None:
    """B-9, X-9: a look that no event orders keeps the sequencer, and the order of later events with it."""
    work = Workshop({A.key: PAGE})
    work.changed("05")
    before, writes = work.node(), work.index.writes
    assert work.changed() == "unchanged"
    assert (work.node(), work.index.writes) == (before, writes)
    work.store.files[A.key] = b"new"
    assert work.changed() == "indexed"
    assert work.node().sequencer == before.sequencer
    assert work.changed("04") == "superseded"


@pytest.mark.parametrize(
    "harm",
    [
        {"version": "older"},
        {"version_id": "v1"},
        {"mime_type": "text/plain"},
        {"includes": ()},
        {"findings": ()},
        {"fingerprint": "0:0"},
        {"version": None, "includes": (), "findings": (), "fingerprint": ""},
    ],
)
def test_a_repair_mends_whatever_is_wrong(harm: dict[str, object]) -> None:
    work = Workshop({A.key: PAGE})
    work.changed("05")
    true = content(work.node())
    work.index.stored[A.uri] = replace(work.node(), **harm)  # type: ignore[arg-type]
    assert work.changed() == "indexed"
    assert content(work.node()) == true


def test_a_repair_of_what_is_gone_removes_it() -> None:
    work = Workshop({A.key: PAGE})
    work.changed("05")
    del work.store.files[A.key]
    assert work.changed() == "removed"
    assert work.node().sequencer[:2] == "05"
    assert work.changed() == "absent"


def test_an_object_the_indexer_may_not_read_is_recorded() -> None:
    """X-8: poison is recorded and acknowledged; what it includes is unknown."""
    work = Workshop({A.key: PAGE})
    work.store.failures[A.key] = DocumentForbidden
    assert work.changed("01") == "indexed"
    node = work.node()
    assert [f.code for f in node.findings] == ["not_readable"]
    assert (node.exists, node.verdict, node.findings[0].loses_includes) == (True, "invalid", True)
    assert work.changed() == "unchanged"
    work.store.failures.clear()
    assert work.changed() == "indexed"
    assert work.node().title == "Leak"


@pytest.mark.parametrize("error", [Unavailable, Throttled])
def test_only_what_is_unavailable_comes_again(error: type[Unavailable]) -> None:
    """X-8: and leaves the index as it was."""
    work = Workshop({A.key: PAGE})
    work.changed("01")
    before = work.node()
    work.store.failures[A.key] = error
    with pytest.raises(error):
        work.changed("02")
    assert work.node() == before


@pytest.mark.parametrize(
    ("key", "content_type", "mime_type"),
    [
        ("sops/", None, "application/octet-stream"),
        ("sops/.a.md", None, "text/markdown"),
        ("sops/._a.md", None, "text/markdown"),
        (".md", None, "text/markdown"),
        ("scan.pdf", None, "application/pdf"),
        ("a.md", "application/pdf", "application/pdf"),
        ("a.md", "Application/GZIP; x=1", "application/gzip"),
        ("unknown", None, "application/octet-stream"),
    ],
)
def test_what_is_no_document_is_a_node_without_edges(
    key: str, content_type: str | None, mime_type: str
) -> None:
    """X-3: size, type and version are kept; nothing is ignored without a count."""
    work, location = Workshop({key: PAGE}), Location(KB, key)
    if content_type:
        work.store.mime_types[key] = content_type
    assert work.changed("01", location) == "indexed"
    node = work.node(location)
    assert (node.includes, node.findings, node.title, node.verdict) == ((), (), None, "valid")
    assert (node.mime_type, node.size_bytes, node.version) == (mime_type, len(PAGE), version_of(PAGE))


@pytest.mark.parametrize(("key", "content_type"), [("a", "text/markdown"), ("a.MD", None), ("a.txt", "")])
def test_text_is_told_by_its_stored_type_or_its_extension(key: str, content_type: str | None) -> None:
    work, location = Workshop({key: PAGE}), Location(KB, key)
    if content_type:
        work.store.mime_types[key] = content_type
    work.changed("01", location)
    assert work.node(location).title == "Leak"


def test_only_the_head_of_an_object_is_read() -> None:
    """X-3: the fingerprint is of those bytes and of the size of the whole."""
    asked: list[int] = []

    class Watched(MemoryStore):
        def head(self, location: Location, max_bytes: int = HEAD_BYTES):  # type: ignore[no-untyped-def]
            asked.append(max_bytes)
            return super().head(location, max_bytes)

    body = PAGE + b"x" * HEAD_BYTES
    index = MemoryIndex()
    indexer_over(Watched({A.key: body}), index).object_changed(A)
    node = index.node(A)
    assert asked == [65_536]
    assert node
    assert node.fingerprint == f"{hashlib.sha256(body[:65_536]).hexdigest()}:{len(body)}"


class Contested(MemoryIndex):
    """An index in which other writers come first, a number of times."""

    def __init__(self, rivals: list[Callable[[MemoryIndex], None]]) -> None:
        super().__init__()
        self.rivals = rivals

    def replace(self, node: Node, seen: Node | None) -> bool:
        if self.rivals:
            self.rivals.pop(0)(self)
        return super().replace(node, seen)


def rival(sequencer: str) -> Callable[[MemoryIndex], None]:
    def write(index: MemoryIndex) -> None:
        index.stored[A.uri] = Node(A, "rival", sequencer=sequencer.ljust(40, "0"), generation=sequencer)

    return write


def test_a_lost_race_is_run_again() -> None:
    """X-2: the loser looks anew; a newer event's writer has the last word."""
    index = Contested([rival("01"), rival("02")])
    assert indexer_over(MemoryStore({A.key: PAGE}), index).object_changed(A, "05") == "indexed"
    assert index.stored[A.uri].version == version_of(PAGE)
    index = Contested([rival("09")])
    assert indexer_over(MemoryStore({A.key: PAGE}), index).object_changed(A, "05") == "superseded"
    assert index.stored[A.uri].version == "rival"


def test_a_race_that_is_lost_again_and_again_comes_back_later() -> None:
    index = Contested([rival(f"0{n}") for n in range(9)])
    with pytest.raises(Unavailable):
        indexer_over(MemoryStore({A.key: PAGE}), index).object_changed(A)


STATES = st.lists(st.sampled_from([None, b"", PAGE, b"---\nincludes: [c.md]\n---\n"]), min_size=1, max_size=4)


@given(states=STATES, data=st.data())
def test_after_any_order_of_events_the_index_equals_a_fresh_scan(
    states: list[bytes | None], data: st.DataObject
) -> None:
    """X-2: every event at least once, shuffled, each seeing the bucket as it is by then."""
    events = [f"{n:02X}" for n in range(len(states))]
    work = Workshop()
    shuffled = data.draw(st.permutations(events * 2))
    final = states[-1]
    for moment, sequencer in enumerate(shuffled):
        now = states[min(moment, len(states) - 1)] if moment < len(shuffled) // 2 else final
        work.store.files = {} if now is None else {A.key: now}
        work.changed(sequencer)
    work.store.files = {} if final is None else {A.key: final}
    work.changed(events[-1])
    scan = Workshop(work.store.files)
    scan.changed()
    assert content(work.index.node(A)) == content(scan.index.node(A))


def test_document_ids_are_short_and_tell_roots_and_keys_apart() -> None:
    """A key can be as long as a sort key may be, so an id is not made of it."""
    other = Location(replace(KB, name="kb2"), A.key)
    ids = [document_id(each) for each in (A, other, A.at("sops/b.md"), A.at("x" * 1_024))]
    assert len(set(ids)) == 4
    assert {len(each) for each in ids} == {26}
    assert all(each.isalnum() and each == each.lower() for each in ids)
    assert document_id(A) == document_id(Location(replace(KB, readers=("*",)), A.key))


def test_more_findings_than_are_stored_are_counted() -> None:
    work = Workshop({A.key: ("---\nincludes: [" + "/x, " * 90 + "]\n---\n").encode()})
    work.changed()
    assert (len(work.node().findings), work.node().finding_count) == (50, 90)


def test_what_is_not_stored_weighs_all_the_same() -> None:
    """The first finding of each code is stored, so verdict and codes are those of all findings."""
    warnings = "".join(f"Include{'s' * (n % 2)}: {n}\n" for n in range(60))
    work = Workshop({A.key: f"---\n{warnings}includes: [/x, b.md, c.md]\n---\n".encode()})
    work.changed()
    node = work.node()
    stored = Counter(each.code for each in node.findings)
    assert (stored["include_absolute"], stored["target_missing"], node.verdict) == (1, 1, "invalid")
    counted = node.finding_count
    work.store.files |= {"sops/b.md": b"", "sops/c.md": b""}
    for sequencer, key in (("02", "sops/b.md"), ("03", "sops/c.md")):
        work.changed(sequencer, A.at(key))
    work.indexer.settle(A)
    assert work.node().finding_count == counted - 2
    assert "target_missing" not in {each.code for each in work.node().findings}


def test_more_missing_targets_than_are_stored_are_counted_once() -> None:
    """However often they are judged, and whatever comes back."""
    names = [f"n{number}.md" for number in range(80)]
    work = Workshop({A.key: f"---\nincludes: [{', '.join(names)}]\n---\n".encode()})
    work.changed()
    assert (len(work.node().findings), work.node().finding_count) == (50, 80)
    work.store.files["sops/n79.md"] = b""
    work.changed("02", A.at("sops/n79.md"))
    work.indexer.settle(A)
    assert (len(work.node().findings), work.node().finding_count) == (50, 79)


def test_a_path_that_many_claim_is_a_finding_of_bounded_size() -> None:
    work = Workshop({f"{'k' * 900}{n}.md": b"---\ncanonical_path: x.md\n---\n" for n in range(9)})
    for _ in range(2):
        for key in work.store.files:
            work.changed(None, A.at(key))
    for key in work.store.files:
        (conflict,) = (f for f in work.node(A.at(key)).findings if f.code == "canonical_path_conflict")
        assert len(conflict.message) <= 1_000
        assert work.node(A.at(key)).finding_count == len(work.node(A.at(key)).findings)
