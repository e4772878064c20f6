"""Use case: a File Search store is listed into the catalogue, page by page (G-2).

What came is kept: a listing that was cut short goes on where it was, on whoever's time.
"""

from groundwire.catalogue import Listing
from groundwire.deadline import Deadline
from groundwire.errors import CursorRefused
from groundwire.limits import CATALOGUE_KEPT_S
from groundwire.ports import CatalogueWriter, FileSearchStores


def list_store(
    stores: FileSearchStores, catalogue: CatalogueWriter, store: str, *, deadline: Deadline, now: float
) -> Listing:
    """How far the store is listed now: at least one page further, with `cursor` where there are more.

    `now` is in seconds since the epoch. A store that our importer fills is not listed. Unavailable where the
    service or the catalogue does not answer, DocumentNotFound where there is no such store; the pages before
    are kept.
    """
    listing = catalogue.listing(store, deadline=deadline) or Listing()
    if listing.ours:
        return listing
    begun, cursor = listing.begun, listing.cursor
    if cursor is None or now - begun >= CATALOGUE_KEPT_S:
        begun, cursor = now, None  # what the first pages found is over before the last ones come
    while True:
        try:
            entries, following = stores.page(store, cursor, deadline=deadline)
        except CursorRefused:
            if cursor is None:
                raise
            begun, cursor = now, None
            continue
        catalogue.put(entries, expires=begun + CATALOGUE_KEPT_S)
        cursor = following
        listing = Listing(listing.completed, cursor, begun=begun) if cursor else Listing(begun)
        catalogue.listed(store, listing)
        if cursor is None or deadline.passed():
            return listing
