"""Where a document that is not there yet would be put: a path from a storage root that the caller may use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from groundwire.errors import InvalidRequest
from groundwire.includes import key_below
from groundwire.pointers import Location
from groundwire.roots import Caller, StorageRoot, StorageRoots, may_write


@dataclass(frozen=True, slots=True)
class UploadTerms:
    """What an upload has to be: of this type and, where they are given, of this size and hash."""

    content_type: str
    size_bytes: int | None = None
    sha256: str | None = None
    """In hexadecimal."""


@dataclass(frozen=True, slots=True)
class UploadUrl:
    """A URL that takes one document by PUT, with these headers, until `expires_at`; whoever holds it may."""

    url: str = field(repr=False)
    headers: Mapping[str, str]
    expires_at: datetime


def upload_place(path: str, root_name: str | None, roots: StorageRoots, caller: Caller) -> Location:
    """Where the caller's upload of `path` is stored at once (C-4), in the innermost root that holds it.

    InvalidRequest as for `place_for`, and where the path lies in an inbox: what is put there is placed by
    what it declares, not by where its author may write.
    """
    location = place_for(path, root_name, roots, caller, may_write)
    if location.in_inbox:
        raise InvalidRequest("path", "lies in an inbox; give the path that the document belongs at")
    return location


def place_for(
    path: str,
    root_name: str | None,
    roots: StorageRoots,
    caller: Caller,
    may_use: Callable[[Caller, StorageRoot], bool],
) -> Location:
    """The place of `path` in the named root, or in the only one that the caller may use; a root nested in it
    holds its own, and judges it.

    InvalidRequest where the path leads nowhere inside a root, or no root or several could be meant. A root
    that the caller may not use looks like one that there is not.
    """
    usable = [root for root in roots if root.source_type == "s3" and may_use(caller, root)]
    named = [root for root in usable if root_name in (None, root.name)]
    if not named:
        known = ", ".join(sorted(root.name for root in usable)) or "none"
        raise InvalidRequest("root", f"is no storage root that you may use; those are: {known}")
    if len(named) > 1:
        raise InvalidRequest("root", f"must be given: {', '.join(sorted(root.name for root in named))}")
    (root,) = named
    key = key_below(root, path)
    holding = roots.innermost(root, key)
    if not may_use(caller, holding):
        raise InvalidRequest("path", "lies in a storage root of its own, which you may not use")
    return Location(holding, key)
