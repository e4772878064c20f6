"""cases/bundles.yaml: the bounded breadth-first search, through the loader the functions use."""

from typing import Any

import pytest

from groundwire.composition import CompositionLoader
from groundwire.documents import Context
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.pointers import LocalDocumentPointer
from groundwire.roots import StorageRoot, StorageRoots
from tests.cases import cases, content
from tests.fakes import MemoryStore

ROOT = StorageRoot("kb", "local", "kb")
CONTEXT = Context(user_id=1, auditing_id=1)


@pytest.mark.parametrize("workers", [0, 4], ids=["sequential", "ahead"])
@pytest.mark.parametrize("case", cases("bundles"))
def test_bundle(case: dict[str, Any], workers: int) -> None:
    store = MemoryStore({key: content(value) for key, value in case["files"].items()})
    fetcher = CanonicalDocumentFetcher({"local": store}, StorageRoots([ROOT]))
    pointer = LocalDocumentPointer(local_root="kb", local_path=case["root"])
    root = fetcher.fetch_prepared_document(pointer, CONTEXT)
    bundle = CompositionLoader(fetcher, workers=workers).load_bundle(root, pointer, CONTEXT, case["policy"])
    expect = case["expect"]

    def key(uri: str) -> str:
        return uri.removeprefix("local://kb/")

    assert [document.location.key for document in bundle.included] == expect["included"]
    if "skipped" in expect:
        skips = [[key(s.parent_uri), s.relative_path, s.reason, s.code] for s in bundle.skipped]
        for skip, expected in zip(skips, expect["skipped"], strict=True):
            assert skip[:3] == expected[:3]
            assert expected[3] in (None, skip[3])
    if "edges" in expect:
        assert [[key(e.from_uri), key(e.to_uri), e.depth] for e in bundle.edges] == expect["edges"]
    for name in ("complete", "aborted"):
        if name in expect:
            assert getattr(bundle, name) == expect[name]
    assert max(store.fetched.values()) == 1
