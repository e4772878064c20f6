"""From a pointer to a prepared document: the caller's right, the root's fetcher, the form a model takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from groundwire.deadline import Deadline
from groundwire.documents import Context, FetchedDocument, PreparedDocument
from groundwire.errors import ConfigurationError, DocumentForbidden
from groundwire.includes import declare
from groundwire.limits import DOCUMENT_BYTES, MAX_TIMEOUT_MS
from groundwire.media_types import is_delivered_as_text, media_type
from groundwire.pointers import CanonicalDocumentPointer, Location, SharePointDocumentPointer
from groundwire.ports import DocumentFetcher
from groundwire.roots import SourceType, StorageRoots, may_read


@dataclass(frozen=True, slots=True)
class PrepareDocumentOptions:
    """How a document is handed over (seed); `attachment` gives text as bytes too."""

    force_content_type: Literal["text", "attachment"] | None = None


class CanonicalDocumentFetcher:
    """Fetches documents from the storage root that holds them (seed)."""

    def __init__(self, fetchers: Mapping[SourceType, DocumentFetcher], roots: StorageRoots) -> None:
        """One fetcher for each source type that the roots have."""
        self.roots = roots
        self._fetchers = fetchers
        missing = {root.source_type for root in roots} - set(fetchers)
        if missing:
            raise ConfigurationError(f"no fetcher for source types {sorted(missing)}")

    def fetch_prepared_document(
        self,
        pointer: CanonicalDocumentPointer,
        ctx: Context,
        prepare_options: PrepareDocumentOptions | None = None,
    ) -> PreparedDocument:
        """The document at `pointer`, whole.

        PointerRefused where no root holds it; a FetchError where it cannot be had, DocumentForbidden
        before any request leaves where the caller may not read its root.
        """
        deadline = Deadline.after(MAX_TIMEOUT_MS / 1000)
        return self.fetch(
            locate(pointer, self.roots), ctx, prepare_options, deadline=deadline, pointer=pointer
        )

    def fetch(
        self,
        location: Location,
        ctx: Context,
        prepare_options: PrepareDocumentOptions | None = None,
        *,
        deadline: Deadline,
        max_bytes: int = DOCUMENT_BYTES,
        pointer: CanonicalDocumentPointer | None = None,
    ) -> PreparedDocument:
        """As above, by location; a document over `max_bytes` is not read."""
        if not self._may_read(location, ctx):
            raise DocumentForbidden(location.uri, "the caller is no reader of its storage root")
        fetcher = self._fetchers[location.root.source_type]
        fetched = fetcher.fetch(location, deadline=deadline, max_bytes=min(max_bytes, DOCUMENT_BYTES))
        return prepare(fetched, prepare_options, pointer)

    def exists(self, location: Location, ctx: Context, *, deadline: Deadline) -> bool:
        """Whether the caller could read a document at exactly this key; a FetchError where nobody knows."""
        fetcher = self._fetchers[location.root.source_type]
        return self._may_read(location, ctx) and fetcher.exists(location, deadline=deadline)

    def _may_read(self, location: Location, ctx: Context) -> bool:
        return may_read(ctx.caller, self.roots.innermost(location.root, location.key))


def prepare(
    fetched: FetchedDocument,
    options: PrepareDocumentOptions | None = None,
    pointer: CanonicalDocumentPointer | None = None,
) -> PreparedDocument:
    """The document as a model takes it; the bytes are the stored bytes, unchanged (F-10)."""
    location, content = fetched.location, fetched.content
    stored = fetched.stored_mime_type
    mime_type = media_type(pointer.mime_type if pointer and not stored else stored, location.key)
    declaration = declare(location, mime_type, content, len(content))
    forced = options.force_content_type if options else None
    text = None
    if forced == "text" or (forced is None and is_delivered_as_text(mime_type)):
        text = _decoded(content)
    named = pointer.display_name if pointer else None
    display_name = named or declaration.title or location.key.rsplit("/", 1)[-1]
    return PreparedDocument(
        location=location,
        pointer=pointer or location.pointer(display_name, mime_type),
        display_name=display_name,
        mime_type=mime_type,
        version=fetched.version,
        content=content,
        declaration=declaration,
        findings=declaration.findings,
        text=text,
    )


def _decoded(content: bytes) -> str | None:
    """The text, or None where bytes that are not UTF-8 would be lost by calling it text."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def locate(pointer: CanonicalDocumentPointer, roots: StorageRoots) -> Location:
    """Where the pointer leads; PointerRefused (`root_not_configured`) where no root holds it (Z-2)."""
    if pointer.source_type == "s3":
        root = roots.holding(
            "s3",
            pointer.s3_bucket,
            pointer.s3_key,
            region=pointer.s3_region,
            endpoint=pointer.s3_endpoint,
        )
        return Location(root, pointer.s3_key)
    if pointer.source_type == "gcs":
        return Location(roots.holding("gcs", pointer.gcs_bucket, pointer.gcs_object), pointer.gcs_object)
    if isinstance(pointer, SharePointDocumentPointer):
        path = pointer.sharepoint_path or pointer.sharepoint_item_id or ""
        return Location(roots.holding("sharepoint", pointer.sharepoint_drive_id, path), path)
    return Location(roots.holding("local", pointer.local_root, pointer.local_path), pointer.local_path)
