"""What is imported into a File Search store, and under which metadata (X-10), pure.

The store takes at most 256 bytes of UTF-8 a value: a pointer is there whole or not at all, and the document's
short id always.
"""

from dataclasses import dataclass, fields
from typing import Final

from groundwire.catalogue import GROUNDWIRE_ID
from groundwire.limits import DISPLAY_NAME_BYTES, DOCUMENT_BYTES, METADATA_VALUE_BYTES
from groundwire.media_types import is_delivered_as_text
from groundwire.nodes import document_id
from groundwire.pointers import Location
from groundwire.roots import is_unicode

_AS_THEY_ARE: Final = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "text/csv",
        "application/json",
        "application/xml",
        "application/pdf",
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    }
)
"""Types that File Search documents and that are no programs or archives."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An importer at work, or one that died: until the claim is taken back, it may have left an upload."""

    message: str
    """The id of the message it works for; that message comes again where the importer dies."""
    version: str | None
    """The document's version that it set out to import; None where it set out to remove."""
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """What a store holds of one document, as far as importers know."""

    document: str
    """Its groundwire_id."""
    store: str
    version: str | None = None
    """The version that was read and uploaded; None where the store holds nothing of it."""
    name: str | None = None
    """The resource name of the upload."""
    leftovers: tuple[str, ...] = ()
    """Resource names of earlier uploads that must still be removed."""
    claim: Claim | None = None
    generation: str = ""
    """A token that differs with every write; a write names the one it has seen."""
    expires: float | None = None
    """When a record that holds nothing may be forgotten, in seconds since the epoch."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the document is in the store, or could be."""
        return self.name is None and not self.leftovers and self.claim is None


def upload_type(mime_type: str) -> str | None:
    """The type under which a document is uploaded; None where File Search does not take it."""
    if mime_type in _AS_THEY_ARE:
        return mime_type
    return "text/plain" if is_delivered_as_text(mime_type) else None


def reason_to_skip(location: Location, mime_type: str, size_bytes: int) -> str | None:
    """Why a document is left out of the store; None where it is to be imported."""
    if location.is_hidden:
        return "hidden"
    if location.in_inbox:
        return "inbox"
    if upload_type(mime_type) is None:
        return "unsupported_mime"
    if size_bytes == 0:
        return "empty"
    return "too_large" if size_bytes > DOCUMENT_BYTES else None


def display_name(location: Location, title: str | None) -> str:
    """The title, else the file's name, cut after a whole character to what the service takes."""
    usable = title.strip() if title and is_unicode(title) else ""
    name = usable or location.key.rsplit("/", 1)[-1]
    return name.encode()[:DISPLAY_NAME_BYTES].decode(errors="ignore")


def metadata(location: Location, name: str, mime_type: str) -> dict[str, str]:
    """A document's custom metadata: its id, its whole pointer if each part fits, name and type if they do."""
    pointer = location.pointer()
    given = ((each.name, getattr(pointer, each.name)) for each in fields(pointer))
    parts = {key: "true" if value is True else value for key, value in given if value}
    parts["source_type"] = pointer.source_type
    described = {"display_name": name, "mime_type": mime_type}
    return {
        GROUNDWIRE_ID: document_id(location),
        **(parts if all(_fits(value) for value in parts.values()) else {}),
        **{key: value for key, value in described.items() if value and _fits(value)},
    }


def _fits(value: str) -> bool:
    return len(value.encode()) <= METADATA_VALUE_BYTES
