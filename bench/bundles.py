"""How much faster a bundle is with the index than the sequential search: `python -m bench.bundles`.

Three ways over the same documents, interleaved in one run: one after the other (the reference), ahead by
the documents alone, ahead by the index. The store answers after 15 ms and the index after 5 ms, by
sleeping: what is measured is how the waits overlap, not a network. Equal bundles are asserted first.
"""

import statistics
import sys
import time
from collections.abc import Iterable, Mapping

from groundwire.composition import CompositionLoader
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.deadline import Deadline
from groundwire.documents import Context, FetchedDocument
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingService
from groundwire.nodes import Node
from groundwire.pointers import LocalDocumentPointer, Location
from groundwire.roots import StorageRoot, StorageRoots
from tests.fakes import MemoryIndex, MemoryStore, indexer_over

STORE_S, INDEX_S, ROUNDS = 0.015, 0.005, 15
ROOT = StorageRoot("kb", "local", "kb")
CONTEXT = Context(0, 0)
POINTER = LocalDocumentPointer(local_root="kb", local_path="root.md")
CONFIG = CanonicalGroundingConfig()
GRAPHS = {"g8": (3, 4), "g22": (7, 14), "g50": (7, 14, 28)}
"""Documents by level below the root; g8 is the default policy's depth and size."""


class SlowStore(MemoryStore):
    """A store that takes its time over every document."""

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        time.sleep(STORE_S)
        return super().fetch(location, deadline=deadline, max_bytes=max_bytes)


class SlowIndex(MemoryIndex):
    """An index that takes its time over every level."""

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        time.sleep(INDEX_S)
        return super().nodes(locations, deadline=deadline, consistent=consistent)


def graph(levels: tuple[int, ...]) -> dict[str, bytes]:
    """A tree of 4 KB documents with that many on each level."""
    files: dict[str, bytes] = {}
    names = [["root.md"], *([f"l{d}-{n}.md" for n in range(count)] for d, count in enumerate(levels))]
    for depth, level in enumerate(names):
        below = names[depth + 1] if depth + 1 < len(names) else []
        for position, name in enumerate(level):
            includes = "".join(f"  - {child}\n" for child in below[position :: len(level)])
            block = f"---\nincludes:\n{includes}---\n" if includes else ""
            files[name] = block.encode() + b"x" * 4096
    return files


def main() -> int:
    """Prints a row for each graph: medians, and the ratio to the reference."""
    print(f"store {STORE_S * 1000:.0f} ms, index {INDEX_S * 1000:.0f} ms, medians of {ROUNDS} rounds")
    for name, levels in GRAPHS.items():
        files = graph(levels)
        store, index = SlowStore(files), SlowIndex()
        for key in files:
            indexer_over(MemoryStore(files), index).object_changed(Location(ROOT, key))
        fetcher = CanonicalDocumentFetcher({"local": store}, StorageRoots([ROOT]))
        loaders = {
            "sequential": CompositionLoader(fetcher, workers=0),
            "ahead by documents": CompositionLoader(fetcher),
            "ahead by the index": CompositionLoader(fetcher, index=index),
        }
        ways = {
            way: CanonicalGroundingService(None, fetcher, CONFIG, loader=loader)
            for way, loader in loaders.items()
        }
        policy = {"maxDepth": len(levels), "maxDocs": len(files)}
        times: dict[str, list[float]] = {way: [] for way in ways}
        ids: set[str] = set()
        for _ in range(ROUNDS):
            for way, service in ways.items():
                began = time.perf_counter()
                bundle = service.prepare_one(POINTER, CONTEXT, {"compositionPolicy": policy})
                times[way].append(time.perf_counter() - began)
                assert bundle.complete
                ids.add(bundle.bundle_id)
        assert len(ids) == 1, "the ways gave different bundles"
        reference = statistics.median(times["sequential"])
        for way, taken in times.items():
            median = statistics.median(taken)
            print(f"{name:>4} {way:<20} {median * 1000:7.1f} ms  {reference / median:5.1f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
