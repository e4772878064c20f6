"""Use case: hand documents over in an answer that fits its envelope (G-6, G-7).

Bodies stay inline while the measured envelope fits; then the largest go out another way: a file of the Files
API where the caller wants that, else a URL. What binds is the answer as the Lambda runtime encodes it: the
JSON text once more as a JSON string.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from groundwire.deadline import Deadline
from groundwire.documents import PreparedDocument, StoredFile
from groundwire.errors import FetchError, ImportRefused, Unavailable
from groundwire.limits import LOOKUPS_AT_ONCE, RESPONSE_BYTES
from groundwire.pointers import Location

Json = dict[str, Any]
Attachment = tuple[Json, PreparedDocument]
"""A document as the answer has it, and what it was made from."""
UseFilesApi = Literal["auto", "always", "never"]

_HEADERS_BYTES = 2_048
_GROWTH = 7
"""Control characters grow sevenfold, and nothing grows more."""
_LINK_BYTES = 4_096
"""More than a URL or a reference takes in the envelope."""
_REPORTS = frozenset({"skipped", "edges", "findings", "indexStale", "traversableMimeTypes"})
"""Lists whose length is an author's or a caller's choice: an alias may repeat 64 KB a hundred times."""
_ENTRIES_LEFT, _TEXT_CHARS_LEFT = (10_000, 1_000, 100, 10, 0), 2_048
"""What is left of them, tried in this order; a URI has fewer characters."""
_SIGNING_S: Final = 0.25
"""What signing URLs may take when no time is left: it asks nobody."""
_LINKS: Final = frozenset({"downloadUrl", "geminiFileReference"})


@dataclass(frozen=True, slots=True)
class DownloadUrl:
    """A URL that gives one document's bytes to whoever holds it, until it expires."""

    url: str
    expires_at: datetime


class DownloadSigner(Protocol):
    """Makes documents of a store reachable by URL."""

    def sign(self, location: Location) -> DownloadUrl | None:
        """A URL of the stored bytes; None for another store, or a key that clients would rewrite."""
        ...


class DeliveryShelf(Protocol):
    """Where bodies lie for a short while that no store of theirs gives out by URL."""

    def lay(self, document: PreparedDocument, *, deadline: Deadline) -> DownloadUrl:
        """A URL of the delivered bytes; Unavailable where they could not be laid there in time."""
        ...


class FileReferrer(Protocol):
    """Makes bodies reachable for Gemini."""

    def refer(self, document: PreparedDocument, *, deadline: Deadline) -> StoredFile:
        """A file that can be used; Unavailable or ImportRefused where there is none."""
        ...


def envelope_bytes(body: str) -> int:
    """The size of an answer with this body, as the runtime sends it."""
    if len(body) * _GROWTH + _HEADERS_BYTES <= RESPONSE_BYTES:
        return len(body) * _GROWTH + _HEADERS_BYTES
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8")) + _HEADERS_BYTES


class Delivery:
    """How the bodies of one deployment go out; without shelf and files, inline or as URLs of their store."""

    def __init__(
        self, signer: DownloadSigner, shelf: DeliveryShelf | None = None, files: FileReferrer | None = None
    ) -> None:
        self._signer = signer
        self._shelf = shelf
        self._files = files

    def fit(
        self,
        shape: Json,
        bodies: Sequence[Attachment],
        encode: Callable[[Json], str],
        *,
        deadline: Deadline,
        use_files_api: UseFilesApi = "never",
    ) -> str:
        """`shape` as JSON text that fits; `bodies` are the documents in it that carry content.

        With `always`, every body goes to the Files API that it takes; with `auto`, those that are no text and
        would not stay inline. Whatever is moved out has a `geminiFileReference` or a `downloadUrl {url,
        expiresAt}` instead, or `undelivered` with the reason, and then the answer is not `complete`. One that
        is too large even without bodies is `abridged`: of what it reports, the beginning.
        """
        # What the Files API does not take in time has to go out another way.
        patience = deadline.at_most(deadline.left() / 2)
        if use_files_api == "always":
            referred = _side_by_side(
                lambda each: self._refer(each, patience),
                [source for _, source in bodies],
                patience,
                late={"filesApi": Unavailable.code},
            )
            for (document, _), outcome in zip(bodies, referred, strict=True):
                if "geminiFileReference" in outcome:
                    _take_out(document)
                document.update(outcome)
        sized = ((_body_bytes(document), (document, source)) for document, source in bodies)
        left = sorted((each for each in sized if each[0]), key=lambda each: -each[0])
        # The bodies by themselves first: encoded, with all of them, the answer may not fit the memory.
        over = sum(size for size, _ in left) - RESPONSE_BYTES
        while True:
            count = _needed([size for size, _ in left], over) if over > 0 else 0
            moving, left = [body for _, body in left[:count]], left[count:]
            moved = _side_by_side(
                lambda each: self._moved(each, use_files_api, deadline, patience),
                [source for _, source in moving],
                deadline,
                late={"undelivered": Unavailable.code},
            )
            for (document, _), outcome in zip(moving, moved, strict=True):
                _take_out(document)
                document.update(outcome)
                if "undelivered" in outcome:
                    shape["complete"] = False
            text = encode(shape)
            over = envelope_bytes(text) - RESPONSE_BYTES
            if over <= 0 or not left:
                break
        for entries in _ENTRIES_LEFT:
            if envelope_bytes(text) <= RESPONSE_BYTES:
                break
            shape |= {"complete": False, "abridged": True}
            text = encode(_abridged(shape, entries))
        return text

    def _moved(
        self, document: PreparedDocument, use_files_api: UseFilesApi, deadline: Deadline, patience: Deadline
    ) -> Json:
        """How the document is handed over otherwise than inline: what the answer has instead of its body."""
        outcome: Json = {}
        if use_files_api == "auto" and document.text is None:
            outcome = self._refer(document, patience)
            if "geminiFileReference" in outcome:
                return outcome
        try:
            link = self._signer.sign(document.location)
            if link is None and self._shelf:
                link = self._shelf.lay(document, deadline=deadline)
        except FetchError as error:
            return outcome | {"undelivered": error.code}
        if link is None:
            return outcome | {"undelivered": "key_not_addressable"}
        return outcome | {"downloadUrl": {"url": link.url, "expiresAt": link.expires_at.isoformat()}}

    def _refer(self, document: PreparedDocument, deadline: Deadline) -> Json:
        """The document's file, or why the Files API does not take it; nothing where there is none."""
        if self._files is None:
            return {}
        try:
            file = self._files.refer(document, deadline=deadline)
        except (FetchError, ImportRefused) as error:
            return {"filesApi": error.code}
        expires = None if file.expires is None else datetime.fromtimestamp(file.expires, UTC).isoformat()
        reference = {
            "fileUri": file.uri,
            "mimeType": file.mime_type,
            "name": file.name,
            "expirationTime": expires,
        }
        return {"geminiFileReference": reference}


def _needed(sizes: Sequence[int], over: int) -> int:
    """How many bodies of these sizes, largest first, it takes to save `over` bytes; all of them at most."""
    for count, size in enumerate(sizes, 1):
        over -= size - _LINK_BYTES
        if over <= 0:
            return count
    return len(sizes)


def _side_by_side(
    work: Callable[[PreparedDocument], Json],
    documents: Sequence[PreparedDocument],
    deadline: Deadline,
    *,
    late: Json,
) -> list[Json]:
    """The outcomes, in order; `late` for what is not done in time, which is not waited for."""
    if not documents:
        return []
    pool = ThreadPoolExecutor(LOOKUPS_AT_ONCE, "deliver")
    futures = [pool.submit(work, each) for each in documents]
    wait(futures, timeout=max(deadline.left(), _SIGNING_S))
    pool.shutdown(wait=False, cancel_futures=True)
    return [each.result() if each.done() and not each.cancelled() else late for each in futures]


def _take_out(shape: Json) -> None:
    shape.pop("text", None)
    shape.pop("geminiDocument", None)


def _abridged(value: Any, entries: int) -> Any:
    """`value` with the beginning of its long texts and lists; documents, sources and URLs stay whole."""
    if isinstance(value, str):
        return value[:_TEXT_CHARS_LEFT]
    if isinstance(value, list):
        return [_abridged(each, entries) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: inner
        if name in _LINKS
        else _abridged(inner[:entries] if name in _REPORTS and isinstance(inner, list) else inner, entries)
        for name, inner in value.items()
    }


def _body_bytes(document: Mapping[str, Any]) -> int:
    """What the document's content takes in the envelope."""
    content = document.get("text") or (document.get("geminiDocument") or {}).get("data")
    if not content:
        return 0
    return len(json.dumps(json.dumps(content, ensure_ascii=False), ensure_ascii=False).encode("utf-8"))
