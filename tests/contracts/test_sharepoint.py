"""What only SharePoint does to a reader: its names, its items, and where they are."""

import unicodedata
from urllib.parse import unquote

import pytest

from groundwire.adapters.sharepoint import may_be_stored
from groundwire.deadline import Deadline
from groundwire.errors import (
    DocumentNotFound,
    PointerRefused,
)
from groundwire.limits import ITEM_KNOWN_S
from groundwire.pointers import Location, SharePointDocumentPointer
from groundwire.roots import StorageRoot, StorageRoots
from local.servers.loopback import Behaviour
from tests.contracts.drives import DRIVE, Drive, MakeDrive
from tests.contracts.test_document_stores import ODD_KEYS, SPELLINGS
from tests.fakes import HandClock

SOON = Deadline.after(24 * 3600)
NFC, NFD = "Ü/Störung.md", unicodedata.normalize("NFD", "Ü/Störung.md")


def fetched(drive: Drive, key: str, max_bytes: int = 10_000) -> bytes:
    return drive.store.fetch(drive.location(key), deadline=SOON, max_bytes=max_bytes).content


def pointer(path: str | None = None, item_id: str | None = None) -> SharePointDocumentPointer:
    return SharePointDocumentPointer(
        sharepoint_drive_id=DRIVE, sharepoint_path=path, sharepoint_item_id=item_id
    )


def located(drive: Drive, to: SharePointDocumentPointer, *roots: StorageRoot) -> Location:
    return drive.store.locate(to, StorageRoots(roots or [drive.root]), deadline=SOON)


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", [*(each for each in ODD_KEYS if may_be_stored(each)), NFC, NFD, "50% #1/a.md"]
)
def test_a_document_is_read_by_exactly_its_name(drive: Drive, key: str) -> None:
    location = drive.put(key, key.encode())
    found = drive.store.fetch(location, deadline=SOON, max_bytes=10_000)
    assert (found.location, found.content) == (location, key.encode())
    assert drive.store.exists(location, deadline=SOON)


@pytest.mark.parametrize("key", [each for each in ODD_KEYS if not may_be_stored(each)])
def test_what_sharepoint_cannot_store_is_not_asked_for(drive: Drive, key: str) -> None:
    """A `?` or a colon would end the path, a dot segment would lead elsewhere."""
    assert not drive.store.exists(drive.location(key), deadline=SOON)
    with pytest.raises(DocumentNotFound):
        fetched(drive, key)
    with pytest.raises(DocumentNotFound):
        located(drive, pointer(key))
    assert drive.asked == []


def test_some_odd_keys_can_be_stored_and_some_cannot() -> None:
    storable = [may_be_stored(each) for each in ODD_KEYS]
    assert (sum(storable), len(storable) - sum(storable)) == (13, 5)
    assert may_be_stored("x" * 400)
    assert not may_be_stored("x" * 401)


@pytest.mark.parametrize(("stored", "asked"), SPELLINGS)
def test_a_spelling_that_differs_in_more_than_case_finds_nothing(
    drive: Drive, stored: str, asked: str
) -> None:
    drive.put(stored, b"text")
    assert not drive.store.exists(drive.location(asked), deadline=SOON)
    with pytest.raises(DocumentNotFound) as caught:
        fetched(drive, asked)
    assert caught.value.uri == f"sharepoint://{DRIVE}/{asked}"


@pytest.mark.parametrize("asked", ["shared docs/glossar-übung.MD", "Shared Docs/Glossar-Übung.md"])
def test_letter_case_is_the_servers_own(drive: Drive, asked: str) -> None:
    """I-5, section 1."""
    stored = drive.put("Shared Docs/Glossar-Übung.md", b"text", "text/plain")
    found = drive.store.fetch(drive.location(asked), deadline=SOON, max_bytes=10)
    assert found.location == stored
    assert located(drive, pointer(asked)) == stored
    assert drive.store.exists(drive.location(asked), deadline=SOON)


def test_every_segment_is_quoted_once(drive: Drive) -> None:
    drive.put("A & B/100% #1+2 ü.md", b"text")
    fetched(drive, "A & B/100% #1+2 ü.md")
    assert drive.asked[0].endswith("/root:/A%20%26%20B/100%25%20%231%2B2%20%C3%BC.md")
    assert unquote(drive.asked[0]).endswith("/root:/A & B/100% #1+2 ü.md")


# -- items -------------------------------------------------------------------------------------


def test_a_renamed_and_moved_item_is_found_by_its_id_and_no_longer_by_its_path(drive: Drive) -> None:
    item = drive.upload("Alt/alt.md", b"text")
    before = drive.store.fetch(drive.location("Alt/alt.md"), deadline=SOON, max_bytes=10)
    drive.server.move(item, "Neu & besser/neu.md")
    location = located(drive, pointer(item_id=item.id))
    assert location == drive.location("Neu & besser/neu.md")
    after = drive.store.fetch(location, deadline=SOON, max_bytes=10)
    assert (after.content, after.version) == (b"text", before.version)
    assert not drive.store.exists(drive.location("Alt/alt.md"), deadline=SOON)


def test_the_version_is_that_of_the_content_not_of_the_metadata(drive: Drive) -> None:
    location = drive.put("a.md", b"one")
    first = drive.store.fetch(location, deadline=SOON, max_bytes=10)
    assert first.version.startswith("c:{")
    assert '"' not in first.version
    drive.put("a.md", b"two")
    assert drive.store.fetch(location, deadline=SOON, max_bytes=10).version != first.version


@pytest.mark.parametrize("kind", ["folder", "package", "malware"])
def test_what_is_no_document_is_not_found_and_says_why(drive: Drive, kind: str) -> None:
    item = {
        "folder": lambda: drive.server.folder(DRIVE, "thing.md"),
        "package": lambda: drive.server.package(DRIVE, "thing.md"),
        "malware": lambda: drive.upload("thing.md", b"virus"),
    }[kind]()
    if kind == "malware":
        item.facets["malware"] = {"description": "Eicar"}
    for ask in (
        lambda: fetched(drive, "thing.md"),
        lambda: located(drive, pointer("thing.md")),
        lambda: located(drive, pointer(item_id=item.id)),
    ):
        with pytest.raises(DocumentNotFound, match="notebook" if kind == "package" else kind):
            ask()
    assert not drive.store.exists(drive.location("thing.md"), deadline=SOON)
    assert not any("content" in path for path in drive.asked)


def test_a_shortcut_into_another_drive_leads_nowhere(drive: Drive) -> None:
    """Z-2: also where this application may read the other drive."""
    target = drive.server.put("b!Other", "secret.md", b"secret")
    item = drive.server.shortcut(DRIVE, "link.md", target)
    for to in (pointer("link.md"), pointer(item_id=item.id)):
        with pytest.raises(PointerRefused) as refused:
            located(drive, to)
        assert refused.value.code == "root_not_configured"
    with pytest.raises(DocumentNotFound, match="another drive"):
        fetched(drive, "link.md")


def test_a_drive_that_no_root_has_is_not_asked_for(drive: Drive) -> None:
    item = drive.server.put("b!Other", "a.md", b"text")
    for to in (
        SharePointDocumentPointer(sharepoint_drive_id="b!Other", sharepoint_path="a.md"),
        SharePointDocumentPointer(sharepoint_drive_id="b!Other", sharepoint_item_id=item.id),
    ):
        with pytest.raises(PointerRefused) as refused:
            located(drive, to)
        assert refused.value.code == "root_not_configured"
    assert (drive.asked, drive.entra.posts) == ([], 0)


def test_an_item_of_another_drive_is_not_had_by_its_id(drive: Drive) -> None:
    """Should the server ever answer one."""
    item = drive.upload("a.md", b"text")
    item.drive = "b!Other"
    with pytest.raises(PointerRefused):
        located(drive, pointer(item_id=item.id))


@pytest.mark.parametrize("item_id", ["..", ".", "a/../b", "x:/y:", "01A%2F..", "root:", "a b", "i" * 201])
def test_what_can_be_no_id_is_not_asked_for(drive: Drive, item_id: str) -> None:
    """httpx2 would fold `items/..` into another resource."""
    with pytest.raises(DocumentNotFound):
        located(drive, pointer(item_id=item_id))
    assert drive.asked == []


def test_the_root_is_chosen_by_whole_segments_of_the_servers_path(drive: Drive) -> None:
    docs = StorageRoot("docs", "sharepoint", DRIVE, prefix="Docs")
    inner = StorageRoot("inner", "sharepoint", DRIVE, prefix="docs/HR")
    within, deep = drive.upload("Docs/a.md", b""), drive.upload("Docs/hr/b.md", b"")
    outside = drive.upload("Docs Secret/c.md", b"")
    assert located(drive, pointer(item_id=within.id), docs, inner).root == docs
    # A root is the same folder whatever its letter case: its readers are the document's.
    assert located(drive, pointer(item_id=deep.id), docs, inner).root == inner
    assert located(drive, pointer("DOCS/HR/b.md"), docs, inner) == Location(inner, "Docs/hr/b.md")
    with pytest.raises(PointerRefused):
        located(drive, pointer(item_id=outside.id), docs, inner)
    before = len(drive.asked)
    with pytest.raises(PointerRefused):
        located(drive, pointer("Docs Secret/c.md"), docs, inner)
    assert len(drive.asked) == before


def test_a_document_that_the_server_has_elsewhere_is_not_in_its_root(drive: Drive) -> None:
    """I-8: the path that the server answers counts, not the one that was asked for."""
    item = drive.upload("Docs/a.md", b"text")
    root = StorageRoot("docs", "sharepoint", DRIVE, prefix="Docs")
    drive.server.script.append(moved_answer(drive, item.id, "Docs Secret"))
    with pytest.raises(DocumentNotFound, match="outside its storage root"):
        drive.store.fetch(Location(root, "Docs/a.md"), deadline=SOON, max_bytes=10)


def moved_answer(drive: Drive, item_id: str, folder: str) -> Behaviour:
    """The item's metadata as it would be in another folder."""
    item = drive.server.drives[DRIVE].items[item_id]
    place = drive.path(item)
    drive.server.move(item, f"{folder}/{item.name}")
    answer = drive.server._metadata(drive.server.drives[DRIVE], item, None)
    drive.server.move(item, place)
    return answer


# -- what locating learned ---------------------------------------------------------------------


def test_a_located_document_is_fetched_without_asking_for_its_metadata_again(drive: Drive) -> None:
    item = drive.upload("a.md", b"text")
    location = located(drive, pointer(item_id=item.id))
    assert drive.store.fetch(location, deadline=SOON, max_bytes=10).content == b"text"
    assert [path.rsplit("/", 1)[-1] for path in drive.asked] == [item.id, "content"]


def test_what_was_learned_serves_once_and_not_for_long(make_drive: MakeDrive) -> None:
    clock = HandClock()
    drive = make_drive(clock=clock)
    item = drive.upload("a.md", b"text")
    for seconds, asked in ((ITEM_KNOWN_S, 2), (ITEM_KNOWN_S + 0.1, 3)):
        drive.server.requests.clear()
        location = located(drive, pointer(item_id=item.id))
        clock.turn(seconds)
        drive.store.fetch(location, deadline=SOON, max_bytes=10)
        assert len(drive.asked) == asked
    drive.server.requests.clear()
    drive.store.fetch(location, deadline=SOON, max_bytes=10)
    assert len(drive.asked) == 2
