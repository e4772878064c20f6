"""Use case: search results → pointers → whole documents → bundles (section 7)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from groundwire.composition import CompositionBundle, CompositionLoader, RequestBudget, bundle_id
from groundwire.deadline import Deadline
from groundwire.debugging import GROUNDING, DebugLog
from groundwire.documents import Context, PreparedDocument
from groundwire.errors import DocumentNotFound, FetchError, InvalidRequest, PointerRefused, Unavailable
from groundwire.fetching import CanonicalDocumentFetcher, PrepareDocumentOptions, locate
from groundwire.limits import MAX_DOCUMENTS_DEFAULT, MAX_TIMEOUT_MS, SOURCES_PER_REQUEST
from groundwire.pointers import CanonicalDocumentPointer, Location
from groundwire.policy import CompositionPolicy
from groundwire.ports import RepairQueue
from groundwire.resolution import KnowledgeSource, resolve
from groundwire.roots import SOURCE_TYPES

HARMLESS = frozenset({"web_source", "source_type_not_allowed"})
"""Codes of sources that are no document of ours, or that the caller left out: nothing is lost by them."""


@dataclass(frozen=True, slots=True)
class CanonicalGroundingConfig:
    """How a service grounds (seed); a call's overrides merge over it."""

    max_documents: int = MAX_DOCUMENTS_DEFAULT
    allowed_source_types: tuple[str, ...] = SOURCE_TYPES
    prepare_document_options: PrepareDocumentOptions | None = None
    composition_policy: CompositionPolicy | None = None
    """None: root documents only, no includes."""

    def merged(self, overrides: Mapping[str, Any] | None) -> "CanonicalGroundingConfig":
        """This configuration with a call's overrides, in camelCase or snake_case, over it.

        `compositionPolicy` merges field by field; an explicit None switches composition off.
        """
        known = {
            "maxDocuments": "max_documents",
            "allowedSourceTypes": "allowed_source_types",
            "prepareDocumentOptions": "prepare_document_options",
            "compositionPolicy": "composition_policy",
        }
        config = self
        for name, value in (overrides or {}).items():
            field_name = known.get(name, name)
            if field_name not in known.values():
                raise InvalidRequest(f"overrides.{name}", f"is unknown; known are {', '.join(known)}")
            config = replace(config, **{field_name: _override(self, field_name, name, value)})
        return config


def _override(config: CanonicalGroundingConfig, field_name: str, name: str, value: Any) -> Any:
    if field_name == "composition_policy":
        if value is None:
            return value
        try:
            return (config.composition_policy or CompositionPolicy()).merged(value)
        except InvalidRequest as error:
            raise InvalidRequest(f"overrides.{name}.{error.field}", error.problem) from error
    if value is None:
        return getattr(config, field_name)
    if field_name == "max_documents":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidRequest(f"overrides.{name}", "must be a whole number of at least 1")
        return min(value, SOURCES_PER_REQUEST)
    if field_name == "allowed_source_types":
        if not isinstance(value, list | tuple) or not all(each in SOURCE_TYPES for each in value):
            raise InvalidRequest(f"overrides.{name}", f"must be a list of {', '.join(SOURCE_TYPES)}")
        return tuple(value)
    return _prepare_options(value, f"overrides.{name}")


def _prepare_options(value: Any, where: str) -> PrepareDocumentOptions:
    """The options, also as a caller wrote them out, in camelCase or snake_case."""
    if isinstance(value, PrepareDocumentOptions):
        return value
    if not isinstance(value, Mapping):
        raise InvalidRequest(where, "must be an object")
    forced = None
    for name, option in value.items():
        if name not in ("forceContentType", "force_content_type"):
            raise InvalidRequest(f"{where}.{name}", "is unknown; known is forceContentType")
        if option not in (None, "text", "attachment"):
            raise InvalidRequest(f"{where}.{name}", 'must be "text" or "attachment"')
        forced = option
    return PrepareDocumentOptions(forced)


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """What became of one source: `uri` where it resolved, `code` where it did not or was not fetched."""

    index: int
    status: Literal["resolved", "unresolved"]
    uri: str | None = None
    code: str | None = None
    detail: str | None = None


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

    @property
    def bundle_id(self) -> str:
        return bundle_id(self.all_documents_for_attachment)


class CanonicalGroundingService:
    """Grounds search results in whole documents (seed)."""

    def __init__(
        self,
        file_search_stores: None,
        fetcher: CanonicalDocumentFetcher,
        config: CanonicalGroundingConfig | None = None,
        *,
        loader: CompositionLoader | None = None,
        repairs: RepairQueue | None = None,
    ) -> None:
        """`file_search_stores` is None: sources carry their own pointers or URIs."""
        self._stores = file_search_stores
        self._fetcher = fetcher
        self._config = config or CanonicalGroundingConfig()
        self._loader = loader or CompositionLoader(fetcher)
        self._repairs = repairs
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
        outcomes, roots = self._resolve(sources, config)
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
            stale, index_error = prefetch.stale(attached), prefetch.index_error()
        self._repair(stale)
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
            index_stale=tuple(location.uri for location in stale),
            index_error=index_error,
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
        location = locate(pointer, self._fetcher.roots)
        with self._loader.prefetch(ctx, policy, deadline, config.prepare_document_options) as prefetch:
            visited: set[str] = set()
            prefetch.roots([location], self._loader.index, visited)
            (document,) = prefetch.fetch_roots([location])
            if isinstance(document, FetchError):
                raise document
            root = _under(pointer, document)
            bundle = self._loader.expand(root, pointer, policy, visited, deadline, prefetch)
            stale = prefetch.stale(bundle.all_documents)
        self._repair(stale)
        return bundle

    def _resolve(
        self, sources: Sequence[KnowledgeSource], config: CanonicalGroundingConfig
    ) -> tuple[list[SourceOutcome], list[tuple[Location, CanonicalDocumentPointer]]]:
        """Phase 2: each source a pointer, each document once, at most `max_documents` of them."""
        outcomes: list[SourceOutcome] = []
        roots: dict[str, tuple[Location, CanonicalDocumentPointer]] = {}
        for index, source in enumerate(sources):
            try:
                pointer = resolve(source, self._fetcher.roots)
                if pointer.source_type not in config.allowed_source_types:
                    raise PointerRefused("source_type_not_allowed", f"{pointer.source_type} is not allowed")
                location = locate(pointer, self._fetcher.roots)
                if location.uri not in roots and len(roots) >= config.max_documents:
                    detail = f"{config.max_documents} documents are resolved already"
                    raise PointerRefused("over_max_documents", detail)
            except PointerRefused as error:
                outcome = SourceOutcome(index, "unresolved", code=error.code, detail=error.detail)
            else:
                roots.setdefault(location.uri, (location, pointer))
                outcome = SourceOutcome(index, "resolved", location.uri)
            self._debug("source", index=index, status=outcome.status, uri=outcome.uri, code=outcome.code)
            outcomes.append(outcome)
        return outcomes, list(roots.values())

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

    def _repair(self, stale: Sequence[Location]) -> None:
        if stale and self._repairs:
            try:
                self._repairs.request(stale)
            except Unavailable as error:
                # The answer is right without it, and the next request will ask again.
                self._debug("repair failed", code=error.code, documents=len(stale))


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
