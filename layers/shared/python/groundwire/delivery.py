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
    then the answer is not `complete`.
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
    return text


def _body_bytes(document: Mapping[str, Any]) -> int:
    """What the document's content takes in the envelope."""
    content = document.get("text") or (document.get("geminiDocument") or {}).get("data") or ""
    return len(json.dumps(json.dumps(content, ensure_ascii=False), ensure_ascii=False).encode("utf-8"))
