"""The bounded breadth-first search (B-1 to B-7), pure: no IO, no threads, no clock.

Rules of this file:
- `next()` names the document it wants; the driver answers with exactly one of `attach`, `already`,
  `fail`, `too_large` or `expire`, and calls `next()` again until it returns None. A `Probe` it answers
  with `stored`.
- This is the only place where order, budgets and skip reasons are decided.
- Every include that was discovered ends in exactly one of: attached, skipped.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from groundwire.errors import DocumentTooLarge, FetchError
from groundwire.findings import Finding, finding
from groundwire.includes import Declaration, Include
from groundwire.pointers import Location, unicode_forms
from groundwire.policy import CompositionPolicy

SkipReason = Literal[
    "cycle",
    "depth_exceeded",
    "doc_budget_exceeded",
    "byte_budget_exceeded",
    "timeout",
    "non_traversable_mime",
    "resolve_failed",
    "fetch_failed",
]
CycleCode = Literal["self_include", "ancestor", "diamond", "already_attached"]
ABORTED: Final = "aborted"


class Expandable(Protocol):
    """What the search needs to know of a fetched document."""

    @property
    def location(self) -> Location: ...
    @property
    def mime_type(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def declaration(self) -> Declaration: ...


@dataclass(frozen=True, slots=True)
class CompositionEdge:
    """One include that resolved, whether or not its document was attached."""

    from_uri: str
    to_uri: str
    relative_path: str
    depth: int


@dataclass(frozen=True, slots=True)
class SkippedInclude:
    """One include that was discovered and not fetched, and why."""

    parent_uri: str
    relative_path: str
    reason: SkipReason
    code: str | None = None
    detail: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The next document to fetch; a body larger than `max_bytes` cannot be attached."""

    location: Location
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A document that will not be fetched, but of which the search must know under which key it is stored.

    Asked only for keys that have another Unicode form (I-5): identity is the stored key.
    """

    location: Location


@dataclass(slots=True)
class _Node:
    location: Location
    declaration: Declaration
    traversable: bool
    depth: int
    parent: "_Node | None"
    reached: set[str] = field(default_factory=set)

    def path_from(self, uri: str) -> list[str] | None:
        """The chain of includes from the ancestor `uri` down to here, or None."""
        path: list[str] = []
        node: _Node | None = self
        while node:
            path.insert(0, node.location.uri)
            if node.location.uri == uri:
                return path
            node = node.parent
        return None


class Traversal[Document: Expandable]:
    """One search from one root; `visited` is shared by the roots of a request and grows (B-7)."""

    def __init__(
        self,
        root: Document,
        policy: CompositionPolicy,
        visited: set[str],
        *,
        max_docs: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """`max_docs` and `max_bytes` are what the request as a whole has left, where that is less."""
        self.policy = policy
        self.included: list[Document] = []
        self.edges: list[CompositionEdge] = []
        self.skipped: list[SkippedInclude] = []
        self.remarks: list[tuple[str, Finding]] = []
        """Findings that only the search could make, by the URI of the document they are about."""
        self.aborted = False
        self._max_docs = policy.max_docs if max_docs is None else min(policy.max_docs, max_docs)
        self.bytes_left = (
            policy.max_include_bytes if max_bytes is None else min(policy.max_include_bytes, max_bytes)
        )
        self._visited = visited
        self._own: set[str] = {root.location.uri}
        self._stored: dict[str, Location] = {}
        self._loses_includes = root.declaration.loses_includes
        self._queue: deque[_Node] = deque()
        self._enqueue(root, None)
        visited.add(root.location.uri)
        self._steps = self._search()
        self._wanted: tuple[_Node, Include, Location] | None = None
        self._probed: Location | None = None

    @property
    def complete(self) -> bool:
        """B-6: nothing was lost, neither by a skip nor unseen."""
        return not self._loses_includes and all(each.reason == "cycle" for each in self.skipped)

    def next(self) -> Wanted | Probe | None:
        """What the search wants next, or None when it is over."""
        assert self._wanted is None, "the last wanted document was not answered"
        assert self._probed is None, "the last probe was not answered"
        return next(self._steps, None)

    def stored(self, location: Location | None) -> None:
        """Where the probed document is stored; None where it is nowhere, or nobody could ask."""
        assert self._probed is not None, "nothing was probed"
        self._stored[self._probed.uri] = location or self._probed
        self._probed = None

    @property
    def queued(self) -> int:
        """Attached documents whose includes the search has not come to."""
        return len(self._queue)

    def attach(self, document: Document) -> int | None:
        """The wanted document arrived, at its own or at a stored key of another Unicode form.

        Returns its depth, or None where it is not attached after all.
        """
        node, include, asked = self._answered()
        uri = document.location.uri
        if uri != asked.uri:
            self._note_form(node, include, asked, document.location)
            if uri in self._visited:
                self._record_visited(node, include, uri)
                return None
        if document.size_bytes > self.bytes_left:
            self._over_bytes(node, include, uri, document.size_bytes)
            return None
        self._reach(node, include, uri)
        self.bytes_left -= document.size_bytes
        self.included.append(document)
        self._loses_includes = self._loses_includes or document.declaration.loses_includes
        self._enqueue(document, node)
        return node.depth + 1

    def already(self, stored: Location) -> None:
        """The wanted document is stored in another Unicode form, under which it was visited before."""
        node, include, asked = self._answered()
        self._note_form(node, include, asked, stored)
        self._record_visited(node, include, stored.uri)

    def fail(self, error: FetchError) -> None:
        """The wanted document could not be had."""
        node, include, asked = self._answered()
        self._reach(node, include, asked.uri)
        self._skip(node, include, "fetch_failed", error.code, error.detail)
        if self.policy.on_fetch_error == "abort":
            self.aborted = True

    def too_large(self, error: DocumentTooLarge, stored: Location) -> None:
        """The store reports a size over `max_bytes`; the body was not read."""
        node, include, asked = self._answered()
        if stored != asked:
            self._note_form(node, include, asked, stored)
        self._over_bytes(node, include, stored.uri, error.size_bytes)

    def expire(self) -> None:
        """The deadline passed before the wanted document was had."""
        node, include, location = self._answered()
        self._edge(node, include, location.uri)
        self._skip(node, include, "timeout")

    # -- the search itself ---------------------------------------------------------------------

    def _search(self) -> Iterator[Wanted | Probe]:
        while self._queue:
            node = self._queue.popleft()
            for include in node.declaration.includes:
                if include.counts:
                    yield from self._decide(node, include)

    def _decide(self, node: _Node, include: Include) -> Iterator[Wanted | Probe]:
        """Rule B-3: the first reason that holds; a document that must be fetched is wanted."""
        location = node.location.at(include.key) if include.key is not None else None
        if location and not self._fetches(node) and self._may_be_stored_otherwise(location):
            self._probed = location
            yield Probe(location)
        uri = self._identity(node, include, location) if location else None
        if uri in node.reached:
            # Two spellings of one document in one list: the first counts (I-6).
            self._remark(node, include, "include_duplicate", "a document that this list already includes")
        elif self.aborted or not node.traversable:
            if uri:
                self._edge(node, include, uri)
            if self.aborted:
                self._skip(
                    node, include, "fetch_failed", ABORTED, "the search was aborted before this include"
                )
            else:
                self._skip(node, include, "non_traversable_mime", detail="its document is not traversable")
        elif location is None or uri is None:
            self._skip(node, include, "resolve_failed", include.code)
        elif uri in self._visited:
            self._record_visited(node, include, uri)
        elif node.depth + 1 > self.policy.max_depth:
            self._edge(node, include, uri)
            self._skip(node, include, "depth_exceeded", detail=f"maxDepth is {self.policy.max_depth}")
        elif self._full():
            self._edge(node, include, uri)
            self._skip(
                node, include, "doc_budget_exceeded", detail=f"the bundle holds {self._max_docs} documents"
            )
        else:
            self._wanted = (node, include, location)
            yield Wanted(location, self.bytes_left)

    def _identity(self, node: _Node, include: Include, location: Location) -> str:
        """The URI under which the document is stored, as far as that is known (I-5)."""
        stored = self._stored.get(location.uri, location)
        if stored != location:
            self._note_form(node, include, location, stored)
        return stored.uri

    def _fetches(self, node: _Node) -> bool:
        """Whether a document that `node` includes, and that was not visited, is fetched."""
        in_depth = node.traversable and node.depth < self.policy.max_depth
        return in_depth and not self._full() and not self.aborted

    def _full(self) -> bool:
        return 1 + len(self.included) >= self._max_docs

    def _may_be_stored_otherwise(self, location: Location) -> bool:
        """Whether another Unicode form of a key that was not asked for yet could be the document."""
        known = location.uri in self._visited or location.uri in self._stored
        return not known and any(unicode_forms(location.key))

    def _record_visited(self, node: _Node, include: Include, uri: str) -> None:
        if uri in node.reached:
            self._remark(node, include, "include_duplicate", "a document that this list already includes")
            return
        self._edge(node, include, uri)
        code, detail = self._cycle(node, uri)
        self._skip(node, include, "cycle", code, detail)

    def _cycle(self, node: _Node, uri: str) -> tuple[CycleCode, str | None]:
        """How a visited document was visited, and by which path where that leads in a circle."""
        if uri == node.location.uri:
            return "self_include", None
        if path := node.path_from(uri):
            return "ancestor", " -> ".join([*path, uri])
        return ("diamond" if uri in self._own else "already_attached"), None

    def _over_bytes(self, node: _Node, include: Include, uri: str, size: int) -> None:
        self._reach(node, include, uri)
        self._skip(
            node,
            include,
            "byte_budget_exceeded",
            detail=f"{size} bytes, {self.bytes_left} of the budget remain",
        )

    def _reach(self, node: _Node, include: Include, uri: str) -> None:
        self._visited.add(uri)
        self._own.add(uri)
        self._edge(node, include, uri)

    def _note_form(self, node: _Node, include: Include, asked: Location, stored: Location) -> None:
        self._stored[asked.uri] = stored
        # A store that does not mind letter case may answer in its own: no remark.
        if stored.key in unicode_forms(asked.key):
            self._remark(
                node, include, "unicode_form_differs", f"a document that is stored as {stored.key!a}"
            )

    def _remark(self, node: _Node, include: Include, code: str, what: str) -> None:
        message = f"{include.raw!a} names {what}."
        remark = finding(code, message, line=include.line, column=include.column)
        self.remarks.append((node.location.uri, remark))

    def _answered(self) -> tuple[_Node, Include, Location]:
        assert self._wanted is not None, "nothing was wanted"
        wanted, self._wanted = self._wanted, None
        return wanted

    def _enqueue(self, document: Document, parent: _Node | None) -> None:
        traversable = document.mime_type in self.policy.traversable_mime_types
        depth = parent.depth + 1 if parent else 0
        self._queue.append(_Node(document.location, document.declaration, traversable, depth, parent))

    def _edge(self, node: _Node, include: Include, uri: str) -> None:
        node.reached.add(uri)
        self.edges.append(CompositionEdge(node.location.uri, uri, include.raw or "", node.depth + 1))

    def _skip(
        self,
        node: _Node,
        include: Include,
        reason: SkipReason,
        code: str | None = None,
        detail: str | None = None,
    ) -> None:
        self.skipped.append(
            SkippedInclude(node.location.uri, include.raw or "", reason, code, detail, include.line)
        )
