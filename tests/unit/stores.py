"""A bucket, its index and a File Search store that an importer fills, which may die on the way."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from groundwire.catalogue import GROUNDWIRE_ID, CatalogueEntry, MemoryCatalogue
from groundwire.deadline import Deadline
from groundwire.errors import ImportRefused
from groundwire.importing import Done, Importer
from groundwire.imports import ImportRecord
from groundwire.media_types import media_type
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.fakes import (
    MemoryFileSearchStores,
    MemoryImportRecords,
    MemoryIndex,
    MemoryStore,
    version_of,
)

STORE = "fileSearchStores/handbook"
ROOT = StorageRoot("kb", "s3", "facilities-kb", region="eu-north-1")
KEY = "sops/water-leak.md"
AT = Location(ROOT, KEY)
ONE, TWO = b"---\ntitle: Water leak\n---\nShut it.\n", b"---\ntitle: Leaking water\n---\nRun.\n"


class Stores(MemoryFileSearchStores):
    """Stores that remember what was uploaded, and may refuse it."""

    def __init__(self) -> None:
        super().__init__(STORE)
        self.contents: dict[str, bytes] = {}
        self.refusing = False

    def upload(self, store: str, content: bytes, **options: Any) -> CatalogueEntry:
        if self.refusing:
            raise ImportRefused(store, "INVALID_ARGUMENT", "the service refuses it (400)")
        entry = super().upload(store, content, **options)
        self.contents[entry.name] = content
        return entry


class Mortal:
    """A port whose every call goes through `fate`, which may end the caller before it or after it."""

    def __init__(self, port: Any, fate: Callable[[Callable[[], Any]], Any]) -> None:
        self._port, self._fate = port, fate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return lambda *values, **named: self._fate(lambda: method(*values, **named))


@dataclass
class World:
    """A bucket, an index, a store and what importers wrote down, with a clock turned by hand."""

    objects: MemoryStore = field(default_factory=lambda: MemoryStore({}))
    index: MemoryIndex = field(default_factory=MemoryIndex)
    stores: Stores = field(default_factory=Stores)
    catalogue: MemoryCatalogue = field(default_factory=MemoryCatalogue)
    records: MemoryImportRecords = field(default_factory=MemoryImportRecords)
    seconds: float = field(default_factory=time.time)

    def importer(self, fate: Callable[[Callable[[], Any]], Any] = lambda call: call()) -> Importer:
        ports: dict[str, Any] = {
            "documents": self.objects,
            "index": self.index,
            "stores": self.stores,
            "catalogue": self.catalogue,
            "records": self.records,
        }
        mortal: dict[str, Any] = {name: Mortal(port, fate) for name, port in ports.items()}
        return Importer(**mortal, store=STORE, now=lambda: self.seconds)

    def put(self, content: bytes, key: str = KEY) -> None:
        self.objects.files[key] = content
        self.reindex(key)

    def delete(self, key: str = KEY) -> None:
        del self.objects.files[key]
        self.reindex(key)

    def reindex(self, key: str = KEY) -> None:
        """Makes the index say what the object is."""
        location, content = Location(ROOT, key), self.objects.files.get(key)
        self.index.stored[location.uri] = (
            Node(location, None)
            if content is None
            else Node(
                location,
                version_of(content),
                size_bytes=len(content),
                mime_type=media_type(self.objects.mime_types.get(key), key),
            )
        )

    def look(self, message: str = "m1", key: str = KEY) -> Done:
        return self.importer().document_changed(
            Location(ROOT, key), message=message, deadline=Deadline.after(60)
        )

    @property
    def record(self) -> ImportRecord | None:
        return self.records.get(document_id(AT), STORE)

    @property
    def held(self) -> list[bytes]:
        """What the store holds of the document."""
        identity = document_id(AT)
        documents = self.stores.stores[STORE].values()
        return [
            self.stores.contents.get(each.name, b"a stray")
            for each in documents
            if each.metadata.get(GROUNDWIRE_ID) == identity
        ]

    def check(self, *, swept: bool = False) -> None:
        """The store holds the object once, or not at all where there is none, and everybody knows."""
        content = self.objects.files.get(KEY)
        assert self.held == ([content] if content else [])
        record = self.record
        names = [name for name in self.stores.stores[STORE] if name in self.stores.contents]
        assert record is None or swept or record.claim is None
        assert record is None or swept or record.leftovers == ()
        assert (record.name if record else None) == (names[0] if names else None)
        assert record is None or record.version == (version_of(content) if content else None)
        assert [*self.catalogue.named(self.stores.contents, deadline=Deadline.after(60))] == names
