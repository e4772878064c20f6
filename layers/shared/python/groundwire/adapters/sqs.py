"""Queues: what the grounding function asks the indexer to look at, what the indexer cannot read."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.errors import Unavailable
from groundwire.nodes import Node
from groundwire.pointers import Location

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

REPAIR = "Groundwire Repair"
"""The `detail-type` of a message that asks for documents to be indexed again."""
HEAL = "Groundwire Heal"
"""The `detail-type` of a message that asks for a document's dependents to be judged again."""
LEARN = "Groundwire Learn"
"""The `detail-type` of a message that says what was seen of a document in a store without events."""


class SqsIndexQueue:
    """The indexer's queue, to put work on: a RepairQueue and a HealingQueue."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def request(self, locations: Iterable[Location]) -> None:
        """One message for all of them; Unavailable where the queue does not take it."""
        documents = [{"root": each.root.name, "key": each.key} for each in locations]
        _send(self._client, self._url, json.dumps({"detail-type": REPAIR, "documents": documents}))

    def learn(self, sightings: Iterable[Node]) -> None:
        """One message for each: a document's includes may fill it. Unavailable as above."""
        for node in sightings:
            seen = asdict(node) | {"location": None}
            place = {"root": node.location.root.name, "key": node.location.key}
            _send(self._client, self._url, json.dumps({"detail-type": LEARN, **place, "seen": seen}))

    def heal(self, target: Location, cursor: str | None = None) -> None:
        """One message; Unavailable where the queue does not take it."""
        message = {"detail-type": HEAL, "root": target.root.name, "key": target.key, "cursor": cursor}
        _send(self._client, self._url, json.dumps(message))


class SqsImportQueue:
    """The importer's queue, to put work on: an ImportQueue."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def sweep(self, cursor: str | None) -> None:
        """One message; Unavailable where the queue does not take it."""
        _send(self._client, self._url, json.dumps({"sweep": True, "cursor": cursor}))

    def refresh(self, store: str) -> None:
        """One message; Unavailable where the queue does not take it."""
        _send(self._client, self._url, json.dumps({"list": store}))


class SqsDeadLetters:
    """Puts messages that mean nothing to us where an operator sees them (X-8)."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def keep(self, body: str, reason: str) -> None:
        """The message as it came, with the reason as an attribute."""
        _send(self._client, self._url, body, reason)


def _send(client: "SQSClient", url: str, body: str, reason: str | None = None) -> None:
    attributes = {"reason": {"DataType": "String", "StringValue": reason}} if reason else {}
    try:
        client.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)  # type: ignore[arg-type]
    except (BotoCoreError, ClientError) as error:
        raise Unavailable(url, f"the queue took no message ({type(error).__name__})") from error
