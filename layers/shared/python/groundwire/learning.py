"""Use case: what a search saw in a store that sends us no events goes into the index (read-through).

GCS and SharePoint are read at question time. What was seen of a document, its includes among it, is handed to
the indexer, the index's only writer: the next question finds its documents ahead, as it does in S3. What was
seen last wins. Nothing is judged by other documents here, since nobody knows which of them there are.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from groundwire.documents import PreparedDocument
from groundwire.errors import Unavailable
from groundwire.findings import kept, verdict
from groundwire.limits import FINDINGS_STORED, INCLUDE_CHARS_STORED
from groundwire.nodes import Node, abridged
from groundwire.pointers import Location
from groundwire.ports import EdgeWriter

LEARNED_FROM = frozenset({"gcs", "sharepoint"})
"""Source types whose stores tell us nothing of their own accord."""

_ATTEMPTS = 5


def sighting(document: PreparedDocument, seen_at: datetime) -> Node:
    """What a node says of a document that was fetched at `seen_at`."""
    declaration = document.declaration
    node = _node(document.location, document.version, seen_at)
    return replace(
        node,
        size_bytes=document.size_bytes,
        mime_type=document.mime_type,
        title=declaration.title[:INCLUDE_CHARS_STORED] if declaration.title else declaration.title,
        canonical_path=declaration.canonical_path,
        includes=abridged(declaration.includes),
        findings=kept(declaration.findings, FINDINGS_STORED),
        finding_count=len(declaration.findings),
        verdict=verdict(declaration.findings),
    )


def absence(location: Location, seen_at: datetime) -> Node:
    """A tombstone for a document that was not there at `seen_at`."""
    return _node(location, None, seen_at)


class Learner:
    """Keeps what was seen."""

    def __init__(self, index: EdgeWriter, token: Callable[[], str] = lambda: secrets.token_hex(8)) -> None:
        self._index = index
        self._token = token

    def learn(self, seen: Node) -> Literal["learned", "superseded", "unchanged"]:
        """Writes a sighting or an absence, unless a later one is written already.

        Unavailable where the index does not answer: try again. Running it twice does no harm.
        """
        for _ in range(_ATTEMPTS):
            stored = self._index.node(seen.location)
            if stored and stored.sequencer > seen.sequencer:
                return "superseded"
            if (stored and _says_the_same(stored, seen)) or not (stored or seen.exists):
                return "unchanged"
            generation = self._token()
            node = replace(seen, generation=generation, edge_generation=generation, announced=seen.state)
            if self._index.replace(node, stored):
                return "learned"
        raise Unavailable(seen.location.uri, "other writers changed the node again and again")


def _node(location: Location, version: str | None, seen_at: datetime) -> Node:
    return Node(
        location=location,
        version=version,
        sequencer=f"{int(seen_at.timestamp() * 1000):040d}",
        indexed_at=seen_at.astimezone(UTC).isoformat(timespec="milliseconds"),
    )


def _says_the_same(stored: Node, seen: Node) -> bool:
    def said(node: Node) -> object:
        return (node.version, node.mime_type, node.title, node.includes, node.findings)

    return said(stored) == said(seen)
