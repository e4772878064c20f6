"""What is known of the documents in File Search stores (G-2): which document of ours each one was made from.

A store is listed into the catalogue, or filled by our own importer; both write the same entries.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from groundwire.deadline import Deadline

EntryState = Literal["pending", "active", "failed"]
GROUNDWIRE_ID: Final = "groundwire_id"
"""The metadata key that carries a document's id (X-10): it fits where a pointer does not."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One document of a File Search store, as the service lists it."""

    name: str
    """Its resource name: `fileSearchStores/<store>/documents/<id>`."""
    display_name: str | None = None
    state: EntryState = "active"
    created: str = ""
    """RFC 3339, as the service wrote it."""
    mime_type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Custom metadata: text and numbers by key; lists are left out."""

    @property
    def store(self) -> str:
        """The resource name of its store: `fileSearchStores/<store>`."""
        return store_of(self.name)

    @property
    def age(self) -> tuple[datetime, int]:
        """What entries are ordered by: the second they were created in, and its nanoseconds."""
        whole, _, rest = self.created.partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        zone = rest[len(digits) :]
        try:
            second = datetime.fromisoformat(whole + zone)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC), 0
        zoned = second if second.tzinfo else second.replace(tzinfo=UTC)
        return zoned, int(digits[:9].ljust(9, "0")) if digits else 0


@dataclass(frozen=True, slots=True)
class Listing:
    """How far the catalogue of one store is; `ours` is one that the importer fills and nobody lists."""

    completed: float = 0.0
    """Seconds since the epoch at which the last complete listing began; 0 before the first."""
    cursor: str | None = None
    """Where a listing that was cut short goes on."""
    ours: bool = False
    begun: float = 0.0
    """When the listing that `cursor` belongs to began: what it found is believed from then on."""


def store_of(document: str) -> str:
    """The store of a document's resource name."""
    return document.partition("/documents/")[0]


def newest(entries: Iterable[CatalogueEntry]) -> Sequence[CatalogueEntry]:
    """The active entries that no other active one is newer than: one, or several created at the same time."""
    active = [entry for entry in entries if entry.state == "active"]
    latest = max((entry.age for entry in active), default=None)
    return [entry for entry in active if entry.age == latest]


class MemoryCatalogue:
    """A CatalogueWriter for one process: where there is no table (P-2)."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[CatalogueEntry, float | None]] = {}
        self._listings: dict[str, Listing] = {}

    def named(self, names: Iterable[str], *, deadline: Deadline) -> Mapping[str, CatalogueEntry]:
        entries = self._living()
        return {name: entries[name] for name in names if name in entries}

    def titled(self, store: str, display_name: str, *, deadline: Deadline) -> list[CatalogueEntry]:
        return [
            entry
            for entry in self._living().values()
            if (entry.store, entry.display_name) == (store, display_name)
        ]

    def listing(self, store: str, *, deadline: Deadline) -> Listing | None:
        return self._listings.get(store)

    def put(self, entries: Iterable[CatalogueEntry], *, expires: float | None = None) -> None:
        self._entries |= {entry.name: (entry, expires) for entry in entries}

    def remove(self, name: str) -> None:
        self._entries.pop(name, None)

    def listed(self, store: str, listing: Listing) -> None:
        self._listings[store] = listing

    def _living(self) -> dict[str, CatalogueEntry]:
        now = time.time()
        entries = dict(self._entries)
        return {name: entry for name, (entry, expires) in entries.items() if expires is None or expires > now}
