"""Documents in SharePoint drives, through Microsoft Graph.

Names compare as the server compares them, and a document's location carries them as the server stores
them. A document is what has bytes of its own in this drive: no folder, notebook or shortcut. Office files
arrive as PDF, by the server's conversion (G-6).
"""

import re
from collections import OrderedDict
from copy import copy
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, unquote

from groundwire.adapters.graph import Errand, GraphClient
from groundwire.adapters.microsoft import caller_key
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.errors import DocumentNotFound, DocumentTooLarge, PointerRefused, Unavailable
from groundwire.limits import ITEM_KNOWN_S, MAX_DOCS, SHAREPOINT_PATH_CHARS
from groundwire.media_types import UNKNOWN, media_type
from groundwire.pointers import Location, SharePointDocumentPointer
from groundwire.roots import StorageRoots

_SELECT = "$select=id,name,size,eTag,cTag,file,folder,package,malware,remoteItem,parentReference"
_NEVER_IN_NAMES: Final = re.compile(r'[\x00-\x1f\x7f"*:<>?\\|]')
_ITEM_ID: Final = re.compile(r"[0-9A-Za-z!_-]{1,200}")
_PDF: Final = "application/pdf"
_TEXTS: Final = ("doc", "docx", "odt", "rtf")
_SHEETS: Final = ("ods", "xls", "xlsx")
_SLIDES: Final = ("odp", "pot", "potm", "potx", "pps", "ppsx", "ppsxm", "ppt", "pptm", "pptx")
_CONVERTED: Final = frozenset((*_TEXTS, *_SHEETS, *_SLIDES))
"""What Graph documents that it turns into PDF, but for csv, which a model reads as it is."""


def may_be_stored(path: str) -> bool:
    """Whether SharePoint could store anything at this path; no other is asked for."""
    plain = all(part not in ("", ".", "..") for part in path.split("/"))
    return plain and len(path) <= SHAREPOINT_PATH_CHARS and not _NEVER_IN_NAMES.search(path)


class SharePointDocumentFetcher:
    """Reads documents with the application's own token; safe to share between threads."""

    def __init__(self, graph: GraphClient) -> None:
        self._graph = graph
        self._assertion: str | None = None
        self._located = _Located(graph)

    def on_behalf_of(self, assertion: str) -> "SharePointDocumentFetcher":
        """The same store as the caller may read it whose own token this is."""
        view = copy(self)
        view._assertion = assertion
        return view

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        """The document; its location has the server's letter case, its type may be PDF instead.

        UnsupportedMime where an Office file could not be converted.
        """
        errand = self._errand(location.uri, deadline)
        item = self._located.take(self._reader, location) or self._at(location, errand)
        stored = location.at(item.key)
        errand = self._errand(stored.uri, deadline)
        content = f"/drives/{_quoted(location.root.bucket)}/items/{_quoted(item.id)}/content"
        if item.is_converted:
            # How large the PDF is, is seen when it comes.
            body = self._graph.content(errand, f"{content}?format=pdf", max_bytes, slow=True)
            return FetchedDocument(stored, body, item.version, _PDF)
        if item.size_bytes > max_bytes:
            raise DocumentTooLarge(stored.uri, item.size_bytes, max_bytes)
        body = self._graph.content(errand, content, max_bytes)
        return FetchedDocument(stored, body, item.version, item.mime_type)

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        """Whether there is a document at this key, as the server compares keys."""
        try:
            self._at(location, self._errand(location.uri, deadline))
        except DocumentNotFound:
            return False
        return True

    def locate(
        self, pointer: SharePointDocumentPointer, roots: StorageRoots, *, deadline: Deadline
    ) -> Location:
        """Where the pointer's document is, in the server's letter case, and in which of `roots`.

        PointerRefused (`root_not_configured`) where no root holds it, a FetchError where the server does
        not say. A drive that no root has, and a path outside all of them, are not asked for.
        """
        drive, path, item_id = (
            pointer.sharepoint_drive_id,
            pointer.sharepoint_path,
            pointer.sharepoint_item_id,
        )
        if all((root.source_type, root.bucket) != ("sharepoint", drive) for root in roots):
            raise PointerRefused("root_not_configured", "no storage root has this drive")
        if item_id:
            errand = self._errand(f"sharepoint://{drive}/items/{item_id}", deadline)
            if not _ITEM_ID.fullmatch(item_id):
                raise DocumentNotFound(errand.uri, "no item has an id like this")
            answer = self._graph.json(errand, f"/drives/{_quoted(drive)}/items/{_quoted(item_id)}?{_SELECT}")
        else:
            asked = Location(roots.holding("sharepoint", drive, path or ""), path or "")
            errand = self._errand(asked.uri, deadline)
            answer = self._by_path(drive, asked.key, errand)
        try:
            item = _item(answer, drive, errand.uri)
        except _Elsewhere as error:
            raise PointerRefused("root_not_configured", str(error)) from error
        location = Location(roots.holding("sharepoint", drive, item.key), item.key)
        self._located.keep(self._reader, location, item)
        return location

    @property
    def _reader(self) -> str:
        """Whose rights an answer stands for."""
        return caller_key(self._assertion) if self._assertion is not None else ""

    def _errand(self, uri: str, deadline: Deadline) -> Errand:
        return Errand(uri, deadline, self._assertion)

    def _at(self, location: Location, errand: Errand) -> "_Item":
        """The document at this key, inside the key's own root (I-8)."""
        drive = location.root.bucket
        try:
            item = _item(self._by_path(drive, location.key, errand), drive, errand.uri)
        except _Elsewhere as error:
            raise DocumentNotFound(errand.uri, str(error)) from error
        if not location.root.contains(item.key):
            raise DocumentNotFound(errand.uri, "the item lies outside its storage root")
        return item

    def _by_path(self, drive: str, path: str, errand: Errand) -> Any:
        if not may_be_stored(path):
            raise DocumentNotFound(errand.uri, "SharePoint stores nothing at a path like this")
        quoted = "/".join(_quoted(segment) for segment in path.split("/"))
        return self._graph.json(errand, f"/drives/{_quoted(drive)}/root:/{quoted}?{_SELECT}")


@dataclass(frozen=True, slots=True)
class _Item:
    """A file, by what its metadata says."""

    id: str
    key: str
    """Its path from the drive's root, as stored."""
    version: str
    size_bytes: int
    mime_type: str | None

    @property
    def is_converted(self) -> bool:
        return self.key.rsplit("/", 1)[-1].rpartition(".")[2].lower() in _CONVERTED


class _Elsewhere(Exception):
    """An item of which this drive has no more than a name."""


def _item(answer: Any, drive: str, uri: str) -> _Item:
    """The file that Graph answered; DocumentNotFound for what is none, _Elsewhere for what is not here."""
    if "remoteItem" in answer:
        raise _Elsewhere("a shortcut into another drive, which is in no storage root")
    for facet, what in (
        ("folder", "a folder"),
        ("package", "a notebook"),
        ("malware", "a file in which the store found malware"),
    ):
        if facet in answer:
            raise DocumentNotFound(uri, f"{what}, not a document")
    try:
        parent, name, file = answer["parentReference"], answer["name"], answer["file"]
        if parent["driveId"] != drive:
            raise _Elsewhere("an item of another drive")
        # `/drives/{id}/root:/Shared%20Docs`: the part after the colon is the path, encoded.
        folders = unquote(parent["path"].partition(":")[2]).strip("/")
        key = f"{folders}/{name}" if folders else name
        version = (answer.get("cTag") or answer["eTag"]).strip('"')
        stored = file.get("mimeType")
        return _Item(answer["id"], key, version, int(answer["size"]), _mime_type(key, stored))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unavailable(uri, "the store does not say where or what the item is") from error


def _mime_type(key: str, stored: str | None) -> str | None:
    """By extension, as the server does it; its own word (CSV as Excel) only where ours is none."""
    ours = media_type(None, key)
    return stored if ours == UNKNOWN else ours


def _quoted(segment: str) -> str:
    return quote(segment, safe="!")


class _Located:
    """What was learned when a document was located, for the one fetch that follows.

    By whose rights it was learned: nothing that one caller may see is there for another.
    """

    def __init__(self, graph: GraphClient) -> None:
        self._clock = graph.clock
        self._lock = Lock()
        self._items: OrderedDict[tuple[str, str, str], tuple[float, _Item]] = OrderedDict()

    def keep(self, reader: str, location: Location, item: _Item) -> None:
        with self._lock:
            self._items[reader, location.root.bucket, item.key] = (self._clock(), item)
            while len(self._items) > MAX_DOCS:
                self._items.popitem(last=False)

    def take(self, reader: str, location: Location) -> _Item | None:
        """The item at exactly this key, once."""
        with self._lock:
            learned, item = self._items.pop((reader, location.root.bucket, location.key), (0.0, None))
        return item if item and self._clock() - learned <= ITEM_KNOWN_S else None
