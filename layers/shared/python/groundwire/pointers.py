"""How a document is addressed: pointers (the seed's) and locations (ours)."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from groundwire.roots import StorageRoot


@dataclass(frozen=True, slots=True, kw_only=True)
class S3DocumentPointer:
    """A document in S3 or a store that speaks its protocol (seed)."""

    source_type: ClassVar[Literal["s3"]] = "s3"
    s3_bucket: str
    s3_key: str
    s3_region: str | None = None
    s3_endpoint: str | None = None
    s3_force_path_style: bool | None = None
    display_name: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsDocumentPointer:
    """A document in Google Cloud Storage (seed)."""

    source_type: ClassVar[Literal["gcs"]] = "gcs"
    gcs_bucket: str
    gcs_object: str
    gcs_generation: str | None = None
    display_name: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePointDocumentPointer:
    """A document in a SharePoint drive, by item id or by path from the drive's root (seed)."""

    source_type: ClassVar[Literal["sharepoint"]] = "sharepoint"
    sharepoint_drive_id: str
    sharepoint_item_id: str | None = None
    sharepoint_path: str | None = None
    sharepoint_site_id: str | None = None
    display_name: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDocumentPointer:
    """A file below a folder; for the command line only, the HTTP API refuses it."""

    source_type: ClassVar[Literal["local"]] = "local"
    local_root: str
    local_path: str
    display_name: str | None = None
    mime_type: str | None = None


CanonicalDocumentPointer = (
    S3DocumentPointer | GcsDocumentPointer | SharePointDocumentPointer | LocalDocumentPointer
)


def spelled(pointer: CanonicalDocumentPointer) -> str:
    """The document as a URI that a pointer names it by, whether or not it leads anywhere: for the record."""
    match pointer:
        case S3DocumentPointer():
            return f"s3://{pointer.s3_bucket}/{pointer.s3_key}"
        case GcsDocumentPointer():
            return f"gs://{pointer.gcs_bucket}/{pointer.gcs_object}"
        case SharePointDocumentPointer():
            item = pointer.sharepoint_path or f"items:{pointer.sharepoint_item_id}"
            return f"sharepoint://{pointer.sharepoint_drive_id}/{item}"
        case LocalDocumentPointer():
            return f"local://{pointer.local_root}/{pointer.local_path}"


@dataclass(frozen=True, slots=True)
class Location:
    """A document's place: its storage root and its full key there."""

    root: StorageRoot
    key: str
    version: str | None = field(default=None, compare=False)
    """The generation that a pointer pins; None: the current one. No part of what the document is called."""

    @property
    def uri(self) -> str:
        return self.root.uri(self.key)

    @property
    def relative_path(self) -> str:
        return self.root.relative(self.key)

    @property
    def in_inbox(self) -> bool:
        """Whether it lies in the root's inbox (C-4), where its own canonical_path is elsewhere."""
        return self.relative_path.startswith(self.root.inbox_prefix)

    @property
    def is_hidden(self) -> bool:
        """X-3: a directory marker or a dot-file, which is never read for includes when it is indexed."""
        name = self.relative_path.rsplit("/", 1)[-1]
        return not name or name.startswith(".")

    def at(self, key: str) -> "Location":
        """The same root, another key, of which the current version counts."""
        return Location(self.root, key)

    def pointer(
        self, display_name: str | None = None, mime_type: str | None = None
    ) -> CanonicalDocumentPointer:
        """The pointer that leads here."""
        root = self.root
        if root.source_type == "s3":
            return S3DocumentPointer(
                s3_bucket=root.bucket,
                s3_key=self.key,
                s3_region=root.region,
                s3_endpoint=root.endpoint,
                s3_force_path_style=root.force_path_style or None,
                display_name=display_name,
                mime_type=mime_type,
            )
        if root.source_type == "gcs":
            return GcsDocumentPointer(
                gcs_bucket=root.bucket,
                gcs_object=self.key,
                gcs_generation=self.version,
                display_name=display_name,
                mime_type=mime_type,
            )
        if root.source_type == "sharepoint":
            return SharePointDocumentPointer(
                sharepoint_drive_id=root.bucket,
                sharepoint_path=self.key,
                display_name=display_name,
                mime_type=mime_type,
            )
        return LocalDocumentPointer(
            local_root=root.name, local_path=self.key, display_name=display_name, mime_type=mime_type
        )


def unicode_forms(key: str) -> Iterator[str]:
    """The NFC, then the NFD form of `key`, where they differ from it (I-5)."""
    for form in ("NFC", "NFD"):
        other = unicodedata.normalize(form, key)
        if other != key:
            yield other
