"""Random folders of documents that include each other, and the search through them as one value."""

import json
import posixpath
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from groundwire import prefetch
from groundwire.composition import CompositionBundle, CompositionLoader, RequestBudget
from groundwire.deadline import Deadline
from groundwire.documents import Context
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.pointers import Location
from groundwire.ports import EdgeReader
from groundwire.roots import StorageRoot, StorageRoots
from tests.fakes import MemoryIndex, MemoryStore, indexer_over

ROOT = StorageRoot("kb", "local", "kb")
CONTEXT = Context(user_id=1, auditing_id=1)
NFC, NFD = "läm.md", unicodedata.normalize("NFD", "läm.md")
ONLY_NFD = unicodedata.normalize("NFD", "sub/é.md")
KEYS = ("a.md", "b.md", NFC, ONLY_NFD, "sub/d.md", "sub/deep/e.md", "n.txt", "scan.pdf")
REFUSED = (
    "/a.md",
    "https://example.org/a.md",
    "..\\a.md",
    "../../../../a.md",
    "sub/",
    "b//c.md",
    "%2e%2e/a.md",
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "maxDepth": st.integers(0, 5),
        "maxDocs": st.integers(1, 10),
        "maxIncludeBytes": st.sampled_from([0, 90, 200, 400, 1_000]),
        "onFetchError": st.sampled_from(["skip", "abort"]),
        "traversableMimeTypes": st.sampled_from(
            [["text/markdown"], ["text/markdown", "text/plain"], ["text/plain"]]
        ),
    },
)


def at(key: str, root: StorageRoot = ROOT) -> Location:
    """A document's place."""
    return Location(root, key)


def page(*includes: str, body: str = "") -> bytes:
    """A document that includes these."""
    entries = "".join(f"  - {json.dumps(each, ensure_ascii=False)}\n" for each in includes)
    return f"---\nincludes:\n{entries}---\n{body}".encode()


def _spellings(parent: str) -> list[str]:
    """Includes of the document `parent`: every key in every spelling, and some that lead nowhere."""
    folder = posixpath.dirname(parent) or "."
    exact = [posixpath.relpath(key, folder) for key in KEYS]
    forms = [
        unicodedata.normalize(form, each) for each in exact for form in ("NFC", "NFD") if not each.isascii()
    ]
    return [
        *exact,
        *exact,
        *forms,
        *forms,
        *(f"./{each}" for each in exact),
        *(f"x/../{each}" for each in exact),
        *REFUSED,
        "gone.md",
        "gonë.md",
    ]


def _documents(key: str) -> st.SearchStrategy[bytes]:
    """A document's bytes: mostly sound ones, some whose includes nobody can see."""
    body = st.sampled_from([0, 0, 40, 150]).map("x".__mul__)
    sound = st.builds(
        lambda includes, body: page(*includes, body=body),
        st.lists(st.sampled_from(_spellings(key)), max_size=5),
        body,
    )
    odd = ("", "---\nincludes: [a.md]\n", "---\nincludes: a.md\n---\n")
    return (
        sound
        | sound
        | sound
        | st.builds(lambda head, body: (head + body).encode(), st.sampled_from(odd), body)
    )


def folders() -> st.SearchStrategy[dict[str, bytes]]:
    """Documents by key; `a.md` is always there, whatever else is missing."""
    return st.fixed_dictionaries(
        {key: _documents(key) for key in KEYS[:3]}, optional={key: _documents(key) for key in KEYS[3:]}
    )


@dataclass(frozen=True)
class Found:
    """All of a bundle that can differ."""

    included: list[str]
    versions: list[str]
    edges: list[tuple[str, str, str, int]]
    skipped: list[tuple[str, str, str, str | None, str | None]]
    findings: list[list[tuple[str, int | None]]]
    complete: bool
    aborted: bool
    bundle_id: str

    @staticmethod
    def of(bundle: CompositionBundle) -> "Found":
        """What a bundle says, with keys instead of URIs."""

        def key(uri: str) -> str:
            return uri.removeprefix("local://kb/")

        return Found(
            [document.location.key for document in bundle.included],
            [document.version for document in bundle.all_documents],
            [(key(e.from_uri), key(e.to_uri), e.relative_path, e.depth) for e in bundle.edges],
            [(key(s.parent_uri), s.relative_path, s.reason, s.code, s.detail) for s in bundle.skipped],
            [[(f.code, f.line) for f in document.findings] for document in bundle.all_documents],
            bundle.complete,
            bundle.aborted,
            bundle.bundle_id,
        )

    def plain(self) -> dict[str, Any]:
        """The part that the reference implementation gives."""
        return {
            "included": self.included,
            "skipped": [skip[:4] for skip in self.skipped],
            "edges": [(source, target, depth) for source, target, _, depth in self.edges],
            "complete": self.complete,
            "aborted": self.aborted,
        }


def loader(store: MemoryStore, index: EdgeReader | None = None, workers: int = 0) -> CompositionLoader:
    """The loader over one root of documents in memory."""
    fetcher = CanonicalDocumentFetcher({"local": store}, StorageRoots([ROOT]))
    return CompositionLoader(fetcher, index=index, workers=workers)


def search(
    store: MemoryStore,
    policy: Mapping[str, Any],
    *,
    roots: Sequence[str] = ("a.md",),
    index: EdgeReader | None = None,
    workers: int = 0,
    deadline: Deadline | None = None,
) -> list[Found]:
    """The bundles of one request, by the clock of the store unless another deadline is given."""
    return [Found.of(bundle) for bundle in bundles(store, policy, roots, index, workers, deadline)]


def bundles(
    store: MemoryStore,
    policy: Mapping[str, Any],
    roots: Sequence[str] = ("a.md",),
    index: EdgeReader | None = None,
    workers: int = 0,
    deadline: Deadline | None = None,
) -> list[CompositionBundle]:
    """As above, whole."""
    use = loader(store, index, workers)
    resolved = use.policy(policy)
    deadline = deadline or Deadline.after(60, store.clock)
    visited: set[str] = set()
    with use.prefetch(CONTEXT, resolved, deadline, None) as prefetch:
        prefetch.roots([at(key) for key in roots], index, visited)
        found = prefetch.fetch_roots([at(key) for key in roots])
        fetched = [each for each in found if not isinstance(each, Exception)]
        budget = RequestBudget(len(fetched))
        return [
            use.expand(each, each.pointer, resolved, visited, deadline, prefetch, budget) for each in fetched
        ]


def indexed(store: MemoryStore) -> MemoryIndex:
    """The index of what the store holds now."""
    index = MemoryIndex()
    indexer = indexer_over(store, index)
    for key in store.files:
        indexer.object_changed(at(key))
    return index


class _AtOnce:
    """An executor whose work is done when it is submitted."""

    def submit(self, work: Any, *arguments: Any) -> Future[None]:
        future: Future[None] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001 - what an executor does
            future.set_exception(error)
        return future

    def shutdown(self, *, wait: bool, cancel_futures: bool) -> None:
        """Nothing is under way."""


@contextmanager
def index_first() -> Iterator[None]:
    """The index is followed to its end before the search begins, so that what was read is no accident."""

    def executor(workers: int, name: str) -> Any:
        return _AtOnce() if name == "plan" else ThreadPoolExecutor(workers, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefetch, "ThreadPoolExecutor", executor)
        yield
