"""Gemini's REST protocol on loopback, as its documentation says: File Search stores, the Files API, a model.

Everything is held in memory. What the documentation leaves open is answered strictly: a client that gets on
with this server needs no leniency.
"""

import itertools
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from local.servers.gemini_model import generated
from local.servers.gemini_resources import (
    FILE_LIFE_S,
    Document,
    File,
    Refused,
    Store,
    check_import,
    custom_metadata,
)
from local.servers.loopback import Answer, LoopbackServer, Request

KEY: Final = "loopback-key"
"""The key that a server knows unless it is told others."""
PAGE_DEFAULT, PAGE_MAX = 10, 20

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_NOT_YOURS = "You do not have permission to access the File or it may not exist."


@dataclass
class Upload:
    """A resumable upload that was begun."""

    size: int
    finish: Callable[[bytes], dict[str, Any]]
    received: bytes = b""


class GeminiServer(LoopbackServer):
    """`with GeminiServer() as server:` listens at `server.url`; `script` and `requests` are its base's."""

    def __init__(self, keys: Sequence[str] = (KEY,)) -> None:
        super().__init__()
        self.keys = set(keys)
        self.refused_mime_types: set[str] = set()
        """What no upload may be, though the documentation lists it."""
        self.stores: dict[str, Store] = {}
        self.files: dict[str, File] = {}
        self._operations: dict[str, tuple[int, str]] = {}
        self._uploads: dict[str, Upload] = {}
        self._numbers = itertools.count(1)
        self._advanced = 0.0

    @property
    def clock(self) -> float:
        """Seconds since the epoch, as the server has it."""
        return time.time() + self._advanced

    def advance(self, seconds: float) -> None:
        """Lets time pass for the server."""
        self._advanced += seconds

    def add_store(self, name: str, display_name: str | None = None) -> str:
        """A store of this id; its resource name."""
        store = Store(f"fileSearchStores/{name}", display_name, self.clock)
        self.stores[store.name] = store
        return store.name

    def add_document(
        self,
        store: str,
        content: bytes | str = b"",
        *,
        display_name: str | None = None,
        mime_type: str = "text/plain",
        metadata: Mapping[str, Any] | None = None,
        state: str = "ACTIVE",
        created: float | None = None,
    ) -> str:
        """A document that is there already, and stays in its state; its resource name.

        `metadata` holds text, numbers and lists of text.
        """
        body = content.encode() if isinstance(content, str) else content
        entries = custom_metadata(metadata or {})
        made = self.clock if created is None else created
        name = f"{store}/documents/doc-{next(self._numbers):06}"
        document = Document(name, display_name, mime_type, entries, body, made, f"STATE_{state}", ready_in=-1)
        self.stores[store].documents[name] = document
        return name

    def add_gap(self, store: str, documents: int = PAGE_MAX) -> None:
        """Room in the listing that nothing is shown in: of the size of a page, it is an empty page."""
        for _ in range(documents):
            self.stores[store].documents[self.add_document(store)].hidden = True

    def answer(self, request: Request) -> Answer:
        try:
            if "upload_id" in request.query:
                return self._data(request)
            self._check_key(request)
            for method, pattern, handle in _ROUTES:
                found = re.fullmatch(pattern, request.name)
                if found and method == request.method:
                    return handle(self, request, *found.groups())
            raise Refused(404, "NOT_FOUND", "There is no such method.")
        except Refused as error:
            return refusal(error.code, error.status, error.message, error.details)

    def _check_key(self, request: Request) -> None:
        key = request.headers["x-goog-api-key"]
        if not key:
            raise Refused(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
        if key not in self.keys:
            reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", **reason}
            raise Refused(400, "INVALID_ARGUMENT", "API key not valid.", [info])

    # File Search stores

    def _list_stores(self, request: Request) -> Answer:
        shown, token = _page(list(self.stores.values()), request.query)
        return _listing("fileSearchStores", [each.json() for each in shown], token)

    def _create_store(self, request: Request) -> Answer:
        name = self.add_store(f"store-{uuid4().hex[:12]}", _camel(request.json()).get("displayName"))
        return reply(self.stores[name].json())

    def _get_store(self, _request: Request, name: str) -> Answer:
        return reply(self._store(name).json())

    def _delete_store(self, request: Request, name: str) -> Answer:
        if self._store(name).documents and request.query.get("force", "").lower() != "true":
            raise Refused(400, "FAILED_PRECONDITION", "Cannot delete non-empty FileSearchStore.")
        del self.stores[name]
        return reply({})

    def _list_documents(self, request: Request, store: str) -> Answer:
        shown, token = _page(list(self._store(store).documents.values()), request.query)
        return _listing("documents", [each.json() for each in shown if not each.hidden], token)

    def _get_document(self, _request: Request, name: str) -> Answer:
        document = self._document(name)
        answer = reply(document.json())
        if document.state == "STATE_PENDING" and document.ready_in >= 0:
            document.ready_in -= 1
            if document.ready_in < 0:
                document.state = "STATE_ACTIVE"
        return answer

    def _delete_document(self, request: Request, name: str) -> Answer:
        if self._document(name).content and request.query.get("force", "").lower() != "true":
            raise Refused(400, "FAILED_PRECONDITION", "Cannot delete non-empty Document.")
        del self._document_store(name).documents[name]
        return reply({})

    def _start_import(self, request: Request, store: str) -> Answer:
        """Begins an upload into a store."""
        self._store(store)
        given = _camel(request.json())
        mime_type = given.get("mimeType") or request.headers["X-Goog-Upload-Header-Content-Type"] or ""
        check_import(given)
        return self._start(
            request, mime_type, lambda content: self._imported(store, "upload/", content, mime_type, given)
        )

    def _import_file(self, request: Request, store: str) -> Answer:
        self._store(store)
        given = _camel(request.json())
        file = self._file(given.get("fileName", ""), request)
        check_import(given)
        given.setdefault("displayName", file.display_name)
        return reply(self._imported(store, "", file.content, file.mime_type, given))

    def _imported(
        self, store: str, via: str, content: bytes, mime_type: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The operation under way; its document is there at once, and pending."""
        name = f"{store}/documents/doc-{next(self._numbers):06}"
        self._store(store).documents[name] = Document(
            name,
            given.get("displayName"),
            mime_type,
            given.get("customMetadata", []),
            content,
            self.clock,
            "STATE_PENDING",
        )
        operation = f"{store}/{via}operations/op-{next(self._numbers):06}"
        self._operations[operation] = (1, name)
        return {"name": operation}

    def _get_operation(self, _request: Request, name: str) -> Answer:
        if name not in self._operations:
            raise Refused(404, "NOT_FOUND", "There is no such operation.")
        waits, document = self._operations[name]
        if waits:
            self._operations[name] = (waits - 1, document)
            return reply({"name": name})
        response = {"parent": document.partition("/documents/")[0], "documentName": document}
        return reply({"name": name, "done": True, "response": response})

    def _store(self, name: str) -> Store:
        if name not in self.stores:
            raise Refused(404, "NOT_FOUND", "There is no such store.")
        return self.stores[name]

    def _document_store(self, name: str) -> Store:
        return self._store(name.partition("/documents/")[0])

    def _document(self, name: str) -> Document:
        document = self._document_store(name).documents.get(name)
        if document is None or document.hidden:
            raise Refused(404, "NOT_FOUND", "There is no such document.")
        return document

    # Files API

    def _start_file(self, request: Request) -> Answer:
        given = _camel(request.json()).get("file", {})
        name = given.get("name") or f"files/{uuid4().hex[:12]}"
        if not name.startswith("files/") or not _ID.fullmatch(name.removeprefix("files/")):
            raise Refused(400, "INVALID_ARGUMENT", "The file name is not well formed.")
        if name in self.files and not self._is_over(self.files[name]):
            raise Refused(409, "ALREADY_EXISTS", "There is a file of this name.")
        check_import(given)
        mime_type = given.get("mimeType") or request.headers["X-Goog-Upload-Header-Content-Type"] or ""
        owner = request.headers["x-goog-api-key"]

        def finish(content: bytes) -> dict[str, Any]:
            uri = f"{self.url}/v1beta/{name}"
            file = File(name, uri, owner, given.get("displayName"), mime_type, content, self.clock)
            self.files[name] = file
            return {"file": file.json()}

        return self._start(request, mime_type, finish)

    def _get_file(self, request: Request, name: str) -> Answer:
        file = self._file(name, request)
        answer = reply(file.json())
        if file.state == "PROCESSING":
            file.state = "ACTIVE"
        return answer

    def _delete_file(self, request: Request, name: str) -> Answer:
        del self.files[self._file(name, request).name]
        return reply({})

    def _file(self, name: str, request: Request) -> File:
        """The file, if it is there for whoever asks; all others look alike."""
        file = self.files.get(name)
        if file is None or self._is_over(file) or file.owner != request.headers["x-goog-api-key"]:
            raise Refused(403, "PERMISSION_DENIED", _NOT_YOURS)
        return file

    def _is_over(self, file: File) -> bool:
        return self.clock >= file.created + FILE_LIFE_S

    # Resumable uploads

    def _start(self, request: Request, mime_type: str, finish: Callable[[bytes], dict[str, Any]]) -> Answer:
        headers = request.headers
        if (headers["X-Goog-Upload-Protocol"], headers["X-Goog-Upload-Command"]) != ("resumable", "start"):
            raise Refused(400, "INVALID_ARGUMENT", "Only resumable uploads are spoken here.")
        if mime_type in self.refused_mime_types or "/" not in mime_type:
            raise Refused(400, "INVALID_ARGUMENT", "Unsupported MIME type.")
        upload = uuid4().hex
        self._uploads[upload] = Upload(int(headers["X-Goog-Upload-Header-Content-Length"] or 0), finish)
        where = f"{self.url}{request.path}?upload_id={upload}&upload_protocol=resumable"
        return reply({}, headers={"x-goog-upload-url": where, "x-goog-upload-status": "active"})

    def _data(self, request: Request) -> Answer:
        """Takes a piece of a body. Whoever knows the upload's id needs no key."""
        upload = self._uploads.get(request.query["upload_id"])
        commands = {each.strip() for each in (request.headers["X-Goog-Upload-Command"] or "").split(",")}
        if upload is None or "upload" not in commands:
            raise Refused(400, "INVALID_ARGUMENT", "There is no such upload.")
        if request.headers["X-Goog-Upload-Offset"] != str(len(upload.received)):
            raise Refused(400, "INVALID_ARGUMENT", "The offset is not where the upload stands.")
        upload.received += request.body
        if "finalize" not in commands:
            return reply({}, headers={"x-goog-upload-status": "active"})
        del self._uploads[request.query["upload_id"]]
        if len(upload.received) != upload.size:
            raise Refused(400, "INVALID_ARGUMENT", "The body is not as long as it was said to be.")
        return reply(upload.finish(upload.received), headers={"x-goog-upload-status": "final"})

    # The model

    def _generate(self, request: Request, model: str) -> Answer:
        def file(uri: str) -> tuple[str, bytes]:
            named = "files/" + uri.rpartition("/files/")[2]
            found = self._file(named, request)
            return found.mime_type, found.content

        def documents(store: str) -> list[Document]:
            return [each for each in self._store(store).documents.values() if not each.hidden]

        return reply(generated(model, _camel(request.json()), documents, file))


def reply(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer in JSON, fit for a `script` too."""
    content = json.dumps(body, ensure_ascii=False).encode()
    return status, content, {"Content-Type": "application/json; charset=UTF-8", **(headers or {})}


def refusal(
    code: int,
    status: str,
    message: str = "made to fail",
    details: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Google's error body."""
    error = {"code": code, "message": message, "status": status}
    return reply({"error": error | ({"details": list(details)} if details else {})}, code, headers)


def _listing(key: str, shown: list[dict[str, Any]], token: str | None) -> Answer:
    return reply(({key: shown} if shown else {}) | ({"nextPageToken": token} if token else {}))


def _page[T](everything: list[T], query: Mapping[str, str]) -> tuple[list[T], str | None]:
    size, start = query.get("pageSize", str(PAGE_DEFAULT)), query.get("pageToken", "at-0").removeprefix("at-")
    if not size.isdecimal() or not 1 <= int(size) <= PAGE_MAX:
        raise Refused(400, "INVALID_ARGUMENT", f"pageSize must be between 1 and {PAGE_MAX}.")
    if not start.isdecimal() or int(start) > len(everything):
        raise Refused(400, "INVALID_ARGUMENT", "The page token is not one of ours.")
    end = int(start) + int(size)
    return everything[int(start) : end], f"at-{end}" if end < len(everything) else None


def _camel(value: Any) -> Any:
    """JSON with every key in camelCase: the service takes both, and clients mix them."""
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {re.sub(r"_([a-z])", lambda m: m[1].upper(), key): _camel(each) for key, each in value.items()}


_STORE = r"(fileSearchStores/[a-z0-9-]+)"
_DOCUMENT = r"(fileSearchStores/[a-z0-9-]+/documents/[a-z0-9-]+)"
_ROUTES: Final[Sequence[tuple[str, str, Callable[..., Answer]]]] = (
    ("GET", r"/v1beta/fileSearchStores", GeminiServer._list_stores),
    ("POST", r"/v1beta/fileSearchStores", GeminiServer._create_store),
    ("GET", rf"/v1beta/{_STORE}", GeminiServer._get_store),
    ("DELETE", rf"/v1beta/{_STORE}", GeminiServer._delete_store),
    ("GET", rf"/v1beta/{_STORE}/documents", GeminiServer._list_documents),
    ("GET", rf"/v1beta/{_DOCUMENT}", GeminiServer._get_document),
    ("DELETE", rf"/v1beta/{_DOCUMENT}", GeminiServer._delete_document),
    ("POST", rf"/upload/v1beta/{_STORE}:uploadToFileSearchStore", GeminiServer._start_import),
    ("POST", rf"/v1beta/{_STORE}:importFile", GeminiServer._import_file),
    (
        "GET",
        r"/v1beta/(fileSearchStores/[a-z0-9-]+/(?:upload/)?operations/[a-z0-9-]+)",
        GeminiServer._get_operation,
    ),
    ("POST", r"/upload/v1beta/files", GeminiServer._start_file),
    ("GET", r"/v1beta/(files/[a-z0-9-]+)", GeminiServer._get_file),
    ("DELETE", r"/v1beta/(files/[a-z0-9-]+)", GeminiServer._delete_file),
    ("POST", r"/v1beta/models/([a-z0-9.-]+):generateContent", GeminiServer._generate),
)
