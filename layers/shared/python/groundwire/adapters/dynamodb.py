"""The include graph in DynamoDB: one table, nodes and reverse edges (design: one table).

The node is the truth. A write puts the new reverse edges, flips the node in one conditional put, then
sweeps edges that the flip made stale: a crash anywhere leaves edges that no node confirms, and readers
ignore those. What was throttled is unknown, never missing.
"""

import contextlib
import json
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import random
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.deadline import Deadline
from groundwire.errors import Throttled, Unavailable
from groundwire.findings import Finding
from groundwire.includes import Include
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire.roots import StorageRoots

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BATCH_GET, _BATCH_WRITE = 100, 25
_ATTEMPTS = 8
_TOMBSTONE_SECONDS = 30 * 24 * 3600
_QUERIES_AT_ONCE = 8
_THROTTLED = frozenset(
    {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
)
_UNAVAILABLE = frozenset({"InternalServerError", "TransactionConflictException", "ServiceUnavailable"})

Item = dict[str, Any]


class DynamoEdgeIndex:
    """An EdgeReader and an EdgeWriter on one table; safe to share between threads."""

    def __init__(self, client: "DynamoDBClient", table: str, roots: StorageRoots, shards: int) -> None:
        """`shards` may only grow, and readers must know before writers do."""
        self._client = client
        self._table = table
        self._roots = roots
        self._shards = shards

    # -- reading -------------------------------------------------------------------------------

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        wanted = deque({document_id(each): each for each in locations})
        found: dict[str, Node] = {}
        attempts = 0
        while wanted:
            if attempts >= _ATTEMPTS or deadline.passed():
                raise Throttled(self._table, f"{len(wanted)} nodes could not be read in time")
            batch = [wanted.popleft() for _ in range(min(_BATCH_GET, len(wanted)))]
            request: Any = {"Keys": [_node_key(each) for each in batch], "ConsistentRead": consistent}
            reply: Any
            with self._errors():
                reply = self._client.batch_get_item(RequestItems={self._table: request})
            for item in reply["Responses"].get(self._table, ()):
                if node := self._node(item):
                    found[node.location.uri] = node
            left = reply.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ())
            if left:
                wanted.extend(key["PK"]["S"].removeprefix("D#") for key in left)
                attempts += 1
                _back_off(attempts, deadline)
        return found

    def dependents(self, location: Location, *, deadline: Deadline, limit: int) -> tuple[list[Node], bool]:
        target = document_id(location)
        with ThreadPoolExecutor(min(self._shards, _QUERIES_AT_ONCE)) as pool:
            shards = pool.map(lambda shard: self._shard(target, shard, deadline), range(self._shards))
            parents = {parent.uri: parent for shard in shards for parent in shard}
        confirmed: list[Node] = []
        ordered = [parents[uri] for uri in sorted(parents)]
        for start in range(0, len(ordered), _BATCH_GET):
            chunk = ordered[start : start + _BATCH_GET]
            nodes = self.nodes(chunk, deadline=deadline, consistent=True)
            confirmed += [
                node for each in chunk if (node := nodes.get(each.uri)) and location in node.targets()
            ]
            if len(confirmed) > limit:
                return confirmed[:limit], True
        return confirmed, False

    def _shard(self, target: str, shard: int, deadline: Deadline) -> list[Location]:
        """The parents that one shard of a target's reverse edges names, confirmed or not."""
        parents: list[Location] = []
        start: Item | None = None
        while True:
            if deadline.passed():
                raise Throttled(self._table, "the reverse edges could not be read in time")
            page: Any = {"ExclusiveStartKey": start} if start else {}
            with self._errors():
                reply: Any = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="PK = :target",
                    ExpressionAttributeValues={":target": {"S": f"R#{target}#{shard}"}},
                    ConsistentRead=True,
                    **page,
                )
            for item in reply["Items"]:
                root = self._roots.by_name.get(item["root"]["S"])
                if root:
                    parents.append(Location(root, item["key"]["S"]))
            start = reply.get("LastEvaluatedKey")
            if not start:
                return parents

    # -- writing -------------------------------------------------------------------------------

    def node(self, location: Location) -> Node | None:
        with self._errors():
            reply: Any = self._client.get_item(
                TableName=self._table, Key=_node_key(document_id(location)), ConsistentRead=True
            )
        return self._node(reply["Item"]) if "Item" in reply else None

    def replace(self, node: Node, seen: Node | None) -> bool:
        self._put_reverse_edges(node)
        if not self._flip(node, seen):
            return False
        kept = {target.key for target in node.targets()}
        for target in seen.targets() if seen else ():
            if target.key not in kept:
                self._sweep(node, target, seen.generation if seen else "")
        return True

    def _put_reverse_edges(self, node: Node) -> None:
        puts = [
            {"PutRequest": {"Item": self._reverse_edge(node, target, position)}}
            for position, target in enumerate(node.targets())
        ]
        for start in range(0, len(puts), _BATCH_WRITE):
            self._write(puts[start : start + _BATCH_WRITE])

    def _write(self, requests: Sequence[Any]) -> None:
        pending: Any = requests
        for attempt in range(_ATTEMPTS):
            with self._errors():
                reply = self._client.batch_write_item(RequestItems={self._table: pending})
            pending = reply.get("UnprocessedItems", {}).get(self._table)
            if not pending:
                return
            time.sleep(_pause(attempt))
        raise Throttled(self._table, f"{len(pending)} reverse edges could not be written")

    def _flip(self, node: Node, seen: Node | None) -> bool:
        """The one conditional put that makes the node, and with it its edges, current."""
        # A tombstone past its time is nothing to a reader, and may wait for days to be removed.
        condition: Item = {
            "ConditionExpression": "attribute_not_exists(PK) OR expires <= :now",
            "ExpressionAttributeValues": {":now": {"N": str(int(time.time()))}},
        }
        if seen:
            condition = {
                "ConditionExpression": "gen = :seen",
                "ExpressionAttributeValues": {":seen": {"S": seen.generation}},
            }
        try:
            with self._errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(node),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **condition,
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            # A put that was retried below us may have succeeded the first time.
            stored: Any = error.response.get("Item", {})
            return bool(stored.get("gen", {}).get("S") == node.generation)
        return True

    def _sweep(self, node: Node, target: Location, generation: str) -> None:
        """Deletes a stale reverse edge, unless a newer writer has already put it back."""
        key = self._reverse_key(node, target)
        try:
            with self._errors():
                self._client.delete_item(
                    TableName=self._table,
                    Key=key,
                    ConditionExpression="gen = :seen",
                    ExpressionAttributeValues={":seen": {"S": generation}},
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise

    def _reverse_key(self, node: Node, target: Location) -> Item:
        parent = document_id(node.location)
        shard = zlib.crc32(parent.encode()) % self._shards
        return {"PK": {"S": f"R#{document_id(target)}#{shard}"}, "SK": {"S": parent}}

    def _reverse_edge(self, node: Node, target: Location, position: int) -> Item:
        return {
            **self._reverse_key(node, target),
            "root": {"S": node.location.root.name},
            "key": {"S": node.location.key},
            "position": {"N": str(position)},
            "gen": {"S": node.generation},
        }

    def _node(self, item: Item) -> Node | None:
        """The node of an item; None for a root that is no longer configured, or a tombstone past its time."""
        root = self._roots.by_name.get(item["root"]["S"])
        expired = "expires" in item and int(item["expires"]["N"]) <= time.time()
        return None if root is None or expired else _from_item(item, Location(root, item["key"]["S"]))

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """The one exception map: what is worth a retry becomes Unavailable, the rest is a bug."""
        try:
            yield
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _THROTTLED:
                raise Throttled(self._table, code) from error
            if code in _UNAVAILABLE:
                raise Unavailable(self._table, code) from error
            raise
        except BotoCoreError as error:
            raise Unavailable(self._table, f"no answer ({type(error).__name__})") from error


def _node_key(identity: str) -> Item:
    return {"PK": {"S": f"D#{identity}"}, "SK": {"S": "D"}}


def _pause(attempt: int) -> float:
    return float(0.05 * 2**attempt * random())  # noqa: S311 - jitter, not a secret


def _back_off(attempt: int, deadline: Deadline) -> None:
    time.sleep(min(_pause(attempt), deadline.left()))


def _item(node: Node) -> Item:
    item: Item = {
        **_node_key(document_id(node.location)),
        "uri": {"S": node.location.uri},
        "root": {"S": node.location.root.name},
        "key": {"S": node.location.key},
        "size": {"N": str(node.size_bytes)},
        "mime": {"S": node.mime_type},
        "verdict": {"S": node.verdict},
        "fingerprint": {"S": node.fingerprint},
        "seq": {"S": node.sequencer},
        "gen": {"S": node.generation},
        "indexedAt": {"S": node.indexed_at},
        "includes": {"S": _json([[i.index, i.raw, i.line, i.column, i.key, i.code] for i in node.includes])},
        "findings": {
            "S": _json(
                [[f.code, f.message, f.line, f.column, f.hint, f.loses_includes] for f in node.findings]
            )
        },
        "findingCount": {"N": str(node.finding_count)},
    }
    optional = {
        "version": node.version,
        "versionId": node.version_id,
        "title": node.title,
        "canonicalPath": node.canonical_path,
    }
    item |= {name: {"S": value} for name, value in optional.items() if value is not None}
    if not node.exists:
        item["expires"] = {"N": str(int(time.time()) + _TOMBSTONE_SECONDS)}
    return item


def _from_item(item: Item, location: Location) -> Node:
    def text(name: str) -> str | None:
        value = item.get(name)
        return str(value["S"]) if value else None

    return Node(
        location=location,
        version=text("version"),
        version_id=text("versionId"),
        size_bytes=int(item["size"]["N"]),
        mime_type=item["mime"]["S"],
        title=text("title"),
        canonical_path=text("canonicalPath"),
        includes=tuple(
            Include(index, raw, line, column, key, code)
            for index, raw, line, column, key, code in json.loads(item["includes"]["S"])
        ),
        findings=tuple(Finding(*values) for values in json.loads(item["findings"]["S"])),
        finding_count=int(item["findingCount"]["N"]),
        verdict=item["verdict"]["S"],
        fingerprint=item["fingerprint"]["S"],
        sequencer=item["seq"]["S"],
        generation=item["gen"]["S"],
        indexed_at=item["indexedAt"]["S"],
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
