"""What a message on the importer's queue asks for: a document to look at, a sweep, or a store's listing."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from groundwire.adapters.eventbridge import DETAIL_TYPE, SOURCE
from groundwire.pointers import Location
from groundwire.roots import StorageRoots


@dataclass(frozen=True, slots=True)
class Import:
    """A document of which something is known now; None where it lies in no storage root of ours."""

    location: Location | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """A look through our store for uploads that nobody knows, from `cursor` on."""

    cursor: str | None


@dataclass(frozen=True, slots=True)
class Refresh:
    """A store to list into the catalogue."""

    store: str


class UnknownMessage(Exception):
    """A message that says nothing we can act on; its text says why, without the message's content."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Detail(_Strict):
    uri: str
    root: str


class _Event(_Strict):
    detail: _Detail


class _Sweep(_Strict):
    cursor: str | None = None


class _Refresh(_Strict):
    list: str


def task(body: str, roots: StorageRoots) -> Import | Sweep | Refresh:
    """What a message asks for, or UnknownMessage."""
    message = _object(body)
    try:
        if message.get("source") == SOURCE and message.get("detail-type") == DETAIL_TYPE:
            return Import(_location(_Event.model_validate(message).detail, roots))
        if message.get("sweep") is True:
            return Sweep(_Sweep.model_validate(message).cursor)
        if "list" in message:
            return Refresh(_Refresh.model_validate(message).list)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, each["loc"])) for each in error.errors(include_input=False)[:5])
        raise UnknownMessage(f"fields are missing or of the wrong type: {places}") from error
    raise UnknownMessage("the message is no verdict event, and none of ours")


def _object(body: Any) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise UnknownMessage("the message is not JSON, or nested too deeply") from error
    if not isinstance(message, dict):
        raise UnknownMessage("the message is no JSON object")
    return message


def _location(detail: _Detail, roots: StorageRoots) -> Location | None:
    root = roots.by_name.get(detail.root)
    if root is None or not detail.uri.startswith(root.uri("")):
        return None
    key = detail.uri.removeprefix(root.uri(""))
    return Location(root, key) if root.contains(key) else None
