"""Use case: who includes a document, and by which chain: what breaks if it goes (X-5).

Breadth-first from the document against the direction of its includes, over nodes that confirm what reverse
edges say. Each document is named once, at its shortest chain; cycles end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from groundwire.deadline import Deadline
from groundwire.errors import InvalidRequest
from groundwire.limits import GRAPH_NODES
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.ports import EdgeReader


@dataclass(frozen=True, slots=True)
class Dependent:
    """A document that includes another one, itself or through others."""

    node: Node
    distance: int
    why: tuple[str, ...]
    """URIs from this document down to the one that was asked for."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some dependents in order of distance, then URI; `cursor` continues, None at the end."""

    dependents: tuple[Dependent, ...]
    cursor: str | None


def dependents_of(
    location: Location,
    index: EdgeReader,
    deadline: Deadline,
    *,
    transitive: bool = False,
    limit: int = GRAPH_NODES,
    cursor: str | None = None,
) -> Page:
    """A page of the documents that include `location`; Unavailable where the index cannot answer in time.

    InvalidRequest for a cursor that no page gave: what lies behind it would look like the end.
    """
    if cursor is not None and not re.match(CURSOR, cursor):
        raise InvalidRequest("cursor", "is none that the page before gave")
    found: list[Dependent] = []
    for dependent in _walk(location, index, deadline, transitive):
        place = _place(dependent)
        if cursor is not None and place <= cursor:
            continue
        if len(found) == limit:
            return Page(tuple(found), _place(found[-1]))
        found.append(dependent)
    return Page(tuple(found), None)


def _walk(location: Location, index: EdgeReader, deadline: Deadline, transitive: bool) -> Iterator[Dependent]:
    seen = {location.uri}
    level: list[tuple[Location, tuple[str, ...]]] = [(location, (location.uri,))]
    distance = 0
    while level:
        distance += 1
        found: dict[str, Dependent] = {}
        for target, chain in level:
            parents, _ = index.dependents(target, deadline=deadline, limit=_ALL)
            for parent in parents:
                uri = parent.location.uri
                if uri not in seen and uri not in found:
                    found[uri] = Dependent(parent, distance, (uri, *chain))
        seen |= found.keys()
        yield from (found[uri] for uri in sorted(found))
        level = [(each.node.location, each.why) for each in found.values()] if transitive else []


_ALL = 1_000_000
CURSOR: Final = r"^[0-9]{6} [a-z0-9]+://"
"""What every cursor begins with, as a regular expression."""


def _place(dependent: Dependent) -> str:
    """Where a dependent stands in the order; compares as text."""
    return f"{dependent.distance:06d} {dependent.node.location.uri}"
