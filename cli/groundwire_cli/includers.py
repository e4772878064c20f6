"""Dependents: which documents of a folder include one, by the very use case behind `GET /v1/dependents`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from groundwire.deadline import Deadline
from groundwire.dependents import Dependent, dependents_of
from groundwire.errors import FetchError
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire_cli.folder import Folder, enclosing_root
from groundwire_cli.linting import Linter

_TIME_S = 3600.0


class FolderIndex:
    """The include graph of a folder, read once: an EdgeReader."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        linter = Linter(self._folder)
        nodes: dict[str, Node] = {}
        for key in self._folder.texts():
            try:
                linted = linter.lint(key)
            except FetchError:
                continue  # `lint` says of a file that it cannot be read
            nodes[linted.location.uri] = Node(
                linted.location,
                version="",
                canonical_path=linted.canonical_path,
                includes=linted.includes,
                findings=linted.findings,
                verdict=linted.verdict,
            )
        return nodes

    @cached_property
    def _including(self) -> Mapping[Location, Sequence[Node]]:
        including: defaultdict[Location, list[Node]] = defaultdict(list)
        for uri in sorted(self._nodes):
            for target in self._nodes[uri].targets():
                including[target].append(self._nodes[uri])
        return including

    def nodes(
        self, locations: Iterable[Location], *, deadline: Deadline, consistent: bool = False
    ) -> Mapping[str, Node]:
        return {each.uri: self._nodes[each.uri] for each in locations if each.uri in self._nodes}

    def identified(self, ids: Iterable[str], *, deadline: Deadline) -> Mapping[str, Location]:
        known = {document_id(node.location): node.location for node in self._nodes.values()}
        return {each: known[each] for each in ids if each in known}

    def claimants(self, location: Location, canonical_path: str) -> list[Location]:
        return [each.location for each in self._nodes.values() if each.canonical_path == canonical_path]

    def dependents(self, location: Location, *, deadline: Deadline, limit: int) -> tuple[list[Node], bool]:
        found = list(self._including.get(location, ()))
        return found[:limit], len(found) > limit


def dependents(path: Path, root: Path | None, *, transitive: bool) -> tuple[Location, tuple[Dependent, ...]]:
    """The document's location and everything that includes it; the document need not exist."""
    top = root or enclosing_root(path.absolute()) or path.parent
    folder = Folder(top, is_whole=root is not None)
    location = folder.location(path)
    page = dependents_of(
        location, FolderIndex(folder), Deadline.after(_TIME_S), transitive=transitive, limit=1_000_000
    )
    return location, page.dependents


def as_json(location: Location, found: Iterable[Dependent]) -> dict[str, Any]:
    """The shape of `GET /v1/dependents`."""
    return {
        "uri": location.uri,
        "dependents": [
            {
                "uri": each.node.location.uri,
                "verdict": each.node.verdict,
                "distance": each.distance,
                "why": list(each.why),
            }
            for each in found
        ],
    }
