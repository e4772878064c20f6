"""What is known of the documents in File Search stores (G-2): which document of ours each one was made from.

Values only. A store is listed into the catalogue, or filled by our own importer; both write the same entries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

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
    """Seconds since the epoch at which the last complete listing ended; 0 before the first."""
    cursor: str | None = None
    """Where a listing that was cut short goes on."""
    ours: bool = False


def store_of(document: str) -> str:
    """The store of a document's resource name."""
    return document.partition("/documents/")[0]


def newest(entries: Iterable[CatalogueEntry]) -> Sequence[CatalogueEntry]:
    """The active entries that no other active one is newer than: one, or several created at the same time."""
    active = [entry for entry in entries if entry.state == "active"]
    latest = max((entry.age for entry in active), default=None)
    return [entry for entry in active if entry.age == latest]
