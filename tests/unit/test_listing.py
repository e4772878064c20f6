"""A store is listed into the catalogue page by page, and goes on where it was (G-2)."""

import time
from typing import Any

import pytest

from groundwire.catalogue import Listing, MemoryCatalogue
from groundwire.deadline import Deadline
from groundwire.errors import CursorRefused, DocumentNotFound, Unavailable
from groundwire.limits import CATALOGUE_KEPT_S
from groundwire.listing import list_store
from tests.fakes import HandClock, MemoryFileSearchStores

STORE = "fileSearchStores/handbook"
NOW = time.time()


class Stores(MemoryFileSearchStores):
    """Stores whose pages take a second each, and may fail or forget where a listing was."""

    def __init__(self, documents: int) -> None:
        super().__init__(STORE)
        self.clock = HandClock()
        self.fails_at: str | None = None
        self.forgotten: str | None = None
        self.cursors: list[str | None] = []
        for number in range(documents):
            self.add(STORE, f"Document {number}")

    def page(self, store: str, cursor: str | None, *, deadline: Deadline) -> Any:
        self.cursors.append(cursor)
        if cursor and cursor == self.fails_at:
            raise Unavailable(store, "is down")
        if cursor and cursor == self.forgotten:
            raise CursorRefused(store, "the cursor is not taken")
        answer = super().page(store, cursor, deadline=deadline)
        self.clock.turn(1)
        return answer

    def deadline(self, seconds: float = 60) -> Deadline:
        return Deadline.after(seconds, self.clock)


@pytest.fixture
def catalogue() -> MemoryCatalogue:
    return MemoryCatalogue()


def listing(catalogue: MemoryCatalogue) -> Listing | None:
    return catalogue.listing(STORE, deadline=Deadline.after(60))


def known(catalogue: MemoryCatalogue, stores: Stores) -> int:
    return len(catalogue.named(stores.stores[STORE], deadline=Deadline.after(60)))


@pytest.mark.parametrize("documents", [0, 1, 20, 21, 45])
def test_all_of_a_store_is_listed(catalogue: MemoryCatalogue, documents: int) -> None:
    stores = Stores(documents)
    done = list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)
    assert done == Listing(completed=NOW)
    assert listing(catalogue) == done
    assert known(catalogue, stores) == documents


def test_what_came_until_the_deadline_is_kept_and_gone_on_from(catalogue: MemoryCatalogue) -> None:
    stores = Stores(45)
    first = list_store(stores, catalogue, STORE, deadline=stores.deadline(2), now=NOW)
    assert (first.completed, first.cursor) == (0.0, "40")
    assert (known(catalogue, stores), listing(catalogue)) == (40, first)
    second = list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW + 5)
    assert second == Listing(completed=NOW)
    assert (known(catalogue, stores), stores.cursors) == (45, [None, "20", "40"])


def test_a_listing_whose_first_pages_are_over_begins_again(catalogue: MemoryCatalogue) -> None:
    """Else it would count as complete, and lack what they found."""
    stores = Stores(45)
    longer_ago = NOW - CATALOGUE_KEPT_S - 1
    list_store(stores, catalogue, STORE, deadline=stores.deadline(1), now=longer_ago)
    done = list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)
    assert (done, known(catalogue, stores)) == (Listing(completed=NOW), 45)


def test_a_new_listing_does_not_undo_the_last_one_while_it_lasts(catalogue: MemoryCatalogue) -> None:
    stores = Stores(45)
    list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)
    again = list_store(stores, catalogue, STORE, deadline=stores.deadline(1), now=NOW + 100)
    assert again == Listing(completed=NOW, cursor="20", begun=NOW + 100)


def test_what_failed_goes_on_where_it_was(catalogue: MemoryCatalogue) -> None:
    stores = Stores(45)
    stores.fails_at = "20"
    with pytest.raises(Unavailable):
        list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)
    assert (known(catalogue, stores), listing(catalogue)) == (20, Listing(cursor="20", begun=NOW))
    stores.fails_at = None
    assert list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW).cursor is None
    assert stores.cursors == [None, "20", "20", "40"]


def test_a_place_that_the_service_forgot_is_the_beginning(catalogue: MemoryCatalogue) -> None:
    stores = Stores(25)
    catalogue.listed(STORE, Listing(cursor="long ago", begun=NOW))
    stores.forgotten = "long ago"
    done = list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)
    assert (done.completed, known(catalogue, stores)) == (NOW, 25)


def test_a_store_that_takes_no_place_at_all_does_not_answer(catalogue: MemoryCatalogue) -> None:
    class Refusing(Stores):
        def page(self, store: str, cursor: str | None, *, deadline: Deadline) -> Any:
            raise CursorRefused(store, "nothing is taken")

    stores = Refusing(1)
    with pytest.raises(Unavailable):
        list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)


def test_what_was_listed_is_believed_for_a_day(catalogue: MemoryCatalogue) -> None:
    stores = Stores(1)
    longer_ago = NOW - CATALOGUE_KEPT_S - 1
    list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=longer_ago)
    assert known(catalogue, stores) == 0
    list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW)
    assert known(catalogue, stores) == 1


def test_the_store_that_we_fill_is_not_listed(catalogue: MemoryCatalogue) -> None:
    stores, ours = Stores(1), Listing(ours=True)
    catalogue.listed(STORE, ours)
    assert list_store(stores, catalogue, STORE, deadline=stores.deadline(), now=NOW) == ours
    assert stores.cursors == []


def test_a_store_that_is_not_there_says_so(catalogue: MemoryCatalogue) -> None:
    stores = Stores(0)
    with pytest.raises(DocumentNotFound):
        list_store(stores, catalogue, "fileSearchStores/none", deadline=stores.deadline(), now=NOW)
