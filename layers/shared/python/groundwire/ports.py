"""What the use cases need of the world. An adapter implements one; nothing here does IO.

Every method raises `Unavailable` (or a narrower FetchError where it names a document) and nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from groundwire.catalogue import CatalogueEntry, Listing
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.roots import StorageRoot


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


class EdgeWriter(EdgeReader, Protocol):
    """The index, to read and write; only the indexer has one."""

    def node(self, location: Location) -> Node | None:
        """The node as last written, read consistently."""
        ...

    def replace(self, node: Node, seen: Node | None) -> bool:
        """Puts what points to the node (reverse edges, claim, fingerprint), then the node, then sweeps what
        only `seen` had pointing to it.

        False, and nothing flipped, where the stored node is no longer `seen`.
        """
        ...

    def amend(self, node: Node, seen: Node) -> bool:
        """Puts a node whose includes, claim and fingerprint are those of `seen`; False as above."""
        ...

    def dependents_page(
        self, location: Location, cursor: str | None, limit: int
    ) -> tuple[list[Location], str | None]:
        """Some of the documents that name `location` or another Unicode form of it, and where to go on.

        Confirmed by nobody: whoever reads their nodes sees whether they still do.
        """
        ...

    def claimants(self, location: Location, canonical_path: str) -> list[Location]:
        """Documents of the location's root whose living nodes claim `canonical_path`."""
        ...

    def alike(self, location: Location, fingerprint: str) -> list[Node]:
        """Nodes of the location's root with this fingerprint, tombstones among them."""
        ...

    def located(self, root: StorageRoot, cursor: str | None, limit: int) -> tuple[list[Node], str | None]:
        """Some of the living nodes of `root`, at most `limit`, and where to go on; in no order.

        A page may be empty with more behind it: looking through everything is for reconciling only.
        """
        ...


class EventSink(Protocol):
    """Tells others what became of a document (X-7)."""

    def publish(self, node: Node) -> None:
        """One `Document Indexed` event; Unavailable where the bus does not take it."""
        ...


class HealingQueue(Protocol):
    """Work that would not fit one invocation, put back on the indexer's queue (X-6)."""

    def heal(self, target: Location, cursor: str | None = None) -> None:
        """Asks for the dependents of `target` to be judged again, from `cursor` on."""
        ...


class RepairQueue(Protocol):
    """Asks the indexer to look at documents again (B-9); the indexer is the index's only writer."""

    def request(self, locations: Iterable[Location]) -> None: ...


class FileSearchStores(Protocol):
    """Gemini's File Search stores, to read from; `store` and `name` are resource names."""

    def page(
        self, store: str, cursor: str | None, *, deadline: Deadline
    ) -> tuple[list[CatalogueEntry], str | None]:
        """Some of the store's documents in order of creation, and where to go on; a page may be empty.

        DocumentNotFound where there is no such store.
        """
        ...

    def document(self, name: str, *, deadline: Deadline) -> CatalogueEntry:
        """One document; DocumentNotFound where there is none of this name."""
        ...


class FileSearchImports(FileSearchStores, Protocol):
    """The same, to write; only the importer has one."""

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
        """The new document once it is active, beside any older one of this name.

        ImportRefused where the service will never take this document.
        """
        ...

    def remove(self, name: str, *, deadline: Deadline) -> None:
        """Deletes the document and its chunks; no error where it is gone."""
        ...


class Catalogue(Protocol):
    """What is known of the documents in File Search stores (G-2)."""

    def named(self, names: Iterable[str], *, deadline: Deadline) -> Mapping[str, CatalogueEntry]:
        """Entries by resource name; absent where none is known."""
        ...

    def titled(self, store: str, display_name: str, *, deadline: Deadline) -> list[CatalogueEntry]:
        """Entries of the store with exactly this display name, in no order."""
        ...

    def listing(self, store: str, *, deadline: Deadline) -> Listing | None:
        """How far the store was listed; None where nobody ever began."""
        ...


class CatalogueWriter(Catalogue, Protocol):
    """The catalogue, to read and write."""

    def put(self, entries: Iterable[CatalogueEntry], *, expires: float | None = None) -> None:
        """Adds or replaces entries, until `expires` (seconds since the epoch) where it is given."""
        ...

    def remove(self, name: str) -> None:
        """Forgets the entry of this resource name."""
        ...

    def listed(self, store: str, listing: Listing) -> None:
        """Notes how far the store was listed."""
        ...
