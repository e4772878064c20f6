"""The catalogue of File Search stores in the one table (G-2).

Under `C#<store>` an entry stands twice: by its resource name (`D#…`) and by its display name (`T#<hash>#…`),
so that one query answers for a name. A document of a store is never changed, only replaced by another: the
two cannot disagree, and one that a crash left out is put by the next listing.
"""

import hashlib
import json
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from groundwire.adapters.dynamo_errors import ATTEMPTS, back_off, dynamo_errors, pause
from groundwire.catalogue import CatalogueEntry, Listing, store_of
from groundwire.deadline import Deadline
from groundwire.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BATCH_GET, _BATCH_WRITE = 100, 25

Item = dict[str, Any]


class DynamoCatalogue:
    """A CatalogueWriter on the index's table; safe to share between threads."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def named(self, names: Iterable[str], *, deadline: Deadline) -> Mapping[str, CatalogueEntry]:
        wanted = deque(_key(name) for name in dict.fromkeys(names))
        found: dict[str, CatalogueEntry] = {}
        attempts = 0
        while wanted:
            if attempts >= ATTEMPTS or deadline.passed():
                raise Throttled(self._table, f"{len(wanted)} catalogue entries could not be read in time")
            batch = [wanted.popleft() for _ in range(min(_BATCH_GET, len(wanted)))]
            reply: Any
            with dynamo_errors(self._table):
                reply = self._client.batch_get_item(RequestItems={self._table: {"Keys": batch}})
            found |= {entry.name: entry for entry in _entries(reply["Responses"].get(self._table, ()))}
            if left := reply.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ()):
                wanted.extend(left)
                attempts += 1
                back_off(attempts, deadline)
        return found

    def titled(self, store: str, display_name: str, *, deadline: Deadline) -> list[CatalogueEntry]:
        found: list[CatalogueEntry] = []
        page: Any = {}
        while True:
            if deadline.passed():
                raise Throttled(self._table, "the catalogue could not be read in time")
            with dynamo_errors(self._table):
                reply: Any = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="PK = :store AND begins_with(SK, :title)",
                    ExpressionAttributeValues={
                        ":store": {"S": f"C#{store}"},
                        ":title": {"S": _title(display_name)},
                    },
                    **page,
                )
            found += _entries(reply["Items"])
            if "LastEvaluatedKey" not in reply:
                # The name is in the key by its hash only.
                return [entry for entry in found if entry.display_name == display_name]
            page = {"ExclusiveStartKey": reply["LastEvaluatedKey"]}

    def listing(self, store: str, *, deadline: Deadline) -> Listing | None:
        if deadline.passed():
            raise Throttled(self._table, "the catalogue could not be read in time")
        with dynamo_errors(self._table):
            reply: Any = self._client.get_item(TableName=self._table, Key=_listing_key(store))
        item = reply.get("Item")
        if item is None:
            return None
        cursor = item.get("cursor", {}).get("S")
        begun = float(item.get("begun", {"N": "0"})["N"])
        return Listing(float(item["completed"]["N"]), cursor, bool(item["ours"]["BOOL"]), begun)

    def put(self, entries: Iterable[CatalogueEntry], *, expires: float | None = None) -> None:
        items = [item for entry in entries for item in _items(entry, expires)]
        self._write([{"PutRequest": {"Item": item}} for item in items])

    def remove(self, name: str) -> None:
        with dynamo_errors(self._table):
            reply: Any = self._client.get_item(TableName=self._table, Key=_key(name), ConsistentRead=True)
        if "Item" in reply:
            # The one that the other is found by goes last.
            keys = [_place(item) for item in reversed(_items(_entry(reply["Item"]), None))]
            for key in keys:
                with dynamo_errors(self._table):
                    self._client.delete_item(TableName=self._table, Key=key)

    def listed(self, store: str, listing: Listing) -> None:
        item: Item = {
            **_listing_key(store),
            "completed": {"N": repr(listing.completed)},
            "ours": {"BOOL": listing.ours},
            "begun": {"N": repr(listing.begun)},
        }
        if listing.cursor is not None:
            item["cursor"] = {"S": listing.cursor}
        with dynamo_errors(self._table):
            self._client.put_item(TableName=self._table, Item=item)

    def _write(self, requests: list[Any]) -> None:
        for start in range(0, len(requests), _BATCH_WRITE):
            pending: Any = requests[start : start + _BATCH_WRITE]
            for attempt in range(ATTEMPTS):
                with dynamo_errors(self._table):
                    reply = self._client.batch_write_item(RequestItems={self._table: pending})
                pending = reply.get("UnprocessedItems", {}).get(self._table)
                if not pending:
                    break
                time.sleep(pause(attempt))
            else:
                raise Throttled(self._table, f"{len(pending)} catalogue entries could not be written")


def _key(name: str) -> Item:
    return {"PK": {"S": f"C#{store_of(name)}"}, "SK": {"S": f"D#{name}"}}


def _listing_key(store: str) -> Item:
    return {"PK": {"S": f"C#{store}"}, "SK": {"S": "L"}}


def _place(item: Item) -> Item:
    return {"PK": item["PK"], "SK": item["SK"]}


def _title(display_name: str) -> str:
    return f"T#{hashlib.sha256(display_name.encode()).hexdigest()[:32]}#"


def _items(entry: CatalogueEntry, expires: float | None) -> list[Item]:
    """The entry's items: by resource name, and by display name where it has one."""
    body: Item = {
        "name": {"S": entry.name},
        "state": {"S": entry.state},
        "created": {"S": entry.created},
        "metadata": {"S": json.dumps(dict(entry.metadata), ensure_ascii=False, separators=(",", ":"))},
    }
    optional = {"displayName": entry.display_name, "mime": entry.mime_type}
    body |= {name: {"S": value} for name, value in optional.items() if value is not None}
    if expires is not None:
        body["expires"] = {"N": str(int(expires))}
    items = [_key(entry.name) | body]
    if entry.display_name is not None:
        title = {"PK": {"S": f"C#{entry.store}"}, "SK": {"S": _title(entry.display_name) + entry.name}}
        items.append(title | body)
    return items


def _entries(items: Iterable[Item]) -> list[CatalogueEntry]:
    """The entries of items whose time has not passed; the table removes them days later."""
    now = time.time()
    return [_entry(item) for item in items if float(item.get("expires", {"N": "inf"})["N"]) > now]


def _entry(item: Item) -> CatalogueEntry:
    return CatalogueEntry(
        name=item["name"]["S"],
        display_name=item["displayName"]["S"] if "displayName" in item else None,
        state=item["state"]["S"],
        created=item["created"]["S"],
        mime_type=item["mime"]["S"] if "mime" in item else None,
        metadata=json.loads(item["metadata"]["S"]),
    )
