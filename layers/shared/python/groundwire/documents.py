"""The values that travel: for whom, what was fetched, what a model takes."""

import base64
import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from groundwire.findings import Finding
from groundwire.includes import Declaration
from groundwire.pointers import CanonicalDocumentPointer, Location
from groundwire.roots import IN_PROCESS, Caller


@dataclass(frozen=True, slots=True)
class Context:
    """For whom a request is made; `user_id` and `auditing_id` are for the audit record and grant nothing."""

    user_id: int | str
    auditing_id: int | str
    caller: Caller = IN_PROCESS
    assertion: str | None = field(default=None, repr=False)
    """The caller's own token, without `Bearer`, for roots read on their behalf (Z-4); never logged."""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A whole document as the store holds it."""

    location: Location
    content: bytes = field(repr=False)
    version: str
    """ETag, generation or cTag: what changes when the bytes change."""
    stored_mime_type: str | None = None


@dataclass(frozen=True)
class PreparedDocument:
    """A document in the form a model takes: `text`, or `gemini_document` for everything else (G-6)."""

    location: Location
    pointer: CanonicalDocumentPointer
    display_name: str
    mime_type: str
    version: str
    content: bytes = field(repr=False)
    declaration: Declaration
    findings: tuple[Finding, ...]
    """Those of the declaration, and those that only the search could make."""
    text: str | None = field(repr=False)

    @property
    def uri(self) -> str:
        return self.location.uri

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    @cached_property
    def sha256(self) -> str:
        """Of the delivered bytes, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def gemini_document(self) -> dict[str, str] | None:
        """`{mimeType, data}` with standard base64, where the document is not text."""
        if self.text is not None:
            return None
        return {"mimeType": self.mime_type, "data": base64.b64encode(self.content).decode("ascii")}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A body that Gemini's Files API holds for a while (G-6)."""

    name: str
    """`files/<id>`."""
    uri: str
    """What a request names it by."""
    mime_type: str
    """As the service has it: text may have become `text/plain`."""
    expires: float | None
    """Seconds since the epoch, after which it is gone; None where the service does not say."""


def file_name(content: bytes, mime_type: str, *, again: bool = False) -> str:
    """The Files API's name for these bytes of this type, always the same, so that nothing is put twice.

    `again` gives their second name, for as long as the first is taken by a file that soon ends.
    """
    digest = hashlib.sha256(mime_type.encode() + b"\0" + content + b"\0again" * again).digest()
    return f"files/gw-{base64.b32encode(digest).decode('ascii')[:32].lower()}"
