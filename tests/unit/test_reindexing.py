"""X-9: a bucket is looked at again, safely and as often as one likes; what failed never fails the others."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.errors import (
    ConfigurationError,
    DocumentForbidden,
    DocumentNotFound,
    FetchError,
    Throttled,
    Unavailable,
)
from groundwire.indexing import Indexer
from groundwire.placement import Placement
from groundwire.pointers import Location
from groundwire.reindexing import Reindexing, Tally
from groundwire.roots import StorageRoot, StorageRoots
from reindex import handler as functions
from reindex.batches import locations
from reindex.results import MapRunResults
from reindex.wiring import Wired
from tests.fakes import MemoryBus, MemoryIndex, MemoryStore
from tests.table import MemoryTable

ROOT = StorageRoot("kb", "s3", "bucket")
FILES = {"a.md": b"---\nincludes: [b.md]\n---\n", "b.md": b"b", "c.md": b"---\nincludes: [/x.md]\n---\n"}


class World:
    """A bucket, an index and what looks from one to the other."""

    def __init__(self, root: StorageRoot = ROOT) -> None:
        self.root = root
        self.store, self.index, self.bus = MemoryStore(FILES), MemoryIndex(), MemoryBus()
        self.indexer = Indexer(self.store, self.index, self.bus, self.bus, Placement(self.store, self.store))
        self.reindexing = Reindexing(self.indexer, self.index, self.store)

    def look(self, *keys: str, seconds: float = 10) -> Tally:
        places = [Location(self.root, key) for key in keys or self.store.files]
        return self.reindexing.look(places, Deadline.after(seconds))

    def sweep(self, prefix: str = "") -> Tally:
        pages = self.reindexing.sweep(self.root, prefix, None, Deadline.after(10))
        return sum((tally for tally, _ in pages), Tally())

    def living(self) -> set[str]:
        return {node.location.key for node in self.index.stored.values() if node.exists}


def test_a_second_run_over_an_unchanged_bucket_writes_nothing() -> None:
    world = World()
    assert world.look().counts == {"indexed": 3}
    while world.bus.heals:
        world.indexer.heal(*world.bus.heals.pop())
    before = world.index.writes
    assert world.look().counts == {"unchanged": 3}
    assert world.sweep().counts == {"invalid": 1}
    assert world.index.writes == before


def test_nodes_of_unchanged_documents_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.look()
    while world.bus.heals:
        world.indexer.heal(*world.bus.heals.pop())
    world.index.levels.clear()
    monkeypatch.delattr(MemoryIndex, "node")
    assert world.look().counts == {"unchanged": 3}
    assert [len(level) for level in world.index.levels] == [3, 1]  # and what a.md includes


@pytest.mark.parametrize("left", [{"announced": ""}, {"owes": ("dependents",)}])
def test_what_a_crash_left_undone_is_done_at_the_next_look(left: dict[str, Any]) -> None:
    world = World()
    world.look()
    place = Location(ROOT, "b.md")
    world.index.stored[place.uri] = replace(world.index.stored[place.uri], **left)
    world.bus.published.clear()
    world.bus.heals.clear()
    assert world.look("b.md").counts == {"unchanged": 1}
    assert world.bus.published == ([(place.uri, "valid")] if "announced" in left else [])
    assert world.bus.heals == ([(place, None)] if "owes" in left else [])


def test_a_target_that_came_meanwhile_is_seen_although_the_document_is_unchanged() -> None:
    world = World()
    world.look("a.md")
    world.look("b.md")
    world.bus.heals.clear()  # lost
    assert world.look("a.md").counts == {"unchanged": 1}
    assert world.index.stored[Location(ROOT, "a.md").uri].verdict == "valid"


def test_what_the_index_missed_is_drift() -> None:
    world = World()
    world.look()
    world.store.files["a.md"] = b"changed"
    del world.store.files["b.md"]
    assert world.look("a.md", "b.md", "never.md") == Tally({"indexed": 1, "removed": 1, "absent": 1})
    assert world.look("a.md", "b.md", "never.md").drift == 0


def test_what_is_gone_is_found_by_looking_through_the_index() -> None:
    world = World()
    world.look()
    del world.store.files["b.md"]
    tally = world.sweep()
    assert (tally.counts["removed"], tally.drift) == (1, 1)
    assert world.living() == {"a.md", "c.md"}
    assert world.sweep().drift == 0


def test_a_look_that_nothing_orders_never_overwrites_a_later_event() -> None:
    world = World()
    world.indexer.object_changed(Location(ROOT, "b.md"), "0055AED6DCD90281E5")
    world.look()
    node = world.index.node(Location(ROOT, "b.md"))
    assert node
    assert node.sequencer.startswith("0055AED6DCD90281E5")


def test_only_what_lies_below_the_prefix_is_swept() -> None:
    world = World()
    world.store.files["sops/d.md"] = b"d"
    world.look()
    world.store.files.clear()
    assert world.sweep("sops/").counts == {"removed": 1}
    assert world.living() == set(FILES)


def test_denied_is_not_gone() -> None:
    world = World()
    world.look()
    world.store.failures["b.md"] = DocumentForbidden
    assert world.sweep().drift == 0
    assert "b.md" in world.living()


@pytest.mark.parametrize("error", [Unavailable, Throttled])
def test_one_that_is_worth_a_retry_is_raised_when_the_others_are_done(error: type[FetchError]) -> None:
    world = World()
    world.store.failures["b.md"] = error
    with pytest.raises(Unavailable, match="1 of 3"):
        world.look()
    assert world.living() == {"a.md", "c.md"}
    del world.store.failures["b.md"]
    assert world.look().counts == {"indexed": 1, "unchanged": 2}


def test_one_that_no_retry_helps_is_named_and_fails_nobody() -> None:
    world = World()
    world.store.files["inbox/new.md"] = b"---\ncanonical_path: new.md\n---\n"

    def refused(*_: object) -> str:
        raise DocumentForbidden("s3://bucket/inbox/new.md", "no right to copy")

    world.store.copy = refused  # type: ignore[assignment, method-assign]
    broken, head = "b.md", world.store.head

    def heads(location: Location, max_bytes: int) -> Any:
        if location.key == broken:
            raise ZeroDivisionError
        return head(location, max_bytes)

    world.store.head = heads  # type: ignore[assignment, method-assign]
    tally = world.look()
    assert dict(tally.failed)["b.md"] == "ZeroDivisionError"
    assert world.living() >= {"a.md", "c.md"}


def test_what_there_was_no_time_for_is_to_be_tried_again() -> None:
    world = World()
    with pytest.raises(Unavailable, match="3 of 3"):
        world.look(seconds=0)
    assert world.living() == set()


def test_sweeping_stops_in_time_and_says_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.reindexing.NODES_SWEPT_AT_ONCE", 2)
    world = World()
    world.look()
    del world.store.files["c.md"]
    ((first, cursor),) = world.reindexing.sweep(ROOT, "", None, Deadline.after(0))
    assert cursor is not None
    assert first.drift == 0
    ((second, end),) = world.reindexing.sweep(ROOT, "", cursor, Deadline.after(0))
    assert end is None
    assert second.counts["removed"] == 1


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_every_page_of_the_table_is_looked_through(limit: int) -> None:
    other = StorageRoot("other", "s3", "elsewhere")
    index = DynamoEdgeIndex(MemoryTable(), "t", StorageRoots([ROOT, other]), shards=2)  # type: ignore[arg-type]
    store, bus = MemoryStore(FILES), MemoryBus()
    indexer = Indexer(store, index, bus, bus, Placement(store, store))
    for root in (ROOT, other):
        for key in FILES:
            indexer.object_changed(Location(root, key))
    del store.files["c.md"]
    indexer.object_changed(Location(ROOT, "c.md"))
    found: list[Location] = []
    cursor, pages = None, 0
    while cursor is not None or not pages:
        nodes, cursor = index.located(ROOT, cursor, limit)
        assert len(nodes) <= limit
        found, pages = [*found, *(node.location for node in nodes)], pages + 1
    assert sorted(each.key for each in found) == ["a.md", "b.md"]
    assert {each.root for each in found} == {ROOT}


def test_a_tally_is_what_its_json_says() -> None:
    tally = Tally({"indexed": 2, "invalid": 1}, (("k", "forbidden"),))
    assert Tally.from_json(json.loads(json.dumps(tally.as_json()))) == tally
    assert tally.as_json()["unchanged"] == 0
    assert (tally + tally).counts == {"indexed": 4, "invalid": 2}


def test_batches_and_single_items_name_their_root() -> None:
    nested = StorageRoot("secret", "s3", "bucket", prefix="secret")
    roots = StorageRoots([ROOT, nested])
    batch = {"Items": [{"Key": "a b+c.md", "Size": 3}, {"Key": "secret/x.md"}], "BatchInput": {"root": "kb"}}
    assert locations(batch, roots) == [Location(ROOT, "a b+c.md"), Location(nested, "secret/x.md")]
    assert locations({"Key": "a.md", "root": "kb", "Etag": "e"}, roots) == [Location(ROOT, "a.md")]
    assert locations({"Items": [{"Key": "a.md", "root": "kb"}]}, roots) == [Location(ROOT, "a.md")]
    for event in ({"Key": "a.md"}, {"Key": "a.md", "root": "other"}):
        with pytest.raises(ConfigurationError, match="no storage root"):
            locations(event, roots)


class Files:
    """S3, as far as reading results goes."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - S3's names
        return {"Body": io.BytesIO(self._files[f"{Bucket}/{Key}"].encode())}


def results(files: dict[str, str] | None = None) -> MapRunResults:
    return MapRunResults(Files(files or {}))  # type: ignore[arg-type]


WRITTEN = {"MapRunArn": "arn", "ResultWriterDetails": {"Bucket": "results", "Key": "kb/1/manifest.json"}}
MANIFEST = {
    "DestinationBucket": "results",
    "MapRunArn": "arn",
    "ResultFiles": {
        "FAILED": [{"Key": "kb/1/FAILED_0.jsonl", "Size": 1}],
        "PENDING": [],
        "SUCCEEDED": [{"Key": "kb/1/SUCCEEDED_0.jsonl", "Size": 1}],
    },
}


def test_results_are_summed_wherever_they_are() -> None:
    one, two = Tally({"indexed": 1}).as_json(), Tally({"unchanged": 4}, (("k", "forbidden"),)).as_json()
    failed = {"Input": json.dumps({"Items": [{"Key": "x.md"}, {"Key": "y.md"}]}), "Status": "FAILED"}
    written = results(
        {
            "results/kb/1/manifest.json": json.dumps(MANIFEST),
            "results/kb/1/SUCCEEDED_0.jsonl": f"{json.dumps(one)}\n{json.dumps(two)}\n",
            "results/kb/1/FAILED_0.jsonl": json.dumps(failed),
        }
    )
    total = written.tally(WRITTEN)
    assert total.counts == {"indexed": 1, "unchanged": 4}
    assert sorted(total.failed) == [("k", "forbidden"), ("x.md", "unavailable"), ("y.md", "unavailable")]
    assert results().tally([one, None, two]).counts == {"indexed": 1, "unchanged": 4}
    assert len(results().tally([one, None, two]).failed) == 2
    assert results().tally(None) == Tally()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world that both handlers are wired to, in a root below a prefix."""
    root = StorageRoot("kb", "s3", "bucket", prefix="kb")
    world = World(root)
    world.store.files = {f"kb/{key}": content for key, content in FILES.items()}
    wired = Wired(world.reindexing, StorageRoots([root]), results())
    monkeypatch.setattr(functions, "wired", lambda: wired)
    return world


CONTEXT: Any = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:eu-north-1:111122223333:function:f",
    aws_request_id="id",
    get_remaining_time_in_millis=lambda: 900_000,
)


def test_worker_and_reconcile_end_to_end(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [{"Key": key, "Size": 1, "root": "kb"} for key in world.store.files]
    batch = functions.handler({"Items": keys}, CONTEXT)
    assert (batch["indexed"], batch["failed"]) == (3, [])
    single = functions.handler(keys[0], CONTEXT)
    assert single["unchanged"] == 1
    del world.store.files["kb/b.md"]
    state = {"root": "kb", "prefix": "", "listed": "kb/", "counts": {}, "failures": []}
    answer = functions.reconcile(state | {"results": [batch, single]}, CONTEXT)
    assert answer["cursor"] is None
    assert answer["counts"] == {
        "indexed": 3,
        "unchanged": 1,
        "removed": 1,
        "absent": 0,
        "superseded": 0,
        "invalid": 1,
        "failed": 0,
    }
    drift = [json.loads(line)["Drift"] for line in capsys.readouterr().out.splitlines() if '"Drift"' in line]
    assert drift == [[3.0], [0.0], [1.0]]


def test_reconcile_goes_on_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.reindexing.NODES_SWEPT_AT_ONCE", 1)
    functions.handler({"Items": [{"Key": key, "root": "kb"} for key in world.store.files]}, CONTEXT)
    world.store.files.clear()
    hurried = SimpleNamespace(**vars(CONTEXT) | {"get_remaining_time_in_millis": lambda: 1_000})
    state: dict[str, Any] = {"root": "kb", "prefix": "", "results": []}
    invocations = 0
    while state.get("cursor") is not None or not invocations:
        state, invocations = functions.reconcile(state, hurried), invocations + 1
        assert "results" not in state
    assert invocations == 3
    assert state["counts"]["removed"] == 3


def test_reconcile_keeps_what_it_did_before_the_index_went_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundwire.reindexing.NODES_SWEPT_AT_ONCE", 1)
    functions.handler({"Items": [{"Key": key, "root": "kb"} for key in world.store.files]}, CONTEXT)
    world.store.failures["kb/b.md"] = Unavailable
    del world.store.files["kb/a.md"]
    state = functions.reconcile({"root": "kb", "prefix": ""}, CONTEXT)
    assert (state["counts"]["removed"], state["cursor"] is None) == (1, False)
    with pytest.raises(Unavailable):
        functions.reconcile(state, CONTEXT)
    world.store.failures["kb/b.md"] = DocumentNotFound
    assert functions.reconcile(state, CONTEXT)["counts"]["removed"] == 2


def test_failures_are_counted_and_the_first_are_named(world: World) -> None:
    failed = [{"key": str(number), "code": "forbidden"} for number in range(30)]
    state = functions.reconcile({"root": "kb", "results": [{"failed": failed}]}, CONTEXT)
    assert state["counts"]["failed"] == 30
    assert len(state["failures"]) == 20
