"""Verdict events on the event bus (X-7): `Document Indexed`, whose schema is in docs/events.md."""

import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.errors import Unavailable
from groundwire.nodes import Node

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

SOURCE, DETAIL_TYPE = "groundwire", "Document Indexed"


class EventBridgeEventSink:
    """Publishes what became of documents: URIs and codes, never titles or content."""

    def __init__(self, client: "EventBridgeClient", bus: str) -> None:
        self._client = client
        self._bus = bus

    def publish(self, node: Node) -> None:
        detail = {
            "uri": node.location.uri,
            "root": node.location.root.name,
            "verdict": node.verdict if node.exists else "removed",
            "version": node.version,
            "findings": [
                {"code": each.code, "severity": each.severity, "line": each.line} for each in node.findings
            ],
        }
        entry: Any = {
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Detail": json.dumps(detail),
            "EventBusName": self._bus,
        }
        try:
            reply = self._client.put_events(Entries=[entry])
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(self._bus, f"the event bus does not answer ({type(error).__name__})") from error
        if reply["FailedEntryCount"]:
            raise Unavailable(
                self._bus, f"the event bus refused the event ({reply['Entries'][0].get('ErrorCode')})"
            )
