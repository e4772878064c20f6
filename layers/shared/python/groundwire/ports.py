"""What the use cases need of the world. An adapter implements one; nothing here does IO.

Every method raises `Unavailable` (or a narrower FetchError where it names a document) and nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.nodes import Node
from groundwire.pointers import Location


class DocumentFetcher(Protocol):
    """Reads whole documents from one kind of store."""

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        """The stored bytes; DocumentTooLarge, with the body unread, where there are more than `max_bytes`."""
        ...

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        """Whether there is a document at exactly this key."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """The first bytes of an object and what the store says of the whole."""

    content: bytes
    size_bytes: int
    version: str
    version_id: str | None
    stored_mime_type: str | None


class HeadReader(Protocol):
    """Reads as much of an object as the index needs."""

    def head(self, location: Location, max_bytes: int) -> ObjectHead:
        """The current object's first `max_bytes`; DocumentNotFound where the key is gone."""
        ...


class EdgeReader(Protocol):
    """The index, to read from."""

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        """Nodes by URI, tombstones among them; absent where nothing is known.

        Unavailable where some could not be read in time: unknown is never reported as absent.
        """
        ...

    def dependents(self, location: Location, *, deadline: Deadline, limit: int) -> tuple[list[Node], bool]:
        """Up to `limit` nodes that include `location`, sorted by URI, and whether there are more."""
        ...


class EdgeWriter(Protocol):
    """The index, to write to."""

    def node(self, location: Location) -> Node | None:
        """The node as last written, read consistently."""
        ...

    def replace(self, node: Node, seen: Node | None) -> bool:
        """Puts the node's reverse edges, then the node, then sweeps edges only `seen` had.

        False, and nothing flipped, where the stored node is no longer `seen`.
        """
        ...


class RepairQueue(Protocol):
    """Asks the indexer to look at documents again (B-9); the indexer is the index's only writer."""

    def request(self, locations: Iterable[Location]) -> None: ...
