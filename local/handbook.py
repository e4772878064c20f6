"""The example knowledge base as the demo uses it: uploaded to the stack, indexed, and asked about.

The request is what Gemini's File Search gives an application: chunks, each with the custom metadata its
document was imported with. Two of them lead nowhere on purpose, to show what is said about such sources.
"""

import http
import mimetypes
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from local.api import Api
from local.emulator import Emulator
from local.workshop import REPOSITORY, StackError

FOLDER = REPOSITORY / "examples" / "knowledge-base"
INDEXING_SECONDS = 90.0

_GENERIC = {"policies", "reference"}
"""Folders uploaded without a type, as many tools do: their documents' extensions then decide."""

Progress = Callable[[int], None]
"""Told how many are done."""


class UploadError(StackError):
    """The stack's bucket did not take a document."""


class IndexingError(StackError):
    """Documents that were uploaded did not appear in the index."""


@dataclass(frozen=True)
class Document:
    """One document of the knowledge base: its key in the bucket and the file it is read from."""

    key: str
    path: Path

    @property
    def content_type(self) -> str:
        """What it is uploaded as."""
        if self.key.split("/")[0] in _GENERIC:
            return "application/octet-stream"
        return mimetypes.guess_type(self.path.name)[0] or "application/octet-stream"


def documents() -> list[Document]:
    """All documents of the knowledge base, by key."""
    files = (path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".toml")
    return sorted(
        (Document(path.relative_to(FOLDER).as_posix(), path) for path in files), key=lambda d: d.key
    )


def upload(emulator: Emulator, bucket: str, chosen: Sequence[Document], progress: Progress) -> None:
    """Puts the documents into the bucket, one after the other. Raises UploadError."""
    s3 = boto3.client("s3", **emulator.client_options())
    try:
        for done, document in enumerate(chosen, start=1):
            s3.put_object(
                Bucket=bucket,
                Key=document.key,
                Body=document.path.read_bytes(),
                ContentType=document.content_type,
            )
            progress(done)
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise UploadError(f"The documents could not be uploaded: {error}", emulator.log) from error
    finally:
        s3.close()


def wait_until_indexed(
    emulator: Emulator, api: Api, bucket: str, chosen: Sequence[Document], progress: Progress
) -> dict[str, Mapping[str, Any]]:
    """What the API says about each document, by key, once it knows all of them. Raises IndexingError."""
    known: dict[str, Mapping[str, Any]] = {}
    uploaded = {f"s3://{bucket}/{document.key}" for document in chosen}
    until = time.monotonic() + INDEXING_SECONDS
    for document in chosen:
        while not (found := _indexed(api, bucket, document.key)) or not _is_healed(found, uploaded):
            if time.monotonic() > until:
                raise IndexingError(
                    f"After {INDEXING_SECONDS:.0f} s {len(known)} of {len(chosen)} documents were indexed,"
                    f" {document.key} was not.",
                    emulator.log,
                )
            time.sleep(0.1)
        known[document.key] = found
        progress(len(known))
    return known


def _is_healed(document: Mapping[str, Any], uploaded: Collection[str]) -> bool:
    """Whether no include counts as missing whose target was uploaded, perhaps after it (X-6)."""
    return not any(
        include["code"] == "target_missing" and include["target"] in uploaded
        for include in document["includes"]
    )


def _indexed(api: Api, bucket: str, key: str) -> Mapping[str, Any] | None:
    answer = api.get("/v1/documents", uri=f"s3://{bucket}/{key}")
    if answer.status != http.HTTPStatus.OK:
        return None
    document: Mapping[str, Any] = answer.json()
    return document


def grounding_request(bucket: str) -> dict[str, Any]:
    """The body for POST /v1/ground: grounding metadata as Gemini returned it, and who is asking."""
    chunks = [
        _chunk(bucket, "sops/cold-complaint.md", "Cold complaint", "Measured 16 degrees: priority P2."),
        _chunk(bucket, "sops/water-leak.md", "Water leak", "Close the valve of the riser first."),
        _chunk(bucket, "sops/cold-complaint.md", "Cold complaint", "Three calls from one riser: the plant."),
        _chunk(bucket, "sops/power-outage.md", "Power outage", "Check whether a lift has stopped."),
        {
            "web": {
                "uri": "https://example.com/radiators",
                "title": "How radiators work",
                "domain": "example.com",
            }
        },
        _chunk("another-companys-bucket", "handbook.md", "Somebody's handbook", "Not one of our roots."),
    ]
    return {
        "groundingMetadata": {
            "retrievalQueries": ["flat too cold at night, water on the floor, lights out: what now?"],
            "groundingChunks": chunks,
            "groundingSupports": [
                {
                    "segment": {"startIndex": 0, "endIndex": 60, "text": "Treat the cold flat as P2 …"},
                    "groundingChunkIndices": [0, 2],
                }
            ],
        },
        "ctx": {"userId": 1, "auditingId": 1},
    }


def source_titles(request: Mapping[str, Any]) -> list[str]:
    """What the request calls its sources, in their order."""
    chunks = request["groundingMetadata"]["groundingChunks"]
    return [next(iter(chunk.values()))["title"] for chunk in chunks]


def _chunk(bucket: str, key: str, title: str, text: str) -> dict[str, Any]:
    pointer = {"source_type": "s3", "s3_bucket": bucket, "s3_key": key}
    return {
        "retrievedContext": {
            "title": title,
            "text": text,
            "fileSearchStore": "fileSearchStores/property-handbook-7f3k",
            "customMetadata": [{"key": name, "stringValue": value} for name, value in pointer.items()],
        }
    }
