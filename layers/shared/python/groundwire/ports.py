"""What the use cases need of the world. An adapter implements one; nothing here does IO.

Every method raises `Unavailable` (or a narrower FetchError where it names a document) and nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from groundwire.catalogue import CatalogueEntry, Listing
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument, StoredFile
from groundwire.imports import ImportRecord
from groundwire.nodes import Node
from groundwire.pointers import Location, SharePointDocumentPointer
from groundwire.roots import StorageRoot, StorageRoots


class DocumentFetcher(Protocol):
    """Reads whole documents from one kind of store."""

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        """The stored bytes; DocumentTooLarge, with the body unread, where there are more than `max_bytes`."""
        ...

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        """Whether there is a document at exactly this key."""
        ...


@runtime_checkable
class DocumentLocator(Protocol):
    """A fetcher of a store whose documents are addressed by what only the store can turn into a key."""

    def locate(
        self, pointer: SharePointDocumentPointer, roots: StorageRoots, *, deadline: Deadline
    ) -> Location:
        """Where the item is, in the server's own letter case; PointerRefused where no root holds it."""
        ...


@runtime_checkable
class DelegatingFetcher(Protocol):
    """A fetcher of a store that knows its readers by tokens of their own (Z-4)."""

    def on_behalf_of(self, assertion: str) -> DocumentFetcher:
        """The same store as the caller may read it whose own token this is."""
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


class DocumentIds(Protocol):
    """What the index knows documents by."""

    def identified(self, ids: Iterable[str], *, deadline: Deadline) -> Mapping[str, Location]:
        """Where the documents with these ids are, or were last; absent where none is known (X-10)."""
        ...


class EdgeReader(DocumentIds, Protocol):
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

    def claimants(self, location: Location, canonical_path: str) -> list[Location]:
        """Documents of the location's root whose living nodes claim `canonical_path`."""
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
    """Asks the indexer, the index's only writer, to put right what a search found otherwise (B-9).

    Unavailable where the queue does not take it.
    """

    def request(self, locations: Iterable[Location]) -> None:
        """Asks it to look at documents of a store that it reads itself."""
        ...

    def learn(self, sightings: Iterable[Node]) -> None:
        """Tells it what was seen of documents in a store that only the search reads."""
        ...


class FileSearchStores(Protocol):
    """Gemini's File Search stores, to read from; `store` and `name` are resource names."""

    def page(
        self, store: str, cursor: str | None, *, deadline: Deadline
    ) -> tuple[list[CatalogueEntry], str | None]:
        """Some of the store's documents in order of creation, and where to go on; a page may be empty.

        DocumentNotFound where there is no such store, CursorRefused where `cursor` is no longer taken.
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


class FileStore(Protocol):
    """Gemini's Files API: bodies by name (`file_name`), kept for 48 hours, seen by the key's project only."""

    def put(
        self, name: str, content: bytes, *, mime_type: str, display_name: str, deadline: Deadline
    ) -> StoredFile:
        """The file once it can be used: the one that has this name already, or a new one.

        ImportRefused where the service will never take it.
        """
        ...

    def get(self, name: str, *, deadline: Deadline) -> StoredFile | None:
        """The file once it can be used; None where there is none, or no longer, or not for this key."""
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


class ImportRecords(Protocol):
    """What importers know of what they put into File Search stores (X-10); only they have it."""

    def get(self, document: str, store: str) -> ImportRecord | None:
        """The record of the document with this groundwire_id, read consistently."""
        ...

    def replace(self, record: ImportRecord, seen: ImportRecord | None) -> bool:
        """Writes the record; False, and nothing written, where the stored one is no longer `seen`."""
        ...


class ImportQueue(Protocol):
    """Work that would not fit one invocation, put back on the importer's queue (X-10)."""

    def sweep(self, cursor: str | None) -> None:
        """Asks for the rest of a sweep, from `cursor` on."""
        ...

    def refresh(self, store: str) -> None:
        """Asks for the rest of a store's listing."""
        ...
