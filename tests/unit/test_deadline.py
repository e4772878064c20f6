"""Rule B-8: one deadline for the request; a hung store costs its own include, and nobody waits for it."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire import grounding
from groundwire.composition import CompositionLoader
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument, PreparedDocument
from groundwire.errors import DocumentNotFound, Throttled, Unavailable
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingService
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.policy import CompositionPolicy
from groundwire.resolution import KnowledgeSource
from groundwire.roots import StorageRoots
from tests.fakes import Gate, HandClock, MemoryIndex, MemoryStore
from tests.unit.graphs import (
    CONTEXT,
    NFC,
    NFD,
    ROOT,
    Found,
    at,
    bundles,
    folders,
    index_first,
    indexed,
    loader,
    page,
    search,
)

PATIENCE = 0.2
"""Seconds that a search is left with when a store hangs."""


def left(store: MemoryStore, seconds: float = PATIENCE) -> Deadline:
    """A deadline by the clock of the store."""
    return Deadline.after(seconds, store.clock)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_hung_store_costs_its_own_include(gate: Gate, place: int) -> None:
    """Wherever it is declared: what arrived beside it is attached, and the answer does not wait for it."""
    names = ["b.md", "c.md"]
    names.insert(place, "hung.md")
    store = MemoryStore({"a.md": page(*names), "b.md": page("d.md"), "c.md": b"", "d.md": b""})
    index = indexed(store)
    store.hung["hung.md"] = gate
    found = found_beside(store, index, {"b.md", "c.md", "d.md"})
    assert gate.waiting["hung.md"] == 1
    assert found.included == ["b.md", "c.md", "d.md"]
    assert [skip[:4] for skip in found.skipped] == [("a.md", "hung.md", "timeout", None)]
    assert (found.complete, found.aborted) == (False, False)


def test_a_document_that_is_wanted_does_not_queue_behind_hung_ones(gate: Gate) -> None:
    """All workers hang; what the search wants is fetched all the same."""
    names = [f"hung{n}.md" for n in range(4)]
    store = MemoryStore({"a.md": page(*names, "c.md"), "c.md": b""})
    index = indexed(store)
    store.hung = dict.fromkeys(names, gate)
    found = found_beside(store, index, {"c.md"})
    assert found.included == ["c.md"]
    assert [skip[1:3] for skip in found.skipped] == [(name, "timeout") for name in names]


def found_beside(store: MemoryStore, index: MemoryIndex, there: set[str]) -> Found:
    """The bundle of `a.md` with four workers; what is `there` has come when the time is nearly over."""
    use, deadline = loader(store, index, 4), left(store, 60)
    with index_first(), use.prefetch(CONTEXT, policy := CompositionPolicy(), deadline, None) as ahead:
        # The index is followed when the root is there, for a worker would hang before it fetched the root.
        (root,) = ahead.fetch_roots([at("a.md")])
        assert isinstance(root, PreparedDocument)
        ahead.roots([at("a.md")], index, visited := set[str]())
        for key in there:
            ahead.result(at(key), 1_000)
        store.clock.turn(60 - PATIENCE)
        return Found.of(use.expand(root, root.pointer, policy, visited, deadline, ahead))


def test_what_arrived_before_the_deadline_is_attached_after_it() -> None:
    """Waiting for one document used up the time; `b.md` had come, and `d.md` was not begun."""
    store = MemoryStore({"a.md": page("slow.md", "b.md"), "b.md": page("d.md"), "d.md": b""})
    store.failures["slow.md"] = Unavailable
    store.seconds["slow.md"] = 2 * PATIENCE
    use, deadline = loader(store), left(store)
    (root,) = [each.root for each in bundles(MemoryStore(store.files), {})]
    with use.prefetch(CONTEXT, policy := CompositionPolicy(), deadline, None) as ahead:
        ahead.roots([at("a.md")], None, visited := set[str]())
        ahead.result(at("b.md"), 1_000)
        found = Found.of(use.expand(root, root.pointer, policy, visited, deadline, ahead))
    assert found.included == ["b.md"]
    assert [skip[:3] for skip in found.skipped] == [
        ("a.md", "slow.md", "timeout"),
        ("b.md", "d.md", "timeout"),
    ]
    assert store.fetched["d.md"] == 0


@pytest.mark.parametrize("workers", [0, 4])
def test_a_deadline_that_has_passed_fetches_nothing(workers: int) -> None:
    """What needs no fetch is decided all the same, and what resolves has its edge."""
    store = MemoryStore({"a.md": page("b.md", "/x", "a.md"), "b.md": b""})
    deadline, policy, use = left(store), CompositionPolicy(), loader(store, indexed(store), workers)
    (root,) = [each.root for each in bundles(store, {})]
    store.fetched.clear()
    store.clock.turn(PATIENCE)
    with use.prefetch(CONTEXT, policy, deadline, None) as ahead:
        ahead.roots([root.location], use.index, visited := set[str]())
        found = Found.of(use.expand(root, root.pointer, policy, visited, deadline, ahead))
    assert store.fetched == {}
    assert [skip[2] for skip in found.skipped] == ["timeout", "resolve_failed", "cycle"]
    assert [edge[1] for edge in found.edges] == ["b.md", "a.md"]


@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize("policy", ["skip", "abort"])
@pytest.mark.parametrize("error", [Unavailable, Throttled])
def test_a_store_cut_off_by_our_own_deadline_has_not_failed(
    workers: int, policy: str, error: type[Unavailable]
) -> None:
    """It is a timeout, and aborts nothing."""
    store = MemoryStore({"a.md": page("b.md", "c.md"), "c.md": b""})
    store.failures["b.md"] = error
    store.seconds["b.md"] = PATIENCE
    (found,) = search(store, {"onFetchError": policy, "maxDocs": 2}, workers=workers, deadline=left(store))
    assert found.skipped[0][:4] == ("a.md", "b.md", "timeout", None)
    assert not found.aborted


@pytest.mark.parametrize("workers", [0, 4])
def test_a_store_that_fails_in_time_has_failed(workers: int) -> None:
    store = MemoryStore({"a.md": page("b.md")})
    store.failures["b.md"] = Unavailable
    store.seconds["b.md"] = PATIENCE / 2
    (found,) = search(store, {}, workers=workers, deadline=left(store))
    assert found.skipped == [("a.md", "b.md", "fetch_failed", "unavailable", "made to fail")]


@given(files=folders(), seconds=st.integers(0, 12))
def test_a_deadline_cuts_the_sequential_search_off(files: dict[str, bytes], seconds: int) -> None:
    """Every fetch takes a second: what was attached in time is a prefix, what was not asked for a timeout."""
    policy = {"maxDepth": 5, "maxDocs": 20}
    store = MemoryStore(files)
    store.seconds = dict.fromkeys([*files, "gone.md"], 1.0)
    (whole,) = search(MemoryStore(files), policy)
    (found,) = search(store, policy, deadline=left(store, seconds + 0.5))
    asked = [key for key in store.fetched if key in store.seconds]
    assert found.included == whole.included[: len(found.included)]
    assert len(asked) <= 1 + seconds or seconds == 0
    if len(found.included) < len(whole.included):
        assert "timeout" in {skip[2] for skip in found.skipped}
        assert not found.complete
    else:
        assert found.versions == whole.versions


def test_nothing_is_probed_after_the_deadline() -> None:
    """I-5 asks the store under which key a document is; out of time, the entry's own key stands for it."""
    store = MemoryStore({"a.md": page(NFC), NFD: b""})
    store.seconds["a.md"] = PATIENCE
    (found,) = search(store, {"maxDepth": 0}, deadline=left(store))
    assert store.probed == {}
    assert found.edges == [("a.md", NFC, NFC, 1)]
    assert [skip[2] for skip in found.skipped] == ["depth_exceeded"]


def test_a_hung_probe_ends_with_the_deadline(gate: Gate) -> None:
    store = MemoryStore({"a.md": page(NFC), NFD: b""})
    store.hung[NFC] = gate
    (found,) = search(store, {"maxDepth": 0}, workers=4, deadline=left(store))
    assert gate.waiting[NFC] == 1
    assert [skip[2] for skip in found.skipped] == ["depth_exceeded"]


def test_a_hung_index_holds_nothing_up(gate: Gate) -> None:
    class HungIndex(MemoryIndex):
        def nodes(
            self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
        ) -> Mapping[str, Node]:
            gate.wait("index")
            return {}

    store = MemoryStore({"a.md": page("b.md"), "b.md": b""})
    (found,) = search(store, {}, workers=4, index=HungIndex())
    assert gate.waiting["index"] == 1
    assert (found.included, found.complete) == (["b.md"], True)


def test_the_deadline_reaches_every_store_and_the_index() -> None:
    """The very same one, not a moment later."""
    store = MemoryStore({"a.md": page("b.md", NFC), "b.md": page(NFC), NFC: b""})
    index = indexed(store)
    index.deadlines.clear()  # the indexer's own
    deadline = left(store, 60)
    search(store, {"maxDepth": 1, "maxDocs": 2}, workers=4, index=index, deadline=deadline)
    seen = [*store.deadlines, *index.deadlines]
    assert store.probed
    assert index.deadlines
    assert set(map(id, seen)) == {id(deadline)}


def service(store: MemoryStore, timeout_ms: int = 10_000) -> CanonicalGroundingService:
    fetcher = CanonicalDocumentFetcher({"local": store}, StorageRoots([ROOT]))
    config = CanonicalGroundingConfig(composition_policy=CompositionPolicy(timeout_ms=timeout_ms))
    return CanonicalGroundingService(None, fetcher, config, loader=CompositionLoader(fetcher, workers=4))


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> tuple[HandClock, list[float]]:
    """The service's deadlines go by this clock; and the seconds of each."""
    clock, seconds = HandClock(), list[float]()

    def after(given: float) -> Deadline:
        seconds.append(given)
        return Deadline.after(min(given, PATIENCE), clock)

    monkeypatch.setattr(grounding, "Deadline", SimpleNamespace(after=after))
    return clock, seconds


@pytest.mark.parametrize(("time_left", "seconds"), [(5.0, 5.0), (25.0, 10.0), (0.0, 0.0)])
def test_the_deadline_is_the_earlier_of_policy_and_platform(
    by_hand: tuple[HandClock, list[float]], time_left: float, seconds: float
) -> None:
    store = MemoryStore({"a.md": b""})
    sources = [KnowledgeSource(uri="local://kb/a.md")]
    service(store).prepare_from_sources(sources, CONTEXT, time_left=time_left)
    assert by_hand[1] == [seconds]


@pytest.mark.parametrize("place", [0, 1])
def test_a_hung_root_costs_its_own_bundle(
    by_hand: tuple[HandClock, list[float]], gate: Gate, place: int
) -> None:
    """The other root comes with what it includes, although all the time went into waiting."""
    store = MemoryStore({"a.md": page("b.md"), "b.md": b""})
    store.hung["hung.md"] = gate
    sources = [KnowledgeSource(uri="local://kb/a.md")]
    sources.insert(place, KnowledgeSource(uri="local://kb/hung.md"))
    result = service(store).prepare_from_sources(sources, CONTEXT)
    assert gate.waiting["hung.md"] == 1
    assert [each.location.key for each in result.all_documents_for_attachment] == ["a.md", "b.md"]
    assert (result.sources[place].code, result.sources[1 - place].code) == ("unavailable", None)
    assert not result.complete


def test_what_a_root_includes_is_fetched_before_the_last_root_is_there(gate: Gate) -> None:
    """With no index at all: it is the fetch of `b.md` that lets the other root go on."""

    class Watched(MemoryStore):
        def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
            if location.key == "b.md":
                gate.open()
            return super().fetch(location, deadline=deadline, max_bytes=max_bytes)

    store = Watched({"slow.md": b"", "a.md": page("b.md"), "b.md": b""})
    store.hung["slow.md"] = gate
    found = search(store, {}, roots=["slow.md", "a.md"], workers=4, deadline=left(store, 10))
    assert [each.included for each in found] == [[], ["b.md"]]


def test_a_root_that_is_not_there_is_not_found_in_time() -> None:
    store = MemoryStore({})
    pointer = at("a.md").pointer()
    with pytest.raises(DocumentNotFound):
        service(store).prepare_one(pointer, CONTEXT)


def test_time_by_the_clock_of_the_deadline() -> None:
    clock = HandClock()
    deadline = Deadline.after(2.0, clock)
    assert (deadline.left(), deadline.passed()) == (2.0, False)
    assert deadline.at_most(1.0) == Deadline(1.0, clock)
    assert deadline.at_most(3.0) == deadline
    clock.turn(2.0)
    assert (deadline.left(), deadline.passed()) == (0.0, True)
    clock.turn(1.0)
    assert deadline.left() == 0.0
