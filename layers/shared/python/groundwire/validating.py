"""Use case: what the indexer would find in a document, before it is uploaded (section 8)."""

from datetime import UTC, datetime

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.fetching import prepare
from groundwire.learning import sighting
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.ports import EdgeReader
from groundwire.verdicts import Surroundings, judged


def validated(location: Location, content: bytes, index: EdgeReader, *, deadline: Deadline) -> Node:
    """The node that this content would have at this place, judged by the documents that are there now.

    Nothing is stored. Unavailable where the index does not answer.
    """
    # What is uploaded without a type gets it by its extension; the version is not known before.
    node = sighting(prepare(FetchedDocument(location, content, "")), datetime.now(UTC))
    lookups = node.lookups()
    known = index.nodes(lookups, deadline=deadline) if lookups else {}
    stored = {uri: each for uri, each in known.items() if each.exists}
    if location in lookups:
        stored[location.uri] = node  # it may include itself
    rivals = []
    if node.canonical_path is not None:
        claimants = index.claimants(location, node.canonical_path)
        rivals = [each for each in claimants if each != location]
    return judged(node, Surroundings(stored, rivals=rivals))
