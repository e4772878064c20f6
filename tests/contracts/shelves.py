"""One way to fill each document store, so that one suite can read them all."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.pointers import Location
from groundwire.ports import ObjectHead
from groundwire.roots import StorageRoot
from groundwire_cli.folder import Folder
from tests.cloud import REGION, session
from tests.fakes import MemoryStore


class Store(Protocol):
    """A DocumentFetcher and a HeadReader."""

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument: ...
    def exists(self, location: Location, *, deadline: Deadline) -> bool: ...
    def head(self, location: Location, max_bytes: int) -> ObjectHead: ...


class Shelf(Protocol):
    """A store that a test can fill before it reads."""

    @property
    def store(self) -> Store: ...
    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        """Stores the document; where it is."""
        ...

    def location(self, key: str) -> Location: ...


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


@pytest.fixture(params=["memory", "folder", "s3"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """Each store in turn."""
    if request.param == "memory":
        return MemoryShelf()
    if request.param == "folder":
        return FolderShelf(tmp_path)
    made: BucketShelf = request.getfixturevalue("bucket")
    return made
