"""cases/sources.yaml: from search results to canonical documents, against Gemini's and Graph's protocols."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pytest

from groundwire.adapters.gemini import Gemini, GeminiFileSearchStores
from groundwire.adapters.graph import GraphClient
from groundwire.adapters.microsoft import GraphTokens, keyless
from groundwire.adapters.sharepoint import SharePointDocumentFetcher
from groundwire.catalogue import store_of
from groundwire.composition import CompositionLoader
from groundwire.deadline import Deadline
from groundwire.documents import Context
from groundwire.fetching import CanonicalDocumentFetcher, locate
from groundwire.grounding import CanonicalGroundingService
from groundwire.pointers import Location
from groundwire.resolution import pointer_from_uri, sources
from groundwire.roots import StorageRoot, StorageRoots
from local.servers.gemini import KEY, GeminiServer
from local.servers.gemini_resources import Document
from local.servers.graph import Entra, GraphServer
from tests.cases import cases
from tests.fakes import MemoryIndex, MemoryStore


class Index(MemoryIndex):
    """Documents by the ids that the case gives them."""

    def __init__(self, ids: Mapping[str, str], roots: StorageRoots) -> None:
        super().__init__()
        self._ids = {each: locate(pointer_from_uri(uri, roots), roots) for each, uri in ids.items()}

    def identified(self, ids: Iterable[str], *, deadline: Deadline) -> Mapping[str, Location]:
        return {each: self._ids[each] for each in ids if each in self._ids}


@pytest.fixture(scope="module")
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        yield server


@pytest.fixture(scope="module")
def stores(gemini: GeminiServer) -> Iterator[GeminiFileSearchStores]:
    client = Gemini(lambda: KEY, gemini.url)
    yield GeminiFileSearchStores(client)
    client.close()


@pytest.fixture(scope="module")
def drives() -> Iterator[GraphServer]:
    with GraphServer() as server:
        yield server


@pytest.fixture(scope="module")
def sharepoint(drives: GraphServer) -> Iterator[SharePointDocumentFetcher]:
    tokens = GraphTokens("contoso", "groundwire", keyless(lambda: "vouched"), transport=Entra(drives))
    client = GraphClient(tokens, endpoint=drives.endpoint, allow_http=True)
    yield SharePointDocumentFetcher(client)
    client.close()


def root(values: dict[str, Any]) -> StorageRoot:
    drive = values.pop("drive_id", None)
    return StorageRoot(**values | ({"bucket": drive} if drive else {}))


def fill(gemini: GeminiServer, catalogue: list[dict[str, Any]]) -> None:
    gemini.stores.clear()
    for each in catalogue:
        store = store_of(each["name"])
        if store not in gemini.stores:
            gemini.add_store(store.partition("/")[2])
        gemini.stores[store].documents[each["name"]] = Document(
            name=each["name"],
            display_name=each.get("displayName"),
            mime_type=each["mimeType"],
            metadata=each.get("customMetadata", []),
            content=b"",
            created=datetime.fromisoformat(each["createTime"]).timestamp(),
            state=each["state"],
            ready_in=-1,
        )


@pytest.mark.parametrize("case", cases("sources"))
def test_sources(
    case: dict[str, Any],
    gemini: GeminiServer,
    stores: GeminiFileSearchStores,
    drives: GraphServer,
    sharepoint: SharePointDocumentFetcher,
) -> None:
    fill(gemini, case["catalogue"])
    drives.drives.clear()
    for drive, items in case.get("drives", {}).items():
        for item in items:
            made = drives.put(drive, item["path"], b"# A document")
            entries = drives.drives[drive].items
            del entries[made.id]
            made.id = item["id"]
            entries[made.id] = made
    roots = StorageRoots(root(dict(each)) for each in case["roots"])
    store = MemoryStore({})
    fetcher = CanonicalDocumentFetcher({"s3": store, "gcs": store, "sharepoint": sharepoint}, roots)
    service = CanonicalGroundingService(
        stores,
        fetcher,
        loader=CompositionLoader(fetcher, index=Index(case.get("index", {}), roots)),
        store_names=sorted(gemini.stores),
    )

    result = service.prepare_from_sources(
        sources(case["input"]), Context(user_id=1, auditing_id=1), case["config"]
    )

    resolved: dict[str, list[int]] = {}
    for outcome in result.sources:
        if outcome.status == "resolved":
            assert outcome.uri is not None
            resolved.setdefault(outcome.uri, []).append(outcome.index)
    unresolved = [[each.index, each.code] for each in result.sources if each.status == "unresolved"]
    assert [[uri, *indices] for uri, indices in resolved.items()] == case["expect"]["resolved"]
    assert unresolved == case["expect"]["unresolved"]
    assert result.lookup_errors == ()
