"""The contract of every catalogue: in memory and in DynamoDB, the same answers."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from groundwire.adapters.catalogue import DynamoCatalogue
from groundwire.catalogue import CatalogueEntry, Listing, MemoryCatalogue, newest
from groundwire.deadline import Deadline
from groundwire.errors import Throttled, Unavailable
from groundwire.ports import CatalogueWriter
from tests.cloud import Cloud

NORTH, SOUTH = "fileSearchStores/site-north", "fileSearchStores/site-south"


def entry(document: str, store: str = NORTH, **values: Any) -> CatalogueEntry:
    return CatalogueEntry(f"{store}/documents/{document}", **values)


def soon() -> Deadline:
    return Deadline.after(5)


@pytest.fixture(params=["memory", "dynamodb"])
def catalogue(request: pytest.FixtureRequest) -> CatalogueWriter:
    if request.param == "memory":
        return MemoryCatalogue()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoCatalogue(cloud.dynamodb, cloud.table)


def test_an_entry_is_found_by_its_resource_name_as_it_was_put(catalogue: CatalogueWriter) -> None:
    leak = entry(
        "leak-1",
        display_name="Leck / «Wasser» 水",
        state="pending",
        created="2026-02-01T10:00:00.500000001Z",
        mime_type="text/markdown",
        metadata={"s3_key": "sops/leak.md", "year": 2024.0},
    )
    catalogue.put([leak, entry("bare-1")])

    names = [leak.name, entry("bare-1").name, entry("gone-1").name]

    assert catalogue.named(names, deadline=soon()) == {leak.name: leak, names[1]: entry("bare-1")}
    assert catalogue.named([], deadline=soon()) == {}


def test_entries_are_found_by_store_and_display_name(catalogue: CatalogueWriter) -> None:
    first, second = entry("index-1", display_name="Index"), entry("index-2", display_name="Index")
    south = entry("index-1", SOUTH, display_name="Index")
    catalogue.put([first, second, south, entry("other", display_name="index")])

    found = catalogue.titled(NORTH, "Index", deadline=soon())

    assert sorted(each.name for each in found) == [first.name, second.name]
    assert catalogue.titled(SOUTH, "Index", deadline=soon()) == [south]
    assert catalogue.titled(SOUTH, "", deadline=soon()) == []


def test_an_entry_that_is_removed_is_found_neither_way(catalogue: CatalogueWriter) -> None:
    leak, drain = entry("leak-1", display_name="Leak"), entry("drain-1", display_name="Leak")
    catalogue.put([leak, drain])

    catalogue.remove(leak.name)
    catalogue.remove(leak.name)

    assert catalogue.named([leak.name], deadline=soon()) == {}
    assert catalogue.titled(NORTH, "Leak", deadline=soon()) == [drain]


def test_a_later_entry_of_a_name_replaces_the_earlier_one(catalogue: CatalogueWriter) -> None:
    catalogue.put([entry("leak-1", display_name="Leak", state="pending")])
    active = entry("leak-1", display_name="Leak", state="active")
    catalogue.put([active])

    assert catalogue.named([active.name], deadline=soon()) == {active.name: active}
    assert catalogue.titled(NORTH, "Leak", deadline=soon()) == [active]


def test_an_entry_past_its_time_is_not_known(catalogue: CatalogueWriter) -> None:
    old, new = entry("old-1", display_name="Leak"), entry("new-1", display_name="Leak")
    catalogue.put([old], expires=time.time() - 1)
    catalogue.put([new], expires=time.time() + 3600)

    assert list(catalogue.named([old.name, new.name], deadline=soon())) == [new.name]
    assert catalogue.titled(NORTH, "Leak", deadline=soon()) == [new]


def test_how_far_a_store_was_listed_is_kept(catalogue: CatalogueWriter) -> None:
    assert catalogue.listing(NORTH, deadline=soon()) is None
    for listing in (Listing(0.0, "page two"), Listing(1764460800.25), Listing(ours=True)):
        catalogue.listed(NORTH, listing)
        assert catalogue.listing(NORTH, deadline=soon()) == listing
    assert catalogue.listing(SOUTH, deadline=soon()) is None


def test_a_hundred_and_more_entries_are_written_and_read_at_once(catalogue: CatalogueWriter) -> None:
    many = [entry(f"part-{number}", display_name="Part") for number in range(130)]
    catalogue.put(many)

    assert len(catalogue.named((each.name for each in many), deadline=soon())) == 130
    assert len(catalogue.titled(NORTH, "Part", deadline=soon())) == 130


@pytest.mark.parametrize(
    "read",
    [
        lambda catalogue: catalogue.named([entry("a").name], deadline=soon()),
        lambda catalogue: catalogue.titled(NORTH, "A", deadline=soon()),
        lambda catalogue: catalogue.listing(NORTH, deadline=soon()),
        lambda catalogue: catalogue.put([entry("a")]),
        lambda catalogue: catalogue.remove(entry("a").name),
        lambda catalogue: catalogue.listed(NORTH, Listing()),
    ],
)
def test_a_table_that_does_not_answer_is_unavailable(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, read: Callable[[DynamoCatalogue], object]
) -> None:
    monkeypatch.setattr(cloud.dynamodb, "_make_api_call", _throttling)
    with pytest.raises(Unavailable):
        read(DynamoCatalogue(cloud.dynamodb, cloud.table))


def test_what_the_table_leaves_undone_is_done_in_the_end_or_told(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundwire.adapters.dynamo_errors.random", lambda: 0.0)
    catalogue = DynamoCatalogue(cloud.dynamodb, cloud.table)
    client: Any = cloud.dynamodb
    really, lazy = client._make_api_call, [2, 2]

    def call(operation: str, request: Any) -> Any:
        if operation == "BatchWriteItem" and lazy[0]:
            lazy[0] -= 1
            return {"UnprocessedItems": request["RequestItems"]}
        if operation == "BatchGetItem" and lazy[1]:
            lazy[1] -= 1
            return {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}
        return really(operation, request)

    monkeypatch.setattr(client, "_make_api_call", call)
    catalogue.put([entry("a")])
    assert list(catalogue.named([entry("a").name], deadline=soon())) == [entry("a").name]

    lazy[:] = [99, 99]
    with pytest.raises(Throttled):
        catalogue.put([entry("b")])
    with pytest.raises(Throttled):
        catalogue.named([entry("a").name], deadline=soon())


def _throttling(operation: str, request: Any) -> Any:
    raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, operation)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2026-02-01T10:00:00Z", "2026-02-01T10:00:00.5Z"),
        ("2026-02-01T10:00:00.499999999Z", "2026-02-01T10:00:00.5Z"),
        ("2026-02-01T10:00:00.000000001Z", "2026-02-01T10:00:00.000000002Z"),
        ("2026-02-01T12:00:00+02:00", "2026-02-01T10:00:00.1Z"),
        ("2025-12-31T23:59:59Z", "2026-01-01T00:00:00+00:00"),
        ("", "2026-01-01T00:00:00Z"),
        ("no time at all", "1970-01-01T00:00:00"),
    ],
)
def test_the_newest_active_entry_is_found_to_the_nanosecond(older: str, newer: str) -> None:
    old, new = entry("a", created=older), entry("b", created=newer)

    assert newest([new, old]) == newest([old, new]) == [new]
    assert newest([old, entry("b", created=newer, state="failed")]) == [old]


def test_entries_of_one_moment_are_all_the_newest() -> None:
    same = [entry("a", created="2026-02-01T10:00:00Z"), entry("b", created="2026-02-01T12:00:00.0+02:00")]

    assert newest(same) == same
    assert newest([]) == newest([entry("a", state="pending")]) == []


def test_a_listing_is_not_asked_for_when_the_time_is_over() -> None:
    """The client's own timeouts would come on top of it, for each store."""
    with pytest.raises(Throttled):
        DynamoCatalogue(None, "table").listing(NORTH, deadline=Deadline.after(-1))  # type: ignore[arg-type]


def test_where_a_listing_goes_on_and_since_when_is_kept(catalogue: CatalogueWriter) -> None:
    under_way = Listing(1_772_366_400.25, "next", begun=1_772_452_800.5)
    catalogue.listed(NORTH, under_way)
    assert catalogue.listing(NORTH, deadline=soon()) == under_way
