"""What a map run asks for: a batch of listed objects, or one of them where nobody batches.

Every item carries the name of the storage root that was listed: an item is told apart from others by nothing
else, and one worker serves all roots.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from groundwire.errors import ConfigurationError, PointerRefused
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Item(_Lenient):
    key: str = Field(alias="Key")
    root: str | None = None


class _BatchInput(_Lenient):
    root: str | None = None


class _Batch(_Lenient):
    items: list[_Item] = Field(alias="Items")
    batch_input: _BatchInput = Field(default=_BatchInput(), alias="BatchInput")


def locations(event: dict[str, Any], roots: StorageRoots) -> list[Location]:
    """The documents that were listed; ConfigurationError where their storage root is not known here."""
    if "Items" in event:
        batch = _Batch.model_validate(event)
        listed = [(item.root or batch.batch_input.root, item.key) for item in batch.items]
    else:
        item = _Item.model_validate(event)
        listed = [(item.root, item.key)]
    places = (_location(root_named(name, roots), key, roots) for name, key in listed)
    return [place for place in places if place]


def root_named(name: str | None, roots: StorageRoots) -> StorageRoot:
    """The storage root of that name; ConfigurationError where there is none."""
    if name not in roots.by_name:
        raise ConfigurationError(f"no storage root {name!r} is configured here")
    return roots.by_name[name]


def _location(listed: StorageRoot, key: str, roots: StorageRoots) -> Location | None:
    """A root nested in the listed one holds its own keys; None for one that no root holds."""
    try:
        holding = roots.holding(listed.source_type, listed.bucket, key, endpoint=listed.endpoint)
        return Location(holding, key)
    except PointerRefused:
        return None
