"""A SharePoint drive on loopback, and the adapter that reads it as the application."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groundwire.adapters.graph import GraphClient
from groundwire.adapters.microsoft import GraphTokens, keyless
from groundwire.adapters.sharepoint import SharePointDocumentFetcher
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from local.servers.graph import Entra, GraphServer, Item

DRIVE = "b!kX4-Facilities_1"


class Drive:
    """A document library; a shelf of the contract suite."""

    def __init__(self, server: GraphServer, **options: Any) -> None:
        self.server = server
        self.entra = Entra(server)
        self.tokens = tokens(self.entra)
        self.graph = GraphClient(self.tokens, endpoint=server.endpoint, allow_http=True, **options)
        self.store = SharePointDocumentFetcher(self.graph)
        self.root = StorageRoot("kb", "sharepoint", DRIVE)

    def put(self, key: str, content: bytes, mime_type: str | None = None) -> Location:
        return self.location(self.path(self.upload(key, content, mime_type)))

    def upload(self, key: str, content: bytes, mime_type: str | None = None) -> Item:
        return self.server.put(DRIVE, key, content, mime_type)

    def path(self, item: Item) -> str:
        """Where the item is, as stored."""
        return "/".join(self.server.drives[DRIVE].path(item))

    def location(self, key: str) -> Location:
        return Location(self.root, key)

    @property
    def asked(self) -> list[str]:
        """The paths of all requests at Graph, as they came."""
        return [each.path for each in self.server.requests]


def tokens(entra: Entra, **options: Any) -> GraphTokens:
    """Tokens from this Entra, which takes any assertion."""
    return GraphTokens("contoso", "groundwire", keyless(lambda: "vouched"), transport=entra, **options)


@pytest.fixture
def graph_server() -> Iterator[GraphServer]:
    """Microsoft Graph for one test."""
    with GraphServer() as server:
        yield server


MakeDrive = Callable[..., Drive]


@pytest.fixture
def make_drive(graph_server: GraphServer) -> Iterator[MakeDrive]:
    """A drive with the client's options; its connections end with the test."""
    made: list[Drive] = []

    def make(**options: Any) -> Drive:
        made.append(Drive(graph_server, **options))
        return made[-1]

    yield make
    for drive in made:
        drive.graph.close()


@pytest.fixture
def drive(make_drive: MakeDrive) -> Drive:
    """A drive and the adapter that reads it, which never waits for longer than a moment."""
    return make_drive(sleep=lambda seconds: time.sleep(min(seconds, 0.01)))
