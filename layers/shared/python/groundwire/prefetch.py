"""The fetches of one request: each document at most once, ahead of the search where something is known.

What is fetched ahead never changes an answer (B-9): it only means that the search finds its document
already there. Two sources say what will be needed: the index, read level by level, and the includes of
documents that have arrived. The index cannot crowd out the documents: each has room of its own.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Literal, Self

from groundwire.deadline import Deadline
from groundwire.documents import PreparedDocument
from groundwire.errors import DocumentNotFound, FetchError, Unavailable
from groundwire.limits import DOCUMENT_BYTES, FETCH_WORKERS, MAX_DOCS, ROOT_BYTES_IN_ALL
from groundwire.nodes import Node, abridged
from groundwire.pointers import Location, unicode_forms
from groundwire.policy import CompositionPolicy
from groundwire.ports import EdgeReader

Fetch = Callable[[Location, int], PreparedDocument]
Exists = Callable[[Location], bool]
_Herald = Literal["index", "document"]


class DeadlinePassed(Exception):
    """The request's time ran out while a document was awaited."""


class _NotFetched(Exception):
    """A fetch ahead that never began, because enough was already held or the request is over."""


class _CallersThread:
    """An executor without threads: work is done where it is submitted."""

    def submit[**P, T](self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The outcome; what is no FetchError is raised here."""
        future = Future[T]()
        try:
            future.set_result(work(*args, **kwargs))
        except FetchError as error:
            future.set_exception(error)
        return future

    def shutdown(self, *, wait: bool, cancel_futures: bool) -> None:
        """Nothing is ever under way."""


class Prefetch:
    """A context manager around one request; without workers it fetches on demand, in the caller's thread."""

    def __init__(
        self,
        fetch: Fetch,
        exists: Exists,
        policy: CompositionPolicy,
        deadline: Deadline,
        *,
        workers: int = FETCH_WORKERS,
    ) -> None:
        self._fetch = fetch
        self._exists = exists
        self._policy = policy
        self._deadline = deadline
        self._lock = threading.Lock()
        self._futures: dict[str, Future[PreparedDocument]] = {}
        self._room: dict[_Herald, int] = {"index": 0, "document": 0}
        self._held_bytes = 0
        self._over = False
        self._visited: set[str] = set()
        self._nodes: dict[str, Node] = {}
        self._asked: set[str] = set()
        self._expanded: set[str] = set()
        self._ahead = ThreadPoolExecutor(workers, "prefetch") if workers else None
        # What the search waits for never queues behind what it may not want.
        self._demand = ThreadPoolExecutor(1, "demand") if workers else _CallersThread()
        self._planner = ThreadPoolExecutor(1, "plan") if workers else None
        self._plan: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves at once: a hung store's thread is not waited for, and its result is read by nobody."""
        with self._lock:
            self._over = True
        for pool in (self._planner, self._ahead, self._demand):
            if pool:
                pool.shutdown(wait=False, cancel_futures=True)

    def roots(self, locations: Sequence[Location], index: EdgeReader | None, visited: set[str]) -> None:
        """Makes room for the searches from these roots and begins to follow the index from them.

        What is in `visited`, which the searches share, is not fetched ahead.
        """
        self._visited = visited
        visited.update(location.uri for location in locations)
        room = min(MAX_DOCS, len(locations) * (self._policy.max_docs - 1))
        self._room = {"index": room, "document": room}
        if index and self._planner and self._policy.max_depth:
            self._plan = self._planner.submit(self._follow, list(locations), index)

    def fetch_roots(self, locations: Sequence[Location]) -> list[PreparedDocument | FetchError]:
        """The root documents, or why not, in order; fetched at the same time.

        They share the memory that there is: of many, each may be smaller than one by itself.
        """
        pool = self._ahead or self._demand
        share = min(DOCUMENT_BYTES, ROOT_BYTES_IN_ALL // max(1, len(locations)))
        futures = [pool.submit(self._fetch, each, share) for each in locations]
        with self._lock:
            self._futures.update((each.uri, future) for each, future in zip(locations, futures, strict=True))
        for future in futures:
            # Not when all roots are there: one that hangs would hold up what the others include.
            future.add_done_callback(self._root_arrived)
        return [self._root(each, future) for each, future in zip(locations, futures, strict=True)]

    def _root_arrived(self, future: Future[PreparedDocument]) -> None:
        if not future.cancelled() and not future.exception():
            self.declared(future.result(), 0)

    def _root(self, location: Location, future: Future[PreparedDocument]) -> PreparedDocument | FetchError:
        try:
            return future.result(timeout=self._deadline.left())
        except FetchError as error:
            return error
        except TimeoutError:
            return Unavailable(location.uri, "the request's time ran out")

    def declared(self, document: PreparedDocument, depth: int) -> None:
        """Begins to fetch what a document that arrived includes, if the search may still want it."""
        if depth >= self._policy.max_depth or document.mime_type not in self._policy.traversable_mime_types:
            return
        with self._lock:
            self._expanded.add(document.uri)
        for include in document.declaration.includes:
            if include.counts and include.key:
                self._begin(document.location.at(include.key), "document", depth + 1)

    def has(self, location: Location) -> bool:
        """Whether the document, or why it cannot be had, is already there."""
        with self._lock:
            future = self._futures.get(location.uri)
        return future is not None and future.done() and not _was_not_fetched(future)

    def is_missing(self, location: Location) -> bool:
        """Whether the store has said that there is nothing at this key."""
        return self.has(location) and isinstance(self._futures[location.uri].exception(), DocumentNotFound)

    def result(self, location: Location, max_bytes: int) -> PreparedDocument:
        """The document, awaited or fetched now; its FetchError, or DeadlinePassed."""
        for _ in range(2):
            future = self._demanded(location, max_bytes)
            try:
                return future.result(timeout=self._deadline.left())
            except TimeoutError as error:
                raise DeadlinePassed(location.uri) from error
            except _NotFetched:
                continue  # a fetch ahead that thought better of it
        raise AssertionError("a demanded fetch always begins")

    def _demanded(self, location: Location, max_bytes: int) -> Future[PreparedDocument]:
        """The one fetch of this document, begun now where it was not."""
        with self._lock:
            future = self._futures.get(location.uri)
            # Cancelling tells a fetch ahead that has not begun from one that has.
            if future is None or future.cancel() or _was_not_fetched(future):
                if self._deadline.passed():
                    raise DeadlinePassed(location.uri)
                future = self._demand.submit(self._fetch, location, max_bytes)
                self._futures[location.uri] = future
            return future

    def stored(self, location: Location) -> Location | None:
        """Where a document is stored that is asked for by this key (I-5); None where nobody can say."""
        for key in (location.key, *unicode_forms(location.key)):
            try:
                if self._exists_in_time(location.at(key)):
                    return location.at(key)
            except (FetchError, DeadlinePassed):
                return None
        return None

    def _exists_in_time(self, location: Location) -> bool:
        if self._deadline.passed():
            raise DeadlinePassed(location.uri)
        try:
            return self._demand.submit(self._exists, location).result(timeout=self._deadline.left())
        except TimeoutError as error:
            raise DeadlinePassed(location.uri) from error

    def await_index(self, seconds: float) -> None:
        """Waits so long at most for what the index is still being asked."""
        if self._plan and not self._plan.done():
            wait([self._plan], timeout=min(seconds, self._deadline.left()))

    def stale(self, documents: Sequence[PreparedDocument]) -> list[PreparedDocument]:
        """Those of `documents` of which the index, as far as it was read, says something else or nothing."""
        nodes, asked = self._read()
        return [
            document
            for document in documents
            if document.uri in asked
            and not document.location.is_hidden
            and _disagrees(nodes.get(document.uri), document)
        ]

    def unasked(self, documents: Sequence[PreparedDocument]) -> list[PreparedDocument]:
        """Those whose includes were followed although nothing in the index led to them.

        None while the index is still being read: it may know them.
        """
        if self._plan is None or not self._plan.done() or self.index_error():
            return []
        _, asked = self._read()
        return [each for each in documents if each.uri in self._expanded and each.uri not in asked]

    def gone(self) -> list[Location]:
        """Documents that the index has and their store has not."""
        nodes, _ = self._read()
        return [node.location for node in nodes.values() if node.exists and self.is_missing(node.location)]

    def is_known(self, location: Location) -> bool:
        """Whether the index, as far as it was read, has anything of this document."""
        return location.uri in self._read()[0]

    def _read(self) -> tuple[Mapping[str, Node], frozenset[str]]:
        with self._lock:
            return dict(self._nodes), frozenset(self._asked)

    def index_error(self) -> str | None:
        """Why the index could not be followed, as an error's name; it costs speed only (B-9)."""
        error = self._plan.exception() if self._plan and self._plan.done() else None
        return type(error).__name__ if error else None

    def _begin(self, location: Location, herald: _Herald, depth: int) -> None:
        with self._lock:
            known = location.uri in self._futures or location.uri in self._visited
            if self._ahead and self._room[herald] > 0 and not self._over and not known:
                self._room[herald] -= 1
                self._futures[location.uri] = self._ahead.submit(self._run, location, depth)

    def _run(self, location: Location, depth: int) -> PreparedDocument:
        budget = self._policy.max_include_bytes
        if self._over or self._held_bytes > budget or self._deadline.passed():
            raise _NotFetched
        document = self._fetch(location, budget)
        with self._lock:
            self._held_bytes += document.size_bytes
        # Not when the search comes to it: one that hangs before it would hold up what it includes (B-8).
        self.declared(document, depth)
        return document

    def _follow(self, level: list[Location], index: EdgeReader) -> None:
        seen = {location.uri for location in level}
        # Of a version that a pointer pins, the index says nothing: it knows what is there now.
        level = [location for location in level if location.version is None]
        for depth in range(1, self._policy.max_depth + 1):
            if not level or self._over:
                return
            nodes = index.nodes(level, deadline=self._deadline)
            with self._lock:
                # What is asked for in one letter case may be stored in another.
                self._nodes |= {**nodes, **{node.location.uri: node for node in nodes.values()}}
                self._asked |= {location.uri for location in level} | self._nodes.keys()
            level = self._next_level(level, nodes, seen, depth)

    def _next_level(
        self, level: list[Location], nodes: Mapping[str, Node], seen: set[str], depth: int
    ) -> list[Location]:
        following: list[Location] = []
        for location in level:
            node = nodes.get(location.uri)
            if node is None or node.mime_type not in self._policy.traversable_mime_types:
                continue
            for target in node.targets():
                if target.uri not in seen and len(following) < MAX_DOCS:
                    seen.add(target.uri)
                    following.append(target)
                    self._begin(target, "index", depth)
        return following


def _was_not_fetched(future: Future[PreparedDocument]) -> bool:
    return future.cancelled() or (future.done() and isinstance(future.exception(), _NotFetched))


def _disagrees(node: Node | None, document: PreparedDocument) -> bool:
    if node is None or (node.version, node.mime_type) != (document.version, document.mime_type):
        return True
    declared = [(i.raw, i.key) for i in abridged(document.declaration.includes)]
    return [(i.raw, i.key) for i in node.includes] != declared
