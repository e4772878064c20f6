"""What a message on the indexer's queue asks for: documents to look at, dependents to judge, or nothing.

EventBridge hands over keys as they are; S3's own notifications, straight or through SNS, encode them like a
form: those are decoded once, and only those.
"""

import json
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.parser.models.s3 import S3EventNotificationEventBridgeModel
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from groundwire.adapters.sqs import HEAL, LEARN, REPAIR
from groundwire.errors import PointerRefused
from groundwire.learning import LEARNED_FROM
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.roots import StorageRoots


@dataclass(frozen=True, slots=True)
class Look:
    """A document to index; `sequencer` orders the looks at one key, where the event has one."""

    location: Location
    sequencer: str | None


@dataclass(frozen=True, slots=True)
class Heal:
    """A document whose dependents are to be judged again, from `cursor` on (X-6)."""

    target: Location
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Learn:
    """What a search saw of a document in a store without events."""

    sighting: Node


Task = Look | Heal | Learn


class UnknownMessage(Exception):
    """A message that says nothing we can act on; its text says why, without the message's content."""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Document(_Lenient):
    root: str
    key: str


class _Repair(_Lenient):
    documents: list[_Document]


class _Heal(_Document):
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,6}:[a-z2-7]{0,26}$")] | None = None


class _Learn(_Document):
    seen: dict[str, Any]


class _Bucket(_Lenient):
    name: str


class _Object(_Lenient):
    key: str
    sequencer: str | None = None


class _Entity(_Lenient):
    bucket: _Bucket
    object: _Object


class _Record(_Lenient):
    """One record of S3's own notifications."""

    s3: _Entity


def tasks(body: str, roots: StorageRoots) -> list[Task]:
    """What a message asks for: nothing where it is about other places, or a test; or UnknownMessage."""
    try:
        return list(_tasks(_object(body), roots))
    except ValidationError as error:
        places = ", ".join(".".join(map(str, each["loc"])) for each in error.errors(include_input=False)[:5])
        raise UnknownMessage(f"fields are missing or of the wrong type: {places}") from error


def _object(body: Any) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise UnknownMessage("the message is not JSON, or nested too deeply") from error
    if not isinstance(message, dict):
        raise UnknownMessage("the message is no JSON object")
    return message


def _tasks(message: dict[str, Any], roots: StorageRoots) -> Iterator[Task]:
    kind = message.get("detail-type")
    if message.get("Type") == "Notification" and "Message" in message:
        message = _object(message["Message"])  # by way of SNS
    if kind == REPAIR:
        for document in _Repair.model_validate(message).documents:
            if location := _named(document, roots):
                yield Look(location, None)
    elif kind == HEAL:
        heal = _Heal.model_validate(message)
        if location := _named(heal, roots):
            yield Heal(location, heal.cursor)
    elif kind == LEARN:
        learn = _Learn.model_validate(message)
        if location := _named(learn, roots, LEARNED_FROM):
            yield Learn(TypeAdapter(Node).validate_python(learn.seen | {"location": location}))
    elif message.get("source") == "aws.s3":
        event = S3EventNotificationEventBridgeModel.model_validate(message).detail
        yield from _look(event.bucket.name, event.object.key, event.object.sequencer, roots)
    elif isinstance(message.get("Records"), list):
        for record in message["Records"]:
            entity = _Record.model_validate(record).s3
            key = unquote_plus(entity.object.key)
            yield from _look(entity.bucket.name, key, entity.object.sequencer, roots)
    elif message.get("Event") != "s3:TestEvent":
        raise UnknownMessage("the message is no S3 event, and none of ours")


def _look(bucket: str, key: str, sequencer: str | None, roots: StorageRoots) -> Iterator[Look]:
    try:
        root = roots.holding("s3", bucket, key)
    except PointerRefused:
        return
    yield Look(Location(root, key), sequencer or None)


def _named(
    document: _Document, roots: StorageRoots, source_types: Set[str] = frozenset({"s3"})
) -> Location | None:
    """Where it is, under the readers that count there; None outside the roots, and where nothing is learned.

    What callers may read with their own rights is nothing that the index may tell (Z-4).
    """
    root = roots.by_name.get(document.root)
    if not root or root.source_type not in source_types or root.delegated or not root.contains(document.key):
        return None
    return Location(roots.innermost(root, document.key), document.key)
