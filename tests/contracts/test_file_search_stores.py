"""What every File Search store does for us, the service's and the fake: G-2, X-10."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from groundwire.deadline import Deadline
from groundwire.errors import DocumentNotFound, ImportRefused, Unavailable
from tests.contracts.geminis import Cabinet, everything

POINTER = {"groundwire_id": "kb0123456789", "bucket": "facilities-kb"}


def soon() -> Deadline:
    return Deadline.after(20)


def upload(
    cabinet: Cabinet,
    display_name: str,
    content: bytes = b"# Water leak\n",
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> str:
    return cabinet.stores.upload(
        cabinet.store,
        content,
        display_name=display_name,
        mime_type="text/markdown",
        metadata=metadata,
        deadline=soon(),
    ).name


def test_what_was_uploaded_is_active_and_says_what_it_was_given(cabinet: Cabinet) -> None:
    entry = cabinet.stores.upload(
        cabinet.store,
        b"# Water leak\n",
        display_name="Wasserschäden, 水漏れ",
        mime_type="text/markdown",
        metadata=POINTER,
        deadline=soon(),
    )
    assert (entry.display_name, entry.state, entry.mime_type) == (
        "Wasserschäden, 水漏れ",
        "active",
        "text/markdown",
    )
    assert (entry.metadata, entry.store) == (POINTER, cabinet.store)
    assert entry.age[0].year > 1
    assert cabinet.stores.document(entry.name, deadline=soon()) == entry
    assert everything(cabinet, soon()) == [entry]


def test_a_display_name_is_cut_to_what_the_service_takes(cabinet: Cabinet) -> None:
    name = upload(cabinet, "水" * 600)
    assert cabinet.stores.document(name, deadline=soon()).display_name == "水" * 512


def test_an_empty_store_is_one_empty_page(cabinet: Cabinet) -> None:
    assert cabinet.stores.page(cabinet.store, None, deadline=soon()) == ([], None)


@pytest.mark.parametrize("count", [20, 45])
def test_pages_hold_everything_once_in_order_of_creation(cabinet: Cabinet, count: int) -> None:
    names = [cabinet.add(f"document {number}") for number in range(count)]
    entries = everything(cabinet, soon())
    assert [entry.name for entry in entries] == names
    assert sorted(entries, key=lambda entry: entry.age) == entries


def test_two_documents_of_one_display_name_stand_side_by_side(cabinet: Cabinet) -> None:
    older, newer = upload(cabinet, "Water leak", b"old"), upload(cabinet, "Water leak", b"new")
    entries = everything(cabinet, soon())
    assert [(entry.name, entry.display_name) for entry in entries] == [
        (older, "Water leak"),
        (newer, "Water leak"),
    ]
    assert entries[0].age < entries[1].age


def test_what_was_removed_is_gone_and_can_be_removed_again(cabinet: Cabinet) -> None:
    name, other = upload(cabinet, "Water leak"), cabinet.add("Key handover")
    cabinet.stores.remove(name, deadline=soon())
    cabinet.stores.remove(name, deadline=soon())
    with pytest.raises(DocumentNotFound):
        cabinet.stores.document(name, deadline=soon())
    assert [entry.name for entry in everything(cabinet, soon())] == [other]


def test_a_display_name_can_be_missing(cabinet: Cabinet) -> None:
    name = cabinet.add(None)
    assert cabinet.stores.document(name, deadline=soon()).display_name is None


def test_states_are_told_apart(cabinet: Cabinet) -> None:
    cabinet.add("a", "pending"), cabinet.add("b", "failed"), cabinet.add("c", "active")
    assert [entry.state for entry in everything(cabinet, soon())] == ["pending", "failed", "active"]


def test_metadata_is_text_and_numbers(cabinet: Cabinet) -> None:
    name = cabinet.add("a", floor=3, none="", building="B", tags=["x", "y"])
    metadata = cabinet.stores.document(name, deadline=soon()).metadata
    assert metadata == {"floor": 3.0, "none": "", "building": "B"}


@pytest.mark.parametrize(
    "name", ["fileSearchStores/none/documents/a-1", "fileSearchStores/handbook/documents/x"]
)
def test_a_document_that_is_not_there(cabinet: Cabinet, name: str) -> None:
    with pytest.raises(DocumentNotFound):
        cabinet.stores.document(name, deadline=soon())


@pytest.mark.parametrize(
    "name",
    [
        "",
        "documents/a",
        "fileSearchStores/handbook",
        "../files/a",
        "fileSearchStores/handbook/documents/../../x",
    ],
)
def test_what_is_no_name_names_nothing(cabinet: Cabinet, name: str) -> None:
    with pytest.raises(DocumentNotFound):
        cabinet.stores.document(name, deadline=soon())


def test_a_store_that_is_not_there(cabinet: Cabinet) -> None:
    with pytest.raises(DocumentNotFound):
        cabinet.stores.page("fileSearchStores/none", None, deadline=soon())
    with pytest.raises(DocumentNotFound):
        cabinet.stores.upload(
            "fileSearchStores/none",
            b"a",
            display_name="a",
            mime_type="text/plain",
            metadata={},
            deadline=soon(),
        )


@pytest.mark.parametrize(
    "metadata",
    [{"key": "ä" * 128 + "b"}, {f"key{number}": "" for number in range(21)}],
    ids=["bytes", "entries"],
)
def test_too_much_metadata_is_refused(cabinet: Cabinet, metadata: dict[str, str]) -> None:
    with pytest.raises(ImportRefused) as refused:
        upload(cabinet, "Water leak", metadata=metadata)
    assert refused.value.code == "INVALID_ARGUMENT"
    assert everything(cabinet, soon()) == []


def test_as_much_metadata_as_there_may_be(cabinet: Cabinet) -> None:
    metadata = {f"key{number}": "ä" * 128 for number in range(20)}
    name = upload(cabinet, "Water leak", metadata=metadata)
    assert cabinet.stores.document(name, deadline=soon()).metadata == metadata


def test_no_time_no_answer(cabinet: Cabinet) -> None:
    name, over = cabinet.add("a"), Deadline.after(0)
    for ask in (
        lambda: cabinet.stores.page(cabinet.store, None, deadline=over),
        lambda: cabinet.stores.document(name, deadline=over),
        lambda: cabinet.stores.remove(name, deadline=over),
    ):
        with pytest.raises(Unavailable):
            ask()
    assert [entry.name for entry in everything(cabinet, soon())] == [name]
