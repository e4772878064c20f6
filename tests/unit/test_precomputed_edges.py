"""Rule B-9: what the index says changes how soon a document is there, and never the answer."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.errors import DocumentForbidden, FetchError, Throttled, Unavailable
from groundwire.includes import Include
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.policy import CompositionPolicy
from groundwire.prefetch import Prefetch
from tests.fakes import MemoryIndex, MemoryStore
from tests.reference import search as reference
from tests.unit.graphs import (
    CONTEXT,
    KEYS,
    POLICIES,
    at,
    bundles,
    folders,
    index_first,
    indexed,
    loader,
    page,
    search,
)

WORKERS = st.sampled_from([1, 4])
ROOTS = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True).map(lambda keys: ["a.md", *keys])
FAILURES = st.dictionaries(
    st.sampled_from(KEYS[1:]), st.sampled_from([Unavailable, Throttled, DocumentForbidden]), max_size=2
)
LIES = ("fresh", "fresh", "dropped", "tombstone", "older", "elsewhere", "smaller", "binary", "hollow")


class Failing(MemoryIndex):
    """An index that cannot answer from its nth reading on, or breaks in a way no port allows."""

    def __init__(self, nodes: Iterable[Node], readings: int, error: type[Exception]) -> None:
        super().__init__(nodes)
        self.readings = readings
        self.error = error

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        if len(self.levels) >= self.readings:
            raise self.error("no", "answer")
        return super().nodes(locations, deadline=deadline, consistent=consistent)


def told(node: Node, lie: str) -> Node | None:
    """The node as an index could hold it that is behind, or wrong."""
    changes: dict[str, Any] = {
        "tombstone": {"version": None, "includes": ()},
        "older": {"version": "older"},
        "elsewhere": {
            "includes": tuple(
                Include(n, key, n + 2, 5, key) for n, key in enumerate(("b.md", "a.md", "gone.md", *KEYS[2:]))
            )
        },
        "smaller": {"size_bytes": 0, "title": "Not this"},
        "binary": {"mime_type": "application/pdf"},
        "hollow": {"includes": ()},
    }
    return None if lie == "dropped" else replace(node, **changes.get(lie, {}))


@st.composite
def indexes(draw: st.DrawFn, files: dict[str, bytes]) -> MemoryIndex:
    """The index of these documents with some of its nodes wrong, or out of reach."""
    nodes = [
        node
        for each in indexed(MemoryStore(files)).stored.values()
        if (node := told(each, draw(st.sampled_from(LIES))))
    ]
    if draw(st.booleans()):
        return MemoryIndex(nodes)
    return Failing(nodes, draw(st.integers(0, 2)), draw(st.sampled_from([Unavailable, Throttled, KeyError])))


CASES = folders().flatmap(lambda files: st.tuples(st.just(files), indexes(files)))


def flaky(files: dict[str, bytes], failures: dict[str, type[FetchError]]) -> MemoryStore:
    """A store that fails only the first time it is asked for some keys."""
    store = MemoryStore(files)
    store.failures_at_first = dict(failures)
    return store


@given(case=CASES, policy=POLICIES, failures=FAILURES, workers=WORKERS)
def test_the_bundle_is_the_sequential_one(
    case: tuple[dict[str, bytes], MemoryIndex],
    policy: dict[str, Any],
    failures: dict[str, type[FetchError]],
    workers: int,
) -> None:
    """Whatever the index says, or does not, and although a second attempt would have succeeded."""
    files, index = case
    alone, ahead = flaky(files, failures), flaky(files, failures)
    expected = search(alone, policy)
    assert search(ahead, policy, index=index, workers=workers) == expected
    assert max(alone.fetched.values()) == max(ahead.fetched.values()) == 1
    if not failures:
        assert expected[0].plain() == reference.search(files, "a.md", policy)


@given(case=CASES, policy=POLICIES, failures=FAILURES, roots=ROOTS)
def test_the_bundles_of_several_roots_are_the_sequential_ones(
    case: tuple[dict[str, bytes], MemoryIndex],
    policy: dict[str, Any],
    failures: dict[str, type[FetchError]],
    roots: list[str],
) -> None:
    files, index = case
    roots = list(dict.fromkeys(roots))
    alone, ahead = flaky(files, failures), flaky(files, failures)
    expected = search(alone, policy, roots=roots)
    assert search(ahead, policy, roots=roots, index=index, workers=4) == expected
    assert max(alone.fetched.values()) == max(ahead.fetched.values()) == 1


def stale_keys(files: Mapping[str, bytes], index: MemoryIndex | None, policy: Mapping[str, Any]) -> list[str]:
    """The documents of the bundle from `a.md` that are reported as stale."""
    use = loader(MemoryStore(files), index, 4)
    resolved, deadline, visited = use.policy(policy), Deadline.after(60), set[str]()
    with index_first(), use.prefetch(CONTEXT, resolved, deadline, None) as ahead:
        ahead.roots([at("a.md")], index, visited)
        (root,) = ahead.fetch_roots([at("a.md")])
        assert not isinstance(root, FetchError)
        bundle = use.expand(root, root.pointer, resolved, visited, deadline, ahead)
        return [document.location.key for document in ahead.stale(bundle.all_documents)]


@given(case=CASES, policy=POLICIES)
def test_stale_is_reported_exactly_for_disagreements(
    case: tuple[dict[str, bytes], MemoryIndex], policy: dict[str, Any]
) -> None:
    """Of every document in the bundle that the index was asked about: version, type or includes differ."""
    files, index = case
    reported = stale_keys(files, index, policy)
    asked = {uri for level in index.levels for uri in level}
    fresh = indexed(MemoryStore(files))
    expected = []
    for document in bundles(MemoryStore(files), policy)[0].all_documents:
        said, true = index.stored.get(document.uri), fresh.stored[document.uri]
        agrees = said and (said.version, said.mime_type, said.includes) == (
            true.version,
            true.mime_type,
            true.includes,
        )
        if document.uri in asked and not agrees:
            expected.append(document.location.key)
    assert reported == expected


@pytest.mark.parametrize(
    ("lie", "stale"),
    [
        ("fresh", []),
        ("smaller", []),
        ("older", ["b.md"]),
        ("elsewhere", ["b.md"]),
        ("binary", ["b.md"]),
        ("hollow", ["b.md"]),
        ("tombstone", ["b.md"]),
        ("dropped", ["b.md"]),
    ],
)
def test_a_disagreement_is_reported(lie: str, stale: list[str]) -> None:
    files = {"a.md": page("b.md"), "b.md": page("sub/d.md"), "sub/d.md": b""}
    index = indexed(MemoryStore(files))
    node = told(index.stored.pop(at("b.md").uri), lie)
    if node:
        index.stored[at("b.md").uri] = node
    assert stale_keys(files, index, {}) == stale


def test_without_an_index_nothing_is_stale() -> None:
    assert stale_keys({"a.md": page("b.md"), "b.md": b""}, None, {}) == []
    assert stale_keys({"a.md": page("b.md"), "b.md": b""}, Failing([], 0, Unavailable), {}) == []


def test_hidden_documents_are_never_stale() -> None:
    """X-3: the index does not look into dot-files, the search does."""
    files = {"a.md": page(".b.md"), ".b.md": page("c.md"), "c.md": b""}
    assert stale_keys(files, indexed(MemoryStore(files)), {}) == []


def test_the_index_is_read_level_by_level() -> None:
    """One reading a level, as deep as the policy goes, and not below what is not traversable."""
    files = {"a.md": page("b.md", "n.txt"), "b.md": page("c.md"), "n.txt": page("d.md"), "c.md": page("a.md")}
    index = indexed(MemoryStore(files))
    index.levels.clear()  # the indexer's own
    stale_keys(files, index, {"maxDepth": 3})
    assert index.levels == [
        [at(key).uri for key in level] for level in (["a.md"], ["b.md", "n.txt"], ["c.md"])
    ]


def test_documents_the_index_names_are_fetched_while_their_includer_is_awaited() -> None:
    """The point of it all: `b.md` is there before `a.md` says that it is wanted."""
    files = {"a.md": page("b.md"), "b.md": b""}
    store, index = MemoryStore(files), indexed(MemoryStore(files))
    arrived = threading.Event()

    def fetch(location: Location, max_bytes: int) -> Any:
        arrived.set()
        return use._fetcher.fetch(location, CONTEXT, deadline=deadline, max_bytes=max_bytes)

    use, deadline = loader(store), Deadline.after(60)
    with Prefetch(fetch, lambda _: True, CompositionPolicy(), deadline, workers=2) as ahead:
        ahead.roots([at("a.md")], index, set())
        assert arrived.wait(30)
        assert store.fetched.keys() <= {"b.md"}
        assert ahead.result(at("b.md"), 100).location == at("b.md")
    assert store.fetched["b.md"] == 1


def test_what_hangs_costs_its_own_include_and_nothing_below_the_others() -> None:
    """B-8: without an index `d.md` is there, two includes below, while `hung.md` is still awaited."""
    arrived = threading.Event()
    seen: list[bool] = []

    class Hanging(MemoryStore):
        def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
            if location.key == "hung.md":
                seen.append(arrived.wait(10))
            found = super().fetch(location, deadline=deadline, max_bytes=max_bytes)
            if location.key == "d.md":
                arrived.set()
            return found

    files = {"a.md": page("hung.md", "b.md"), "b.md": page("c.md"), "c.md": page("d.md"), "d.md": b""}
    store = Hanging(files | {"hung.md": b""})
    (found,) = search(store, {"maxDepth": 3, "timeoutMs": 25_000}, workers=4)
    assert seen == [True]
    assert found.included == ["hung.md", "b.md", "c.md", "d.md"]


def test_a_fetch_that_begins_ahead_just_as_it_is_demanded_is_not_made_twice() -> None:
    """Looking for a fetch and beginning one is one step."""
    store, index = MemoryStore({"b.md": b""}), threading.Event()
    use, deadline = loader(store), Deadline.after(60)
    planners: list[threading.Thread] = []

    class Interrupted(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            if not planners:
                planners.append(threading.Thread(target=ahead._begin, args=(at("b.md"), "index", 1)))
                planners[0].start()
                index.wait(0.1)  # time enough for a planner that nothing holds up
            return found

    def fetch(location: Location, max_bytes: int) -> Any:
        return use._fetcher.fetch(location, CONTEXT, deadline=deadline, max_bytes=max_bytes)

    with Prefetch(fetch, lambda _: True, CompositionPolicy(), deadline, workers=2) as ahead:
        ahead.roots([at("a.md")], None, set())
        ahead._futures = Interrupted()
        assert ahead.result(at("b.md"), 100).location == at("b.md")
        planners[0].join()
    assert store.fetched["b.md"] == 1


@pytest.mark.parametrize("workers", [0, 4])
def test_what_counts_as_attached_elsewhere_is_not_fetched_again(workers: int) -> None:
    """The root that came with the call, and what the caller has visited; neither ahead nor on demand."""
    files = {"a.md": page("a.md", "b.md", "c.md"), "b.md": page("a.md"), "c.md": b""}
    (root,) = [each.root for each in bundles(MemoryStore(files), {})]
    store, visited = MemoryStore(files), {at("c.md").uri}
    with index_first():
        use = loader(store, indexed(MemoryStore(files)), workers)
        bundle = use.load_bundle(root, root.pointer, CONTEXT, None, visited)
    assert [skip.code for skip in bundle.skipped] == ["self_include", "already_attached", "ancestor"]
    assert store.fetched == {"b.md": 1}
    assert visited == {at(key).uri for key in files}


def test_what_is_held_ahead_is_bounded_by_the_byte_budget() -> None:
    """No more is fetched ahead once the includes' budget is held; the search then fetches what it wants."""
    files = {"a.md": page(*(f"x{n}.md" for n in range(8))), **{f"x{n}.md": b"x" * 60 for n in range(8)}}
    store = MemoryStore(files)
    with index_first():
        (found,) = search(store, {"maxIncludeBytes": 100, "maxDocs": 9}, index=indexed(store), workers=1)
    assert found.included == ["x0.md"]
    assert [skip[2] for skip in found.skipped] == ["byte_budget_exceeded"] * 7
    assert store.read.keys() == {"a.md", "x0.md", "x1.md"}


def test_an_index_that_names_too_much_leaves_room_for_the_documents_themselves() -> None:
    """What the index names and what documents declare have room of their own, `maxDocs` each."""
    files = {"a.md": page("b.md"), "b.md": b"", **{f"x{n}.md": b"" for n in range(50)}}
    wrong = tuple(Include(n, f"x{n}.md", n + 2, 5, f"x{n}.md") for n in range(50))
    index = indexed(MemoryStore(files))
    index.stored[at("a.md").uri] = replace(index.stored[at("a.md").uri], includes=wrong)
    store = MemoryStore(files)
    with index_first():
        (found,) = search(store, {"maxDocs": 8}, index=index, workers=4)
    assert found.included == ["b.md"]
    assert sum(store.fetched[f"x{n}.md"] for n in range(50)) <= 7


def test_why_the_index_could_not_be_followed_is_told() -> None:
    use = loader(MemoryStore({"a.md": b""}), workers=1)
    with index_first(), use.prefetch(CONTEXT, CompositionPolicy(), Deadline.after(60), None) as ahead:
        assert ahead.index_error() is None
        ahead.roots([at("a.md")], Failing([], 0, Throttled), set())
        assert ahead.index_error() == "Throttled"
