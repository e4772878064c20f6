"""Gemini: File Search stores (G-2, X-10) and the Files API (G-6), through Google's SDK.

The SDK is imported and connected on the first call, since that takes a second that most processes never need.
Answers are awaited by asking again, with the time that is left; nothing is cached here.
"""

import io
import re
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final

from groundwire.catalogue import CatalogueEntry, EntryState
from groundwire.deadline import Deadline
from groundwire.documents import StoredFile
from groundwire.errors import CursorRefused, DocumentNotFound, ImportRefused, Throttled, Unavailable
from groundwire.limits import GEMINI_NAME_CHARS, GEMINI_PAGE, STORE_TIMEOUT_S
from groundwire.media_types import is_delivered_as_text

if TYPE_CHECKING:
    from google.genai import Client, types

PUBLIC: Final = "https://generativelanguage.googleapis.com"
PLAIN: Final = "text/plain"
_STORE = re.compile(r"fileSearchStores/[A-Za-z0-9_-]+")
_DOCUMENT = re.compile(r"fileSearchStores/[A-Za-z0-9_-]+/documents/[A-Za-z0-9_-]+")
_FILE = re.compile(r"files/[a-z0-9-]+")
_STATES: Final[Mapping[str, EntryState]] = {"STATE_ACTIVE": "active", "STATE_FAILED": "failed"}
_REFUSING: Final = {3: "INVALID_ARGUMENT", 9: "FAILED_PRECONDITION", 11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED"}
"""Codes of google.rpc that another try would meet again."""
_EXHAUSTED: Final = 8
_PROCESSED: Final = ("ACTIVE", "FAILED")
_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0


class Gemini:
    """The service, connected to on the first call; one a process, shared between threads."""

    def __init__(self, key: Callable[[], str], base_url: str = PUBLIC) -> None:
        """`key` is asked on the first call; what the environment says of keys and URLs is ignored."""
        self._key = key
        self.base_url = base_url
        self._lock = Lock()
        self._connection: tuple[Client, Callable[[], None]] | None = None

    def call[T](self, uri: str, deadline: Deadline, ask: "Callable[[Client, types.HttpOptionsDict], T]") -> T:
        """One call with the time that is left.

        Raises DocumentNotFound, ImportRefused (for any other 4xx), Throttled, Unavailable.
        """
        from groundwire.adapters.gemini_client import errors, within

        client = self._connected(uri, deadline)
        if deadline.passed():
            raise Unavailable(uri, "no time is left to ask the service")
        with errors(uri):
            return ask(client, within(deadline.left()))

    def read[T](self, uri: str, deadline: Deadline, ask: "Callable[[Client, types.HttpOptionsDict], T]") -> T:
        """The same for what may be asked twice, which it is where the first answer was a quick failure.

        Raises DocumentNotFound, Throttled, Unavailable.
        """
        self._connected(uri, deadline)  # the first time, that alone can take as long as an attempt may
        attempt = deadline.at_most(STORE_TIMEOUT_S)
        try:
            try:
                return self.call(uri, attempt, ask)
            except Throttled:
                raise
            except Unavailable:
                if attempt.passed() or deadline.left() <= _PAUSE_S:
                    raise
            time.sleep(_PAUSE_S)
            return self.call(uri, deadline.at_most(STORE_TIMEOUT_S), ask)
        except ImportRefused as error:
            raise Unavailable(uri, error.detail) from error

    def close(self) -> None:
        """Ends its connections; the next call makes new ones."""
        with self._lock:
            if self._connection:
                self._connection[1]()
            self._connection = None

    def _connected(self, uri: str, deadline: Deadline) -> "Client":
        from groundwire.adapters.gemini_client import connect, errors

        with self._lock, errors(uri):
            if self._connection is None:
                if deadline.passed():  # while others waited for a key in vain, one after the other
                    raise Unavailable(uri, "no time is left to connect")
                self._connection = connect(self._key(), self.base_url)
            return self._connection[0]


class GeminiFileSearchStores:
    """File Search stores, to read and to fill."""

    def __init__(self, gemini: Gemini) -> None:
        self._gemini = gemini

    def page(
        self, store: str, cursor: str | None, *, deadline: Deadline
    ) -> tuple[list[CatalogueEntry], str | None]:
        _check(_STORE, store)

        def ask(
            client: "Client", options: "types.HttpOptionsDict"
        ) -> tuple[list[CatalogueEntry], str | None]:
            # Pages, not items: the SDK's own loop breaks off at an empty page with others behind it.
            pager = client.file_search_stores.documents.list(
                parent=store,
                config={"page_size": GEMINI_PAGE, "page_token": cursor, "http_options": options},
            )
            entries = [_entry(each) for each in pager.page if each.name]
            return entries, pager.config.get("page_token") or None

        try:
            return self._gemini.read(store, deadline, ask)
        except Unavailable as error:
            if cursor and isinstance(error.__cause__, ImportRefused):
                raise CursorRefused(store, error.detail) from error
            raise

    def document(self, name: str, *, deadline: Deadline) -> CatalogueEntry:
        _check(_DOCUMENT, name)
        return self._gemini.read(
            name,
            deadline,
            lambda client, options: _entry(
                client.file_search_stores.documents.get(name=name, config={"http_options": options})
            ),
        )

    def upload(
        self,
        store: str,
        content: bytes,
        *,
        display_name: str,
        mime_type: str,
        metadata: Mapping[str, str],
        deadline: Deadline,
    ) -> CatalogueEntry:
        _check(_STORE, store)

        def begin(as_type: str) -> "types.UploadToFileSearchStoreOperation":
            return self._gemini.call(
                store,
                deadline,
                lambda client, options: client.file_search_stores.upload_to_file_search_store(
                    file_search_store_name=store,
                    file=io.BytesIO(content),
                    config={
                        "http_options": options,
                        "display_name": display_name[:GEMINI_NAME_CHARS],
                        "mime_type": as_type,
                        "custom_metadata": [
                            {"key": key, "string_value": value} for key, value in metadata.items()
                        ],
                    },
                ),
            )

        operation = _taken(begin, mime_type)
        return self._active(self._imported(store, operation, deadline), deadline)

    def remove(self, name: str, *, deadline: Deadline) -> None:
        _check(_DOCUMENT, name)
        try:
            self._gemini.read(
                name,
                deadline,
                lambda client, options: client.file_search_stores.documents.delete(
                    name=name, config={"http_options": options, "force": True}
                ),
            )
        except DocumentNotFound:
            return

    def _imported(
        self, store: str, operation: "types.UploadToFileSearchStoreOperation", deadline: Deadline
    ) -> str:
        """The name of the document that the operation makes, once it is done."""

        def look() -> "types.UploadToFileSearchStoreOperation | None":
            now = self._gemini.read(
                store,
                deadline,
                lambda client, options: client.operations.get(operation, config={"http_options": options}),
            )
            return now if now.done else None

        done = operation if operation.done else _awaited(deadline, look)
        if done.error:
            raise _import_error(store, done.error.get("code"))
        if not done.response or not done.response.document_name:
            raise Unavailable(store, "the import is done and names no document")
        return done.response.document_name

    def _active(self, name: str, deadline: Deadline) -> CatalogueEntry:
        def look() -> CatalogueEntry | None:
            entry = self.document(name, deadline=deadline)
            return None if entry.state == "pending" else entry

        entry = _awaited(deadline, look)
        if entry.state == "failed":
            self.remove(name, deadline=deadline)  # else every try would leave another one
            raise ImportRefused(name, "STATE_FAILED", "the service could not process it")
        return entry


class GeminiFiles:
    """The Files API, as a FileStore."""

    def __init__(self, gemini: Gemini) -> None:
        self._gemini = gemini

    def put(
        self, name: str, content: bytes, *, mime_type: str, display_name: str, deadline: Deadline
    ) -> StoredFile:
        _check(_FILE, name)

        def begin(as_type: str) -> "types.File":
            return self._gemini.call(
                name,
                deadline,
                lambda client, options: client.files.upload(
                    file=io.BytesIO(content),
                    config={
                        "http_options": options,
                        "name": name,
                        "display_name": display_name[:GEMINI_NAME_CHARS],
                        "mime_type": as_type,
                    },
                ),
            )

        try:
            file = _taken(begin, mime_type)
        except (ImportRefused, DocumentNotFound):
            # How the service says that a name is in use is not documented: what counts is whether it is.
            if held := self.get(name, deadline=deadline):
                return held
            raise
        if file.state not in _PROCESSED:
            file = self._processed(name, deadline)
        if file.state == "FAILED":
            raise ImportRefused(name, "FAILED", "the service could not process it")
        return _stored(name, file)

    def get(self, name: str, *, deadline: Deadline) -> StoredFile | None:
        _check(_FILE, name)
        try:
            file = self._processed(name, deadline)
        except DocumentNotFound:
            return None
        stored = _stored(name, file)
        over = stored.expires is not None and stored.expires <= time.time()
        return None if over or file.state == "FAILED" else stored

    def _processed(self, name: str, deadline: Deadline) -> "types.File":
        def look() -> "types.File | None":
            file = self._gemini.read(
                name,
                deadline,
                lambda client, options: client.files.get(name=name, config={"http_options": options}),
            )
            return file if file.state in _PROCESSED else None

        return _awaited(deadline, look)


def _check(form: re.Pattern[str], name: str) -> None:
    """DocumentNotFound for what is no resource name: it becomes part of a path as it stands."""
    if not form.fullmatch(name):
        raise DocumentNotFound(name, "that is no resource name of this service")


def _taken[T](begin: Callable[[str], T], mime_type: str) -> T:
    """What `begin` gives, for text at worst as plain text: some valid types have been refused."""
    try:
        return begin(mime_type)
    except ImportRefused as error:
        if error.code != "INVALID_ARGUMENT" or mime_type == PLAIN or not is_delivered_as_text(mime_type):
            raise
        return begin(PLAIN)


def _awaited[T](deadline: Deadline, look: Callable[[], T | None]) -> T:
    """What `look` finds at last, asked less and less often; at the deadline it raises Unavailable itself."""
    pause = _PAUSE_S
    while (found := look()) is None:
        time.sleep(min(pause, deadline.left()))
        pause = min(2 * pause, _LONGEST_PAUSE_S)
    return found


def _entry(document: "types.Document") -> CatalogueEntry:
    values = {
        each.key: each.string_value if each.string_value is not None else each.numeric_value
        for each in document.custom_metadata or ()
        if each.key
    }
    created = document.create_time
    return CatalogueEntry(
        name=document.name or "",
        display_name=document.display_name,
        state=_STATES.get(document.state or "", "pending"),
        created=created.isoformat().replace("+00:00", "Z") if created else "",
        mime_type=document.mime_type,
        metadata={key: value for key, value in values.items() if value is not None},
    )


def _stored(name: str, file: "types.File") -> StoredFile:
    if not file.uri or not file.mime_type:
        raise Unavailable(name, "the service gives the file no URI or type")
    expires = file.expiration_time.timestamp() if file.expiration_time else None
    return StoredFile(name, file.uri, file.mime_type, expires)


def _import_error(store: str, code: int | None) -> ImportRefused | Unavailable:
    """Ours for a code of google.rpc."""
    if code in _REFUSING:
        return ImportRefused(store, _REFUSING[code], "the service could not import it")
    if code == _EXHAUSTED:
        return Throttled(store, "the service has no room or time for it")
    return Unavailable(store, f"the import failed (google.rpc code {code})")
