"""What the workers of a map run reported, as Step Functions wrote it down or handed it over.

A long run's results do not fit a state's output: they are files in a bucket, named by a manifest. A batch
that failed for good is not a report, but its input says which documents it was about.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.errors import Unavailable
from groundwire.reindexing import Tally

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class MapRunResults:
    """Reads a map run's results."""

    def __init__(self, client: "S3Client") -> None:
        self._client = client

    def tally(self, output: Any) -> Tally:
        """The sum of what a map state's `output` holds or leads to; Unavailable where it cannot be read."""
        total = Tally()
        for result in self._each(output):
            total += Tally.from_json(result)
        return total

    def _each(self, output: Any) -> Iterator[dict[str, Any]]:
        if isinstance(output, list):
            # Where nobody writes files, a failed item leaves nothing but a gap.
            yield from (each or _failed([""]) for each in output)
        elif isinstance(output, dict) and (written := output.get("ResultWriterDetails")):
            manifest = json.loads(self._read(written["Bucket"], written["Key"]))
            for state, files in manifest["ResultFiles"].items():
                for file in files:
                    lines = self._read(manifest["DestinationBucket"], file["Key"]).splitlines()
                    results = (json.loads(line) for line in lines if line.strip())
                    yield from (each if state == "SUCCEEDED" else _failed(_keys(each)) for each in results)

    def _read(self, bucket: str, key: str) -> bytes:
        try:
            return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"s3://{bucket}/{key}", f"no results ({type(error).__name__})") from error


def _keys(execution: dict[str, Any]) -> list[str]:
    """The keys of a batch whose child execution did not succeed."""
    given = json.loads(execution["Input"])
    return [item["Key"] for item in given.get("Items", [given])]


def _failed(keys: list[str]) -> dict[str, Any]:
    return {"failed": [{"key": key, "code": "unavailable"} for key in keys]}
