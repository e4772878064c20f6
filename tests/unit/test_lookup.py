"""Rules G-2 and G-3: sources that carry no pointer are looked up, and whatever fails is degraded from."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.catalogue import CatalogueEntry, Listing, MemoryCatalogue
from groundwire.deadline import Deadline
from groundwire.errors import PointerRefused, Throttled, Unavailable
from groundwire.limits import CATALOGUE_FRESH_S, CATALOGUE_KEPT_S
from groundwire.lookup import Found, SourceLookup
from groundwire.pointers import CanonicalDocumentPointer, Location, S3DocumentPointer
from groundwire.resolution import sources
from groundwire.roots import StorageRoot, StorageRoots
from tests.fakes import MemoryFileSearchStores

KB = StorageRoot("kb", "s3", "kb")
ROOTS = StorageRoots([KB])
NORTH, SOUTH = "fileSearchStores/north", "fileSearchStores/south"


def pointer(key: str) -> dict[str, str]:
    return {"source_type": "s3", "s3_bucket": "kb", "s3_key": key}


class Ids:
    """DocumentIds of a dict, or of an index that is down."""

    def __init__(self, keys: Mapping[str, str], error: type[Unavailable] | None = None) -> None:
        self.keys = keys
        self.error = error
        self.asked: list[set[str]] = []

    def identified(self, ids: Iterable[str], *, deadline: Deadline) -> Mapping[str, Location]:
        wanted = set(ids)
        self.asked.append(wanted)
        if self.error:
            raise self.error("table", "down")
        return {each: Location(KB, self.keys[each]) for each in wanted if each in self.keys}


class World:
    """Two stores, a catalogue and an index, each of which may be away."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.stores = MemoryFileSearchStores(NORTH, SOUTH)
        self.catalogue = MemoryCatalogue()
        self.ids = Ids({})
        self.names = names
        self.errors: list[str] = []

    def find(self, *given: Any, unreadable: tuple[str, ...] = ()) -> list[str]:
        """The key that each source leads to, or its code, for who may not read these keys."""
        lookup = SourceLookup(ROOTS, self.ids, self.catalogue, self.stores, self.names)

        def may_read(pointer: CanonicalDocumentPointer) -> bool:
            return getattr(pointer, "s3_key", None) not in unreadable

        found = sources({"sources": list(given)})
        looked, self.errors = lookup.find(found, Deadline.after(5), may_read)
        self.looked = looked
        return [_said(each) for each in looked]


def _said(looked: Found | PointerRefused) -> str:
    if isinstance(looked, PointerRefused):
        return looked.code
    assert isinstance(looked.pointer, S3DocumentPointer)
    return looked.pointer.s3_key


def chunk(title: str | None = "Leak", store: str | None = NORTH, **more: Any) -> dict[str, Any]:
    return {"title": title, "fileSearchStore": store, **more}


def test_each_way_is_asked_once_for_all_sources_and_no_later_one_for_none() -> None:
    world = World()
    world.ids = Ids({"id-a": "a.md", "id-b": "b.md"})
    found = world.find(
        chunk(customMetadata={"groundwire_id": "id-a"}),
        chunk(customMetadata=pointer("c.md")),
        chunk(customMetadata={"groundwire_id": "id-b"}),
    )
    assert found == ["a.md", "c.md", "b.md"]
    assert world.ids.asked == [{"id-a", "id-b"}]
    assert world.stores.asked == {}


def test_an_id_that_the_index_does_not_know_is_passed_over_for_the_next_way() -> None:
    world = World()
    world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk(customMetadata={"groundwire_id": "unknown"})) == ["leak.md"]


def test_an_incomplete_pointer_is_passed_over_for_the_next_way() -> None:
    world = World()
    world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk(customMetadata={"source_type": "s3", "s3_bucket": "kb"})) == ["leak.md"]


def test_a_uri_that_is_no_document_of_a_root_is_passed_over_too() -> None:
    world = World()
    world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk(uri="https://example.org/leak")) == ["leak.md"]
    assert world.find({"uri": "https://example.org/leak"}) == ["uri_unsupported"]


def test_an_entry_may_carry_an_id_instead_of_a_pointer() -> None:
    """X-10: a pointer that does not fit is left out of the metadata."""
    world = World()
    world.ids = Ids({"id-a": "a.md"})
    named = world.stores.add(NORTH, "Leak", metadata={"groundwire_id": "id-a"})
    assert world.find(chunk(), chunk(None, documentName=named.name)) == ["a.md", "a.md"]


def test_a_store_is_listed_once_and_its_pages_are_turned() -> None:
    world = World()
    for number in range(50):
        world.stores.add(NORTH, f"Part {number}", metadata=pointer(f"{number}.md"))
    assert world.find(chunk("Part 41"), chunk("Part 3"), chunk("Part 99")) == [
        "41.md",
        "3.md",
        "document_not_found",
    ]
    assert world.stores.asked[NORTH] == 3
    assert world.find(chunk("Part 17"), chunk("Part 99")) == ["17.md", "document_not_found"]
    assert world.stores.asked[NORTH] == 3


def test_a_store_that_we_fill_is_never_listed() -> None:
    world = World()
    world.catalogue.listed(NORTH, Listing(ours=True))
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk()) == ["document_not_found"]
    world.catalogue.put([entry])
    assert world.find(chunk()) == ["leak.md"]
    assert world.stores.asked[NORTH] == 0


def test_an_old_listing_answers_and_is_renewed_only_for_what_it_lacks() -> None:
    world = World()
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    world.catalogue.put([entry])
    world.catalogue.listed(NORTH, Listing(time.time() - CATALOGUE_FRESH_S - 1))
    assert world.find(chunk()) == ["leak.md"]
    assert world.stores.asked[NORTH] == 0
    world.stores.add(NORTH, "Drain", metadata=pointer("drain.md"))
    assert world.find(chunk("Drain")) == ["drain.md"]
    assert world.stores.asked[NORTH] == 1


def test_a_listing_past_its_time_is_renewed_first() -> None:
    world = World()
    stale = CatalogueEntry(f"{NORTH}/documents/old", "Leak", metadata=pointer("old.md"))
    world.catalogue.put([stale])
    world.catalogue.listed(NORTH, Listing(time.time() - CATALOGUE_KEPT_S - 1))
    world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk()) == ["leak.md"]


def test_a_listing_that_was_cut_short_goes_on_with_the_next_question() -> None:
    """And what had come is used."""
    world = World()
    for number in range(50):
        world.stores.add(NORTH, f"Part {number}", metadata=pointer(f"{number}.md"))
    first, cursor = world.stores.page(NORTH, None, deadline=Deadline.after(5))
    world.catalogue.put(first)
    world.catalogue.listed(NORTH, Listing(0.0, cursor, begun=time.time()))
    world.stores.asked.clear()
    assert world.find(chunk("Part 3"), chunk("Part 45")) == ["3.md", "45.md"]
    assert world.stores.asked[NORTH] == 2


def test_the_newest_active_document_of_a_title_wins_with_a_note() -> None:
    world = World()
    world.stores.add(NORTH, "Leak", metadata=pointer("new.md"), created="2026-03-02T00:00:00.5Z")
    world.stores.add(NORTH, "Leak", metadata=pointer("old.md"), created="2026-03-02T00:00:00Z")
    late = {"metadata": pointer("late.md"), "created": "2027-01-01T00:00:00Z"}
    world.stores.add(NORTH, "Leak", state="pending", **late)
    assert world.find(chunk()) == ["new.md"]
    (looked,) = world.looked
    assert isinstance(looked, Found)
    assert looked.note == "the newest of 2 documents of this title"


def test_documents_of_one_title_and_one_moment_are_ambiguous_unless_they_are_one() -> None:
    """X-10: while a document is replaced, both versions carry its id."""
    world = World()
    same = {"created": "2026-03-02T00:00:00Z"}
    world.ids = Ids({"id-a": "a.md"})
    for _ in range(2):
        world.stores.add(NORTH, "Twice", metadata={"groundwire_id": "id-a"}, **same)
    world.stores.add(NORTH, "Leak", metadata=pointer("a.md"), **same)
    world.stores.add(NORTH, "Leak", metadata=pointer("b.md"), **same)
    assert world.find(chunk("Twice"), chunk("Leak")) == ["a.md", "ambiguous"]


def test_what_the_caller_may_not_read_neither_wins_nor_makes_it_ambiguous() -> None:
    """Z-1: an author of another root could hide a procedure behind a title, or learn that there is one."""
    world = World()
    world.stores.add(NORTH, "Leak", metadata=pointer("old.md"), created="2026-03-02T00:00:00Z")
    for key in ("hidden.md", "secret.md"):
        world.stores.add(NORTH, "Leak", metadata=pointer(key), created="2027-01-01T00:00:00Z")
    assert world.find(chunk()) == ["ambiguous"]
    assert world.find(chunk(), unreadable=("hidden.md", "secret.md")) == ["old.md"]
    (looked,) = world.looked
    assert looked == Found(S3DocumentPointer(s3_bucket="kb", s3_key="old.md"))
    everything = ("hidden.md", "secret.md", "old.md")
    assert world.find(chunk(), unreadable=everything)[0] in everything, "for the audit record"


def test_a_declared_store_that_is_not_there_is_told_of() -> None:
    world = World([NORTH, "fileSearchStores/mistyped"])
    assert world.find(chunk("Leak", "fileSearchStores/mistyped")) == ["document_not_found"]
    assert world.errors == ["listing: not_found"]


def test_without_a_store_every_declared_one_is_looked_into() -> None:
    world = World([NORTH, SOUTH])
    world.stores.add(NORTH, "Both", metadata=pointer("n.md"))
    world.stores.add(SOUTH, "Both", metadata=pointer("s.md"), created="2027-01-01T00:00:00Z")
    world.stores.add(SOUTH, "One", metadata=pointer("one.md"))
    found = world.find(chunk("Both", None), chunk("One", None), chunk("Both", SOUTH))
    assert found == ["ambiguous", "one.md", "s.md"]


def test_where_none_is_declared_those_that_other_sources_name_are_looked_into() -> None:
    """G-2: the stores named, which are the request's."""
    world = World()
    world.stores.add(NORTH, "Both", metadata=pointer("n.md"))
    world.stores.add(SOUTH, "Both", metadata=pointer("s.md"))
    world.stores.add(SOUTH, "One", metadata=pointer("one.md"))
    assert world.find(chunk("Both", None)) == ["document_not_found"]
    assert world.find(chunk("Both", None), chunk("Both", NORTH)) == ["n.md", "n.md"]
    found = world.find(chunk("Both", None), chunk("One", None), chunk("One", SOUTH), chunk("Both", NORTH))
    assert found == ["ambiguous", "one.md", "one.md", "n.md"]


def test_a_store_that_is_not_declared_is_not_looked_into() -> None:
    world = World([NORTH])
    entry = world.stores.add(SOUTH, "Leak", metadata=pointer("leak.md"))
    world.catalogue.put([entry])
    codes = world.find(chunk("Leak", SOUTH), chunk(None, SOUTH, documentName=entry.name))
    assert codes == ["document_not_found", "document_not_found"]
    assert world.stores.asked == {}


def test_a_resource_name_is_asked_for_without_listing_its_store() -> None:
    world = World()
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk("Leak", documentName=entry.name)) == ["leak.md"]
    assert world.stores.asked == {entry.name: 1}
    assert world.find(chunk("Leak", documentName=entry.name)) == ["leak.md"]
    assert world.stores.asked == {entry.name: 1}, "the answer is kept"


def test_a_title_may_be_the_documents_id() -> None:
    world = World()
    entry = world.stores.add(NORTH, None, metadata=pointer("leak.md"))
    assert world.find(chunk(entry.name.rpartition("/")[2])) == ["leak.md"]


def test_a_document_that_says_nothing_of_where_it_lives_is_metadata_missing() -> None:
    world = World()
    named = world.stores.add(NORTH, "Memo", metadata={"author": "Sam"})
    partial = world.stores.add(NORTH, "Part", metadata={"source_type": "s3", "s3_bucket": "kb"})
    odd = world.stores.add(NORTH, "Odd", metadata={"source_type": "ftp"})
    codes = world.find(chunk("Memo"), chunk(None, documentName=partial.name), chunk("Odd"), chunk(None))
    assert codes == ["metadata_missing", "metadata_missing", "source_type_unknown", "metadata_missing"]
    assert named.name != odd.name


def test_names_that_lead_nowhere_are_document_not_found() -> None:
    world = World()
    codes = world.find(
        chunk("Nobody"),
        chunk(None, documentName=f"{NORTH}/documents/none"),
        chunk(None, customMetadata={"groundwire_id": "unknown"}),
        chunk("Nobody", "fileSearchStores/no-such-store"),
    )
    assert codes == ["document_not_found"] * 4
    assert world.errors == []


# -- degrading ---------------------------------------------------------------------------------


def test_a_service_that_is_down_costs_the_sources_that_need_it() -> None:
    world = World()
    world.stores.reachable = False
    found = world.find(chunk("Leak"), chunk(customMetadata=pointer("c.md")), chunk("doc-000001"))
    assert found == ["document_not_found", "c.md", "document_not_found"]
    assert world.errors == ["listing: unavailable", "get: unavailable"]
    (looked, _, _) = world.looked
    assert isinstance(looked, PointerRefused)
    assert "listing: unavailable" in looked.detail


def test_an_index_that_is_down_costs_a_way_and_no_more() -> None:
    world = World()
    world.ids = Ids({}, Throttled)
    world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    assert world.find(chunk(customMetadata={"groundwire_id": "id-a"})) == ["leak.md"]
    assert world.errors == ["index: throttled"]


class BrokenCatalogue(MemoryCatalogue):
    """A table that does not answer, for the methods that are named."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self.broken = broken

    def __getattribute__(self, name: str) -> Any:
        if name in ("named", "titled", "listing", "put", "listed") and name in self.broken:
            raise Unavailable("table", "down")
        return super().__getattribute__(name)


@pytest.mark.parametrize("broken", ["named", "titled", "listing", "put", "listed"])
def test_a_catalogue_that_is_down_leaves_the_service_to_ask(broken: str) -> None:
    """The seed: failures of the catalogue are logged, and single documents are asked for."""
    world = World()
    world.catalogue = BrokenCatalogue(broken)
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    found = world.find(
        chunk("Leak", documentName=entry.name), chunk(entry.name.rpartition("/")[2]), chunk("Nobody")
    )
    assert found == ["leak.md", "leak.md", "document_not_found"]
    assert world.errors


def test_a_listing_that_the_service_refuses_leaves_single_documents() -> None:
    world = World()
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))

    def page(*_: Any, **__: Any) -> Any:
        raise Unavailable(NORTH, "400")

    world.stores.page = page  # type: ignore[method-assign]
    assert world.find(chunk("Nobody"), chunk(documentName=entry.name)) == ["document_not_found", "leak.md"]
    assert world.errors == ["listing: unavailable"]


def test_a_store_is_listed_once_a_question_however_that_ends() -> None:
    """LISTING_ON_PATH_S is for both looks at a title together."""
    world = World()
    world.stores.reachable = False
    assert world.find(chunk("Leak")) == ["document_not_found"]
    assert world.stores.asked == {NORTH: 1}


def test_what_our_importer_keeps_is_not_given_an_end() -> None:
    """Nobody lists a store of ours: what was forgotten there would stay so."""
    world = World()
    world.catalogue = BrokenCatalogue("named")
    world.catalogue.listed(NORTH, Listing(ours=True))
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    world.catalogue.put([entry])
    assert world.find(chunk(None, documentName=entry.name)) == ["leak.md"]
    assert world.catalogue._entries[entry.name] == (entry, None)


@pytest.mark.parametrize("has", [{"ids"}, {"catalogue"}, {"stores"}, {"ids", "catalogue"}, set[str]()])
def test_every_part_may_be_missing(has: set[str]) -> None:
    world = World()
    world.ids = Ids({"id-a": "a.md"})
    entry = world.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
    world.catalogue.put([entry])
    lookup = SourceLookup(
        ROOTS,
        world.ids if "ids" in has else None,
        world.catalogue if "catalogue" in has else None,
        world.stores if "stores" in has else None,
    )
    given = sources(
        {
            "sources": [
                chunk(customMetadata={"groundwire_id": "id-a"}, title=None),
                chunk("Leak"),
                chunk(None, documentName=entry.name),
            ]
        }
    )
    found, errors = lookup.find(given, Deadline.after(5))
    assert errors == []
    assert [_said(each) for each in found] == [
        "a.md" if "ids" in has else "document_not_found",
        "leak.md" if "catalogue" in has else "metadata_missing",
        "leak.md" if has & {"catalogue", "stores"} else "document_not_found",
    ]


@given(
    given_=st.lists(
        st.builds(
            chunk,
            st.sampled_from([None, "Leak", "Drain", "doc-000001", "x" * 70, "ä/ö"]),
            st.sampled_from([None, NORTH, SOUTH, "fileSearchStores/none"]),
            documentName=st.sampled_from([None, f"{NORTH}/documents/doc-000001", "rubbish"]),
            customMetadata=st.sampled_from(
                [None, {}, pointer("own.md"), {"groundwire_id": "id-a"}, {"source_type": "s3"}]
            ),
        ),
        max_size=6,
    ),
    reachable=st.booleans(),
    index_down=st.booleans(),
)
def test_whatever_is_asked_each_source_ends_in_a_pointer_or_a_code(
    given_: list[Any], reachable: bool, index_down: bool
) -> None:
    """In order, each for itself: what is asked beside it changes nothing."""

    def world() -> World:
        made = World()
        made.ids = Ids({"id-a": "a.md"}, Unavailable if index_down else None)
        made.stores.add(NORTH, "Leak", metadata=pointer("leak.md"))
        made.stores.add(SOUTH, "Leak", metadata=pointer("south.md"))
        made.stores.reachable = reachable
        return made

    together = world().find(*given_)
    assert together == [world().find(each)[0] for each in given_]
