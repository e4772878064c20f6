"""Use case: search results → pointers → whole documents → bundles (section 7)."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from groundwire.catalogue import MemoryCatalogue
from groundwire.composition import CompositionBundle, CompositionLoader, RequestBudget, bundle_id
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.deadline import Deadline
from groundwire.debugging import GROUNDING, DebugLog
from groundwire.documents import Context, PreparedDocument
from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    FetchCode,
    FetchError,
    PointerRefused,
    SourceCode,
    Unavailable,
)
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.learning import LEARNED_FROM, absence, sighting
from groundwire.limits import INDEX_AWAITED_S, LOOKUPS_AT_ONCE, MAX_TIMEOUT_MS
from groundwire.lookup import NO_SUCH_NAME, Found, SourceLookup
from groundwire.pointers import CanonicalDocumentPointer, Location
from groundwire.policy import CompositionPolicy
from groundwire.ports import CatalogueWriter, FileSearchStores, RepairQueue
from groundwire.prefetch import Prefetch
from groundwire.resolution import KnowledgeSource

HARMLESS = frozenset({"web_source", "source_type_not_allowed"})
"""Codes of sources that are no document of ours, or that the caller left out: nothing is lost by them."""


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """What became of one source: `uri` where it resolved, `code` where it did not or was not fetched.

    A `detail` without a code is something an author may want to mend.
    """

    index: int
    status: Literal["resolved", "unresolved"]
    uri: str | None = None
    code: SourceCode | FetchCode | None = None
    detail: str | None = None
    hidden: str | None = None
    """For the record alone: the URI of what was looked up, which the caller may not read (Z-1)."""


@dataclass(frozen=True, slots=True)
class CanonicalGroundingResult:
    """The answer (seed, G-5); the first three are parallel and hold the roots that were fetched."""

    pointers: tuple[CanonicalDocumentPointer, ...]
    prepared_documents: tuple[PreparedDocument, ...]
    composition_bundles: tuple[CompositionBundle, ...] | None
    all_documents_for_attachment: tuple[PreparedDocument, ...]
    """Roots first, then includes in the order of the search; each document once."""
    sources: tuple[SourceOutcome, ...]
    complete: bool
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of each phase."""
    index_stale: tuple[str, ...] = ()
    """URIs of which the index said something else; the answer is by the documents (B-9)."""
    index_error: str | None = None
    """Why the index could not be read, which made this answer slower."""
    lookup_errors: tuple[str, ...] = ()
    """Ways of looking sources up that failed, as `way: code`: index, catalogue, listing or get (G-2)."""

    @property
    def bundle_id(self) -> str:
        return bundle_id(self.all_documents_for_attachment)


class CanonicalGroundingService:
    """Grounds search results in whole documents (seed)."""

    def __init__(
        self,
        file_search_stores: FileSearchStores | None,
        fetcher: CanonicalDocumentFetcher,
        config: CanonicalGroundingConfig | None = None,
        *,
        loader: CompositionLoader | None = None,
        repairs: RepairQueue | None = None,
        catalogue: CatalogueWriter | None = None,
        store_names: Sequence[str] | None = None,
    ) -> None:
        """Without `file_search_stores` and `catalogue`, sources carry their own pointers, URIs or ids.

        `catalogue` is where listings are kept, in this process if it is not given; `store_names` are the
        stores that may be looked into, whichever a source names if they are not given.
        """
        self._fetcher = fetcher
        self._config = config or CanonicalGroundingConfig()
        self._loader = loader or CompositionLoader(fetcher)
        self._repairs = repairs
        self._lookup = SourceLookup(
            fetcher.roots,
            self._loader.index,
            catalogue or (MemoryCatalogue() if file_search_stores else None),
            file_search_stores,
            store_names,
        )
        self._debug = DebugLog(GROUNDING)

    def prepare_from_sources(
        self,
        sources: Sequence[KnowledgeSource],
        ctx: Context,
        overrides: Mapping[str, Any] | None = None,
        *,
        time_left: float = MAX_TIMEOUT_MS / 1000,
    ) -> CanonicalGroundingResult:
        """Resolves, fetches and expands; every source and every include is accounted for.

        `time_left` is what the platform leaves, in seconds. InvalidRequest where the overrides are
        nonsense; nothing a store does raises.
        """
        config = self._config.merged(overrides)
        policy = config.composition_policy
        limit = policy or CompositionPolicy(max_depth=0)
        deadline = Deadline.after(min(limit.timeout_ms / 1000, time_left))
        clock = _Phases()
        looked, lookup_errors = self._lookup.find(
            sources, _half(deadline), lambda pointer: self._fetcher.may_know(pointer, ctx)
        )
        clock.end("catalogue")
        self._debug("catalogue", sources=len(sources), failed=lookup_errors)
        outcomes, roots = self._resolve(looked, ctx, config, _half(deadline))
        clock.end("resolve")
        options = config.prepare_document_options
        with self._loader.prefetch(ctx, limit, deadline, options) as prefetch:
            visited: set[str] = set()
            prefetch.roots(
                [location for location, _ in roots], self._loader.index if policy else None, visited
            )
            fetched = prefetch.fetch_roots([location for location, _ in roots])
            documents, failed = self._fetched(roots, fetched)
            # A key that is nowhere may be stored in another Unicode form, which nobody has attempted (I-5).
            visited -= {uri for uri, error in failed.items() if isinstance(error, DocumentNotFound)}
            clock.end("fetch")
            bundles = None
            if policy:
                budget = RequestBudget(len(documents))
                bundles = tuple(
                    self._loader.expand(root, root.pointer, policy, visited, deadline, prefetch, budget)
                    for root in documents
                )
            clock.end("compose")
            attached = _attached(documents, bundles)
            stale, index_error = self._repair(attached, prefetch), prefetch.index_error()
        outcomes = [
            replace(each, code=error.code, detail=error.detail)
            if each.uri and (error := failed.get(each.uri))
            else each
            for each in outcomes
        ]
        self._debug("end", documents=len(attached), failed=len(failed), stale=len(stale))
        return CanonicalGroundingResult(
            pointers=tuple(document.pointer for document in documents),
            prepared_documents=tuple(bundle.root for bundle in bundles) if bundles else tuple(documents),
            composition_bundles=bundles,
            all_documents_for_attachment=attached,
            sources=tuple(outcomes),
            complete=_is_complete(outcomes, bundles, documents),
            timings=clock.milliseconds,
            index_stale=tuple(stale),
            index_error=index_error,
            lookup_errors=tuple(lookup_errors),
        )

    def prepare_one(
        self,
        pointer: CanonicalDocumentPointer,
        ctx: Context,
        overrides: Mapping[str, Any] | None = None,
        *,
        time_left: float = MAX_TIMEOUT_MS / 1000,
    ) -> CompositionBundle:
        """The bundle of one document.

        PointerRefused where no root holds it, its FetchError where it cannot be had.
        """
        config = self._config.merged(overrides)
        policy = config.composition_policy or CompositionPolicy(max_depth=0)
        deadline = Deadline.after(min(policy.timeout_ms / 1000, time_left))
        location = self._fetcher.locate(pointer, ctx, deadline=deadline)
        with self._loader.prefetch(ctx, policy, deadline, config.prepare_document_options) as prefetch:
            visited: set[str] = set()
            prefetch.roots([location], self._loader.index, visited)
            (document,) = prefetch.fetch_roots([location])
            if isinstance(document, FetchError):
                raise document
            root = _under(pointer, document)
            bundle = self._loader.expand(root, pointer, policy, visited, deadline, prefetch)
            self._repair(bundle.all_documents, prefetch)
        return bundle

    def _resolve(
        self,
        looked: Sequence[Found | PointerRefused],
        ctx: Context,
        config: CanonicalGroundingConfig,
        deadline: Deadline,
    ) -> tuple[list[SourceOutcome], list[tuple[Location, CanonicalDocumentPointer]]]:
        """Phase 2: each source a document, each document once, at most `max_documents` of them."""
        allowed = [_allowed(each, config) for each in looked]
        # What was looked up is located in any case: whether the caller may know of it comes first (Z-1).
        pairs = list(zip(looked, allowed, strict=True))
        asked = [
            found for found, each in pairs if isinstance(found, Found) and (each is found or not found.named)
        ]
        locations = self._located([found.pointer for found in asked], ctx, deadline)
        outcomes: list[SourceOutcome] = []
        roots: dict[str, tuple[Location, CanonicalDocumentPointer]] = {}
        for index, (found, each) in enumerate(pairs):
            location = locations[each.pointer] if isinstance(each, Found) else each
            looked_up = isinstance(found, Found) and not found.named and locations[found.pointer]
            if looked_up and (uri := self._hidden(looked_up, ctx)):
                outcome = SourceOutcome(index, "unresolved", None, "document_not_found", NO_SUCH_NAME, uri)
            elif isinstance(location, Location) and isinstance(each, Found):
                if location.uri in roots or len(roots) < config.max_documents:
                    roots.setdefault(location.uri, (location, each.pointer))
                    outcome = SourceOutcome(index, "resolved", location.uri, detail=each.note)
                else:
                    detail = f"{config.max_documents} documents are resolved already"
                    outcome = SourceOutcome(index, "unresolved", code="over_max_documents", detail=detail)
            else:
                assert isinstance(location, PointerRefused | FetchError)
                outcome = SourceOutcome(index, "unresolved", code=location.code, detail=location.detail)
            self._debug("source", index=index, status=outcome.status, uri=outcome.uri, code=outcome.code)
            outcomes.append(outcome)
        return outcomes, list(roots.values())

    def _hidden(self, found: Location | PointerRefused | FetchError, ctx: Context) -> str | None:
        """The URI of what was looked up, where the caller may not know that it is there (Z-1)."""
        if isinstance(found, Location):
            return None if self._fetcher.may_read(found, ctx) else found.uri
        return found.uri if isinstance(found, DocumentForbidden) else None

    def _located(
        self, pointers: Sequence[CanonicalDocumentPointer], ctx: Context, deadline: Deadline
    ) -> dict[CanonicalDocumentPointer, Location | PointerRefused | FetchError]:
        """Where the pointers lead, or why they lead nowhere; what a store must be asked is asked at once."""

        def locate(pointer: CanonicalDocumentPointer) -> Location | PointerRefused | FetchError:
            try:
                return self._fetcher.locate(pointer, ctx, deadline=deadline)
            except (PointerRefused, FetchError) as error:
                return error

        asked = dict.fromkeys(each for each in pointers if self._fetcher.asks_the_store(each))
        with ThreadPoolExecutor(LOOKUPS_AT_ONCE, "locate") as pool:
            answered = dict(zip(asked, pool.map(locate, asked), strict=True))
        return {each: answered[each] if each in asked else locate(each) for each in pointers}

    def _fetched(
        self,
        roots: Sequence[tuple[Location, CanonicalDocumentPointer]],
        fetched: Sequence[PreparedDocument | FetchError],
    ) -> tuple[list[PreparedDocument], dict[str, FetchError]]:
        """Phase 3: the documents under the pointers that led to them, and the failures by URI."""
        documents: list[PreparedDocument] = []
        failed: dict[str, FetchError] = {}
        for (location, pointer), document in zip(roots, fetched, strict=True):
            if isinstance(document, FetchError):
                failed[location.uri] = document
                self._debug("root", uri=location.uri, failed=document.code)
            else:
                documents.append(_under(pointer, document))
                self._debug("root", uri=location.uri, bytes=document.size_bytes, version=document.version)
        return documents, failed

    def _is_own(self, document: PreparedDocument) -> bool:
        """Whether the index knows it under the root that it was included from."""
        return self._fetcher.roots.is_innermost(document.location.root, document.location.key)

    def _repair(self, documents: Sequence[PreparedDocument], prefetch: Prefetch) -> list[str]:
        """Has the indexer put right what it holds of these documents (B-9); the URIs it was wrong about.

        A store that sends no events is learned of by what is seen of it: that it was not known is no fault.
        """
        now = datetime.now(UTC)
        # What a pointer pins may be long replaced.
        documents = [each for each in documents if each.location.version is None and self._is_own(each)]
        if any(_is_learned(each.location) for each in documents):
            # No event will tell the indexer later: what it holds should be known before this is over.
            prefetch.await_index(INDEX_AWAITED_S)
        stale = [each for each in prefetch.stale(documents) if _is_indexed(each.location)]
        gone = [each for each in prefetch.gone() if _is_indexed(each)]
        seen = [*stale, *prefetch.unasked(documents)]
        sightings = [sighting(each, now) for each in seen if _is_learned(each.location)]
        sightings += [absence(each, now) for each in gone if _is_learned(each)]
        unread = [each for each in (*(each.location for each in stale), *gone) if not _is_learned(each)]
        try:
            if self._repairs and unread:
                self._repairs.request(unread)
            if self._repairs and sightings:
                self._repairs.learn(sightings)
        except Unavailable as error:
            # The answer is right without it, and the next request will ask again.
            self._debug("repair failed", code=error.code, documents=len(unread) + len(sightings))
        known = (each for each in stale if not _is_learned(each.location) or prefetch.is_known(each.location))
        return [*(each.uri for each in known), *(each.uri for each in gone)]


def _half(deadline: Deadline) -> Deadline:
    """What finding out where documents are may take: those whose place is known still have to be fetched."""
    return deadline.at_most(deadline.left() / 2)


def _is_learned(location: Location) -> bool:
    """Whether what is seen of it is what the index knows of it.

    What one caller may read with their own rights is nothing to tell another.
    """
    return location.root.source_type in LEARNED_FROM and not location.root.delegated


def _is_indexed(location: Location) -> bool:
    return location.root.source_type == "s3" or _is_learned(location)


def _allowed(looked: Found | PointerRefused, config: CanonicalGroundingConfig) -> Found | PointerRefused:
    if isinstance(looked, Found) and looked.pointer.source_type not in config.allowed_source_types:
        return PointerRefused("source_type_not_allowed", f"{looked.pointer.source_type} is not allowed")
    return looked


def _under(pointer: CanonicalDocumentPointer, document: PreparedDocument) -> PreparedDocument:
    """The document under the pointer that led to it, and the name that pointer gives it."""
    return replace(document, pointer=pointer, display_name=pointer.display_name or document.display_name)


class _Phases:
    """Milliseconds of each phase and of all of them."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self.milliseconds: dict[str, float] = {}

    def end(self, phase: str) -> None:
        now = time.monotonic()
        self.milliseconds[f"{phase}Ms"] = round((now - self._last) * 1000, 1)
        self.milliseconds["totalMs"] = round((now - self._began) * 1000, 1)
        self._last = now


def _attached(
    documents: Sequence[PreparedDocument], bundles: Sequence[CompositionBundle] | None
) -> tuple[PreparedDocument, ...]:
    if bundles is None:
        return tuple(documents)
    return (*(b.root for b in bundles), *(each for b in bundles for each in b.included))


def _is_complete(
    outcomes: Sequence[SourceOutcome],
    bundles: Sequence[CompositionBundle] | None,
    documents: Sequence[PreparedDocument],
) -> bool:
    if any(each.code and each.code not in HARMLESS for each in outcomes):
        return False
    if bundles is None:
        # Without a search nobody followed any include: what is declared is not in the answer.
        return not any(each.declaration.loses_includes or each.declaration.includes for each in documents)
    return all(bundle.complete for bundle in bundles)
