"""cases/events.yaml: deliveries as the bus hands them over, and the index that they must lead to."""

import json
from typing import Any

import pytest

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots
from indexer.messages import Look, UnknownMessage, tasks
from tests.cases import cases, content
from tests.fakes import MemoryBus, MemoryIndex, MemoryStore, indexer_over
from tests.table import MemoryTable


def root_of(case: dict[str, Any]) -> StorageRoot:
    given = dict(case["root"])
    inbox = given.pop("inbox", {})
    return StorageRoot(
        **given,
        inbox_prefix=inbox.get("prefix", "inbox/"),
        inbox_destinations=tuple(inbox.get("destinations", ())),
    )


def deliver(case: dict[str, Any], root: StorageRoot, index: Any) -> None:
    """Every delivery in turn, and after each the healing that it asked for."""
    roots = StorageRoots([root])
    files = case.get("bucket_start", case["bucket_final"])
    store = MemoryStore({key: content(value) for key, value in files.items()})
    bus = MemoryBus()
    indexer = indexer_over(store, index, bus)
    for delivery in case["deliveries"]:
        try:
            wanted = tasks(json.dumps(delivery), roots)
        except UnknownMessage:
            continue
        for task in wanted:
            assert isinstance(task, Look)
            indexer.object_changed(task.location, task.sequencer)
        while bus.heals:
            indexer.heal(*bus.heals.pop(0))
    if "bucket_start" in case:
        assert store.files == {key: content(value) for key, value in case["bucket_final"].items()}


def check(case: dict[str, Any], root: StorageRoot, index: Any, nodes: list[Node]) -> None:
    expect = case["expect"]
    living = {node.location.uri: node for node in nodes if node.exists}
    assert set(living) == set(expect["nodes"])
    for uri, expected in expect["nodes"].items():
        node = living[uri]
        assert [target.uri for target in node.targets()] == expected["includes"], uri
        if "verdict" in expected:
            assert node.verdict == expected["verdict"], (uri, node.findings)
    for uri, expected in expect.get("dependents", {}).items():
        key = uri.removeprefix(f"s3://{root.bucket}/")
        found, more = index.dependents(Location(root, key), deadline=Deadline.after(10), limit=100)
        assert {node.location.uri for node in found} == set(expected), uri
        assert not more


@pytest.mark.parametrize("case", cases("events"))
def test_events(case: dict[str, Any]) -> None:
    root, index = root_of(case), MemoryIndex()
    deliver(case, root, index)
    check(case, root, index, list(index.stored.values()))


@pytest.mark.parametrize("case", cases("events"))
def test_events_by_the_calls_of_dynamodb(case: dict[str, Any]) -> None:
    """The real adapter, over a table that answers its calls."""
    root, table = root_of(case), MemoryTable()
    index = DynamoEdgeIndex(table, "t", StorageRoots([root]), shards=4)  # type: ignore[arg-type]
    deliver(case, root, index)
    keys = [item["key"]["S"] for (_, kind), item in table.items.items() if kind == "D"]
    check(case, root, index, [node for key in keys if (node := index.node(Location(root, key)))])
