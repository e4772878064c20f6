"""Rule I-5: the exact key first, then its NFC and NFD forms; identity is the stored key."""

import unicodedata

import pytest

from groundwire.errors import Unavailable
from tests.fakes import MemoryStore
from tests.unit.graphs import NFC, NFD, Found, page, search

BOTH_WAYS = pytest.mark.parametrize("workers", [0, 4])
DIFFERS = "unicode_form_differs"


def found(store: MemoryStore, workers: int = 0, **policy: object) -> Found:
    (only,) = search(store, policy, workers=workers)
    return only


def codes(bundle: Found) -> list[list[str]]:
    """The codes of each document's findings, root first."""
    return [[code for code, _ in findings] for findings in bundle.findings]


@BOTH_WAYS
@pytest.mark.parametrize(("written", "stored"), [(NFC, NFD), (NFD, NFC)])
def test_another_form_of_the_key_is_attached_under_the_stored_one(
    workers: int, written: str, stored: str
) -> None:
    bundle = found(MemoryStore({"a.md": page(written), stored: b""}), workers)
    assert bundle.included == [stored]
    assert bundle.edges == [("a.md", stored, written, 1)]
    assert bundle.findings == [[(DIFFERS, 3)], []]
    assert bundle.complete


@BOTH_WAYS
def test_the_exact_key_wins_over_its_other_form(workers: int) -> None:
    bundle = found(MemoryStore({"a.md": page(NFC, NFD), NFC: b"c", NFD: b"d"}), workers)
    assert bundle.included == [NFC, NFD]
    assert codes(bundle) == [[], [], []]


@BOTH_WAYS
def test_compatibility_forms_name_other_documents(workers: int) -> None:
    """Never NFKC: `ﬁ` is not `fi`."""
    bundle = found(MemoryStore({"a.md": page("ﬁ.md", "lä№.md"), "fi.md": b"", "läNo.md": b""}), workers)
    assert [skip[2:4] for skip in bundle.skipped] == [("fetch_failed", "not_found")] * 2


@BOTH_WAYS
def test_two_forms_in_one_list_are_one_include(workers: int) -> None:
    """I-6: the first counts, the later one has no edge and no skip."""
    for names in ((NFC, NFD), (NFD, NFC)):
        bundle = found(MemoryStore({"a.md": page(*names), NFD: b""}), workers)
        assert bundle.included == [NFD]
        assert [edge[:3] for edge in bundle.edges] == [("a.md", NFD, names[0])]
        assert bundle.skipped == []
        assert sorted(codes(bundle)[0]) == ["include_duplicate", DIFFERS]


@BOTH_WAYS
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"maxDepth": 0}, "depth_exceeded"),
        ({"maxDocs": 1}, "doc_budget_exceeded"),
        ({"traversableMimeTypes": ["text/plain"]}, "non_traversable_mime"),
        ({"maxIncludeBytes": 0}, "byte_budget_exceeded"),
    ],
)
def test_two_forms_in_one_list_are_one_skip(workers: int, policy: dict[str, object], reason: str) -> None:
    """Also where the document is not fetched: the store is asked under which key it is."""
    store = MemoryStore({"a.md": page(NFC, NFD), NFD: b"x"})
    bundle = found(store, workers, **policy)
    assert [edge[1] for edge in bundle.edges] == [NFD]
    assert [skip[1:3] for skip in bundle.skipped] == [(NFC, reason)]
    assert sorted(codes(bundle)[0]) == ["include_duplicate", DIFFERS]


@BOTH_WAYS
def test_two_forms_of_nothing_are_two_failures(workers: int) -> None:
    """Neither is a stored key, so neither names the other; each key is asked for once."""
    store = MemoryStore({"a.md": page(NFC, NFD)})
    bundle = found(store, workers)
    assert [skip[1:4] for skip in bundle.skipped] == [
        (NFC, "fetch_failed", "not_found"),
        (NFD, "fetch_failed", "not_found"),
    ]
    assert [edge[1] for edge in bundle.edges] == [NFC, NFD]
    assert codes(bundle) == [[]]
    assert store.fetched == {"a.md": 1, NFC: 1, NFD: 1}


@BOTH_WAYS
def test_another_form_of_a_visited_document_is_a_diamond(workers: int) -> None:
    """Before any body is fetched, and for every includer that writes it so."""
    store = MemoryStore({"a.md": page(NFD, "b.md", "c.md"), "b.md": page(NFC), "c.md": page(NFC), NFD: b""})
    bundle = found(store, workers)
    assert bundle.included == [NFD, "b.md", "c.md"]
    assert [skip[:4] for skip in bundle.skipped] == [
        ("b.md", NFC, "cycle", "diamond"),
        ("c.md", NFC, "cycle", "diamond"),
    ]
    assert [edge[1] for edge in bundle.edges[3:]] == [NFD, NFD]
    assert codes(bundle) == [[], [], [DIFFERS], [DIFFERS]]
    assert store.fetched[NFD] == 1
    assert bundle.complete


@BOTH_WAYS
def test_another_form_of_an_ancestor_is_a_cycle_with_its_path(workers: int) -> None:
    store = MemoryStore({"a.md": page(NFD), NFD: page("b.md"), "b.md": page(NFC)})
    bundle = found(store, workers, maxDepth=5)
    assert [skip[2:] for skip in bundle.skipped] == [
        ("cycle", "ancestor", f"local://kb/{NFD} -> local://kb/b.md -> local://kb/{NFD}")
    ]
    assert codes(bundle) == [[], [], [DIFFERS]]


@BOTH_WAYS
@pytest.mark.parametrize("policy", [{}, {"maxDepth": 1}])
def test_another_form_of_itself_is_a_self_include(workers: int, policy: dict[str, object]) -> None:
    bundle = found(MemoryStore({"a.md": page(NFD), NFD: page(NFC)}), workers, **policy)
    assert [skip[:4] for skip in bundle.skipped] == [(NFD, NFC, "cycle", "self_include")]
    assert bundle.edges[1] == (NFD, NFD, NFC, 2)
    assert codes(bundle) == [[], [DIFFERS]]


@BOTH_WAYS
def test_another_form_of_another_root_is_already_attached(workers: int) -> None:
    """B-7: also of one that was not expanded yet."""
    first, second = search(
        MemoryStore({"a.md": page(NFC), NFD: b""}), {}, roots=["a.md", NFD], workers=workers
    )
    assert [skip[2:4] for skip in first.skipped] == [("cycle", "already_attached")]
    assert (first.included, second.included) == ([], [])


@BOTH_WAYS
def test_what_another_root_attached_in_another_form_is_named_by_its_stored_key(workers: int) -> None:
    store = MemoryStore({"a.md": page(NFC), "b.md": page(NFC), NFD: b""})
    first, second = search(store, {}, roots=["a.md", "b.md"], workers=workers)
    assert first.included == [NFD]
    assert second.edges == [("b.md", NFD, NFC, 1)]
    assert [skip[2:4] for skip in second.skipped] == [("cycle", "already_attached")]
    assert second.findings == [[(DIFFERS, 3)]]
    assert max(store.fetched.values()) == 1


@BOTH_WAYS
def test_another_form_of_a_root_that_is_not_there_is_asked_for(workers: int) -> None:
    """A root that is nowhere stands for no document."""
    store = MemoryStore({"a.md": page(NFC), NFC: b""})
    (bundle,) = search(store, {}, roots=["a.md", NFD], workers=workers)
    assert bundle.included == [NFC]
    store = MemoryStore({"a.md": page(NFC)})
    (bundle,) = search(store, {}, roots=["a.md", NFD], workers=workers)
    assert [skip[2:4] for skip in bundle.skipped] == [("fetch_failed", "not_found")]


@BOTH_WAYS
def test_at_the_depth_limit_the_store_is_asked_without_a_fetch(workers: int) -> None:
    store = MemoryStore({"a.md": page(NFC, "b.md"), NFD: b""})
    bundle = found(store, workers, maxDepth=0)
    assert bundle.edges == [("a.md", NFD, NFC, 1), ("a.md", "b.md", "b.md", 1)]
    assert [skip[2] for skip in bundle.skipped] == ["depth_exceeded"] * 2
    assert codes(bundle) == [[DIFFERS]]
    assert store.fetched == {"a.md": 1}
    assert store.probed == {NFC: 1, NFD: 1}


@BOTH_WAYS
def test_a_visited_document_in_another_form_at_the_depth_limit_is_a_cycle(workers: int) -> None:
    """B-3: visited comes before depth."""
    bundle = found(MemoryStore({"a.md": page(NFD, "b.md"), "b.md": page(NFC), NFD: b""}), workers, maxDepth=1)
    assert [skip[2:4] for skip in bundle.skipped] == [("cycle", "diamond")]
    assert bundle.complete


@BOTH_WAYS
def test_a_store_that_cannot_say_leaves_the_written_key(workers: int) -> None:
    store = MemoryStore({"a.md": page(NFC), NFD: b""})
    store.failures[NFC] = Unavailable
    bundle = found(store, workers, maxDepth=0)
    assert bundle.edges == [("a.md", NFC, NFC, 1)]
    assert [skip[2] for skip in bundle.skipped] == ["depth_exceeded"]
    assert codes(bundle) == [[]]


@BOTH_WAYS
def test_after_an_abort_edges_still_lead_to_stored_keys(workers: int) -> None:
    store = MemoryStore({"a.md": page("gone.md", NFC), NFD: b""})
    bundle = found(store, workers, onFetchError="abort")
    assert [edge[1] for edge in bundle.edges] == ["gone.md", NFD]
    assert [skip[3] for skip in bundle.skipped] == ["not_found", "aborted"]


@BOTH_WAYS
def test_the_failure_of_another_form_is_the_failure(workers: int) -> None:
    """The exact key is not there and its other form cannot be read: nobody may call that missing."""
    store = MemoryStore({"a.md": page(NFC)})
    store.failures[NFD] = Unavailable
    bundle = found(store, workers)
    assert [skip[2:4] for skip in bundle.skipped] == [("fetch_failed", "unavailable")]


@BOTH_WAYS
def test_the_size_of_another_form_is_the_size(workers: int) -> None:
    store = MemoryStore({"a.md": page(NFC, "b.md"), "b.md": page(NFD), NFD: b"x" * 99})
    bundle = found(store, workers, maxIncludeBytes=98)
    assert [skip[:4] for skip in bundle.skipped] == [
        ("a.md", NFC, "byte_budget_exceeded", None),
        ("b.md", NFD, "cycle", "diamond"),
    ]
    assert codes(bundle)[0] == [DIFFERS]


def test_forms_differ_in_more_than_the_last_name() -> None:
    key = unicodedata.normalize("NFD", "käyttö/ohjeita/lämpö.md")
    bundle = found(MemoryStore({"a.md": page("käyttö/ohjeita/lämpö.md"), key: b""}))
    assert bundle.included == [key]
