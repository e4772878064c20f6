"""A File Search store holds each importable document once, in its current version (X-10)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from groundwire.deadline import Deadline
from groundwire.errors import DocumentForbidden, FetchError, ImportRefused, Throttled, Unavailable
from groundwire.importing import Done
from groundwire.limits import DOCUMENT_BYTES
from groundwire.media_types import media_type
from groundwire.nodes import document_id
from tests.unit.stores import AT, KEY, ONE, STORE, TWO, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_document_is_imported_with_what_leads_back_to_it(world: World) -> None:
    world.put(ONE)
    assert world.look() == Done("imported")
    (entry,) = world.stores.stores[STORE].values()
    assert (entry.display_name, entry.mime_type) == ("Water leak", "text/markdown")
    assert entry.metadata == {
        "groundwire_id": document_id(AT),
        "source_type": "s3",
        "s3_bucket": "facilities-kb",
        "s3_key": KEY,
        "s3_region": "eu-north-1",
        "display_name": "Water leak",
        "mime_type": "text/markdown",
    }
    deadline = Deadline.after(60)
    assert world.catalogue.titled(STORE, "Water leak", deadline=deadline) == [entry]
    world.check()


def test_our_store_is_one_that_nobody_else_lists(world: World) -> None:
    world.put(ONE)
    world.look()
    listing = world.catalogue.listing(STORE, deadline=Deadline.after(60))
    assert listing is not None
    assert listing.ours


def test_a_new_version_replaces_the_old_one(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(TWO)
    assert world.look("m2") == Done("replaced")
    assert world.held == [TWO]
    assert [entry.display_name for entry in world.stores.stores[STORE].values()] == ["Leaking water"]
    world.check()


def test_the_old_version_is_there_until_the_new_one_is(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(TWO)
    held: list[list[bytes]] = []

    def watching(call: Callable[[], Any]) -> Any:
        held.append(world.held)
        return call()

    world.importer(watching).document_changed(AT, message="m2", deadline=Deadline.after(60))
    assert all(held)


def test_a_deleted_document_is_removed(world: World) -> None:
    world.put(ONE)
    world.look()
    world.delete()
    assert world.look("m2") == Done("removed")
    assert world.record is not None
    assert world.record.expires is not None
    world.check()
    assert world.look("m3") == Done("absent")


def test_a_document_that_returns_is_imported_again(world: World) -> None:
    for content in (ONE, TWO):
        world.put(content)
        assert world.look() == Done("imported")
        assert world.record is not None
        assert world.record.expires is None
        world.delete()
        world.look()
    world.check()


def test_what_was_never_there_leaves_no_trace(world: World) -> None:
    assert world.look() == Done("absent")
    assert world.records.stored == {}


def test_events_that_come_again_or_late_cost_nothing(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(TWO)
    world.look("m2")
    fetched, asked = world.objects.fetched[KEY], world.stores.asked.total()
    for message in ("m1", "m2", "m3"):
        assert world.look(message) == Done("unchanged")
    assert (world.objects.fetched[KEY], world.stores.asked.total()) == (fetched, asked)


def test_only_what_the_index_knows_is_imported(world: World) -> None:
    """Else an object that became again what the index knows would never be imported."""
    world.put(ONE)
    world.objects.files[KEY] = TWO
    with pytest.raises(Unavailable, match="the index is behind the object"):
        world.look()
    assert world.held == []
    world.reindex()
    assert world.look() == Done("imported")
    assert world.stores.asked[STORE] == 1, "nothing was uploaded before, so nothing is looked for"
    world.check()


def test_an_object_that_the_index_does_not_miss_yet_is_asked_for_again(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(TWO)
    del world.objects.files[KEY]
    with pytest.raises(FetchError):
        world.look("m2")
    assert world.held == [ONE]
    world.reindex()
    assert world.look("m2") == Done("removed")
    world.check()


# -- what is left out ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "content", "reason"),
    [
        ("inbox/n.md", ONE, "inbox"),
        ("sops/.draft.md", ONE, "hidden"),
        ("sops/", b"", "hidden"),
        ("boiler.png", b"\x89PNG", "unsupported_mime"),
        ("archive.zip", b"PK", "unsupported_mime"),
        ("empty.md", b"", "empty"),
    ],
)
def test_what_is_left_out_says_why(world: World, key: str, content: bytes, reason: str) -> None:
    world.put(content, key)
    assert world.look(key=key) == Done("skipped", reason)
    assert world.stores.stores[STORE] == {}
    assert (world.objects.fetched.total(), world.records.stored) == (0, {})


def test_a_document_over_the_limit_is_left_out_unread(world: World) -> None:
    world.put(ONE)
    node = world.index.stored[AT.uri]
    world.index.stored[AT.uri] = replace(node, size_bytes=DOCUMENT_BYTES + 1)
    assert world.look() == Done("skipped", "too_large")
    world.index.stored[AT.uri] = replace(node, size_bytes=DOCUMENT_BYTES)
    assert world.look() == Done("imported")


def test_what_can_no_longer_be_imported_is_removed(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(b"")
    assert world.look("m2") == Done("skipped", "empty")
    assert world.held == []
    assert world.look("m3") == Done("skipped", "empty")


def test_a_document_that_may_not_be_read_leaves_the_store_as_it_is(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(TWO)
    world.objects.failures[KEY] = DocumentForbidden
    assert world.look("m2") == Done("skipped", "forbidden")
    assert world.held == [ONE]
    del world.objects.failures[KEY]
    assert world.look("m3") == Done("replaced")
    world.check()


def test_a_refused_document_leaves_the_store_as_it_is(world: World) -> None:
    world.put(ONE)
    world.look()
    world.put(TWO)
    world.stores.refusing = True
    with pytest.raises(ImportRefused):
        world.look("m2")
    assert world.held == [ONE]
    world.stores.refusing = False
    assert world.look("m3") == Done("replaced")
    world.check()


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        ("a.md", "text/markdown"),
        ("a.rst", "text/plain"),
        ("a.yaml", "text/plain"),
        ("a.json", "application/json"),
        ("a.pdf", "application/pdf"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ],
)
def test_types_are_sent_as_the_service_knows_them(world: World, key: str, sent: str) -> None:
    world.put(b"content", key)
    assert world.look(key=key) == Done("imported")
    (entry,) = world.stores.stores[STORE].values()
    assert entry.mime_type == sent
    assert entry.metadata["mime_type"] == media_type(None, key)


# -- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Unavailable, Throttled])
def test_a_store_that_does_not_answer_is_asked_again(world: World, failure: type[FetchError]) -> None:
    world.put(ONE)
    world.objects.failures_at_first[KEY] = failure
    with pytest.raises(failure):
        world.look()
    assert world.look() == Done("imported")
    world.check()


def test_a_service_that_does_not_answer_is_asked_again(world: World) -> None:
    world.put(ONE)
    world.stores.reachable = False
    with pytest.raises(Unavailable):
        world.look()
    world.stores.reachable = True
    assert world.look() == Done("imported")
    world.check()
