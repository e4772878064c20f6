"""Use case: an upload in the inbox goes to its canonical_path (C-4).

Copied first, and removed from the inbox only when the copy is confirmed and the upload is still the one that
was copied: a crash leaves both and a newer upload is never lost. The destination lies outside the inbox, so
the copy's own event cannot bring us back here.
"""

from typing import Protocol

from groundwire.errors import DocumentNotFound, Unavailable
from groundwire.findings import Finding, finding
from groundwire.includes import Declaration
from groundwire.pointers import Location
from groundwire.ports import HeadReader, ObjectHead
from groundwire.roots import StorageRoots


class ObjectMover(Protocol):
    """Copies and removes objects within one storage root."""

    def copy(self, source: Location, destination: Location, version: str) -> str:
        """Copies the object whose version this is; the copy's version. DocumentNotFound where it changed."""
        ...

    def remove(self, location: Location, version: str) -> None:
        """Removes the object if this is still its version; else does nothing."""
        ...


class Placement:
    """Places what lies in an inbox."""

    def __init__(self, mover: ObjectMover, heads: HeadReader, roots: StorageRoots | None = None) -> None:
        """`roots` are all there are: what one inbox takes never goes into a root nested in its own."""
        self._mover = mover
        self._heads = heads
        self._roots = roots or StorageRoots(())

    def place(self, location: Location, head: ObjectHead, declaration: Declaration) -> Finding | None:
        """Places the object, or says why it stays; None: it is gone from the inbox.

        DocumentNotFound where it was replaced or removed meanwhile: whoever did that has an event of their
        own. Unavailable where the store does not confirm the copy.
        """
        path = declaration.canonical_path
        if path is None:
            message = "The upload declares no canonical_path and stays in the inbox."
            return finding("canonical_path_missing", message)
        destination = location.at(location.root.full_key(path))
        is_own = self._roots.is_innermost(location.root, destination.key)
        if destination.in_inbox or not is_own or not location.root.may_place(path):
            return finding("placement_refused", f"The inbox may not place into {path!r}.")
        copied = self._mover.copy(location, destination, head.version)
        try:
            stored = self._heads.head(destination, 1)
        except DocumentNotFound as error:
            raise Unavailable(location.uri, "the copy is not there") from error
        # Another version than ours at the destination is a newer upload, which wins.
        if stored.version == copied and stored.size_bytes != head.size_bytes:
            raise Unavailable(location.uri, "the copy is not whole")
        self._mover.remove(location, head.version)
        return None
