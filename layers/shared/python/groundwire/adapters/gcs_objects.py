"""From an object as Cloud Storage holds it to a document: gzip encoding is taken off here, within the limit.

Left to itself the store would inflate, and then not say how long the body is. Sizes and hashes are of what is
delivered. Bytes that only claim to be gzip are delivered as they are, and are no text.
"""

import gzip
import io
import zlib
from dataclasses import dataclass, field

from groundwire.documents import FetchedDocument
from groundwire.errors import DocumentTooLarge
from groundwire.pointers import Location

_GZIP = "application/gzip"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The stored bytes and what the store says of them."""

    content: bytes = field(repr=False)
    generation: str | None
    encoding: str | None
    mime_type: str | None

    def document(self, location: Location, max_bytes: int) -> FetchedDocument:
        """The document; DocumentTooLarge, having inflated no more, where it is over `max_bytes`."""
        content, mime_type = self.content, self.mime_type
        if _is_gzip(self.encoding):
            inflated = _inflated(content, max_bytes + 1)
            content, mime_type = (content, _GZIP) if inflated is None else (inflated, mime_type)
        if len(content) > max_bytes:
            raise DocumentTooLarge(location.uri, len(content), max_bytes)
        return FetchedDocument(location, content, self.generation or "", mime_type)


def room(encoding: str | None, max_bytes: int) -> int:
    """How many stored bytes a document of `max_bytes` may have: what does not compress grows a little."""
    return max_bytes + max_bytes // 1_000 + 1_024 if _is_gzip(encoding) else max_bytes


def _is_gzip(encoding: str | None) -> bool:
    return (encoding or "").strip().lower() == "gzip"


def _inflated(content: bytes, at_most: int) -> bytes | None:
    """The first `at_most` bytes of what was compressed, or None where that is no gzip."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return file.read(at_most)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return None
