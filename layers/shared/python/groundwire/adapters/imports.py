"""What importers know, in the one table (X-10): `I#<groundwire_id>` / `<store>`, written on condition."""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from groundwire.adapters.dynamo_errors import dynamo_errors
from groundwire.imports import Claim, ImportRecord

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]


class DynamoImportRecords:
    """ImportRecords on the index's table; safe to share between threads."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def get(self, document: str, store: str) -> ImportRecord | None:
        with dynamo_errors(self._table):
            reply: Any = self._client.get_item(
                TableName=self._table, Key=_key(document, store), ConsistentRead=True
            )
        return _record(reply["Item"]) if "Item" in reply else None

    def replace(self, record: ImportRecord, seen: ImportRecord | None) -> bool:
        condition: Item = {"ConditionExpression": "attribute_not_exists(PK)"}
        if seen:
            condition = {
                "ConditionExpression": "gen = :seen",
                "ExpressionAttributeValues": {":seen": {"S": seen.generation}},
            }
        try:
            with dynamo_errors(self._table):
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(record),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **condition,
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            # A put that was retried below us may have succeeded the first time.
            stored: Any = error.response.get("Item", {})
            return bool(stored.get("gen", {}).get("S") == record.generation)
        return True


def _key(document: str, store: str) -> Item:
    return {"PK": {"S": f"I#{document}"}, "SK": {"S": store}}


def _item(record: ImportRecord) -> Item:
    item: Item = {
        **_key(record.document, record.store),
        "gen": {"S": record.generation},
        "leftovers": {"L": [{"S": name} for name in record.leftovers]},
    }
    texts = {"version": record.version, "name": record.name}
    item |= {key: {"S": value} for key, value in texts.items() if value is not None}
    if record.claim:
        claim: Item = {"message": {"S": record.claim.message}, "at": {"N": repr(record.claim.at)}}
        if record.claim.version is not None:
            claim["version"] = {"S": record.claim.version}
        item["claim"] = {"M": claim}
    if record.expires is not None:
        item["expires"] = {"N": str(int(record.expires))}
    return item


def _record(item: Item) -> ImportRecord:
    claim = item.get("claim", {}).get("M")
    return ImportRecord(
        document=item["PK"]["S"].removeprefix("I#"),
        store=item["SK"]["S"],
        version=item.get("version", {}).get("S"),
        name=item.get("name", {}).get("S"),
        leftovers=tuple(each["S"] for each in item["leftovers"]["L"]),
        claim=Claim(claim["message"]["S"], claim.get("version", {}).get("S"), float(claim["at"]["N"]))
        if claim
        else None,
        generation=item["gen"]["S"],
        expires=float(item["expires"]["N"]) if "expires" in item else None,
    )
