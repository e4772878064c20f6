"""Use case: a File Search store holds each importable document once, in its current version (X-10).

An event is a hint: the index node and the object decide. The service cannot replace a document, and names an
upload only once it is there; so the record of a document is claimed before anything is uploaded, names the
upload afterwards, and remembers what must still be removed (docs/importing.md).
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from groundwire.catalogue import CatalogueEntry, Listing
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.errors import (
    CursorRefused,
    DocumentForbidden,
    FetchError,
    ImportRefused,
    Unavailable,
)
from groundwire.imports import Claim, ImportRecord, display_name, metadata, reason_to_skip, upload_type
from groundwire.includes import declare
from groundwire.limits import (
    CATALOGUE_KEPT_S,
    DOCUMENT_BYTES,
    IMPORT_CLAIM_S,
    IMPORT_FORGOTTEN_S,
    STRAYS_SEARCH_S,
    SWEEP_MARGIN_S,
)
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from groundwire.ports import CatalogueWriter, DocumentFetcher, EdgeReader, FileSearchImports, ImportRecords
from groundwire.resolution import id_in

Outcome = Literal[
    "imported", "replaced", "removed", "unchanged", "absent", "skipped", "underway", "superseded"
]
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a document; `reason` says why it was skipped."""

    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep came across: documents of the store, and uploads that nobody knew, which it removed."""

    seen: int
    removed: int
    cursor: str | None
    """Where to go on; None where everything was looked at."""


@dataclass(frozen=True, slots=True)
class Importer:
    """Fills one File Search store."""

    documents: DocumentFetcher
    index: EdgeReader
    stores: FileSearchImports
    catalogue: CatalogueWriter
    records: ImportRecords
    store: str
    """The store's resource name."""
    now: Callable[[], float] = time.time
    """Seconds since the epoch."""

    def document_changed(self, location: Location, *, message: str, deadline: Deadline) -> Done:
        """Makes the store hold what the document is now; `message` is the id of what asks for it.

        ImportRefused, with the store as it was, where the service will never take this version. A FetchError
        where something did not answer, or the index and the object do not agree: the same message must come
        again. Running it twice does no harm.
        """
        return _Import(self, location, message, deadline).run()

    def sweep(self, cursor: str | None, *, deadline: Deadline) -> Swept:
        """Looks through the store from `cursor` on and removes uploads of ours that no record names.

        At least a page is looked at. What is no document of ours is left alone and put into the catalogue,
        since nobody else lists this store. Unavailable as above.
        """
        self.claim_store(deadline)
        # A page that is begun can still be dealt with.
        last_page = Deadline(deadline.at - SWEEP_MARGIN_S, deadline.clock)
        seen = removed = 0
        while True:
            try:
                entries, cursor = self.stores.page(self.store, cursor, deadline=deadline)
            except CursorRefused:
                if cursor is None:
                    raise
                cursor = None
                continue
            # In this order: who uploaded one of these claimed its record before.
            records = {entry.name: self._record_of(entry) for entry in entries}
            foreign = [entry for entry in entries if records[entry.name] is None]
            self.catalogue.put(foreign, expires=self.now() + CATALOGUE_KEPT_S)
            strays = [name for name, record in records.items() if record and self._is_stray(name, record)]
            for name in strays:
                self.discard(name, deadline)
            seen, removed = seen + len(entries), removed + len(strays)
            if cursor is None or last_page.passed():
                return Swept(seen, removed, cursor)

    def claim_store(self, deadline: Deadline) -> None:
        """Notes that this store is filled from here, and need not be listed by anybody else."""
        listing = self.catalogue.listing(self.store, deadline=deadline)
        if listing is None or not listing.ours:
            self.catalogue.listed(self.store, Listing(ours=True))

    def discard(self, name: str, deadline: Deadline) -> None:
        """Removes an upload, and what the catalogue says of it."""
        # In this order: what is in the store can be found again.
        self.catalogue.remove(name)
        self.stores.remove(name, deadline=deadline)

    def _record_of(self, entry: CatalogueEntry) -> ImportRecord | None:
        identity = id_in(entry.metadata)
        return self.records.get(identity, self.store) if identity else None

    def _is_stray(self, name: str, record: ImportRecord) -> bool:
        """Whether nobody knows the upload, or ever will."""
        at_work = record.claim is not None and self.now() - record.claim.at < IMPORT_CLAIM_S
        return name != record.name and not at_work


@dataclass(frozen=True, slots=True)
class _Import:
    """One message's work on one document."""

    at: Importer
    location: Location
    message: str
    deadline: Deadline

    def run(self) -> Done:
        for _ in range(_ATTEMPTS):
            # The record first: whoever writes it after this has read a node as new as ours, or newer.
            seen = self.at.records.get(document_id(self.location), self.at.store)
            node = self._node()
            if node is None:
                done = self._withdraw(seen, "removed")
            elif reason := reason_to_skip(self.location, node.mime_type, node.size_bytes):
                done = self._withdraw(seen, "skipped", reason)
            elif seen and seen.claim is None and seen.version == node.version:
                self._settle(seen)
                done = Done("unchanged")
            elif seen and self._is_underway(seen.claim, node.version):
                done = Done("underway")
            else:
                done = self._bring(seen, node)
            if done:
                return done
        raise Unavailable(self.location.uri, "other importers changed the record again and again")

    def _node(self) -> Node | None:
        """The living node; None where there is none."""
        nodes = self.at.index.nodes([self.location], deadline=self.deadline, consistent=True)
        node = nodes.get(self.location.uri)
        return node if node and node.exists else None

    def _is_underway(self, claim: Claim | None, version: str | None) -> bool:
        """Whether another message is being worked on, and will end in this version or come again."""
        if claim is None or claim.message == self.message or claim.version != version:
            return False
        return self.at.now() - claim.at < IMPORT_CLAIM_S

    def _bring(self, seen: ImportRecord | None, node: Node) -> Done | None:
        """Imports the object that the node speaks of; None where the record was changed by others."""
        claimed = _next(
            seen or ImportRecord(document_id(self.location), self.at.store),
            claim=Claim(self.message, node.version, self.at.now()),
            expires=None,
        )
        if not self.at.records.replace(claimed, seen):
            return None
        if seen and seen.claim:
            self._search(claimed)
        try:
            document = self._read(node)
        except DocumentForbidden:
            # It may be an oversight: what is in the store stays.
            self._release(claimed)
            return Done("skipped", "forbidden")
        except FetchError:
            self._release(claimed)
            raise
        return self._upload(document, node.mime_type, claimed)

    def _read(self, node: Node) -> FetchedDocument:
        document = self.at.documents.fetch(self.location, deadline=self.deadline, max_bytes=DOCUMENT_BYTES)
        if document.version != node.version:
            # No event would follow if the object became again what the index knows.
            raise Unavailable(self.location.uri, "the index is behind the object")
        return document

    def _upload(self, document: FetchedDocument, mime_type: str, claimed: ImportRecord) -> Done:
        content = document.content
        title = declare(self.location, mime_type, content, len(content)).title
        name = display_name(self.location, title)
        self.at.claim_store(self.deadline)
        try:
            entry = self.at.stores.upload(
                self.at.store,
                content,
                display_name=name,
                mime_type=upload_type(mime_type) or mime_type,
                metadata=metadata(self.location, name, mime_type),
                deadline=self.deadline,
            )
        except ImportRefused:
            self._release(claimed)
            raise
        self.at.catalogue.put([entry])
        older = (claimed.name,) if claimed.name else ()
        imported = _next(
            claimed,
            version=document.version,
            name=entry.name,
            leftovers=(*claimed.leftovers, *older),
            claim=None,
        )
        if not self.at.records.replace(imported, claimed):
            # Whoever claimed the record after us has read the object after us.
            self.at.discard(entry.name, self.deadline)
            return Done("superseded")
        self._settle(imported)
        return Done("replaced" if older else "imported")

    def _withdraw(
        self, seen: ImportRecord | None, outcome: Outcome, reason: str | None = None
    ) -> Done | None:
        """Takes the document out of the store; None where the record was changed by others."""
        if seen is None or seen.is_empty:
            return Done("absent" if outcome == "removed" else outcome, reason)
        withdrawn = _next(
            seen,
            version=None,
            name=None,
            leftovers=(*seen.leftovers, seen.name) if seen.name else seen.leftovers,
            claim=Claim(self.message, None, self.at.now()) if seen.claim else None,
            expires=self.at.now() + IMPORT_FORGOTTEN_S,
        )
        if not self.at.records.replace(withdrawn, seen):
            return None
        if withdrawn.claim:
            self._search(withdrawn)
        self._settle(withdrawn)
        return Done(outcome, reason)

    def _settle(self, record: ImportRecord) -> None:
        """Removes what is left over, and notes that nothing is."""
        for name in record.leftovers:
            self.at.discard(name, self.deadline)
        if record.leftovers or record.claim:
            # Where others were faster they know of it, and do it again.
            self.at.records.replace(_next(record, leftovers=(), claim=None), record)

    def _release(self, claimed: ImportRecord) -> None:
        """Takes the claim back: nothing was uploaded."""
        expires = None if claimed.name else self.at.now() + IMPORT_FORGOTTEN_S
        self.at.records.replace(_next(claimed, claim=None, expires=expires), claimed)

    def _search(self, record: ImportRecord) -> None:
        """Removes what an importer that died may have uploaded, which only a look through the store shows.

        What is not found in time is left to the sweep; until then, two hits lead to one document.
        """
        patience, cursor = self.deadline.at_most(STRAYS_SEARCH_S), None
        strays: list[str] = []
        while True:
            entries, cursor = self.at.stores.page(self.at.store, cursor, deadline=self.deadline)
            strays += [
                entry.name
                for entry in entries
                if id_in(entry.metadata) == record.document and entry.name != record.name
            ]
            if cursor is None or patience.passed():
                break
        for name in strays:
            self.at.discard(name, self.deadline)


def _next(record: ImportRecord, **changes: Any) -> ImportRecord:
    """The record changed, under a new token."""
    return replace(record, generation=secrets.token_hex(8), **changes)
