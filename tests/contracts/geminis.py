"""Gemini's server on loopback, the adapters over it, and one way to fill each kind of File Search store."""

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from groundwire.adapters.gemini import Gemini, GeminiFiles, GeminiFileSearchStores
from groundwire.catalogue import CatalogueEntry, EntryState
from groundwire.ports import FileSearchImports
from local.servers.gemini import KEY, GeminiServer
from tests.fakes import MemoryFileSearchStores


class Cabinet(Protocol):
    """A File Search store that a test can fill before it reads."""

    store: str

    @property
    def stores(self) -> FileSearchImports: ...
    def add(self, display_name: str | None, state: EntryState = "active", **metadata: Any) -> str:
        """A document that is there already, without waiting for it; its resource name."""
        ...


class MemoryCabinet:
    def __init__(self) -> None:
        self.store = "fileSearchStores/handbook"
        self.stores = MemoryFileSearchStores(self.store)

    def add(self, display_name: str | None, state: EntryState = "active", **metadata: Any) -> str:
        # What the service lists and an entry leaves out is not there to begin with.
        kept = {key: value for key, value in metadata.items() if not isinstance(value, list)}
        return self.stores.add(self.store, display_name, state=state, metadata=kept).name


class GeminiCabinet:
    def __init__(self, server: GeminiServer, stores: GeminiFileSearchStores) -> None:
        self.server, self.stores = server, stores
        self.store = server.add_store("handbook")

    def add(self, display_name: str | None, state: EntryState = "active", **metadata: Any) -> str:
        return self.server.add_document(
            self.store, "stored", display_name=display_name, state=state.upper(), metadata=metadata
        )


@pytest.fixture
def gemini_server() -> Iterator[GeminiServer]:
    """A service of its own for one test."""
    with GeminiServer() as server:
        yield server


@pytest.fixture
def gemini(gemini_server: GeminiServer) -> Iterator[Gemini]:
    """The service, as an adapter reaches it."""
    gemini = Gemini(lambda: KEY, gemini_server.url)
    yield gemini
    gemini.close()


@pytest.fixture
def gemini_cabinet(gemini_server: GeminiServer, gemini: Gemini) -> GeminiCabinet:
    return GeminiCabinet(gemini_server, GeminiFileSearchStores(gemini))


@pytest.fixture
def gemini_files(gemini: Gemini) -> GeminiFiles:
    return GeminiFiles(gemini)


@pytest.fixture(params=["memory", "gemini"])
def cabinet(request: pytest.FixtureRequest) -> Cabinet:
    """An empty store of each kind."""
    if request.param == "memory":
        return MemoryCabinet()
    made: GeminiCabinet = request.getfixturevalue("gemini_cabinet")
    return made


def everything(cabinet: Cabinet, deadline: Any) -> list[CatalogueEntry]:
    """What the store lists, page by page."""
    found, cursor = cabinet.stores.page(cabinet.store, None, deadline=deadline)
    while cursor:
        more, cursor = cabinet.stores.page(cabinet.store, cursor, deadline=deadline)
        found += more
    return found
