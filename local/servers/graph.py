"""Microsoft Graph's drives, the host they hand downloads to, and Entra's token endpoint.

What a document store of SharePoint does to its reader, as the documentation has it: names compare without
letter case and are answered as stored, contents lie behind a redirect to a host that must not see a token.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote

from local.servers.loopback import Answer, LoopbackServer, Request

_SLIDES = ("odp", "pot", "potm", "potx", "pps", "ppsx", "ppsxm", "ppt", "pptm", "pptx")
CONVERTIBLE = frozenset(("csv", "doc", "docx", "ods", "odt", "rtf", "xls", "xlsx", *_SLIDES))
"""What Graph turns into PDF, by extension."""
_FORBIDDEN_IN_NAMES = frozenset('"*:<>?/\\|')
_PREFIX = "/v1.0/drives/"
_JSON = {"Content-Type": "application/json"}


@dataclass(slots=True)
class Item:
    """A drive item; `facets` are what Graph answers of it beside what every item has."""

    id: str
    drive: str
    name: str
    parent: str | None
    facets: dict[str, Any]
    content: bytes = b""
    reported_size: int | None = None
    """What the metadata says of the size, where that is not the content's."""
    content_version: int = 1
    version: int = 1

    @property
    def size(self) -> int:
        return len(self.content) if self.reported_size is None else self.reported_size


@dataclass(slots=True)
class DriveItems:
    """One drive's items by id; its root is a folder without a name."""

    id: str
    items: dict[str, Item] = field(default_factory=dict)

    @property
    def root(self) -> Item:
        return self.items["root"]

    def path(self, item: Item) -> list[str]:
        """The names from the drive's root down to the item."""
        parent = self.items[item.parent] if item.parent else None
        return [*self.path(parent), item.name] if parent else []

    def child(self, parent: Item, name: str) -> Item | None:
        inside = (each for each in self.items.values() if each.parent == parent.id)
        return next((each for each in inside if each.name.casefold() == name.casefold()), None)

    def at(self, path: str) -> Item | None:
        """The item at a path that was decoded once; dot segments lead where they say."""
        found: Item | None = self.root
        for name in path.split("/"):
            if found is None:
                return None
            if name == "..":
                found = self.items[found.parent] if found.parent else None
            elif name not in ("", "."):
                found = self.child(found, name)
        return found


class GraphServer(LoopbackServer):
    """Graph's drive API for tokens that it knows; `downloads` is the host of the contents."""

    def __init__(self) -> None:
        super().__init__()
        self.downloads = DownloadHost()
        self.grants: dict[str, Collection[str] | None] = {}
        """What each token may read: ids of drives or items, everything where None."""
        self.drives: dict[str, DriveItems] = {}

    @property
    def endpoint(self) -> str:
        return f"{self.url}/v1.0"

    def start(self) -> Self:
        self.downloads.start()
        return super().start()

    def stop(self) -> None:
        super().stop()
        self.downloads.stop()

    # -- filling it ----------------------------------------------------------------------------

    def put(self, drive: str, path: str, content: bytes, mime_type: str | None = None) -> Item:
        """Uploads: a new item, or other content under the name that is stored already."""
        kind = mime_type or "application/octet-stream"
        item = self._made(drive, path, {"file": {"mimeType": kind}})
        item.facets["file"]["mimeType"] = kind
        if item.content != content:
            item.content = content
            item.content_version += 1
            item.version += 1
        return item

    def folder(self, drive: str, path: str) -> Item:
        return self._made(drive, path, {"folder": {"childCount": 0}})

    def package(self, drive: str, path: str) -> Item:
        """A notebook."""
        return self._made(drive, path, {"package": {"type": "oneNote"}})

    def shortcut(self, drive: str, path: str, target: Item) -> Item:
        """A link to an item of another drive."""
        remote = {"id": target.id, "parentReference": {"driveId": target.drive}, "file": {}}
        return self._made(drive, path, {"remoteItem": remote})

    def move(self, item: Item, path: str) -> None:
        """Renames or moves within the drive: the id stays, and so does the content's version."""
        *folders, name = path.split("/")
        item.parent = self._parent(item.drive, folders).id
        item.name = name
        item.version += 1

    def _made(self, drive: str, path: str, facets: dict[str, Any]) -> Item:
        *folders, name = path.split("/")
        parent = self._parent(drive, folders)
        items = self.drives[drive]
        if existing := items.child(parent, name):
            return existing
        if not name or _FORBIDDEN_IN_NAMES & set(name):
            raise ValueError(f"SharePoint takes no name like {name!r}")
        item_id = "01" + secrets.token_hex(16).upper()
        items.items[item_id] = Item(item_id, drive, name, parent.id, facets)
        return items.items[item_id]

    def _parent(self, drive: str, folders: list[str]) -> Item:
        if drive not in self.drives:
            root = Item("root", drive, "root", None, {"folder": {}, "root": {}})
            self.drives[drive] = DriveItems(drive, {"root": root})
        return self.folder(drive, "/".join(folders)) if folders else self.drives[drive].root

    # -- answering -----------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        scheme, _, token = (request.headers["Authorization"] or "").partition(" ")
        if scheme != "Bearer" or token not in self.grants:
            return failure(401, "InvalidAuthenticationToken")
        if request.method != "GET" or not request.path.startswith(_PREFIX):
            return failure(400, "BadRequest")
        drive_id, _, rest = request.path.removeprefix(_PREFIX).partition("/")
        drive = self.drives.get(unquote(drive_id))
        if drive is None:
            return failure(404, "itemNotFound")
        found, action = _addressed(drive, rest)
        if found is None:
            return failure(404, "itemNotFound")
        allowed = self.grants[token]
        if allowed is not None and not {found.drive, found.id} & set(allowed):
            return failure(403, "accessDenied")
        if action == "/content":
            return self._content(found, request.query.get("format"))
        return self._metadata(drive, found, request.query.get("$select")) if not action else _UNKNOWN

    def _metadata(self, drive: DriveItems, item: Item, select: str | None) -> Answer:
        folders = "".join("/" + quote(name, safe="") for name in drive.path(item)[:-1])
        guid = hashlib.md5(item.id.encode(), usedforsecurity=False).hexdigest().upper()
        answer: dict[str, Any] = {
            "@odata.context": f"{self.endpoint}/$metadata#drives/items/$entity",
            "id": item.id,
            "name": item.name,
            "size": item.size,
            "eTag": f'"{{{guid}}},{item.version}"',
            "webUrl": f"https://contoso.sharepoint.com/sites/kb{folders}/{quote(item.name)}",
            "parentReference": {
                "driveType": "documentLibrary",
                "driveId": item.drive,
                "id": item.parent,
                "path": f"/drives/{item.drive}/root:{folders}",
            },
            "createdDateTime": "2026-03-02T08:15:00Z",
            **item.facets,
        }
        if "folder" not in item.facets:
            answer["cTag"] = f'"c:{{{guid}}},{item.content_version}"'
        chosen = {*select.split(","), "@odata.context"} if select else answer.keys()
        return 200, json.dumps({k: v for k, v in answer.items() if k in chosen}).encode(), _JSON

    def _content(self, item: Item, wanted: str | None) -> Answer:
        if "file" not in item.facets:
            return failure(400, "invalidRequest")
        content, kind = item.content, item.facets["file"].get("mimeType", "application/octet-stream")
        if wanted is not None:
            if wanted != "pdf" or item.name.rsplit(".", 1)[-1].lower() not in CONVERTIBLE:
                return failure(406, "notSupported")
            content, kind = pdf_of(content), "application/pdf"
        return 302, b"", {"Location": self.downloads.offer(content, kind)}


class DownloadHost(LoopbackServer):
    """Gives out what was offered, to whoever has the URL and shows no token."""

    def __init__(self) -> None:
        super().__init__()
        self.tempauths: list[str] = []
        """The secrets of all URLs that were given out."""
        self._offers: dict[str, tuple[bytes, str]] = {}

    def offer(self, content: bytes, mime_type: str) -> str:
        """A pre-authenticated URL of the content."""
        tempauth = secrets.token_urlsafe(24)
        self.tempauths.append(tempauth)
        self._offers[tempauth] = (content, mime_type)
        return f"{self.url}/download.aspx?UniqueId={len(self.tempauths)}&tempauth={tempauth}"

    def answer(self, request: Request) -> Answer:
        offered = self._offers.get(request.query.get("tempauth", ""))
        if offered is None or request.headers["Authorization"] is not None:
            return failure(401, "unauthenticated")
        content, kind = offered
        span = (request.headers["Range"] or "").removeprefix("bytes=").partition("-")
        if not span[1]:
            return 200, content, {"Content-Type": kind, "Accept-Ranges": "bytes"}
        first, last = int(span[0]), int(span[2] or len(content) - 1)
        if first >= len(content):
            return 416, b"", {"Content-Range": f"bytes */{len(content)}"}
        part = content[first : last + 1]
        place = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        return 206, part, {"Content-Type": kind, "Content-Range": place}


def _addressed(drive: DriveItems, rest: str) -> tuple[Item | None, str]:
    """The item that `items/{id}…` or `root:/{path}:…` names, and what is asked of it."""
    if rest.startswith("items/"):
        item_id, slash, action = rest.removeprefix("items/").partition("/")
        return drive.items.get(unquote(item_id)), slash + action
    path, _, action = rest.removeprefix("root:/").partition(":")
    return (drive.at(unquote(path)), action) if rest.startswith("root:/") else (None, "")


def failure(status: int, code: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An error as Graph words it."""
    body = {"error": {"code": code, "message": "Refused.", "innerError": {"request-id": "0"}}}
    return status, json.dumps(body).encode(), {**_JSON, **(headers or {})}


def throttled(retry_after: int | str, status: int = 429) -> Answer:
    """What Graph answers to whoever asks too often."""
    code = {429: "activityLimitReached", 503: "serviceNotAvailable"}[status]
    return failure(status, code, {"Retry-After": str(retry_after)})


_UNKNOWN = failure(400, "invalidRequest")


def pdf_of(content: bytes) -> bytes:
    """One empty page that names what it was made of: the same bytes for the same content."""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>",
    )
    pdf = b"%PDF-1.4\n% " + hashlib.sha256(content).hexdigest().encode() + b"\n"
    offsets = []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(pdf))
        pdf += b"%d 0 obj%s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    tail = b"xref\n0 4\n0000000000 65535 f \n%strailer<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return pdf + tail % (table, len(pdf))


@dataclass(slots=True)
class TokenAnswer:
    """A response as msal reads one."""

    status_code: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise RuntimeError(f"HTTP status {self.status_code}")


class Entra:
    """Entra's token endpoint as an HTTP client for msal: an authority must be https, so no server can be it.

    Each token it issues is granted at the Graph server what its bearer may read.
    """

    def __init__(self, graph: GraphServer | None = None) -> None:
        self.script: list[TokenAnswer | Callable[[], TokenAnswer]] = []
        """Its head answers the next token request, once."""
        self.app_reads: Collection[str] | None = None
        """What the application itself may read: everything where None."""
        self.users: dict[str, Collection[str]] = {}
        """By a caller's own token: the drives or items that caller may read."""
        self.expires_in = 3600
        self.posts = 0
        self.gets = 0
        self.client_assertions: list[str] = []
        self._graph = graph

    def get(self, url: str, **_: Any) -> TokenAnswer:
        """The authority's configuration."""
        self.gets += 1
        authority = url.removesuffix("/v2.0/.well-known/openid-configuration")
        endpoint = {
            "authorization_endpoint": f"{authority}/oauth2/v2.0/authorize",
            "token_endpoint": f"{authority}/oauth2/v2.0/token",
            "issuer": f"{authority}/v2.0",
        }
        return TokenAnswer(200, json.dumps(endpoint))

    def post(self, url: str, **sent: Any) -> TokenAnswer:
        """A token for the application, or for a user on whose behalf it asks."""
        self.posts += 1
        data: Mapping[str, str] = sent["data"]
        assert url.endswith("/oauth2/v2.0/token"), url
        self.client_assertions.append(data["client_assertion"])
        if self.script:
            head = self.script.pop(0)
            return head() if callable(head) else head
        reads = self.app_reads
        if data["grant_type"] != "client_credentials":
            if data["assertion"] not in self.users:
                return TokenAnswer(400, json.dumps({"error": "invalid_grant", "error_description": "no"}))
            reads = self.users[data["assertion"]]
        token = f"token-{self.posts}-{secrets.token_urlsafe(8)}"
        if self._graph:
            self._graph.grants[token] = reads
        answer = {"token_type": "Bearer", "expires_in": self.expires_in, "access_token": token}
        return TokenAnswer(200, json.dumps(answer))

    def close(self) -> None:
        """Nothing is open."""
