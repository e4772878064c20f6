"""Use case: documents are looked at again although nothing was heard of them (X-9).

What lies in a bucket is listed and indexed as it is; what the index still has of objects that are gone is
removed. A look that nothing orders never overwrites a live event's, and writes nothing where nothing changed:
both may run at any time and any number of times.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

from groundwire.deadline import Deadline
from groundwire.errors import DocumentForbidden, FetchError, Unavailable
from groundwire.indexing import Indexer, Outcome
from groundwire.limits import LOOKS_AT_ONCE, NODES_SWEPT_AT_ONCE, SWEEP_PAGE_S
from groundwire.pointers import Location
from groundwire.ports import DocumentFetcher, EdgeWriter
from groundwire.roots import StorageRoot

_COUNTS = (*get_args(Outcome), "invalid")


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of documents, in numbers, and by key which could not be looked at and why."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """By outcome of the indexer; `invalid` counts living nodes with that verdict, where they were seen."""
    failed: tuple[tuple[str, str], ...] = ()
    """Key and code of each document that a retry would not help."""

    @property
    def drift(self) -> int:
        """Documents of which the index did not say what the bucket says."""
        return self.counts.get("indexed", 0) + self.counts.get("removed", 0)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(Counter(self.counts) + Counter(other.counts), (*self.failed, *other.failed))

    def as_json(self) -> dict[str, Any]:
        """Every count by name, and `failed`, a list of `{key, code}`."""
        failed = [{"key": key, "code": code} for key, code in self.failed]
        return {**{name: self.counts.get(name, 0) for name in _COUNTS}, "failed": failed}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Tally":
        """What `as_json` was made from."""
        failed = tuple((each["key"], each["code"]) for each in value.get("failed", ()))
        return cls({name: value[name] for name in _COUNTS if value.get(name)}, failed)


class Reindexing:
    """Looks at many documents at a time; safe beside live events and beside itself."""

    def __init__(self, indexer: Indexer, index: EdgeWriter, store: DocumentFetcher) -> None:
        self._indexer = indexer
        self._index = index
        self._store = store

    def look(self, locations: Iterable[Location], deadline: Deadline) -> Tally:
        """Indexes each document as it is now. One that fails never fails the others.

        Unavailable, when all others are done, where one is worth a retry or the time did not suffice:
        running it again finds the others unchanged.
        """
        wanted = list(dict.fromkeys(locations))
        # Together, for most looks find what is written: then none of them reads or writes its node alone.
        seen = self._index.nodes(wanted, deadline=deadline, consistent=True)

        def look(location: Location) -> Outcome:
            node = seen.get(location.uri)
            if node and self._indexer.is_current(node):
                return "unchanged"
            return self._indexer.object_changed(location)

        return _tally(wanted, self._each(wanted, deadline, look))

    def sweep(
        self, root: StorageRoot, prefix: str, cursor: str | None, deadline: Deadline
    ) -> Iterator[tuple[Tally, str | None]]:
        """Removes what the index has of objects below the full key `prefix` that are gone, page by page.

        Each page comes with where to go on, None at the end; it stops when the deadline has passed.
        Unavailable where the page behind the last cursor is to be tried again.
        """
        while True:
            nodes, cursor = self._index.located(root, cursor, NODES_SWEPT_AT_ONCE)
            below = {n.location: n for n in nodes if n.location.key.startswith(prefix)}
            # A page that was begun is finished: the caller's deadline is for beginning the next one.
            page = Deadline.after(SWEEP_PAGE_S)
            outcomes = self._each(list(below), page, partial(self._swept, deadline=page))
            invalid = sum(
                node.verdict == "invalid"
                for node, outcome in zip(below.values(), outcomes, strict=True)
                if outcome.exception() is None and outcome.result() is None
            )
            yield _tally(list(below), outcomes) + Tally({"invalid": invalid}), cursor
            if cursor is None or deadline.passed():
                return

    def _swept(self, location: Location, deadline: Deadline) -> Outcome | None:
        try:
            if self._store.exists(location, deadline=deadline):
                return None
        except DocumentForbidden:
            return None  # denied is not gone
        return self._indexer.object_changed(location)

    def _each[T](
        self, locations: Sequence[Location], deadline: Deadline, look: Callable[[Location], T]
    ) -> list[Future[T]]:
        """What each look came to, or raised, in the locations' order; all are over when it returns."""

        def in_time(location: Location) -> T:
            if deadline.passed():
                raise Unavailable(location.uri, "no time was left to look at it")
            return look(location)

        with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
            return [pool.submit(in_time, each) for each in locations]


def _tally(locations: Sequence[Location], outcomes: Sequence[Future[Outcome | None]]) -> Tally:
    """The outcomes in numbers; Unavailable where some are worth a retry."""
    counts: Counter[str] = Counter()
    failed: list[tuple[str, str]] = []
    again: list[Unavailable] = []
    for location, outcome in zip(locations, outcomes, strict=True):
        error = outcome.exception()
        if error is None:
            counts.update([result] if (result := outcome.result()) else [])
        elif isinstance(error, Unavailable):
            again.append(error)
        elif isinstance(error, Exception):
            code = error.code if isinstance(error, FetchError) else type(error).__name__
            failed.append((location.key, code))
        else:
            raise error
    if again:
        first = again[0]
        raise Unavailable(first.uri, f"{len(again)} of {len(locations)} to be tried again: {first.detail}")
    return Tally(counts, tuple(failed))
