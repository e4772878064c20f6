"""A table in memory that answers the calls `DynamoEdgeIndex` makes, and can die between any two of them.

It is a client, not an index: the adapter's own writes run against it, call by call. The contract suite runs
the same adapter over a real protocol server, so what is understood here cannot drift from DynamoDB.
"""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

Item = dict[str, Any]


class Crash(BaseException):
    """The function ends here: not an error anybody catches."""


class MemoryTable:
    """Items by partition and sort key; `dies_at` counts down calls to the one that never returns."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Item] = {}
        self.dies_at: int | None = None
        self.dies_after_writing = False

    def get_item(self, *, Key: Item, **_: Any) -> Item:
        return self._call(lambda: self._found(_place(Key)))

    def batch_get_item(self, *, RequestItems: Item) -> Item:
        ((table, request),) = RequestItems.items()
        assert 0 < len(request["Keys"]) <= 100
        assert len({_place(key) for key in request["Keys"]}) == len(request["Keys"]), "duplicate keys"
        return self._call(
            lambda: {
                "Responses": {table: [i for key in request["Keys"] if (i := self.items.get(_place(key)))]},
                "UnprocessedKeys": {},
            }
        )

    def query(
        self,
        *,
        ExpressionAttributeValues: Item,
        ExclusiveStartKey: Item | None = None,
        Limit: int = 7,  # pages are short, so that every reader turns them
        **_: Any,
    ) -> Item:
        (value,) = ExpressionAttributeValues.values()
        after = ExclusiveStartKey["SK"]["S"] if ExclusiveStartKey else ""
        keys = sorted(key for key in self.items if key[0] == value["S"] and key[1] > after)
        page = [self.items[key] for key in keys[:Limit]]
        more = {"LastEvaluatedKey": _key(keys[Limit - 1])} if len(keys) > Limit else {}
        return self._call(lambda: {"Items": page, **more})

    def scan(
        self,
        *,
        FilterExpression: str,
        ExpressionAttributeValues: Item,
        Limit: int,
        ExclusiveStartKey: Item | None = None,
        **_: Any,
    ) -> Item:
        assert FilterExpression == (
            "begins_with(PK, :node) AND #root = :root AND attribute_exists(version)"
        ), "no such filter is known here"
        after = _place(ExclusiveStartKey) if ExclusiveStartKey else ("", "")
        keys = sorted(key for key in self.items if key > after)
        # As DynamoDB does: the limit is of what is looked at, the filter comes afterwards.
        page = [
            item
            for key in keys[:Limit]
            if key[0].startswith(ExpressionAttributeValues[":node"]["S"])
            and (item := self.items[key])["root"] == ExpressionAttributeValues[":root"]
            and "version" in item
        ]
        more = {"LastEvaluatedKey": _key(keys[Limit - 1])} if len(keys) > Limit else {}
        return self._call(lambda: {"Items": page, **more})

    def put_item(self, *, Item: Item, **condition: Any) -> Item:
        return self._call(lambda: self._put(Item, condition))

    def delete_item(self, *, Key: Item, **condition: Any) -> Item:
        return self._call(lambda: self._delete(_place(Key), condition))

    def batch_write_item(self, *, RequestItems: Item) -> Item:
        ((_, requests),) = RequestItems.items()
        assert 0 < len(requests) <= 25

        def write() -> Item:
            for request in requests:
                item = request["PutRequest"]["Item"]
                self.items[_place(item)] = item
            return {"UnprocessedItems": {}}

        return self._call(write)

    def _found(self, place: tuple[str, str]) -> Item:
        return {"Item": self.items[place]} if place in self.items else {}

    def _put(self, item: Item, condition: Item) -> Item:
        self._require(_place(item), condition)
        self.items[_place(item)] = item
        return {}

    def _delete(self, place: tuple[str, str], condition: Item) -> Item:
        self._require(place, condition)
        self.items.pop(place, None)
        return {}

    def _require(self, place: tuple[str, str], condition: Item) -> None:
        stored = self.items.get(place, {})
        values = condition.get("ExpressionAttributeValues", {})
        match condition["ConditionExpression"]:
            case "gen = :seen":
                holds = stored.get("gen") == values[":seen"]
            case "attribute_not_exists(PK) OR expires <= :now":
                expires = int(stored.get("expires", {"N": "9999999999"})["N"])
                holds = not stored or expires <= int(values[":now"]["N"])
            case unknown:
                raise AssertionError(f"no such condition is known here: {unknown}")
        if not holds:
            answer = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}, "Item": stored}
            raise ClientError(answer, "PutItem")  # type: ignore[arg-type]

    def _call(self, work: Callable[[], Item]) -> Item:
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                self.dies_at = None
                if self.dies_after_writing:
                    work()
                raise Crash
        return work()


def _place(key: Item) -> tuple[str, str]:
    return key["PK"]["S"], key["SK"]["S"]


def _key(place: tuple[str, str]) -> Item:
    return {"PK": {"S": place[0]}, "SK": {"S": place[1]}}
