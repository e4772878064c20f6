"""What Gemini's service keeps: stores of documents, and files; in JSON as it shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

FILE_LIFE_S: Final = 48 * 3600
METADATA_ENTRIES, STRING_VALUE_BYTES, DISPLAY_NAME_CHARS = 20, 256, 512


class Refused(Exception):
    """A request that the service answers with an error."""

    def __init__(
        self, code: int, status: str, message: str, details: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        self.code, self.status, self.message, self.details = code, status, message, details


@dataclass
class Document:
    """A document of a store; `hidden` ones are counted for a page and never shown, as deleted ones are."""

    name: str
    display_name: str | None
    mime_type: str
    metadata: Sequence[Mapping[str, Any]]
    content: bytes
    created: float
    state: str = "STATE_ACTIVE"
    ready_in: int = 0
    """How often a pending one is still seen as such by those who get it; -1: always."""
    hidden: bool = False

    def json(self) -> dict[str, Any]:
        shown = {
            "name": self.name,
            "displayName": self.display_name,
            "state": self.state,
            "sizeBytes": str(len(self.content)),
            "mimeType": self.mime_type,
            "createTime": timestamp(self.created),
            "updateTime": timestamp(self.created),
            "customMetadata": list(self.metadata),
        }
        return {key: value for key, value in shown.items() if value not in (None, [])}


@dataclass
class Store:
    name: str
    display_name: str | None
    created: float
    documents: dict[str, Document] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        states = [each.state for each in self.documents.values() if not each.hidden]
        return {
            "name": self.name,
            "displayName": self.display_name or "",
            "createTime": timestamp(self.created),
            "activeDocumentsCount": str(states.count("STATE_ACTIVE")),
        }


@dataclass
class File:
    """A file of the Files API; it belongs to the key that it was uploaded with."""

    name: str
    uri: str
    owner: str
    display_name: str | None
    mime_type: str
    content: bytes
    created: float
    state: str = "PROCESSING"

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "displayName": self.display_name or "",
            "mimeType": self.mime_type,
            "sizeBytes": str(len(self.content)),
            "createTime": timestamp(self.created),
            "expirationTime": timestamp(self.created + FILE_LIFE_S),
            "uri": self.uri,
            "state": self.state,
        }


def check_import(given: Mapping[str, Any]) -> None:
    """Refuses what no document may have; the service counts bytes of metadata and speaks of characters."""
    entries = given.get("customMetadata", [])
    if len(entries) > METADATA_ENTRIES:
        raise Refused(400, "INVALID_ARGUMENT", f"A document has at most {METADATA_ENTRIES} custom metadata.")
    if any(len(each.get("stringValue", "").encode()) > STRING_VALUE_BYTES for each in entries):
        message = f"string_value must be at most {STRING_VALUE_BYTES} characters."
        raise Refused(400, "INVALID_ARGUMENT", message)
    if len(given.get("displayName") or "") > DISPLAY_NAME_CHARS:
        raise Refused(400, "INVALID_ARGUMENT", "The display name is too long.")


def custom_metadata(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Text, numbers and lists of text, as the service lists them."""
    return [{"key": key, **_value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    return (
        {"stringListValue": {"values": list(value)}} if isinstance(value, list) else {"numericValue": value}
    )


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
