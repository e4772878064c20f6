"""One way to fill each document store, so that one suite can read them all."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import quote
from uuid import uuid4

import httpx2
import pytest

from groundwire.adapters.access_tokens import AccessToken
from groundwire.adapters.gcs import GcsDocumentFetcher
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.pointers import Location
from groundwire.ports import DocumentFetcher, ObjectHead
from groundwire.roots import StorageRoot
from groundwire_cli.folder import Folder
from tests.cloud import REGION, session
from tests.contracts.drives import Drive
from tests.fakes import MemoryStore


class Store(Protocol):
    """A DocumentFetcher and a HeadReader."""

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument: ...
    def exists(self, location: Location, *, deadline: Deadline) -> bool: ...
    def head(self, location: Location, max_bytes: int) -> ObjectHead: ...


class Shelf(Protocol):
    """A store that a test can fill before it reads."""

    @property
    def store(self) -> DocumentFetcher: ...
    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        """Stores the document; where it is."""
        ...

    def location(self, key: str) -> Location: ...


class IndexedShelf(Shelf, Protocol):
    """A shelf whose documents the index reads."""

    @property
    def store(self) -> Store: ...


class MemoryShelf:
    def __init__(self) -> None:
        self.store = MemoryStore({})
        self._root = StorageRoot("kb", "s3", "facilities-kb")

    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        self.store.files[key] = content
        if mime_type:
            self.store.mime_types[key] = mime_type
        return self.location(key)

    def location(self, key: str) -> Location:
        return Location(self._root, key)


class FolderShelf:
    def __init__(self, path: Path) -> None:
        self.store = Folder(path)

    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        path = self.store.path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return self.location(key)

    def location(self, key: str) -> Location:
        return self.store.root_location(key)


class BucketShelf:
    def __init__(self, endpoint: str) -> None:
        self.store = S3DocumentFetcher(session(), endpoint)
        self.client = session().client("s3", endpoint_url=endpoint)
        self.bucket = f"kb-{uuid4().hex[:12]}"
        self.client.create_bucket(
            Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        self.root = StorageRoot("kb", "s3", self.bucket, region=REGION)

    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        kind = mime_type or "binary/octet-stream"
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content, ContentType=kind)
        return self.location(key)

    def location(self, key: str) -> Location:
        return Location(self.root, key)


class CloudStorageShelf:
    def __init__(self, endpoint: str) -> None:
        self.store = GcsDocumentFetcher(hour_long_token, endpoint)
        self.endpoint = endpoint
        self.bucket = f"kb-{uuid4().hex[:12]}"
        made = httpx2.post(f"{endpoint}/storage/v1/b?project=p", json={"name": self.bucket})
        made.raise_for_status()
        self.root = StorageRoot("kb", "gcs", self.bucket)

    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        place = f"{self.endpoint}/upload/storage/v1/b/{self.bucket}/o"
        stored = httpx2.post(
            f"{place}?uploadType=media&name={quote(key, safe='')}",
            content=content,
            headers={"Content-Type": mime_type or "application/octet-stream"},
        )
        stored.raise_for_status()
        return self.location(key)

    def location(self, key: str) -> Location:
        return Location(self.root, key)


def hour_long_token() -> AccessToken:
    """What a store takes that does not look at it."""
    return AccessToken("any", datetime.now(UTC) + timedelta(hours=1))


MakeShelf = Callable[[], Shelf]


def md5(content: bytes) -> str:
    """What S3 gives an object stored in one piece as its ETag."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@pytest.fixture
def bucket(moto_endpoint: str) -> Iterator[BucketShelf]:
    """An S3 bucket and the adapter that reads it."""
    shelf = BucketShelf(moto_endpoint)
    yield shelf
    shelf.client.close()


@pytest.fixture
def cloud_storage(gcs_endpoint: str) -> CloudStorageShelf:
    """A bucket of Google's kind and the adapter that reads it."""
    return CloudStorageShelf(gcs_endpoint)


@pytest.fixture(params=["memory", "folder", "s3", "gcs", "sharepoint"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """Each store in turn."""
    if request.param == "sharepoint":
        drive: Drive = request.getfixturevalue("drive")
        return drive
    return _exact(request, tmp_path)


@pytest.fixture(params=["memory", "folder", "s3", "gcs"])
def exact_shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """Each store in turn that takes any key and minds letter case, as SharePoint does not."""
    return _exact(request, tmp_path)


def _exact(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    if request.param == "gcs":
        other: CloudStorageShelf = request.getfixturevalue("cloud_storage")
        return other
    return _indexed(request, tmp_path)


@pytest.fixture(params=["memory", "folder", "s3"])
def indexed_shelf(request: pytest.FixtureRequest, tmp_path: Path) -> IndexedShelf:
    """Each store in turn whose documents are indexed."""
    return _indexed(request, tmp_path)


def _indexed(request: pytest.FixtureRequest, tmp_path: Path) -> IndexedShelf:
    if request.param == "memory":
        return MemoryShelf()
    if request.param == "folder":
        return FolderShelf(tmp_path)
    made: BucketShelf = request.getfixturevalue("bucket")
    return made
