"""Use case: the include graph around a document, as the index has it. For people; never decides an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from groundwire.deadline import Deadline
from groundwire.limits import GRAPH_NODES
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.ports import EdgeReader
from groundwire.traversal import CompositionEdge

Direction = Literal["includes", "dependents"]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Documents by URI in order of distance, None for one that is not there, and the edges between them."""

    centre: str
    direction: Direction
    depth: int
    nodes: dict[str, Node | None]
    edges: tuple[CompositionEdge, ...]
    """From the including to the included document; `depth` is the distance from the centre."""
    truncated: bool


def neighbourhood(
    centre: Node, index: EdgeReader, direction: Direction, depth: int, deadline: Deadline
) -> Neighbourhood:
    """Everything within `depth` includes of `centre`; at most 500 documents, and it says if there are more.

    Unavailable where the index cannot answer in time.
    """
    nodes: dict[str, Node | None] = {centre.location.uri: centre}
    edges: list[CompositionEdge] = []
    level: list[Node] = [centre]
    truncated = False
    for distance in range(1, depth + 1):
        grown = _included if direction == "includes" else _including
        found, between, cut = grown(level, index, deadline, distance)
        edges += between
        truncated = truncated or cut
        level = []
        for uri, node in found.items():
            if uri in nodes:
                continue
            if len(nodes) >= GRAPH_NODES:
                truncated = True
                break
            nodes[uri] = node
            if node:
                level.append(node)
    kept = tuple(edge for edge in edges if edge.from_uri in nodes and edge.to_uri in nodes)
    return Neighbourhood(centre.location.uri, direction, depth, nodes, kept, truncated)


_Grown = tuple[dict[str, Node | None], list[CompositionEdge], bool]


def _included(level: Sequence[Node], index: EdgeReader, deadline: Deadline, distance: int) -> _Grown:
    wanted: dict[str, Location] = {}
    edges: list[CompositionEdge] = []
    truncated = False
    for node in level:
        for include in node.includes:
            if include.counts and include.target:
                target = node.location.at(include.target)
                if target.uri not in wanted and len(wanted) >= GRAPH_NODES:
                    truncated = True
                    continue
                wanted[target.uri] = target
                edges.append(CompositionEdge(node.location.uri, target.uri, include.raw or "", distance))
    nodes = index.nodes(wanted.values(), deadline=deadline) if wanted else {}
    living = {uri: node for uri, node in nodes.items() if node.exists}
    return {uri: living.get(uri) for uri in wanted}, edges, truncated


def _including(level: Sequence[Node], index: EdgeReader, deadline: Deadline, distance: int) -> _Grown:
    found: dict[str, Node | None] = {}
    edges: list[CompositionEdge] = []
    truncated = False
    for node in level:
        parents, more = index.dependents(node.location, deadline=deadline, limit=GRAPH_NODES)
        truncated = truncated or more
        for parent in parents:
            found[parent.location.uri] = parent
            raw = next((i.raw for i in parent.includes if i.counts and i.target == node.location.key), None)
            edges.append(CompositionEdge(parent.location.uri, node.location.uri, raw or "", distance))
    return found, edges, truncated
