"""Use case: something happened to an object, so its node and edges become what the object now says.

An event is a hint (X-2): the object's current state decides, and the last state wins by the sequencer.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from groundwire.errors import DocumentForbidden, DocumentNotFound, Unavailable
from groundwire.findings import finding, verdict
from groundwire.includes import Declaration, declare
from groundwire.limits import FINDINGS_STORED, HEAD_BYTES, INCLUDE_CHARS_STORED, MESSAGE_CHARS_STORED
from groundwire.media_types import media_type
from groundwire.nodes import Node, abridged
from groundwire.pointers import Location
from groundwire.ports import EdgeWriter, HeadReader, ObjectHead

Outcome = Literal["indexed", "removed", "absent", "superseded", "unchanged"]

_SEQUENCER_WIDTH = 40
_ATTEMPTS = 5


class Indexer:
    """Keeps the index equal to what the bucket holds."""

    def __init__(
        self,
        heads: HeadReader,
        index: EdgeWriter,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._heads = heads
        self._index = index
        self._now = now

    def object_changed(self, location: Location, sequencer: str | None = None) -> Outcome:
        """Indexes the object as it is now.

        `sequencer` is the event's, None where nothing orders this look (a repair). Unavailable where the
        store or the index cannot answer: try again. Running it twice does no harm.
        """
        padded = (sequencer or "").upper().ljust(_SEQUENCER_WIDTH, "0") if sequencer else ""
        for _ in range(_ATTEMPTS):
            seen = self._index.node(location)
            if seen and padded and seen.sequencer > padded:
                return "superseded"
            node = self._current(location, padded or (seen.sequencer if seen else ""))
            if node is None:
                if seen is None or not seen.exists:
                    return "absent"
                node = self._tombstone(location, padded or seen.sequencer)
            elif not padded and seen and _same(node, seen):
                return "unchanged"
            if self._index.replace(node, seen):
                return "indexed" if node.exists else "removed"
        raise Unavailable(location.uri, "other writers changed the node again and again")

    def _current(self, location: Location, sequencer: str) -> Node | None:
        """The node that the object calls for now; None where there is no object."""
        try:
            head = self._heads.head(location, HEAD_BYTES)
        except DocumentNotFound:
            return None
        except DocumentForbidden as error:
            remark = finding("not_readable", f"The indexer may not read this object: {error.detail}.")
            return self._node(location, sequencer, None, Declaration(findings=(remark,)))
        mime_type = media_type(head.stored_mime_type, location.key)
        declaration = Declaration()
        if not location.is_hidden:
            declaration = declare(location, mime_type, head.content, head.size_bytes)
        return self._node(location, sequencer, head, declaration)

    def _node(
        self, location: Location, sequencer: str, head: ObjectHead | None, declaration: Declaration
    ) -> Node:
        stored = head.stored_mime_type if head else None
        fingerprint = f"{hashlib.sha256(head.content).hexdigest()}:{head.size_bytes}" if head else ""
        return Node(
            location=location,
            version=head.version if head else "",
            version_id=head.version_id if head else None,
            size_bytes=head.size_bytes if head else 0,
            mime_type=media_type(stored, location.key),
            title=declaration.title[:INCLUDE_CHARS_STORED] if declaration.title else declaration.title,
            canonical_path=declaration.canonical_path,
            includes=abridged(declaration.includes),
            findings=tuple(
                replace(each, message=each.message[:MESSAGE_CHARS_STORED])
                for each in declaration.findings[:FINDINGS_STORED]
            ),
            finding_count=len(declaration.findings),
            verdict=verdict(declaration.findings),
            fingerprint=fingerprint,
            sequencer=sequencer,
            generation=secrets.token_hex(8),
            indexed_at=self._now().isoformat(timespec="milliseconds"),
        )

    def _tombstone(self, location: Location, sequencer: str) -> Node:
        return Node(
            location=location,
            version=None,
            sequencer=sequencer,
            generation=secrets.token_hex(8),
            indexed_at=self._now().isoformat(timespec="milliseconds"),
        )


def _same(node: Node, seen: Node) -> bool:
    """Whether a look that nothing orders found what is already written."""
    return (
        node.version,
        node.version_id,
        node.fingerprint,
        node.mime_type,
        node.includes,
        node.findings,
    ) == (
        seen.version,
        seen.version_id,
        seen.fingerprint,
        seen.mime_type,
        seen.includes,
        seen.findings,
    )
