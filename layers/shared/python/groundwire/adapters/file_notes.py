"""What was put into Gemini's Files API, in the one table: `F#<sha256>#<mime>`, gone with the file (G-6)."""

import time
from typing import TYPE_CHECKING, Any

from groundwire.adapters.dynamo_errors import dynamo_errors
from groundwire.deadline import Deadline
from groundwire.documents import StoredFile
from groundwire.file_references import FileNote

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_UNSAID_S = 24 * 3600


class DynamoFileNotes:
    """FileNotes on the index's table; safe to share between threads."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def get(self, sha256: str, mime_type: str, *, deadline: Deadline) -> FileNote | None:
        with dynamo_errors(self._table):
            reply: Any = self._client.get_item(TableName=self._table, Key=_key(sha256, mime_type))
        item = reply.get("Item")
        # The table removes what has ended days later.
        if item is None or int(item["expires"]["N"]) <= time.time():
            return None
        ends = item.get("ends", {}).get("N")
        file = StoredFile(
            item["name"]["S"], item["uri"]["S"], item["mime"]["S"], None if ends is None else float(ends)
        )
        return FileNote(file, float(item["seen"]["N"]))

    def put(self, sha256: str, mime_type: str, note: FileNote) -> None:
        file = note.file
        ends = file.expires if file.expires is not None else note.seen + _UNSAID_S
        item: dict[str, Any] = {
            **_key(sha256, mime_type),
            "name": {"S": file.name},
            "uri": {"S": file.uri},
            "mime": {"S": file.mime_type},
            "seen": {"N": repr(note.seen)},
            "expires": {"N": str(int(ends))},
        }
        if file.expires is not None:
            item["ends"] = {"N": repr(file.expires)}
        with dynamo_errors(self._table):
            self._client.put_item(TableName=self._table, Item=item)


def _key(sha256: str, mime_type: str) -> dict[str, Any]:
    return {"PK": {"S": f"F#{sha256}#{mime_type}"}, "SK": {"S": "F"}}
