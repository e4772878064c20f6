"""What a message on the indexer's queue asks for: documents to look at, or nothing we know.

Keys in EventBridge events are raw: nothing is decoded.
"""

import json
from dataclasses import dataclass

from aws_lambda_powertools.utilities.parser.models.s3 import S3EventNotificationEventBridgeModel
from pydantic import BaseModel, ConfigDict, ValidationError

from groundwire.adapters.sqs import REPAIR
from groundwire.errors import PointerRefused
from groundwire.pointers import Location
from groundwire.roots import StorageRoots


@dataclass(frozen=True, slots=True)
class Look:
    """A document to index; `sequencer` orders the looks at one key, where the event has one."""

    location: Location
    sequencer: str | None


class UnknownMessage(Exception):
    """A message that says nothing we can act on; its text says why, without the message's content."""


class _RepairDocument(BaseModel):
    root: str
    key: str


class _Repair(BaseModel):
    model_config = ConfigDict(extra="ignore")

    documents: list[_RepairDocument]


def looks(body: str, roots: StorageRoots) -> list[Look]:
    """The documents a message is about: none where it is about other places; or UnknownMessage."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnknownMessage("the message is not JSON, or nested too deeply") from error
    if not isinstance(message, dict):
        raise UnknownMessage("the message is no JSON object")
    try:
        if message.get("detail-type") == REPAIR:
            return _repairs(_Repair.model_validate(message), roots)
        if message.get("source") == "aws.s3":
            return _event(S3EventNotificationEventBridgeModel.model_validate(message), roots)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, each["loc"])) for each in error.errors(include_input=False)[:5])
        raise UnknownMessage(f"fields are missing or of the wrong type: {places}") from error
    raise UnknownMessage("the message is neither an S3 event nor a repair request")


def _event(event: S3EventNotificationEventBridgeModel, roots: StorageRoots) -> list[Look]:
    bucket, key = event.detail.bucket.name, event.detail.object.key
    try:
        root = roots.holding("s3", bucket, key)
    except PointerRefused:
        return []
    return [Look(Location(root, key), event.detail.object.sequencer or None)]


def _repairs(repair: _Repair, roots: StorageRoots) -> list[Look]:
    return [
        Look(Location(root, document.key), None)
        for document in repair.documents
        if (root := roots.by_name.get(document.root)) and root.contains(document.key)
    ]
