"""Rules B-1 to B-7: the search through the loader, over random folders, against the reference."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.limits import MAX_DOCS, MAX_INCLUDE_BYTES
from tests.fakes import MemoryStore
from tests.reference import search as reference
from tests.unit.graphs import KEYS, POLICIES, folders, page, search


@settings(max_examples=200)
@given(files=folders(), policy=POLICIES)
def test_the_search_equals_the_reference(files: dict[str, bytes], policy: dict[str, Any]) -> None:
    (found,) = search(MemoryStore(files), policy)
    assert found.plain() == reference.search(files, "a.md", policy)


@given(files=folders(), policy=POLICIES, roots=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4))
def test_several_roots_equal_the_reference(
    files: dict[str, bytes], policy: dict[str, Any], roots: list[str]
) -> None:
    """B-7: one visited set that holds all roots, fetched or not, before the first is expanded."""
    store = MemoryStore(files)
    expected = reference.search_roots(files, roots, policy)
    found = search(store, policy, roots=list(dict.fromkeys(roots)))
    assert [
        {"root": bundle["root"], **each.plain()}
        for bundle, each in zip(expected["bundles"], found, strict=True)
    ] == expected["bundles"]
    attached = [bundle["root"] for bundle in expected["bundles"]] + [
        k for each in found for k in each.included
    ]
    assert attached == expected["documents"]
    assert len(set(attached)) == len(attached)
    assert max(store.fetched.values()) == 1


@settings(max_examples=200)
@given(files=folders(), policy=POLICIES)
def test_every_document_is_asked_for_at_most_once(files: dict[str, bytes], policy: dict[str, Any]) -> None:
    """B-3: visited means attempted, fetched or not; that holds for every key that stands for a document."""
    store = MemoryStore(files)
    search(store, policy)
    assert max(store.fetched.values()) == 1


@given(files=folders(), policy=POLICIES, smaller=st.integers(0, 5))
def test_less_depth_gives_a_prefix(files: dict[str, bytes], policy: dict[str, Any], smaller: int) -> None:
    (more,) = search(MemoryStore(files), policy | {"maxDepth": 5})
    (less,) = search(MemoryStore(files), policy | {"maxDepth": smaller})
    assert less.included == more.included[: len(less.included)]


@given(files=folders(), policy=POLICIES, smaller=st.integers(1, 10))
def test_fewer_documents_give_a_prefix(files: dict[str, bytes], policy: dict[str, Any], smaller: int) -> None:
    (more,) = search(MemoryStore(files), policy | {"maxDocs": 10})
    (less,) = search(MemoryStore(files), policy | {"maxDocs": smaller})
    assert less.included == more.included[: min(len(more.included), smaller - 1)]


def test_the_request_holds_at_most_64_documents() -> None:
    """B-7: whatever each root may have; roots that could not be had take no place."""
    files = {f"r{n}.md": page(*(f"x{n}-{m}.md" for m in range(3))) for n in range(30)}
    files |= {f"x{n}-{m}.md": b"" for n in range(30) for m in range(3)}
    roots = [*(f"gone{n}.md" for n in range(20)), *(f"r{n}.md" for n in range(30))]
    expected = reference.search_roots(files, roots, {})
    found = search(MemoryStore(files), {}, roots=roots)
    assert 30 + sum(len(each.included) for each in found) == MAX_DOCS
    assert [each.included for each in found] == [bundle["included"] for bundle in expected["bundles"]]
    assert found[-1].skipped[-1][2] == "doc_budget_exceeded"


def test_the_request_holds_at_most_25_mib_of_includes() -> None:
    """B-7: in bytes too, and a smaller document may still fit after one that does not."""
    five = bytes(5 * 1024 * 1024)
    files = {f"r{n}.md": page(f"x{n}.bin", f"small{n}.md") for n in range(7)}
    files |= {f"x{n}.bin": five for n in range(7)} | {f"small{n}.md": b"" for n in range(7)}
    found = search(MemoryStore(files), {}, roots=[f"r{n}.md" for n in range(7)])
    assert 5 * len(five) == MAX_INCLUDE_BYTES
    assert [len(each.included) for each in found] == [2, 2, 2, 2, 2, 1, 1]
    assert [skip[2] for each in found for skip in each.skipped] == ["byte_budget_exceeded"] * 2


def test_a_root_that_another_root_includes_is_attached_once_as_a_root() -> None:
    files = {"a.md": page("b.md"), "b.md": page("a.md")}
    first, second = search(MemoryStore(files), {}, roots=["a.md", "b.md"])
    assert (first.included, second.included) == ([], [])
    assert [each.skipped[0][2:4] for each in (first, second)] == [("cycle", "already_attached")] * 2


@pytest.mark.parametrize(
    ("policy", "included", "reasons"),
    [
        ({"maxDepth": 0}, [], ["depth_exceeded", "depth_exceeded"]),
        ({"maxDocs": 1}, [], ["doc_budget_exceeded", "doc_budget_exceeded"]),
        ({"maxDocs": 2}, ["b.md"], ["doc_budget_exceeded", "doc_budget_exceeded"]),
        ({"maxIncludeBytes": 0}, ["c.md"], ["byte_budget_exceeded"]),
        ({"maxIncludeBytes": 28}, ["c.md"], ["byte_budget_exceeded"]),
        ({"maxIncludeBytes": 29}, ["b.md", "c.md"], ["cycle"]),
    ],
)
def test_budgets_are_exact(policy: dict[str, Any], included: list[str], reasons: list[str]) -> None:
    """B-1, B-3: off by one nowhere; `b.md` has 29 bytes and `c.md` none."""
    files = {"a.md": page("b.md", "c.md"), "b.md": page("c.md"), "c.md": b""}
    (found,) = search(MemoryStore(files), policy)
    assert found.included == included
    assert [skip[2] for skip in found.skipped] == reasons
