"""In-memory stand-ins for the ports. Each passes the contract suite of its port (tests/contracts)."""

import hashlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from groundwire.catalogue import CatalogueEntry, store_of
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument, StoredFile
from groundwire.errors import DocumentNotFound, DocumentTooLarge, FetchError, ImportRefused, Unavailable
from groundwire.imports import ImportRecord
from groundwire.indexing import Indexer
from groundwire.limits import GEMINI_NAME_CHARS, GEMINI_PAGE, HEAD_BYTES
from groundwire.nodes import Node, document_id
from groundwire.placement import Placement
from groundwire.pointers import Location
from groundwire.ports import EdgeWriter, ObjectHead
from groundwire.roots import StorageRoot


def version_of(content: bytes) -> str:
    """The version a store gives these bytes."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class HandClock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def turn(self, seconds: float) -> None:
        self.now += seconds


class Gate:
    """Where calls hang until the test is over; nothing waits here for longer than `patience` seconds."""

    def __init__(self, patience: float = 30.0) -> None:
        self._patience = patience
        self._opened = threading.Event()
        self._lock = threading.Lock()
        self.waiting: Counter[str] = Counter()
        """What hangs here now."""

    def wait(self, name: str) -> None:
        with self._lock:
            self.waiting[name] += 1
        self._opened.wait(self._patience)
        with self._lock:
            self.waiting[name] -= 1

    def open(self) -> None:
        self._opened.set()


class MemoryStore:
    """Documents by full key: a DocumentFetcher and a HeadReader that count what they are asked."""

    def __init__(self, files: Mapping[str, bytes], mime_types: Mapping[str, str] | None = None) -> None:
        self.files = dict(files)
        self.mime_types = dict(mime_types or {})
        self.failures: dict[str, type[FetchError]] = {}
        """What a key fails with whenever it is asked for."""
        self.failures_at_first: dict[str, type[FetchError]] = {}
        """What a key fails with the first time it is fetched, and not again."""
        self.hung: dict[str, Gate] = {}
        """Where a key's fetches hang."""
        self.clock = HandClock()
        self.seconds: dict[str, float] = {}
        """How far a fetch of a key turns the clock."""
        self.fetched: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        """Fetches whose body was read to its end."""
        self.probed: Counter[str] = Counter()
        self.deadlines: list[Deadline] = []
        self._lock = threading.Lock()

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        with self._lock:
            self.fetched[location.key] += 1
            self.deadlines.append(deadline)
            is_first = self.fetched[location.key] == 1
        if location.key in self.hung:
            self.hung[location.key].wait(location.key)
        self.clock.turn(self.seconds.get(location.key, 0.0))
        if is_first and location.key in self.failures_at_first:
            raise self.failures_at_first[location.key](location.uri, "made to fail once")
        content = self._content(location)
        if len(content) > max_bytes:
            raise DocumentTooLarge(location.uri, len(content), max_bytes)
        with self._lock:
            self.read[location.key] += 1
        return FetchedDocument(location, content, version_of(content), self.mime_types.get(location.key))

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        with self._lock:
            self.probed[location.key] += 1
            self.deadlines.append(deadline)
        if location.key in self.hung:
            self.hung[location.key].wait(location.key)
        try:
            self._content(location)
        except DocumentNotFound:
            return False
        return True

    def head(self, location: Location, max_bytes: int = HEAD_BYTES) -> ObjectHead:
        content = self._content(location)
        stored = self.mime_types.get(location.key)
        return ObjectHead(content[:max_bytes], len(content), version_of(content), None, stored)

    def copy(self, source: Location, destination: Location, version: str) -> str:
        content = self._content(source)
        if version_of(content) != version:
            raise DocumentNotFound(source.uri, "replaced meanwhile")
        self.files[destination.key] = content
        return version

    def remove(self, location: Location, version: str) -> None:
        if location.key in self.files and version_of(self.files[location.key]) == version:
            del self.files[location.key]

    def _content(self, location: Location) -> bytes:
        if location.key in self.failures:
            raise self.failures[location.key](location.uri, "made to fail")
        if location.key not in self.files:
            raise DocumentNotFound(location.uri, "no such key")
        return self.files[location.key]


class MemoryIndex:
    """Nodes by URI: an EdgeReader and an EdgeWriter."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self.stored = {node.location.uri: node for node in nodes}
        self.reachable = True
        self.levels: list[list[str]] = []
        self.writes = 0
        self.deadlines: list[Deadline] = []

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        wanted = [location.uri for location in locations]
        self.levels.append(wanted)
        self.deadlines.append(deadline)
        self._reach()
        return {uri: self.stored[uri] for uri in wanted if uri in self.stored}

    def identified(self, ids: Iterable[str], *, deadline: Deadline) -> Mapping[str, Location]:
        self._reach()
        known = {document_id(node.location): node.location for node in self.stored.values()}
        return {each: known[each] for each in ids if each in known}

    def dependents(self, location: Location, *, deadline: Deadline, limit: int) -> tuple[list[Node], bool]:
        self._reach()
        including = sorted(
            (node for node in self.stored.values() if location in node.targets()),
            key=lambda node: node.location.uri,
        )
        return including[:limit], len(including) > limit

    def node(self, location: Location) -> Node | None:
        self._reach()
        return self.stored.get(location.uri)

    def replace(self, node: Node, seen: Node | None) -> bool:
        self._reach()
        stored = self.stored.get(node.location.uri)
        if stored == node:
            return True  # an earlier try wrote it, and its answer was lost
        if stored != seen:
            return False
        self.writes += 1
        self.stored[node.location.uri] = node
        return True

    def amend(self, node: Node, seen: Node) -> bool:
        return self.replace(node, seen)

    def dependents_page(
        self, location: Location, cursor: str | None, limit: int
    ) -> tuple[list[Location], str | None]:
        self._reach()
        naming = sorted(
            (n.location for n in self.stored.values() if location in n.lookups()), key=lambda each: each.uri
        )
        rest = [each for each in naming if each.uri > (cursor or "")]
        return rest[:limit], rest[limit - 1].uri if len(rest) > limit else None

    def claimants(self, location: Location, canonical_path: str) -> list[Location]:
        self._reach()
        return [
            node.location
            for node in self.stored.values()
            if node.exists and node.canonical_path == canonical_path and node.location.root == location.root
        ]

    def alike(self, location: Location, fingerprint: str) -> list[Node]:
        self._reach()
        return [
            node
            for node in self.stored.values()
            if node.fingerprint == fingerprint and node.location.root == location.root
        ]

    def located(self, root: StorageRoot, cursor: str | None, limit: int) -> tuple[list[Node], str | None]:
        self._reach()
        inside = {uri: node for uri, node in self.stored.items() if node.location.root == root}
        living = {uri: node for uri, node in inside.items() if node.exists}
        rest = sorted(uri for uri in living if uri > (cursor or ""))
        page = rest[:limit]
        return [living[uri] for uri in page], page[-1] if len(rest) > limit else None

    def _reach(self) -> None:
        if not self.reachable:
            raise Unavailable("the index", "is down")


class MemoryBus:
    """An EventSink that remembers, and a HealingQueue that hands its work back."""

    def __init__(self) -> None:
        self.published: list[tuple[str, str]] = []
        self.heals: list[tuple[Location, str | None]] = []

    def publish(self, node: Node) -> None:
        self.published.append((node.location.uri, node.verdict if node.exists else "removed"))

    def heal(self, target: Location, cursor: str | None = None) -> None:
        self.heals.append((target, cursor))


def indexer_over(
    store: MemoryStore, index: EdgeWriter, bus: MemoryBus | None = None, **options: Any
) -> Indexer:
    """The indexing use case over these, with a bus that nobody listens to unless one is given."""
    bus = bus or MemoryBus()
    return Indexer(store, index, bus, bus, Placement(store, store), **options)


class MemoryFileSearchStores:
    """File Search stores by resource name, and their documents by theirs: a FileSearchImports."""

    def __init__(self, *stores: str) -> None:
        self.stores: dict[str, dict[str, CatalogueEntry]] = {store: {} for store in stores}
        self.reachable = True
        self.asked: Counter[str] = Counter()
        """Pages and documents by the name that was asked for."""
        self._numbers = itertools.count(1)

    def add(self, store: str, display_name: str | None, **fields: Any) -> CatalogueEntry:
        """A document that is there already, active unless `fields` say otherwise."""
        number = next(self._numbers)
        name = f"{store}/documents/doc-{number:06}"
        created = fields.pop("created", f"2026-03-02T08:15:00.{number:06}Z")
        entry = CatalogueEntry(name, display_name, created=created, **fields)
        self.stores[store][name] = entry
        return entry

    def page(
        self, store: str, cursor: str | None, *, deadline: Deadline
    ) -> tuple[list[CatalogueEntry], str | None]:
        documents = list(self._store(store, deadline).values())
        start = int(cursor or 0)
        end = start + GEMINI_PAGE
        return documents[start:end], str(end) if end < len(documents) else None

    def document(self, name: str, *, deadline: Deadline) -> CatalogueEntry:
        self.asked[name] += 1
        self._reach(name, deadline)
        found = self.stores.get(store_of(name), {}).get(name)
        if found is None:
            raise DocumentNotFound(name, "no such document")
        return found

    def upload(
        self,
        store: str,
        content: bytes,
        *,
        display_name: str,
        mime_type: str,
        metadata: Mapping[str, str],
        deadline: Deadline,
    ) -> CatalogueEntry:
        self._store(store, deadline)
        if len(metadata) > 20 or any(len(value.encode()) > 256 for value in metadata.values()):
            raise ImportRefused(store, "INVALID_ARGUMENT", "too much metadata")
        return self.add(store, display_name[:GEMINI_NAME_CHARS], mime_type=mime_type, metadata=dict(metadata))

    def remove(self, name: str, *, deadline: Deadline) -> None:
        self._reach(name, deadline)
        self.stores.get(store_of(name), {}).pop(name, None)

    def _store(self, name: str, deadline: Deadline) -> dict[str, CatalogueEntry]:
        self.asked[name] += 1
        self._reach(name, deadline)
        if name not in self.stores:
            raise DocumentNotFound(name, "no such store")
        return self.stores[name]

    def _reach(self, name: str, deadline: Deadline) -> None:
        if not self.reachable or deadline.passed():
            raise Unavailable(name, "is down")


class MemoryFiles:
    """The Files API: a FileStore whose clock is turned by hand."""

    def __init__(self) -> None:
        self.files: dict[str, StoredFile] = {}
        self.reachable = True
        self.puts = 0
        self.clock = HandClock()

    def put(
        self, name: str, content: bytes, *, mime_type: str, display_name: str, deadline: Deadline
    ) -> StoredFile:
        held = self.get(name, deadline=deadline)
        if held is None:
            self.puts += 1
            uri, expires = f"https://files.example/{name}", self.clock.now + 48 * 3600
            held = self.files[name] = StoredFile(name, uri, mime_type, expires)
        return held

    def get(self, name: str, *, deadline: Deadline) -> StoredFile | None:
        if not self.reachable or deadline.passed():
            raise Unavailable(name, "is down")
        held = self.files.get(name)
        return held if held and (held.expires or 0) > self.clock.now else None


class MemoryImportRecords:
    """What importers know, by document and store: ImportRecords."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], ImportRecord] = {}

    def get(self, document: str, store: str) -> ImportRecord | None:
        return self.stored.get((document, store))

    def replace(self, record: ImportRecord, seen: ImportRecord | None) -> bool:
        stored = self.stored.get((record.document, record.store))
        if stored == record:
            return True  # an earlier try wrote it, and its answer was lost
        if stored != seen:
            return False
        self.stored[record.document, record.store] = record
        return True
