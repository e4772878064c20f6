"""Rules G-3 to G-5: every source ends in resolved or unresolved, every document is attached once."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from groundwire.composition import CompositionLoader, bundle_id
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.documents import Context
from groundwire.errors import DocumentForbidden, DocumentNotFound, PointerRefused, Throttled, Unavailable
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingResult, CanonicalGroundingService
from groundwire.learning import Learner
from groundwire.nodes import Node
from groundwire.pointers import GcsDocumentPointer, Location, S3DocumentPointer
from groundwire.policy import CompositionPolicy
from groundwire.resolution import sources
from groundwire.roots import ANYONE, Caller, StorageRoot, StorageRoots
from tests.fakes import MemoryIndex, MemoryStore
from tests.unit.graphs import CONTEXT, NFC, NFD, index_first, page

KB = StorageRoot("kb", "s3", "kb", readers=(ANYONE,))
PAY = StorageRoot("pay", "s3", "kb", prefix="pay", readers=("group:hr",))
PLANS = StorageRoot("plans", "gcs", "plans", readers=(ANYONE,))
ROOTS = StorageRoots([KB, PAY, PLANS])
COMPOSED = CanonicalGroundingConfig(composition_policy=CompositionPolicy())


class Queue:
    """A RepairQueue that remembers, or does not answer."""

    def __init__(self, error: type[Unavailable] | None = None) -> None:
        self.error = error
        self.requested: list[str] = []
        self.learned: list[Node] = []

    def request(self, locations: Iterable[Location]) -> None:
        if self.error:
            raise self.error("queue", "down")
        self.requested += [location.uri for location in locations]

    def learn(self, sightings: Iterable[Node]) -> None:
        if self.error:
            raise self.error("queue", "down")
        self.learned += sightings


def service(
    files: dict[str, bytes] | MemoryStore,
    config: CanonicalGroundingConfig = COMPOSED,
    *,
    index: MemoryIndex | None = None,
    repairs: Queue | None = None,
) -> CanonicalGroundingService:
    store = files if isinstance(files, MemoryStore) else MemoryStore(files)
    fetcher = CanonicalDocumentFetcher({"s3": store, "gcs": store}, ROOTS)
    loader = CompositionLoader(fetcher, index=index, workers=4)
    return CanonicalGroundingService(None, fetcher, config, loader=loader, repairs=repairs)


def grounded(
    files: dict[str, bytes] | MemoryStore, *given: Any, **overrides: Any
) -> CanonicalGroundingResult:
    found = sources({"sources": list(given)})
    return service(files).prepare_from_sources(found, CONTEXT, overrides)


def outcomes(result: CanonicalGroundingResult) -> list[tuple[str, str | None]]:
    return [(each.status, each.code) for each in result.sources]


def attached(result: CanonicalGroundingResult) -> list[str]:
    return [document.location.key for document in result.all_documents_for_attachment]


def test_several_chunks_of_a_document_are_one_document_in_order_of_the_first() -> None:
    result = grounded({"a.md": b"a", "b.md": b"b"}, "s3://kb/b.md", "s3://kb/a.md", "s3://kb/b.md")
    assert attached(result) == ["b.md", "a.md"]
    assert [source.uri for source in result.sources] == ["s3://kb/b.md", "s3://kb/a.md", "s3://kb/b.md"]
    assert outcomes(result) == [("resolved", None)] * 3
    assert result.complete


def test_what_is_over_the_maximum_says_so_unless_it_has_a_reason_of_its_own() -> None:
    """And further chunks of a resolved document are resolved; refused sources take no place."""
    result = grounded(
        {"a.md": b"", "b.md": b"", "c.md": b""},
        "s3://nobodys/x.md",
        "s3://kb/a.md",
        "s3://kb/b.md",
        "s3://kb/c.md",
        "s3://nobodys/x.md",
        "gs://plans/x.md",
        "https://example.org/x.md",
        {"customMetadata": {"source_type": "ftp"}},
        {"title": "Leak"},
        "s3://kb/a.md",
        maxDocuments=2,
        allowedSourceTypes=["s3"],
    )
    assert attached(result) == ["a.md", "b.md"]
    assert outcomes(result) == [
        ("unresolved", "root_not_configured"),
        ("resolved", None),
        ("resolved", None),
        ("unresolved", "over_max_documents"),
        ("unresolved", "root_not_configured"),
        ("unresolved", "source_type_not_allowed"),
        ("unresolved", "uri_unsupported"),
        ("unresolved", "source_type_unknown"),
        ("unresolved", "metadata_missing"),
        ("resolved", None),
    ]
    assert not result.complete


def test_one_source_that_cannot_be_parsed_spoils_no_other() -> None:
    """Metadata is what authors write."""
    bad = {"source_type": "s3", "s3_bucket": "kb", "s3_key": "a.md", "s3_endpoint": "https://[kb"}
    result = grounded({"b.md": b""}, {"customMetadata": bad}, "s3://kb/b.md")
    assert outcomes(result) == [("unresolved", "root_not_configured"), ("resolved", None)]


@pytest.mark.parametrize("error", [DocumentNotFound, DocumentForbidden, Throttled, Unavailable])
def test_a_root_that_cannot_be_had_is_reported_and_the_others_returned(error: type[Unavailable]) -> None:
    """G-4: every chunk of it is resolved, with the failure's code."""
    store = MemoryStore({"a.md": page("x.md"), "x.md": b""})
    store.failures["b.md"] = error
    result = grounded(store, "s3://kb/b.md", "s3://kb/a.md", "s3://kb/b.md")
    assert outcomes(result) == [("resolved", error.code), ("resolved", None), ("resolved", error.code)]
    assert attached(result) == ["a.md", "x.md"]
    assert (
        len(result.pointers) == len(result.prepared_documents) == len(result.composition_bundles or ()) == 1
    )
    assert store.fetched["b.md"] == 1
    assert not result.complete


def test_roots_come_first_and_every_document_once() -> None:
    """G-5, B-7: `all_documents_for_attachment`, and the three parallel lists."""
    files = {"a.md": page("b.md", "x.md"), "b.md": page("x.md", "y.md"), "x.md": b"x", "y.md": b"y"}
    plan = {"source_type": "gcs", "gcs_bucket": "plans", "gcs_object": "b.md"}
    result = grounded(files, "s3://kb/a.md", plan)
    uris = [document.uri for document in result.all_documents_for_attachment]
    included = ["s3://kb/b.md", "s3://kb/x.md", "s3://kb/y.md", "gs://plans/x.md", "gs://plans/y.md"]
    assert uris == ["s3://kb/a.md", "gs://plans/b.md", *included]
    assert result.pointers == (
        S3DocumentPointer(s3_bucket="kb", s3_key="a.md"),
        GcsDocumentPointer(gcs_bucket="plans", gcs_object="b.md"),
    )
    assert [each.uri for each in result.prepared_documents] == uris[:2]
    assert [each.root.uri for each in result.composition_bundles or ()] == uris[:2]
    assert result.bundle_id == bundle_id(result.all_documents_for_attachment)
    assert result.timings.keys() == {"catalogueMs", "resolveMs", "fetchMs", "composeMs", "totalMs"}


def test_without_a_policy_only_roots_are_attached() -> None:
    """G-4: and what they include is missing from the answer, so it is not complete."""
    result = grounded({"a.md": page("b.md"), "b.md": b""}, "s3://kb/a.md", compositionPolicy=None)
    assert (attached(result), result.composition_bundles, result.complete) == (["a.md"], None, False)
    assert grounded({"a.md": b"x"}, "s3://kb/a.md", compositionPolicy=None).complete


@pytest.mark.parametrize(("sources_", "complete"), [([], True), ([{"title": "x"}], False)])
def test_no_sources_are_a_complete_answer(sources_: list[Any], complete: bool) -> None:
    result = grounded({}, *sources_)
    assert (attached(result), result.complete) == ([], complete)


def test_what_the_caller_left_out_is_not_lost() -> None:
    """A web page is no document of ours; a type that was not asked for was not asked for."""
    found = sources({"groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://example.org"}}]}})
    result = service({}).prepare_from_sources(found, CONTEXT)
    assert (outcomes(result), result.complete) == ([("unresolved", "web_source")], True)
    assert grounded({}, "gs://plans/x.md", allowedSourceTypes=["s3"]).complete


def test_the_root_keeps_the_name_its_pointer_gives_it() -> None:
    named = {"source_type": "s3", "s3_bucket": "kb", "s3_key": "a.md", "display_name": "No heat"}
    result = grounded({"a.md": b"---\ntitle: Cold\n---\n"}, named)
    assert result.prepared_documents[0].display_name == "No heat"
    assert result.pointers[0].display_name == "No heat"
    files = {"a.md": b"---\ntitle: Cold\n---\n", "x/b.md": b""}
    unnamed = grounded(files, "s3://kb/a.md", "s3://kb/x/b.md").prepared_documents
    assert [document.display_name for document in unnamed] == ["Cold", "b.md"]


@pytest.mark.parametrize(
    ("groups", "included", "code"), [((), [], "forbidden"), (("hr",), ["pay/x.md", "pay/y.md"], None)]
)
def test_a_document_has_the_readers_of_its_own_root(
    groups: tuple[str, ...], included: list[str], code: str | None
) -> None:
    """Z-1, Z-2: the longest prefix holds, for a root document and for an include from outside alike."""
    store = MemoryStore({"a.md": page("pay/x.md"), "pay/x.md": page("y.md"), "pay/y.md": b""})
    ctx = Context(1, 1, Caller("someone", frozenset(groups)))
    alone = service(store).prepare_from_sources(sources({"sources": ["s3://kb/pay/x.md"]}), ctx)
    beside = service(store).prepare_from_sources(sources({"sources": ["s3://kb/a.md"]}), ctx)
    assert alone.sources[0].code == code
    assert attached(beside) == ["a.md", *included]
    skips = [skip.code for bundle in beside.composition_bundles or () for skip in bundle.skipped]
    assert skips == ([code] if code else [])
    assert store.fetched.keys() == {"a.md", *included}


def test_a_caller_learns_of_no_key_in_a_root_that_is_not_theirs() -> None:
    """Z-1: where a document is only asked after, because it is too deep, its other form is not told."""
    store = MemoryStore({"a.md": page(f"pay/{NFC}"), f"pay/{NFD}": b""})
    found = sources({"sources": ["s3://kb/a.md"]})
    ctx = Context(1, 1, Caller("someone"))
    result = service(store).prepare_from_sources(found, ctx, {"compositionPolicy": {"maxDepth": 0}})
    (bundle,) = result.composition_bundles or ()
    assert [edge.to_uri for edge in bundle.edges] == [f"s3://kb/pay/{NFC}"]
    assert store.probed == {}


def test_the_form_of_documents_is_the_callers_choice() -> None:
    files = {"a.md": "läm".encode(), "b.pdf": b"%PDF", "c.md": b"\xff"}
    uris = [f"s3://kb/{key}" for key in files]
    plain = grounded(files, *uris).prepared_documents
    assert [document.text for document in plain] == ["läm", None, None]
    assert [bool(document.gemini_document) for document in plain] == [False, True, True]
    forced = grounded(files, *uris, prepareDocumentOptions={"forceContentType": "attachment"})
    assert [document.gemini_document for document in forced.prepared_documents] == [
        {"mimeType": "text/markdown", "data": "bMOkbQ=="},
        {"mimeType": "application/pdf", "data": "JVBERg=="},
        {"mimeType": "text/markdown", "data": "/w=="},
    ]


def test_one_document_by_its_pointer() -> None:
    store = MemoryStore({"a.md": page("b.md"), "b.md": b""})
    pointer = S3DocumentPointer(s3_bucket="kb", s3_key="a.md", display_name="No heat")
    bundle = service(store).prepare_one(pointer, CONTEXT)
    assert [document.location.key for document in bundle.all_documents] == ["a.md", "b.md"]
    assert (bundle.root_pointer, bundle.root.pointer, bundle.root.display_name) == (
        pointer,
        pointer,
        "No heat",
    )
    alone = service(store).prepare_one(pointer, CONTEXT, {"compositionPolicy": None})
    assert [skip.reason for skip in alone.skipped] == ["depth_exceeded"]
    with pytest.raises(DocumentNotFound):
        service(store).prepare_one(S3DocumentPointer(s3_bucket="kb", s3_key="gone.md"), CONTEXT)
    with pytest.raises(PointerRefused):
        service(store).prepare_one(S3DocumentPointer(s3_bucket="nobodys", s3_key="a.md"), CONTEXT)


def test_failed_roots_take_no_place_in_the_request() -> None:
    """B-7: 64 documents, of which those that could not be had are none."""
    files = {f"r{n}.md": page(*(f"x{n}-{m}.md" for m in range(7))) for n in range(10)}
    files |= {f"x{n}-{m}.md": b"" for n in range(10) for m in range(7)}
    uris = [*(f"s3://kb/gone{n}.md" for n in range(20)), *(f"s3://kb/r{n}.md" for n in range(10))]
    assert len(attached(grounded(files, *uris, maxDocuments=50))) == 64


@pytest.mark.parametrize("error", [None, Unavailable])
def test_a_stale_index_is_reported_and_its_repair_asked_for(error: type[Unavailable] | None) -> None:
    """B-9: the queue is asked once for what disagrees; if it does not answer, the answer stands."""
    files = {"a.md": page("b.md"), "b.md": b"---\n---\n"}
    queue = Queue(error)
    with index_first():
        found = sources({"sources": ["s3://kb/a.md"]})
        result = service(files, index=MemoryIndex(), repairs=queue).prepare_from_sources(found, CONTEXT)
    assert result.index_stale == ("s3://kb/a.md",)
    assert queue.requested == ([] if error else ["s3://kb/a.md"])
    assert attached(result) == ["a.md", "b.md"]
    assert result.index_error is None


def test_an_index_out_of_reach_is_told_and_nothing_is_stale() -> None:
    index, queue = MemoryIndex(), Queue()
    index.reachable = False
    with index_first():
        found = sources({"sources": ["s3://kb/a.md"]})
        result = service({"a.md": b""}, index=index, repairs=queue).prepare_from_sources(found, CONTEXT)
    assert (result.index_error, result.index_stale, queue.requested) == ("Unavailable", (), [])
    assert result.complete


def test_equal_content_has_an_equal_id() -> None:
    """B-10: over URI, version and content, in order; unambiguous where names hold separators."""
    files = {"a.md": b"x", "b.md": b"x"}
    a, b = (grounded(files, f"s3://kb/{key}").prepared_documents[0] for key in files)
    changed = grounded({"a.md": b"y"}, "s3://kb/a.md").prepared_documents[0]
    same_version = replace(changed, version=a.version)
    others = [(a,), (b,), (a, b), (b, a), (same_version,), (replace(a, version="2"),)]
    assert len({bundle_id(each) for each in others}) == len(others)
    assert grounded(files, "s3://kb/a.md", "s3://kb/b.md").bundle_id == bundle_id((a, b))


# -- stores without events ---------------------------------------------------------------------


def test_what_is_seen_in_a_store_without_events_is_learned_and_is_no_fault() -> None:
    queue, index = Queue(), MemoryIndex()
    store = MemoryStore({"a.md": page("b.md"), "b.md": b"b"})
    given = sources({"sources": ["gs://plans/a.md"]})
    result = service(store, index=index, repairs=queue).prepare_from_sources(given, CONTEXT)
    assert [node.location.uri for node in queue.learned] == ["gs://plans/a.md", "gs://plans/b.md"]
    assert (result.index_stale, queue.requested) == ((), [])
    node = queue.learned[0]
    assert [include.key for include in node.includes] == ["b.md"]
    assert node.version == result.all_documents_for_attachment[0].version


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_second_question_follows_the_index_and_teaches_nothing_more(depth: int) -> None:
    """What lies at the greatest depth is not followed, so nobody has to know its includes."""
    queue, index = Queue(), MemoryIndex()
    store = MemoryStore({"a.md": page("b.md"), "b.md": page("c.md"), "c.md": page("d.md"), "d.md": b"d"})
    given = sources({"sources": ["gs://plans/a.md"]})
    learned: list[list[str]] = []
    for _ in range(3):
        asked = service(store, index=index, repairs=queue)
        asked.prepare_from_sources(given, CONTEXT, {"compositionPolicy": {"maxDepth": depth}})
        learned.append([node.location.key for node in queue.learned])
        for node in queue.learned:
            Learner(index).learn(node)
        queue.learned.clear()
    keys = ["a.md", "b.md", "c.md"][:depth]
    assert learned == [keys, [], []]
    assert index.levels[-depth:] == [[f"gs://plans/{key}"] for key in keys]


def test_nothing_is_taught_while_the_index_cannot_be_read() -> None:
    queue, index = Queue(), MemoryIndex()
    index.reachable = False
    given = sources({"sources": ["gs://plans/a.md"]})
    asked = service({"a.md": page("b.md"), "b.md": b"b"}, index=index, repairs=queue)
    assert attached(asked.prepare_from_sources(given, CONTEXT)) == ["a.md", "b.md"]
    assert queue.learned == []


def test_a_document_that_changed_or_went_is_learned_anew_and_reported() -> None:
    queue, index = Queue(), MemoryIndex()
    store = MemoryStore({"a.md": page("b.md"), "b.md": b"b"})
    given = sources({"sources": ["gs://plans/a.md"]})
    learner = Learner(index)
    service(store, index=index, repairs=queue).prepare_from_sources(given, CONTEXT)
    for node in queue.learned:
        learner.learn(node)
    queue.learned.clear()
    store.files["a.md"] = page("b.md", "c.md")
    del store.files["b.md"]
    result = service(store, index=index, repairs=queue).prepare_from_sources(given, CONTEXT)
    assert result.index_stale == ("gs://plans/a.md", "gs://plans/b.md")
    assert [(node.location.key, node.exists) for node in queue.learned] == [("a.md", True), ("b.md", False)]
    assert queue.requested == []


def test_a_document_that_the_index_has_and_its_store_has_not_is_looked_at_again() -> None:
    queue, index = Queue(), MemoryIndex()
    given = sources({"sources": ["s3://kb/a.md"]})
    index.stored["s3://kb/a.md"] = Node(Location(KB, "a.md"), "v1")
    result = service({}, index=index, repairs=queue).prepare_from_sources(given, CONTEXT)
    assert (result.index_stale, queue.requested) == (("s3://kb/a.md",), ["s3://kb/a.md"])


def test_a_queue_that_takes_nothing_costs_the_lesson_only() -> None:
    given = sources({"sources": ["gs://plans/a.md"]})
    asked = service({"a.md": b"a"}, index=MemoryIndex(), repairs=Queue(Unavailable))
    assert attached(asked.prepare_from_sources(given, CONTEXT)) == ["a.md"]


def test_root_documents_share_the_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-7: one may be as large as any document, fifty together may not."""
    monkeypatch.setattr("groundwire.prefetch.ROOT_BYTES_IN_ALL", 100)
    files = {f"{number}.md": b"x" * 40 for number in range(3)}
    assert attached(grounded(files, "s3://kb/0.md", "s3://kb/1.md")) == ["0.md", "1.md"]
    result = grounded(files, *(f"s3://kb/{key}" for key in files))
    assert outcomes(result) == [("resolved", "too_large")] * 3
    assert not result.complete
