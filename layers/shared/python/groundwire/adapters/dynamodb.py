"""The include graph in DynamoDB: one table, nodes and reverse edges (design: one table).

The node is the truth. A write puts what points to the node (reverse edges, its claim of a canonical_path, its
fingerprint), flips the node in one conditional put, then sweeps pointers that the flip made stale: a crash
anywhere leaves pointers that no node confirms, and readers ignore those. What was throttled is unknown, never
missing.
"""

import hashlib
import json
import time
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from groundwire.adapters.dynamo_errors import ATTEMPTS, back_off, dynamo_errors, pause
from groundwire.deadline import Deadline
from groundwire.errors import Throttled
from groundwire.findings import Finding
from groundwire.includes import Include
from groundwire.limits import INDEX_READ_S
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BATCH_GET, _BATCH_WRITE = 100, 25
_TOMBSTONE_SECONDS = 30 * 24 * 3600
_QUERIES_AT_ONCE = 8

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
        asked = {each.uri: document_id(each) for each in locations}
        nodes = self._nodes(set(asked.values()), deadline, consistent)
        known = {document_id(node.location): node for node in nodes}
        return {uri: known[identity] for uri, identity in asked.items() if identity in known}

    def identified(self, ids: Iterable[str], *, deadline: Deadline) -> Mapping[str, Location]:
        nodes = self._nodes(set(ids), deadline, consistent=False)
        return {document_id(node.location): node.location for node in nodes}

    def _nodes(self, ids: set[str], deadline: Deadline, consistent: bool) -> list[Node]:
        wanted = deque(ids)
        found: list[Node] = []
        attempts = 0
        while wanted:
            if attempts >= ATTEMPTS or deadline.passed():
                raise Throttled(self._table, f"{len(wanted)} nodes could not be read in time")
            batch = [wanted.popleft() for _ in range(min(_BATCH_GET, len(wanted)))]
            request: Any = {"Keys": [_node_key(each) for each in batch], "ConsistentRead": consistent}
            reply: Any
            with dynamo_errors(self._table):
                reply = self._client.batch_get_item(RequestItems={self._table: request})
            found += [node for item in reply["Responses"].get(self._table, ()) if (node := self._node(item))]
            left = reply.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ())
            if left:
                wanted.extend(key["PK"]["S"].removeprefix("D#") for key in left)
                attempts += 1
                back_off(attempts, deadline)
        return found

    def dependents(self, location: Location, *, deadline: Deadline, limit: int) -> tuple[list[Node], bool]:
        target = document_id(location)
        with ThreadPoolExecutor(min(self._shards, _QUERIES_AT_ONCE)) as pool:
            shards = pool.map(
                lambda shard: self._pointing(_reverse(target, shard), deadline), range(self._shards)
            )
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

    def dependents_page(
        self, location: Location, cursor: str | None, limit: int
    ) -> tuple[list[Location], str | None]:
        shard, _, after = (cursor or "0:").partition(":")
        number, target = int(shard), document_id(location)
        parents: list[Location] = []
        while number < self._shards:
            items, last = self._page(_reverse(target, number), after, limit - len(parents))
            parents += self._locations(items)
            if last is not None:
                after = last
            else:
                number, after = number + 1, ""
            if len(parents) >= limit and number < self._shards:
                return parents, f"{number}:{after}"
        return parents, None

    def claimants(self, location: Location, canonical_path: str) -> list[Location]:
        deadline = Deadline.after(INDEX_READ_S)
        named = self._pointing(_claim(location, canonical_path), deadline)
        nodes = self.nodes(named, deadline=deadline, consistent=True)
        return [
            node.location for node in nodes.values() if node.exists and node.canonical_path == canonical_path
        ]

    def alike(self, location: Location, fingerprint: str) -> list[Node]:
        deadline = Deadline.after(INDEX_READ_S)
        named = self._pointing(_alike(location, fingerprint), deadline)
        nodes = self.nodes(named, deadline=deadline, consistent=True)
        return [node for node in nodes.values() if node.fingerprint == fingerprint]

    def located(self, root: StorageRoot, cursor: str | None, limit: int) -> tuple[list[Node], str | None]:
        options: Any = {"Limit": limit}
        if cursor:
            partition, sort = json.loads(cursor)
            options["ExclusiveStartKey"] = {"PK": {"S": partition}, "SK": {"S": sort}}
        with dynamo_errors(self._table):
            reply: Any = self._client.scan(
                TableName=self._table,
                FilterExpression="begins_with(PK, :node) AND #root = :root AND attribute_exists(version)",
                ExpressionAttributeNames={"#root": "root"},
                ExpressionAttributeValues={":node": {"S": "D#"}, ":root": {"S": root.name}},
                ConsistentRead=True,
                **options,
            )
        last = reply.get("LastEvaluatedKey")
        found = [node for item in reply["Items"] if (node := self._node(item))]
        return found, _json([last["PK"]["S"], last["SK"]["S"]]) if last else None

    def _pointing(self, partition: str, deadline: Deadline) -> list[Location]:
        """The documents that a partition of pointers names, confirmed or not."""
        found: list[Location] = []
        after: str | None = ""
        while after is not None:
            if deadline.passed():
                raise Throttled(self._table, "the index could not be read in time")
            items, after = self._page(partition, after)
            found += self._locations(items)
        return found

    def _page(self, partition: str, after: str, limit: int | None = None) -> tuple[list[Item], str | None]:
        """Items of a partition behind the sort key `after`, and the last one's where there are more."""
        options: Any = {"Limit": limit} if limit else {}
        if after:
            options["ExclusiveStartKey"] = {"PK": {"S": partition}, "SK": {"S": after}}
        with dynamo_errors(self._table):
            reply: Any = self._client.query(
                TableName=self._table,
                KeyConditionExpression="PK = :partition",
                ExpressionAttributeValues={":partition": {"S": partition}},
                ConsistentRead=True,
                **options,
            )
        last = reply.get("LastEvaluatedKey")
        return reply["Items"], last["SK"]["S"] if last else None

    def _locations(self, items: Iterable[Item]) -> list[Location]:
        return [location for item in items if (location := self._location(item))]

    def _location(self, item: Item) -> Location | None:
        """Where an item's document is; None where its root is configured no more, or another holds it now.

        What was indexed before a root was nested around it is the inner root's readers' alone (Z-1).
        """
        root, key = self._roots.by_name.get(item["root"]["S"]), item["key"]["S"]
        return Location(root, key) if root and self._roots.is_innermost(root, key) else None

    # -- writing -------------------------------------------------------------------------------

    def node(self, location: Location) -> Node | None:
        with dynamo_errors(self._table):
            reply: Any = self._client.get_item(
                TableName=self._table, Key=_node_key(document_id(location)), ConsistentRead=True
            )
        return self._node(reply["Item"]) if "Item" in reply else None

    def replace(self, node: Node, seen: Node | None) -> bool:
        pointers = self._pointers(node)
        puts = [{"PutRequest": {"Item": self._pointer(partition, node)}} for partition in pointers]
        for start in range(0, len(puts), _BATCH_WRITE):
            self._write(puts[start : start + _BATCH_WRITE])
        if not self._flip(node, seen):
            return False
        if seen:
            for partition in self._pointers(seen) - pointers:
                self._sweep(partition, node, seen.edge_generation)
        return True

    def amend(self, node: Node, seen: Node) -> bool:
        # Pointers keep the generation of the write that put them: only that one's successor sweeps them.
        return self._flip(node, seen)

    def _pointers(self, node: Node) -> set[str]:
        """The partitions in which the node must be found: by its targets, its claim, its content."""
        parent = document_id(node.location)
        shard = zlib.crc32(parent.encode()) % self._shards
        partitions = {_reverse(document_id(target), shard) for target in node.lookups()}
        if node.canonical_path is not None:
            partitions.add(_claim(node.location, node.canonical_path))
        if node.fingerprint:
            partitions.add(_alike(node.location, node.fingerprint))
        return partitions

    def _write(self, requests: Sequence[Any]) -> None:
        pending: Any = requests
        for attempt in range(ATTEMPTS):
            with dynamo_errors(self._table):
                reply = self._client.batch_write_item(RequestItems={self._table: pending})
            pending = reply.get("UnprocessedItems", {}).get(self._table)
            if not pending:
                return
            time.sleep(pause(attempt))
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
            with dynamo_errors(self._table):
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

    def _sweep(self, partition: str, node: Node, generation: str) -> None:
        """Deletes a stale pointer, unless a newer writer has already put it back."""
        try:
            with dynamo_errors(self._table):
                self._client.delete_item(
                    TableName=self._table,
                    Key={"PK": {"S": partition}, "SK": {"S": document_id(node.location)}},
                    ConditionExpression="gen = :seen",
                    ExpressionAttributeValues={":seen": {"S": generation}},
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise

    def _pointer(self, partition: str, node: Node) -> Item:
        return {
            "PK": {"S": partition},
            "SK": {"S": document_id(node.location)},
            "root": {"S": node.location.root.name},
            "key": {"S": node.location.key},
            "gen": {"S": node.edge_generation},
        }

    def _node(self, item: Item) -> Node | None:
        """The node of an item; None where it has no place any more, or is a tombstone past its time."""
        location = self._location(item)
        expired = "expires" in item and int(item["expires"]["N"]) <= time.time()
        return None if location is None or expired else _from_item(item, location)


def _reverse(target: str, shard: int) -> str:
    return f"R#{target}#{shard}"


def _claim(location: Location, canonical_path: str) -> str:
    return f"P#{location.root.name}#{_short(canonical_path)}"


def _alike(location: Location, fingerprint: str) -> str:
    return f"H#{location.root.name}#{_short(fingerprint)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _node_key(identity: str) -> Item:
    return {"PK": {"S": f"D#{identity}"}, "SK": {"S": "D"}}


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
        "edgeGen": {"S": node.edge_generation},
        "owes": {"S": _json(node.owes)},
        "announced": {"S": node.announced},
        "indexedAt": {"S": node.indexed_at},
        "includes": {
            "S": _json([[i.index, i.raw, i.line, i.column, i.key, i.code, i.stored] for i in node.includes])
        },
        "findings": {
            "S": _json(
                [
                    [f.code, f.message, f.line, f.column, f.hint, f.loses_includes, f.moved_to]
                    for f in node.findings
                ]
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
        includes=tuple(Include(*values) for values in json.loads(item["includes"]["S"])),
        findings=tuple(Finding(*values) for values in json.loads(item["findings"]["S"])),
        finding_count=int(item["findingCount"]["N"]),
        verdict=item["verdict"]["S"],
        fingerprint=item["fingerprint"]["S"],
        sequencer=item["seq"]["S"],
        generation=item["gen"]["S"],
        edge_generation=item["edgeGen"]["S"],
        owes=tuple(json.loads(item["owes"]["S"])),
        announced=item["announced"]["S"],
        indexed_at=item["indexedAt"]["S"],
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
