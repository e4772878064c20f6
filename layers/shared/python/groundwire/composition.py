"""Use case: expand a root document into its bundle. Drives a traversal, fetching ahead by the index."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundwire.deadline import Deadline
from groundwire.debugging import COMPOSITION, DebugLog
from groundwire.documents import Context, PreparedDocument
from groundwire.errors import DocumentNotFound, DocumentTooLarge, FetchError
from groundwire.fetching import CanonicalDocumentFetcher, PrepareDocumentOptions
from groundwire.findings import Finding
from groundwire.limits import DOCUMENT_BYTES, FETCH_WORKERS, MAX_DOCS, MAX_INCLUDE_BYTES
from groundwire.pointers import CanonicalDocumentPointer, Location, unicode_forms
from groundwire.policy import CompositionPolicy
from groundwire.ports import EdgeReader
from groundwire.prefetch import DeadlinePassed, Prefetch
from groundwire.traversal import CompositionEdge, Probe, SkippedInclude, Traversal, Wanted


@dataclass(frozen=True, slots=True)
class CompositionBundle:
    """A root document, what it includes, and what became of every include (seed, section 6)."""

    root: PreparedDocument
    root_pointer: CanonicalDocumentPointer
    included: tuple[PreparedDocument, ...]
    """In the order of the search."""
    edges: tuple[CompositionEdge, ...]
    skipped: tuple[SkippedInclude, ...]
    policy: CompositionPolicy
    complete: bool
    aborted: bool

    @property
    def included_pointers(self) -> tuple[CanonicalDocumentPointer, ...]:
        return tuple(document.pointer for document in self.included)

    @property
    def all_documents(self) -> tuple[PreparedDocument, ...]:
        return (self.root, *self.included)

    @property
    def bundle_id(self) -> str:
        return bundle_id(self.all_documents)


def bundle_id(documents: Iterable[PreparedDocument]) -> str:
    """A hash over (URI, version, SHA-256) in order: equal content, equal id (B-10)."""
    rows = [[document.uri, document.version, document.sha256] for document in documents]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


class RequestBudget:
    """What one request may still attach, over all of its roots (B-7)."""

    def __init__(self, roots: int) -> None:
        self.includes = MAX_DOCS - roots
        self.bytes = MAX_INCLUDE_BYTES

    def spend(self, documents: Sequence[PreparedDocument]) -> None:
        """Takes what a bundle attached off the request's room."""
        self.includes -= len(documents)
        self.bytes -= sum(document.size_bytes for document in documents)


class CompositionLoader:
    """Expands root documents, within a policy (seed)."""

    def __init__(
        self,
        fetcher: CanonicalDocumentFetcher,
        default_policy: CompositionPolicy | None = None,
        *,
        index: EdgeReader | None = None,
        workers: int = FETCH_WORKERS,
    ) -> None:
        """`index` speeds the search up and never changes its answer; without `workers`, no threads."""
        self._fetcher = fetcher
        self.default_policy = default_policy or CompositionPolicy()
        self.index = index
        self._workers = workers
        self._debug = DebugLog(COMPOSITION)

    def load_bundle(
        self,
        root_doc: PreparedDocument,
        root_pointer: CanonicalDocumentPointer,
        ctx: Context,
        policy_override: Mapping[str, Any] | CompositionPolicy | None = None,
        already_visited: set[str] | None = None,
        prepare_options: PrepareDocumentOptions | None = None,
    ) -> CompositionBundle:
        """The bundle of `root_doc`, which is already fetched.

        `already_visited` holds canonical URIs that count as attached elsewhere, and grows by what this
        search visits. InvalidRequest where the policy is nonsense; an include that cannot be had is a
        skip, never an error.
        """
        policy = self.policy(policy_override)
        deadline = Deadline.after(policy.timeout_ms / 1000)
        with self.prefetch(ctx, policy, deadline, prepare_options) as prefetch:
            visited = already_visited if already_visited is not None else set()
            prefetch.roots([root_doc.location], self.index, visited)
            return self.expand(root_doc, root_pointer, policy, visited, deadline, prefetch)

    def policy(self, override: Mapping[str, Any] | CompositionPolicy | None) -> CompositionPolicy:
        """The resolved policy of a call."""
        return self.default_policy.merged(override)

    def prefetch(
        self,
        ctx: Context,
        policy: CompositionPolicy,
        deadline: Deadline,
        prepare_options: PrepareDocumentOptions | None,
    ) -> Prefetch:
        """The fetches of one request, for `expand`."""

        def fetch(location: Location, max_bytes: int) -> PreparedDocument:
            return self._fetcher.fetch(location, ctx, prepare_options, deadline=deadline, max_bytes=max_bytes)

        def exists(location: Location) -> bool:
            return self._fetcher.exists(location, ctx, deadline=deadline)

        return Prefetch(fetch, exists, policy, deadline, workers=self._workers)

    def expand(
        self,
        root: PreparedDocument,
        root_pointer: CanonicalDocumentPointer,
        policy: CompositionPolicy,
        visited: set[str],
        deadline: Deadline,
        prefetch: Prefetch,
        budget: RequestBudget | None = None,
    ) -> CompositionBundle:
        """One root's share of a request: `visited`, `prefetch` and `budget` are the request's."""
        budget = budget or RequestBudget(1)
        search = Traversal(root, policy, visited, max_docs=1 + budget.includes, max_bytes=budget.bytes)
        prefetch.declared(root, 0)
        self._debug("begin", root=root.uri, visited=len(visited), policy=policy_json(policy))
        while question := search.next():
            if isinstance(question, Probe):
                search.stored(prefetch.stored(question.location))
            else:
                self._answer(search, question, visited, deadline, prefetch)
        self._debug(
            "end",
            root=root.uri,
            included=len(search.included),
            complete=search.complete,
            aborted=search.aborted,
            # Not the entry itself: it is whatever its author wrote.
            skipped=[[s.parent_uri, s.line, s.reason, s.code] for s in search.skipped]
            if self._debug.on
            else (),
        )
        budget.spend(search.included)
        root, *included = _with_remarks([root, *search.included], search.remarks)
        return CompositionBundle(
            root,
            root_pointer,
            tuple(included),
            tuple(search.edges),
            tuple(search.skipped),
            policy,
            search.complete,
            search.aborted,
        )

    def _answer(
        self,
        search: Traversal[PreparedDocument],
        wanted: Wanted,
        visited: set[str],
        deadline: Deadline,
        prefetch: Prefetch,
    ) -> None:
        """Gives the search the document it wants, or the reason why it cannot have it."""
        began = time.monotonic()
        outcome = self._attempt(search, wanted, visited, deadline, prefetch)
        self._debug(
            "step",
            uri=wanted.location.uri,
            outcome=outcome,
            milliseconds=round((time.monotonic() - began) * 1000, 1),
            included=len(search.included),
            bytes_left=search.bytes_left,
            queued=search.queued,
        )

    def _attempt(
        self,
        search: Traversal[PreparedDocument],
        wanted: Wanted,
        visited: set[str],
        deadline: Deadline,
        prefetch: Prefetch,
    ) -> str:
        missing: DocumentNotFound | None = None
        for key in (wanted.location.key, *unicode_forms(wanted.location.key)):
            location = wanted.location.at(key)
            if missing and location.uri in visited and not prefetch.is_missing(location):
                search.already(location)
                return "visited in another Unicode form"
            try:
                document = prefetch.result(location, min(wanted.max_bytes, DOCUMENT_BYTES))
            except DocumentNotFound as error:
                missing = missing or error
                continue
            except DocumentTooLarge as error:
                search.too_large(error, location)
                return error.code
            except DeadlinePassed:
                search.expire()
                return "expired"
            except FetchError as error:
                # A store that was cut off by our own deadline has not failed.
                if deadline.passed():
                    search.expire()
                    return "expired"
                search.fail(error)
                return error.code
            depth = search.attach(document)
            if depth is not None:
                prefetch.declared(document, depth)
            return "attached" if depth is not None else "not attached"
        assert missing is not None
        search.fail(missing)
        return missing.code


def policy_json(policy: CompositionPolicy) -> dict[str, Any]:
    """The resolved policy under the seed's names."""
    return {
        "traversableMimeTypes": list(policy.traversable_mime_types),
        "maxDepth": policy.max_depth,
        "maxDocs": policy.max_docs,
        "maxIncludeBytes": policy.max_include_bytes,
        "timeoutMs": policy.timeout_ms,
        "onFetchError": policy.on_fetch_error,
    }


def _with_remarks(
    documents: list[PreparedDocument], remarks: Sequence[tuple[str, Finding]]
) -> list[PreparedDocument]:
    """The documents with what only the search could find added to their findings."""
    added: dict[str, list[Finding]] = {}
    for uri, remark in remarks:
        added.setdefault(uri, []).append(remark)
    return [
        replace(document, findings=(*document.findings, *added[document.uri]))
        if document.uri in added
        else document
        for document in documents
    ]
