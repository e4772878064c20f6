"""What importers know of a document: read as written, and written by one of them at a time (X-10)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from groundwire.adapters.imports import DynamoImportRecords
from groundwire.imports import Claim, ImportRecord
from groundwire.ports import ImportRecords
from tests.cloud import Cloud
from tests.fakes import MemoryImportRecords

STORE, OTHER = "fileSearchStores/handbook", "fileSearchStores/other"
FIRST = ImportRecord("abc", STORE, generation="1")
FULL = ImportRecord(
    "abc",
    STORE,
    version="9a03",
    name=f"{STORE}/documents/two",
    leftovers=(f"{STORE}/documents/one", f"{STORE}/documents/zero"),
    claim=Claim("m1", "9a04", 1772438400.25),
    generation="2",
    expires=1775030400.0,
)


@pytest.fixture(params=["memory", "dynamodb"])
def records(request: pytest.FixtureRequest) -> ImportRecords:
    if request.param == "memory":
        return MemoryImportRecords()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoImportRecords(cloud.dynamodb, cloud.table)


@pytest.mark.parametrize(
    "record",
    [
        FIRST,
        FULL,
        replace(FULL, claim=Claim("m1", None, 0.5)),
        replace(FULL, version=None, name=None, leftovers=(), claim=None),
    ],
    ids=["empty", "full", "claimed for removal", "forgotten soon"],
)
def test_a_record_is_read_as_it_was_written(records: ImportRecords, record: ImportRecord) -> None:
    assert records.get("abc", STORE) is None
    assert records.replace(record, None)
    assert records.get("abc", STORE) == record


def test_documents_and_stores_have_records_of_their_own(records: ImportRecords) -> None:
    mine, other = FIRST, replace(FULL, store=OTHER)
    assert records.replace(mine, None)
    assert records.replace(other, None)
    assert (records.get("abc", STORE), records.get("abc", OTHER)) == (mine, other)
    assert records.get("abcd", STORE) is None


@pytest.mark.parametrize(
    "outdated",
    [lambda: None, lambda: replace(FIRST, generation="0")],
    ids=["nothing was seen", "an older one was seen"],
)
def test_whoever_has_not_seen_the_last_write_writes_nothing(
    records: ImportRecords, outdated: Callable[[], ImportRecord | None]
) -> None:
    records.replace(FIRST, None)
    assert not records.replace(FULL, outdated())
    assert records.get("abc", STORE) == FIRST


def test_a_record_that_is_gone_is_not_what_was_seen(records: ImportRecords) -> None:
    assert not records.replace(FULL, FIRST)
    assert records.get("abc", STORE) is None


def test_a_later_write_replaces_all_of_an_earlier_one(records: ImportRecords) -> None:
    records.replace(FULL, None)
    bare = replace(FIRST, generation="3")
    assert records.replace(bare, FULL)
    assert records.get("abc", STORE) == bare


def test_a_write_whose_answer_was_lost_may_be_repeated(records: ImportRecords) -> None:
    records.replace(FIRST, None)
    assert records.replace(FULL, FIRST)
    assert records.replace(FULL, FIRST)
    assert records.get("abc", STORE) == FULL
