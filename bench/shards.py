"""What sharding a target's reverse edges is worth: `python -m bench.shards`.

Many documents that include one glossary are written at the same time, through the real adapter. The table is
in memory and keeps DynamoDB's bound of 1,000 writes a second to a partition key, by letting writers wait; it
has no other cost, so what is measured is that bound. The ratio is what holds; equal dependents are asserted.
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.includes import Include
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots
from tests.table import MemoryTable

ROOT = StorageRoot("kb", "s3", "kb")
INCLUDERS, WRITERS, WRITES_PER_SECOND = 3_000, 16, 1_000


class BoundedTable(MemoryTable):
    """A table in which each partition key takes one write a millisecond."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._free_at: dict[str, float] = {}

    def put_item(self, *, Item: Any, **condition: Any) -> Any:  # noqa: N803 - boto3's name
        self._take(Item["PK"]["S"])
        with self._lock:
            return super().put_item(Item=Item, **condition)

    def batch_write_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        for request in next(iter(RequestItems.values())):
            self._take(request["PutRequest"]["Item"]["PK"]["S"])
        with self._lock:
            return super().batch_write_item(RequestItems=RequestItems)

    def _take(self, partition: str) -> None:
        with self._lock:
            turn = max(time.monotonic(), self._free_at.get(partition, 0.0))
            self._free_at[partition] = turn + 1 / WRITES_PER_SECOND
        time.sleep(max(0.0, turn - time.monotonic()))


def seconds(shards: int) -> float:
    """How long it takes to write every includer's node and reverse edge."""
    index = DynamoEdgeIndex(BoundedTable(), "t", StorageRoots([ROOT]), shards)  # type: ignore[arg-type]
    glossary = Include(0, "glossary.md", 3, 5, "glossary.md")
    nodes = [
        Node(Location(ROOT, f"{n}.md"), "v", includes=(glossary,), generation="g", edge_generation="g")
        for n in range(INCLUDERS)
    ]
    began = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as writers:
        assert all(writers.map(lambda node: index.replace(node, None), nodes))
    taken = time.perf_counter() - began
    found, more = index.dependents(
        Location(ROOT, "glossary.md"), deadline=Deadline.after(600), limit=INCLUDERS
    )
    assert (len(found), more) == (INCLUDERS, False)
    return taken


def main() -> int:
    """Prints a row for each number of shards, and the ratio to one."""
    print(f"{INCLUDERS:,} includers of one document, {WRITERS} writers")
    one = seconds(1)
    for shards, taken in ((1, one), (4, seconds(4)), (16, seconds(16))):
        rate = INCLUDERS / taken
        print(
            f"{shards:>3} shards {taken:6.2f} s  {rate:7.0f} includers/s  {one / taken:4.1f}x"
            f"  100,000 in {100_000 / rate:4.0f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
