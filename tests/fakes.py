"""In-memory stand-ins for the ports. Each passes the contract suite of its port (tests/contracts)."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.errors import DocumentNotFound, DocumentTooLarge, FetchError, Unavailable
from groundwire.limits import HEAD_BYTES
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.ports import ObjectHead


def version_of(content: bytes) -> str:
    """The version a store gives these bytes."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class MemoryStore:
    """Documents by full key: a DocumentFetcher and a HeadReader that count what they are asked."""

    def __init__(self, files: Mapping[str, bytes], mime_types: Mapping[str, str] | None = None) -> None:
        self.files = dict(files)
        self.mime_types = dict(mime_types or {})
        self.failures: dict[str, type[FetchError]] = {}
        self.fetched: Counter[str] = Counter()

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        self.fetched[location.key] += 1
        content = self._content(location)
        if len(content) > max_bytes:
            raise DocumentTooLarge(location.uri, len(content), max_bytes)
        return FetchedDocument(location, content, version_of(content), self.mime_types.get(location.key))

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        return location.key in self.files

    def head(self, location: Location, max_bytes: int = HEAD_BYTES) -> ObjectHead:
        content = self._content(location)
        stored = self.mime_types.get(location.key)
        return ObjectHead(content[:max_bytes], len(content), version_of(content), None, stored)

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

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        wanted = [location.uri for location in locations]
        self.levels.append(wanted)
        if not self.reachable:
            raise Unavailable(wanted[0], "the index is down")
        return {uri: self.stored[uri] for uri in wanted if uri in self.stored}

    def dependents(self, location: Location, *, deadline: Deadline, limit: int) -> tuple[list[Node], bool]:
        including = sorted(
            (node for node in self.stored.values() if location in node.targets()),
            key=lambda node: node.location.uri,
        )
        return including[:limit], len(including) > limit

    def node(self, location: Location) -> Node | None:
        return self.stored.get(location.uri)

    def replace(self, node: Node, seen: Node | None) -> bool:
        if self.stored.get(node.location.uri) != seen:
            return False
        self.stored[node.location.uri] = node
        return True
