"""From a pointer to a prepared document: the caller's right, the root's fetcher, the form a model takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from groundwire.deadline import Deadline
from groundwire.documents import Context, FetchedDocument, PreparedDocument
from groundwire.errors import ConfigurationError, DocumentForbidden, PointerRefused
from groundwire.findings import Finding, finding
from groundwire.includes import declare
from groundwire.limits import DOCUMENT_BYTES, MAX_TIMEOUT_MS
from groundwire.media_types import is_delivered_as_text, is_office, media_type
from groundwire.pointers import CanonicalDocumentPointer, Location, SharePointDocumentPointer
from groundwire.ports import DelegatingFetcher, DocumentFetcher, DocumentLocator
from groundwire.roots import SourceType, StorageRoot, StorageRoots, may_read


@dataclass(frozen=True, slots=True)
class PrepareDocumentOptions:
    """How a document is handed over (seed); `attachment` gives text as bytes too.

    `use_files_api` is for whoever hands documents over, as the HTTPS API does (delivery.py).
    """

    force_content_type: Literal["text", "attachment"] | None = None
    use_files_api: Literal["auto", "always", "never"] = "never"


class CanonicalDocumentFetcher:
    """Fetches documents from the storage root that holds them (seed)."""

    def __init__(self, fetchers: Mapping[SourceType, DocumentFetcher], roots: StorageRoots) -> None:
        """One fetcher for each source type that the roots have."""
        self.roots = roots
        self._fetchers = fetchers
        missing = {root.source_type for root in roots} - set(fetchers)
        if missing:
            raise ConfigurationError(f"no fetcher for source types {sorted(missing)}")
        for root in roots:
            if root.delegated and not isinstance(fetchers[root.source_type], DelegatingFetcher):
                raise ConfigurationError(f"storage root {root.name!r} cannot be read on behalf of a caller")

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
            self.locate(pointer, ctx, deadline=deadline),
            ctx,
            prepare_options,
            deadline=deadline,
            pointer=pointer,
        )

    def asks_the_store(self, pointer: CanonicalDocumentPointer) -> bool:
        """Whether the store has to say where the pointer leads: a SharePoint item's path is the server's."""
        return isinstance(self._fetchers.get(pointer.source_type), DocumentLocator)

    def locate(self, pointer: CanonicalDocumentPointer, ctx: Context, *, deadline: Deadline) -> Location:
        """Where the pointer leads.

        PointerRefused where no root holds it; DocumentForbidden before any request leaves where the caller
        may read no root that could, and where the store says that it is in another's; another FetchError
        where a store that has to be asked cannot say.
        """
        if not self.asks_the_store(pointer):
            return locate(pointer, self.roots)
        assert isinstance(pointer, SharePointDocumentPointer)
        drive = [root for root in self.roots if root.bucket == pointer.sharepoint_drive_id]
        if not drive:
            raise PointerRefused("root_not_configured", "no storage root holds this document")
        if not any(may_read(ctx.caller, root) for root in drive):
            uri = drive[0].uri(pointer.sharepoint_path or pointer.sharepoint_item_id or "")
            raise DocumentForbidden(uri, "the caller is no reader of its storage root")
        locator = self._fetcher(drive[0], ctx)  # the roots of a drive are all delegated, or none is
        assert isinstance(locator, DocumentLocator)
        location = locator.locate(pointer, self.roots, deadline=deadline)
        if not self.may_read(location, ctx):  # nor be told its path, or how it is spelled
            raise DocumentForbidden(location.uri, "the caller is no reader of its storage root")
        return location

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
        if not self.may_read(location, ctx):
            raise DocumentForbidden(location.uri, "the caller is no reader of its storage root")
        fetcher = self._fetcher(location.root, ctx)
        fetched = fetcher.fetch(location, deadline=deadline, max_bytes=min(max_bytes, DOCUMENT_BYTES))
        if not self.may_read(fetched.location, ctx):  # a store may answer under another key
            raise DocumentForbidden(location.uri, "the caller is no reader of its storage root")
        return prepare(fetched, prepare_options, pointer)

    def may_know(self, pointer: CanonicalDocumentPointer, ctx: Context) -> bool:
        """Whether the caller may read what the pointer leads to, as far as that is known without asking.

        A pointer that leads outside all roots hides nothing.
        """
        if self.asks_the_store(pointer):
            assert isinstance(pointer, SharePointDocumentPointer)
            drive = [root for root in self.roots if root.bucket == pointer.sharepoint_drive_id]
            return not drive or any(may_read(ctx.caller, root) for root in drive)
        try:
            return self.may_read(locate(pointer, self.roots), ctx)
        except PointerRefused:
            return True

    def may_read(self, location: Location, ctx: Context) -> bool:
        """Whether it lies in its storage root, whoever says so, and the caller may read there."""
        root, key = location.root, location.key
        return root.contains(key) and may_read(ctx.caller, self.roots.innermost(root, key))

    def exists(self, location: Location, ctx: Context, *, deadline: Deadline) -> bool:
        """Whether the caller could read a document at exactly this key; a FetchError where nobody knows."""
        if not self.may_read(location, ctx):
            return False
        return self._fetcher(location.root, ctx).exists(location, deadline=deadline)

    def _fetcher(self, root: StorageRoot, ctx: Context) -> DocumentFetcher:
        """The root's fetcher, on behalf of the caller where the root says so (Z-4)."""
        fetcher = self._fetchers[root.source_type]
        if not root.delegated:
            return fetcher
        if not ctx.assertion:
            raise DocumentForbidden(
                root.uri(root.prefix), "its storage root needs a token of the caller's own"
            )
        assert isinstance(fetcher, DelegatingFetcher)
        return fetcher.on_behalf_of(ctx.assertion)


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
        findings=(*declaration.findings, *_remarks(mime_type)),
        text=text,
    )


def _remarks(mime_type: str) -> tuple[Finding, ...]:
    """What there is to say of a document as it is handed over."""
    if not is_office(mime_type):
        return ()
    return (finding("unsupported_mime", f"No model takes {mime_type}; SharePoint alone converts it to PDF."),)


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
        root = roots.holding("gcs", pointer.gcs_bucket, pointer.gcs_object)
        return Location(root, pointer.gcs_object, pointer.gcs_generation)
    if isinstance(pointer, SharePointDocumentPointer):
        path = pointer.sharepoint_path or pointer.sharepoint_item_id or ""
        return Location(roots.holding("sharepoint", pointer.sharepoint_drive_id, path), path)
    return Location(roots.holding("local", pointer.local_root, pointer.local_path), pointer.local_path)
