"""Use cases: what the indexer would find in a document, before it is uploaded (section 8), and what it found
in one that is stored, as far as that may be told now.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.fetching import locate, prepare
from groundwire.learning import sighting
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.ports import EdgeReader
from groundwire.resolution import pointer_from_uri
from groundwire.roots import StorageRoot, StorageRoots
from groundwire.verdicts import Surroundings, judged


def validated(location: Location, content: bytes, index: EdgeReader, *, deadline: Deadline) -> Node:
    """The node that this content would have at this place, judged by the documents that are there now.

    Nothing is stored. Unavailable where the index does not answer.
    """
    # What is uploaded without a type gets it by its extension; the version is not known before.
    node = sighting(prepare(FetchedDocument(location, content, "")), datetime.now(UTC))
    return _judged_now(node, index, {}, deadline)


def told(node: Node, index: EdgeReader, roots: StorageRoots, *, deadline: Deadline) -> Node:
    """A stored node that names nothing of a root which is nested in its own (Z-1).

    What was found before that root was configured may name what is in it. Unavailable as above.
    """
    if not any(_is_nested(each, node.location.root) for each in roots):
        return node
    gone_to = {(each.line, each.column): each.moved_to for each in node.findings if each.moved_to}
    moved: dict[str, Location] = {}
    for include in node.includes:
        if include.target and (uri := gone_to.get((include.line, include.column))):
            now = locate(pointer_from_uri(uri, roots), roots)
            if now.root == node.location.root:
                moved[node.location.at(include.target).uri] = now
    return _judged_now(node, index, moved, deadline)


def _is_nested(root: StorageRoot, outer: StorageRoot) -> bool:
    place = (root.source_type, root.bucket)
    return root != outer and place == (outer.source_type, outer.bucket) and outer.contains(root.full_key("x"))


def _judged_now(node: Node, index: EdgeReader, moved: Mapping[str, Location], deadline: Deadline) -> Node:
    location, lookups = node.location, node.lookups()
    known = index.nodes(lookups, deadline=deadline) if lookups else {}
    stored = {uri: each for uri, each in known.items() if each.exists}
    if location in lookups:
        stored[location.uri] = node  # it may include itself
    rivals: list[Location] = []
    if node.canonical_path is not None:
        claimants = index.claimants(location, node.canonical_path)
        rivals = [each for each in claimants if each != location]
    return judged(node, Surroundings(stored, moved, rivals))
