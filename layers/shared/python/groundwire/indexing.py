"""Use case: something happened to an object, so its node and edges become what the object now says.

An event is a hint (X-2): the object's current state decides, and the last state wins by the sequencer.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from groundwire.deadline import Deadline
from groundwire.errors import DocumentForbidden, DocumentNotFound, Unavailable
from groundwire.findings import finding, kept, verdict
from groundwire.includes import Declaration, declare
from groundwire.limits import (
    FINDINGS_STORED,
    HEAD_BYTES,
    HEALED_AT_ONCE,
    INCLUDE_CHARS_STORED,
    INDEX_READ_S,
)
from groundwire.media_types import media_type
from groundwire.nodes import Node, abridged
from groundwire.placement import Placement
from groundwire.pointers import Location
from groundwire.ports import EdgeWriter, EventSink, HeadReader, HealingQueue, ObjectHead
from groundwire.verdicts import LOOKED_UP, Surroundings, judged

Outcome = Literal["indexed", "removed", "absent", "superseded", "unchanged"]

_SEQUENCER_WIDTH = 40
_DEPENDENTS, _MOVED, _CLAIM = "dependents", "moved", "claim"
_ATTEMPTS = 5


class Indexer:
    """Keeps the index equal to what the bucket holds."""

    def __init__(
        self,
        heads: HeadReader,
        index: EdgeWriter,
        events: EventSink,
        healing: HealingQueue,
        placement: Placement,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._heads = heads
        self._index = index
        self._events = events
        self._healing = healing
        self._placement = placement
        self._now = now

    def object_changed(self, location: Location, sequencer: str | None = None) -> Outcome:
        """Indexes the object as it is now, and does what follows from that for other documents.

        `sequencer` is the event's, None where nothing orders this look (a restore, a repair, a scan).
        Unavailable where the store or the index cannot answer: try again. Running it twice does no harm.
        """
        padded = (sequencer or "").upper().ljust(_SEQUENCER_WIDTH, "0") if sequencer else ""
        outcome = self._flip(location, padded)
        # Also after an older event: what the last write owed may not have been done.
        self.settle(location)
        return outcome

    def _flip(self, location: Location, padded: str) -> Outcome:
        for _ in range(_ATTEMPTS):
            seen = self._index.node(location)
            if seen and padded and seen.sequencer > padded:
                return "superseded"
            node = self._current(location, padded or (seen.sequencer if seen else ""))
            if node is None:
                if seen is None or not seen.exists:
                    return "absent"
                node = self._tombstone(seen, padded or seen.sequencer)
            elif not padded and seen and _same(node, seen):
                return "unchanged"
            # Judged before it can be read: nobody sees a verdict that looks at no target. `settle` looks
            # again once others can see the node's own pointers.
            node = judged(node, self._surroundings(node)) if node.exists else node
            if self._index.replace(_owing(node, seen), seen):
                return "indexed" if node.exists else "removed"
        raise Unavailable(location.uri, "other writers changed the node again and again")

    def is_current(self, seen: Node) -> bool:
        """Whether a node read a moment ago is what a look that nothing orders would leave as it is.

        It must be living, say what its object and its targets say now, and owe nobody: whoever wrote it since
        has looked at all that themselves.
        """
        if not seen.exists or not _is_settled(seen, pays=True):
            return False
        node = self._current(seen.location, seen.sequencer)
        return node is not None and _same(node, seen) and judged(seen, self._surroundings(seen)) == seen

    def settle(self, location: Location, *, pays: bool = True) -> None:
        """Judges the node by its targets and rivals as they are now; publishes what changed.

        With `pays` it does what the node's last write owes other documents. Unavailable as above; a crash
        anywhere is mended by running it again.
        """
        for _ in range(_ATTEMPTS):
            node = self._index.node(location)
            if node is None:
                return
            settled = judged(node, self._surroundings(node)) if node.exists else node
            if settled == node and _is_settled(node, pays):
                return
            if pays:
                self._pay(settled)
                settled = replace(settled, owes=())
            if settled.announced != settled.state:
                self._events.publish(settled)
            if self._index.amend(replace(settled, announced=settled.state, generation=_token()), node):
                return
        raise Unavailable(location.uri, "other writers changed the node again and again")

    def heal(self, target: Location, cursor: str | None = None) -> int:
        """Settles a page of the documents that name `target`, and asks for the next; how many it settled."""
        parents, following = self._index.dependents_page(target, cursor, HEALED_AT_ONCE)
        for parent in parents:
            self.settle(parent)
        if following:
            self._healing.heal(target, following)
        return len(parents)

    def _surroundings(self, node: Node) -> Surroundings:
        """The other documents that the node is judged by, read consistently."""
        lookups = node.lookups()
        nodes = (
            self._index.nodes(lookups, deadline=Deadline.after(INDEX_READ_S), consistent=True)
            if lookups
            else {}
        )
        stored = {uri: each for uri, each in nodes.items() if each.exists}
        moved: dict[str, Location] = {}
        for uri, gone in nodes.items():
            if not gone.exists and gone.fingerprint and (new := self._moved_to(gone)):
                moved[uri] = new
        rivals: list[Location] = []
        if node.canonical_path is not None:
            claimants = self._index.claimants(node.location, node.canonical_path)
            rivals = [each for each in claimants if each != node.location]
        return Surroundings(stored, moved, rivals)

    def _moved_to(self, gone: Node) -> Location | None:
        alike = self._index.alike(gone.location, gone.fingerprint)
        living = sorted(each.location.uri for each in alike if each.exists)
        return next((each.location for each in alike if each.location.uri in living[:1]), None)

    def _pay(self, node: Node) -> None:
        """Does for others what this node's last write owes them; each is harmless to do twice."""
        for debt in node.owes:
            kind, _, what = debt.partition(":")
            if kind == _DEPENDENTS:
                self._healing.heal(node.location)
            elif kind == _MOVED:
                for gone in self._index.alike(node.location, what):
                    if not gone.exists and gone.location != node.location:
                        self._healing.heal(gone.location)
            elif kind == _CLAIM:
                for rival in self._index.claimants(node.location, what):
                    if rival != node.location:
                        self.settle(rival, pays=False)

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
            if location.in_inbox:
                try:
                    stays = self._placement.place(location, head, declaration)
                except DocumentNotFound:
                    return None
                if stays is None:
                    return None
                declaration = replace(declaration, findings=(*declaration.findings, stays))
        return self._node(location, sequencer, head, declaration)

    def _node(
        self, location: Location, sequencer: str, head: ObjectHead | None, declaration: Declaration
    ) -> Node:
        generation = _token()
        stored = head.stored_mime_type if head else None
        fingerprint = ""
        if head and head.size_bytes:  # all empty documents are alike
            fingerprint = f"{hashlib.sha256(head.content).hexdigest()}:{head.size_bytes}"
        return Node(
            location=location,
            version=head.version if head else "",
            version_id=head.version_id if head else None,
            size_bytes=head.size_bytes if head else 0,
            mime_type=media_type(stored, location.key),
            title=declaration.title[:INCLUDE_CHARS_STORED] if declaration.title else declaration.title,
            canonical_path=declaration.canonical_path,
            includes=abridged(declaration.includes),
            findings=kept(declaration.findings, FINDINGS_STORED),
            finding_count=len(declaration.findings),
            verdict=verdict(declaration.findings),
            fingerprint=fingerprint,
            sequencer=sequencer,
            generation=generation,
            edge_generation=generation,
            indexed_at=self._now().isoformat(timespec="milliseconds"),
        )

    def _tombstone(self, seen: Node, sequencer: str) -> Node:
        generation = _token()
        return Node(
            location=seen.location,
            version=None,
            fingerprint=seen.fingerprint,
            sequencer=sequencer,
            generation=generation,
            edge_generation=generation,
            indexed_at=self._now().isoformat(timespec="milliseconds"),
        )


def _token() -> str:
    return secrets.token_hex(8)


def _is_settled(node: Node, pays: bool) -> bool:
    """Whether others heard of the node as it is and, where it `pays`, got what its last write owes them."""
    return node.announced == node.state and not (node.owes and pays)


def _owing(node: Node, seen: Node | None) -> Node:
    """The node with what its write owes others, and what the last one may not have paid."""
    before = seen if seen is not None and seen.exists else None
    after = node if node.exists else None
    debts = dict.fromkeys(seen.owes if seen else ())
    if (before is None) != (after is None):
        debts[_DEPENDENTS] = None
    # A tombstone keeps its fingerprint, for that is how a moved document is found.
    contents = (before.fingerprint if before else "", node.fingerprint)
    if contents[0] != contents[1] or after is None:
        debts |= {f"{_MOVED}:{each}": None for each in contents if each}
    claims = (before.canonical_path if before else None, after.canonical_path if after else None)
    if claims[0] != claims[1]:
        debts |= {f"{_CLAIM}:{each}": None for each in claims if each is not None}
    return replace(node, owes=tuple(debts), announced=seen.announced if seen else "")


def _same(node: Node, seen: Node) -> bool:
    """Whether a look that nothing orders found what is already written."""
    own = tuple(each for each in seen.findings if each.code not in LOOKED_UP)
    declared = [(each.raw, each.key) for each in seen.includes]
    return (node.version, node.version_id, node.fingerprint, node.mime_type, node.findings) == (
        seen.version,
        seen.version_id,
        seen.fingerprint,
        seen.mime_type,
        own,
    ) and [(each.raw, each.key) for each in node.includes] == declared
