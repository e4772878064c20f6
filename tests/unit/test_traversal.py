"""Rules B-1 to B-6, B-3's order above all: the pure search, driven by hand over random graphs."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.errors import DocumentNotFound, DocumentTooLarge, Unavailable
from groundwire.includes import Declaration, Include
from groundwire.pointers import Location
from groundwire.policy import CompositionPolicy
from groundwire.traversal import Probe, Traversal, Wanted
from tests.unit.graphs import ROOT, at

MARKDOWN, PDF = "text/markdown", "application/pdf"


@dataclass(frozen=True)
class Page:
    """What the search sees of a document."""

    location: Location
    mime_type: str
    size_bytes: int
    declaration: Declaration


def page(key: str, *targets: str | None, size: int = 1, mime_type: str = MARKDOWN) -> Page:
    """A document that includes these keys; None is an include that does not resolve."""
    includes = tuple(
        Include(n, target or "/x", n + 2, 5, target, None if target else "include_absolute")
        for n, target in enumerate(targets)
    )
    return Page(at(key), mime_type, size, Declaration(includes=includes))


def drive(
    pages: Mapping[str, Page], policy: CompositionPolicy, failing: frozenset[str] = frozenset()
) -> tuple[Traversal[Page], list[str]]:
    """The search from `0`, and every key that it wanted, in order."""
    search = Traversal(pages["0"], policy, set())
    asked: list[str] = []
    while wanted := search.next():
        assert isinstance(wanted, Wanted)
        key = wanted.location.key
        asked.append(key)
        found = pages.get(key)
        if key in failing:
            search.fail(Unavailable(wanted.location.uri, "down"))
        elif found is None:
            search.fail(DocumentNotFound(wanted.location.uri, "gone"))
        elif found.size_bytes > wanted.max_bytes:
            error = DocumentTooLarge(wanted.location.uri, found.size_bytes, wanted.max_bytes)
            search.too_large(error, wanted.location)
        else:
            search.attach(found)
    return search, asked


def _graph(rows: list[tuple[list[int], int, bool]]) -> dict[str, Page]:
    """A document a row; a target that is no row's number is missing, -1 and -2 do not resolve."""
    return {
        str(number): page(
            str(number),
            *(None if target < 0 else str(target) for target in targets),
            size=size,
            mime_type=MARKDOWN if is_markdown or number == 0 else PDF,
        )
        for number, (targets, size, is_markdown) in enumerate(rows)
    }


TARGETS = st.lists(st.integers(-2, 12), max_size=5, unique=True)
IS_MARKDOWN = st.sampled_from([True, True, True, False])


def graphs() -> st.SearchStrategy[dict[str, Page]]:
    """Up to twelve documents that include each other, themselves, missing ones and nothing that resolves."""
    return st.lists(st.tuples(TARGETS, st.integers(0, 40), IS_MARKDOWN), min_size=1, max_size=12).map(_graph)


POLICIES = st.builds(
    CompositionPolicy,
    max_depth=st.integers(0, 5),
    max_docs=st.integers(1, 12),
    max_include_bytes=st.integers(0, 150),
    on_fetch_error=st.sampled_from(["skip", "abort"]),
)
FAILING = st.frozensets(st.sampled_from("12345"), max_size=2)


@given(graph=graphs(), policy=POLICIES, failing=FAILING)
def test_every_discovered_include_is_attached_or_skipped(
    graph: dict[str, Page], policy: CompositionPolicy, failing: frozenset[str]
) -> None:
    """B-5: in exactly one of the two, and each that resolved has an edge."""
    search, _ = drive(graph, policy, failing)
    documents = [graph["0"], *search.included]
    declared = [(d.location.uri, i) for d in documents for i in d.declaration.includes]
    assert len(declared) == len(search.included) + len(search.skipped)
    assert len(search.edges) == sum(include.key is not None for _, include in declared)
    skipped = {(skip.parent_uri, skip.line) for skip in search.skipped}
    fetched = [(uri, include.key) for uri, include in declared if (uri, include.line) not in skipped]
    assert [key for _, key in fetched] == [document.location.key for document in search.included]


@given(graph=graphs(), policy=POLICIES, failing=FAILING)
def test_no_document_is_wanted_twice_nor_attached_twice(
    graph: dict[str, Page], policy: CompositionPolicy, failing: frozenset[str]
) -> None:
    """B-3: visited means attempted, fetched or not."""
    search, asked = drive(graph, policy, failing)
    attached = ["0", *(document.location.key for document in search.included)]
    assert len(asked) == len(set(asked))
    assert "0" not in asked
    assert len(attached) == len(set(attached))


@given(graph=graphs(), policy=POLICIES, failing=FAILING)
def test_budgets_hold_and_are_used(
    graph: dict[str, Page], policy: CompositionPolicy, failing: frozenset[str]
) -> None:
    """B-1, B-3: never over; and a skip for a budget only where it was really spent."""
    search, _ = drive(graph, policy, failing)
    total = sum(document.size_bytes for document in search.included)
    reasons = {skip.reason for skip in search.skipped}
    assert 1 + len(search.included) <= policy.max_docs
    assert total <= policy.max_include_bytes
    assert search.bytes_left == policy.max_include_bytes - total
    if "doc_budget_exceeded" in reasons:
        assert 1 + len(search.included) == policy.max_docs
    for skip in search.skipped:
        if skip.reason == "byte_budget_exceeded" and skip.detail:
            size, left = (int(word) for word in skip.detail.split() if word.isdigit())
            assert size > left >= search.bytes_left


@given(graph=graphs(), policy=POLICIES, failing=FAILING)
def test_documents_are_attached_breadth_first(
    graph: dict[str, Page], policy: CompositionPolicy, failing: frozenset[str]
) -> None:
    """B-2: by depth, then by the place of the includer, then in declaration order."""
    search, asked = drive(graph, policy, failing)
    depth = {"0": 0}
    queue = deque([graph["0"]])
    expected: list[str] = []
    attached = {document.location.key for document in search.included}
    while queue:
        document = queue.popleft()
        for include in document.declaration.includes if document.mime_type == MARKDOWN else ():
            key = include.key
            if key in attached and key not in depth:
                depth[key] = depth[document.location.key] + 1
                expected.append(key)
                queue.append(graph[key])
    assert [document.location.key for document in search.included] == expected
    assert max(depth.values()) <= policy.max_depth
    assert [key for key in asked if key in attached] == expected


@given(graph=graphs(), policy=POLICIES, failing=FAILING)
def test_an_abort_decides_everything_that_is_left(
    graph: dict[str, Page], policy: CompositionPolicy, failing: frozenset[str]
) -> None:
    """B-6: what follows the first failure is `aborted`, whatever it would have been, and not asked for."""
    search, asked = drive(graph, replace(policy, on_fetch_error="abort"), failing)
    codes = [skip.code for skip in search.skipped]
    assert search.aborted == (bool({"unavailable", "not_found"} & set(codes)))
    if search.aborted:
        failed = next(n for n, code in enumerate(codes) if code in ("unavailable", "not_found"))
        assert set(codes[failed + 1 :]) <= {"aborted"}
        assert asked[-1] in failing or asked[-1] not in graph


@given(graph=graphs(), policy=POLICIES, failing=FAILING)
def test_only_cycles_leave_a_bundle_complete(
    graph: dict[str, Page], policy: CompositionPolicy, failing: frozenset[str]
) -> None:
    search, _ = drive(graph, policy, failing)
    assert search.complete == all(skip.reason == "cycle" for skip in search.skipped)


def test_the_first_reason_that_holds_decides() -> None:
    """B-3: each include of `0` meets two reasons or more; the earlier one is given."""
    policy = CompositionPolicy(max_depth=1, max_docs=3, max_include_bytes=10)
    pages = {
        "0": page("0", None, "0", "1", "big", "2", "3"),
        "1": page("1", None, "0", "1", "2", "big", "9"),
        "2": page("2"),
        "big": page("big", size=11),
    }
    search, asked = drive(pages, policy)
    assert asked == ["1", "big", "2"]
    assert [(s.parent_uri[-1], s.relative_path, s.reason, s.code) for s in search.skipped] == [
        ("0", "/x", "resolve_failed", "include_absolute"),
        ("0", "0", "cycle", "self_include"),
        ("0", "big", "byte_budget_exceeded", None),
        ("0", "3", "doc_budget_exceeded", None),
        ("1", "/x", "resolve_failed", "include_absolute"),
        ("1", "0", "cycle", "ancestor"),
        ("1", "1", "cycle", "self_include"),
        ("1", "2", "cycle", "diamond"),
        ("1", "big", "cycle", "diamond"),
        ("1", "9", "depth_exceeded", None),
    ]


def test_a_cycle_through_an_ancestor_names_the_path() -> None:
    pages = {"0": page("0", "1"), "1": page("1", "2"), "2": page("2", "0", "1")}
    search, _ = drive(pages, CompositionPolicy(max_depth=5))
    uri = {key: at(key).uri for key in pages}
    assert [skip.detail for skip in search.skipped] == [
        f"{uri['0']} -> {uri['1']} -> {uri['2']} -> {uri['0']}",
        f"{uri['1']} -> {uri['2']} -> {uri['1']}",
    ]


def test_what_another_root_attached_is_already_attached() -> None:
    """B-3, B-7: also where it was only attempted."""
    visited = {at("1").uri}
    search = Traversal(page("0", "1"), CompositionPolicy(), visited)
    assert search.next() is None
    assert [(skip.reason, skip.code) for skip in search.skipped] == [("cycle", "already_attached")]
    assert visited == {at("0").uri, at("1").uri}


def test_a_document_that_is_not_traversable_is_attached_and_not_expanded() -> None:
    """B-4: each of its includes is a skip, whatever it would have been, with an edge where it resolves."""
    pages = {"0": page("0", "1"), "1": page("1", None, "0", "2", mime_type="text/plain"), "2": page("2")}
    search, asked = drive(pages, CompositionPolicy())
    assert asked == ["1"]
    assert [skip.reason for skip in search.skipped] == ["non_traversable_mime"] * 3
    assert [(edge.to_uri, edge.depth) for edge in search.edges] == [
        (at("1").uri, 1),
        (at("0").uri, 2),
        (at("2").uri, 2),
    ]


def test_the_request_may_have_less_left_than_the_policy_gives() -> None:
    """B-7: of documents with the root, of bytes without it; never more than the policy."""
    root = page("0", "1", "2")
    for docs, size, included in ((1, 100, 0), (2, 100, 1), (100, 100, 2), (100, 4, 1), (100, 3, 0)):
        search = Traversal(root, CompositionPolicy(max_docs=3), set(), max_docs=docs, max_bytes=size)
        while wanted := search.next():
            assert isinstance(wanted, Wanted)
            if wanted.max_bytes < 4:
                search.too_large(DocumentTooLarge(wanted.location.uri, 4, wanted.max_bytes), wanted.location)
            else:
                search.attach(page(wanted.location.key, size=4))
        assert len(search.included) == included, (docs, size)


def test_a_store_may_answer_under_another_key() -> None:
    """I-5: one that does not mind letter case; what is visited under that key is not attached again."""
    search = Traversal(page("0", "1", "A", "a"), CompositionPolicy(), set())
    search.next()
    search.attach(page("1"))
    search.next()
    assert search.attach(page("a", size=5)) == 1
    assert search.next() is None
    search = Traversal(page("0", "a", "1"), CompositionPolicy(), set())
    search.next()
    search.attach(page("a", "A"))
    search.next()
    search.attach(page("1"))
    search.next()
    assert search.attach(page("a")) is None
    assert search.next() is None
    assert [(skip.relative_path, skip.reason, skip.code) for skip in search.skipped] == [
        ("A", "cycle", "self_include")
    ]
    assert [edge.to_uri[-1] for edge in search.edges] == ["a", "1", "a"]
    assert search.remarks == []


def test_an_include_that_expired_may_be_wanted_again() -> None:
    """B-3: a document that was not attempted is not visited."""
    search = Traversal(page("0", "1"), CompositionPolicy(), visited := set[str]())
    search.next()
    search.expire()
    assert search.next() is None
    assert visited == {at("0").uri}
    assert [(skip.reason, skip.code) for skip in search.skipped] == [("timeout", None)]
    assert not search.complete


@pytest.mark.parametrize("key", ["läm.md", "plain.md"])
def test_each_question_is_answered_before_the_next(key: str) -> None:
    search = Traversal(page("0", key), CompositionPolicy(max_depth=0 if key == "läm.md" else 1), set())
    question = search.next()
    assert isinstance(question, Probe if key == "läm.md" else Wanted)
    with pytest.raises(AssertionError, match="not answered"):
        search.next()


def test_documents_of_any_root_prefix_resolve_in_that_root() -> None:
    """I-8: an include stays in the includer's storage root."""
    inner = replace(ROOT, name="inner", bucket="inner", prefix="p")
    root = replace(page("p/0", "p/1"), location=at("p/0", inner))
    wanted = Traversal(root, CompositionPolicy(), set()).next()
    assert wanted is not None
    assert wanted.location == at("p/1", inner)
