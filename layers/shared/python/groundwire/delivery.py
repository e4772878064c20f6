"""Use case: make an answer fit its envelope (G-7).

Bodies stay inline while the measured envelope fits; then the largest become `downloadUrl`s. What binds is
the answer as the Lambda runtime encodes it: the JSON text once more as a JSON string.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from groundwire.limits import RESPONSE_BYTES
from groundwire.pointers import Location

_HEADERS_BYTES = 2_048
_GROWTH = 7
"""Control characters grow sevenfold, and nothing grows more."""
_REPORTS = frozenset({"skipped", "edges", "findings", "indexStale", "traversableMimeTypes"})
"""Lists whose length is an author's or a caller's choice: an alias may repeat 64 KB a hundred times."""
_ENTRIES_LEFT, _TEXT_CHARS_LEFT = (10_000, 1_000, 100, 10, 0), 2_048
"""What is left of them, tried in this order; a URI has fewer characters."""


@dataclass(frozen=True, slots=True)
class DownloadUrl:
    """A URL that gives one document's stored bytes to whoever holds it, until it expires."""

    url: str
    expires_at: datetime


class DownloadSigner(Protocol):
    """Makes documents of a store reachable by URL."""

    def sign(self, location: Location) -> DownloadUrl | None:
        """A URL, or None where clients would rewrite this key into another one."""
        ...


def envelope_bytes(body: str) -> int:
    """The size of an answer with this body, as the runtime sends it."""
    if len(body) * _GROWTH + _HEADERS_BYTES <= RESPONSE_BYTES:
        return len(body) * _GROWTH + _HEADERS_BYTES
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8")) + _HEADERS_BYTES


def fit(
    shape: dict[str, Any],
    bodies: Sequence[tuple[dict[str, Any], Location]],
    signer: DownloadSigner,
    encode: Any,
) -> str:
    """`shape` as JSON text that fits; `bodies` are the documents in it that carry content.

    Whatever is moved out has a `downloadUrl {url, expiresAt}` instead, or `undelivered` with the reason, and
    then the answer is not `complete`. One that is too large even without bodies is `abridged`: of what it
    reports, the beginning.
    """
    text: str = encode(shape)
    size = envelope_bytes(text)
    largest = sorted(bodies, key=lambda each: _body_bytes(each[0]), reverse=True)
    for document, location in largest:
        if size <= RESPONSE_BYTES:
            break
        size -= _body_bytes(document)
        document.pop("text", None)
        document.pop("geminiDocument", None)
        signed = signer.sign(location)
        if signed:
            document["downloadUrl"] = {"url": signed.url, "expiresAt": signed.expires_at.isoformat()}
            size += 2 * len(signed.url)
        else:
            document["undelivered"] = "key_not_addressable"
            shape["complete"] = False
        if size <= RESPONSE_BYTES or document is largest[-1][0]:
            text = encode(shape)
            size = envelope_bytes(text)
    for entries in _ENTRIES_LEFT:
        if size <= RESPONSE_BYTES:
            break
        shape |= {"complete": False, "abridged": True}
        text = encode(_abridged(shape, entries))
        size = envelope_bytes(text)
    return text


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
        if name == "downloadUrl"
        else _abridged(inner[:entries] if name in _REPORTS and isinstance(inner, list) else inner, entries)
        for name, inner in value.items()
    }


def _body_bytes(document: Mapping[str, Any]) -> int:
    """What the document's content takes in the envelope."""
    content = document.get("text") or (document.get("geminiDocument") or {}).get("data") or ""
    return len(json.dumps(json.dumps(content, ensure_ascii=False), ensure_ascii=False).encode("utf-8"))
