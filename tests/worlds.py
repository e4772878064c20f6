"""A bucket whose changes become events, an indexer that may die at any call, and what a reader then sees.

The same world runs over a table in memory (tests/unit) and over the emulator's DynamoDB (tests/e2e).
"""

from collections.abc import Callable, Collection
from typing import Any

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.includes import find
from groundwire.indexing import Indexer
from groundwire.nodes import Node
from groundwire.placement import Placement
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots
from tests.fakes import MemoryBus, MemoryStore
from tests.table import Crash

ROOT = StorageRoot("kb", "s3", "kb")
NAMES = ("a.md", "b.md", "sops/c.md", "sops/\u00e9.md", "sops/e\u0301.md", "pic.png", "inbox/n.md")
PATHS = (
    "a.md",
    "./b.md",
    "../b.md",
    "sops/c.md",
    "c.md",
    "\u00e9.md",
    "gone.md",
    "/abs.md",
    "sops/\u00e9.md",
)


def document(includes: list[str], canonical: str | None, body: int) -> bytes:
    lines = [f"  - {path}" for path in includes]
    claim = [f"canonical_path: {canonical}"] if canonical else []
    return "\n".join(["---", *claim, *(["includes:", *lines] if lines else []), "---", "x" * body]).encode()


class Bucket:
    """A bucket whose changes put events on the bus, with sequencers that grow."""

    def __init__(self) -> None:
        self.store = MemoryStore({})
        self.events: list[tuple[str, str]] = []
        self._changes = 0
        copy, remove = self.store.copy, self.store.remove

        def copied(source: Location, destination: Location, version: str) -> str:
            self.happened(destination.key)
            return copy(source, destination, version)

        def removed(location: Location, version: str) -> None:
            self.happened(location.key)
            remove(location, version)

        self.store.copy, self.store.remove = copied, removed  # type: ignore[method-assign]

    def happened(self, key: str) -> None:
        self._changes += 1
        self.events.append((key, f"00{self._changes:06X}"))

    def apply(self, operation: tuple[str, str, Any]) -> None:
        kind, key, what = operation
        if kind == "put":
            self.store.files[key] = what
        elif key in self.store.files and kind == "delete":
            del self.store.files[key]
        elif key in self.store.files and what != key:
            self.store.files[what] = self.store.files.pop(key)
            self.happened(what)
        else:
            return
        self.happened(key)


class World:
    """An indexer over a table, and everything that waits to be delivered to it."""

    def __init__(
        self,
        bucket: Bucket,
        client: Any,
        root: StorageRoot = ROOT,
        table: str = "t",
        *,
        shards: int = 2,
        names: Collection[str] = NAMES,
    ) -> None:
        """`client` is DynamoDB's, or one like it; two roots of different names may share a table.

        `names` are the keys that `picture` looks at.
        """
        self.bucket, self.root, self.bus, self.names = bucket, root, MemoryBus(), names
        self.index = DynamoEdgeIndex(client, table, StorageRoots([root]), shards)
        store = bucket.store
        self.indexer = Indexer(store, self.index, self.bus, self.bus, Placement(store, store))

    def at(self, key: str) -> Location:
        return Location(self.root, key)

    def node(self, key: str) -> Node | None:
        return self.index.node(self.at(key))

    def deliver(self, event: tuple[str, str]) -> bool:
        """One delivery, which may die half-way; whether it was acknowledged."""
        return self._survives(lambda: self.indexer.object_changed(Location(self.root, event[0]), event[1]))

    def heal_all(self) -> None:
        for _ in range(500):
            if not self.bus.heals:
                return
            target, cursor = self.bus.heals.pop(0)
            if not self._survives(lambda: self.indexer.heal(target, cursor)):  # noqa: B023 - run at once
                self.bus.heals.append((target, cursor))
        raise AssertionError("healing does not end")

    def _survives(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except Crash:
            return False
        return True

    def picture(self) -> dict[str, Any]:
        """What a reader sees: each living node without when it was written, and who includes it."""
        deadline = Deadline.after(60)
        seen: dict[str, Any] = {}
        for key in self.names:
            location = Location(self.root, key)
            node = self.index.node(location)
            parents, _ = self.index.dependents(location, deadline=deadline, limit=100)
            remarks = sorted((f.code, f.line or 0, f.message) for f in node.findings) if node else []
            living = node and node.exists
            seen[key] = (
                (node.version, node.verdict, node.includes, remarks, node.canonical_path)
                if node and living
                else None,
                [parent.location.key for parent in parents],
            )
        return seen


def check_targets(world: World) -> None:
    """Each node says of its targets what the bucket's files say, whoever computed it, and owes nobody."""
    files = world.bucket.store.files
    nodes = {key: world.node(key) for key in files}
    for key, node in nodes.items():
        assert node is not None
        assert (node.owes, node.announced) == ((), node.state), key
        for include in node.includes:
            if include.key and include.code in (None, "target_missing", "unicode_form_differs"):
                found, code = find(include.key, lambda key: key if key in files else None)
                assert (include.target, include.code) == (found or include.key, code)
        claimants = [each for each in nodes.values() if each and each.canonical_path == node.canonical_path]
        conflict = node.canonical_path is not None and len(claimants) > 1
        assert ("canonical_path_conflict" in {finding.code for finding in node.findings}) == conflict, key


def fresh_scan(world: World, fresh: World) -> dict[str, Any]:
    """The picture of `fresh`, an index that has just been made from the other world's bucket as it is."""
    fresh.bucket.store.files.update(world.bucket.store.files)
    for key in sorted(world.bucket.store.files):
        fresh.indexer.object_changed(fresh.at(key))
    fresh.heal_all()
    return fresh.picture()
