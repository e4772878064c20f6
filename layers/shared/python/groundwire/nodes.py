"""What the index knows of one document (X-4). The node is the truth; reverse edges follow it."""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from groundwire.findings import Finding, Verdict
from groundwire.includes import Include
from groundwire.limits import INCLUDE_CHARS_STORED
from groundwire.pointers import Location, unicode_forms


def document_id(location: Location) -> str:
    """A short name for a key that can be as long as a sort key may be: 26 characters of base32.

    One for all spellings of a SharePoint path, whose letter case is the server's (I-5).
    """
    key = location.key.casefold() if location.root.source_type == "sharepoint" else location.key
    digest = hashlib.sha256(f"{location.root.name}\0{key}".encode()).digest()
    return base64.b32encode(digest).decode("ascii")[:26].lower()


def abridged(includes: Iterable[Include]) -> tuple[Include, ...]:
    """Includes as a node holds them: of what was written, the beginning."""
    return tuple(
        replace(each, raw=each.raw[:INCLUDE_CHARS_STORED])
        if each.raw and len(each.raw) > INCLUDE_CHARS_STORED
        else each
        for each in includes
    )


@dataclass(frozen=True, slots=True)
class Node:
    """One document as last indexed; without `version` it is a tombstone."""

    location: Location
    version: str | None
    version_id: str | None = None
    size_bytes: int = 0
    mime_type: str = ""
    title: str | None = None
    canonical_path: str | None = None
    includes: tuple[Include, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Those of the document itself, as far as they are stored, and those about its targets and claims."""
    finding_count: int = 0
    """All findings, also those over the number that is stored."""
    verdict: Verdict = "valid"
    fingerprint: str = ""
    """SHA-256 of the first 65,536 bytes, and the size: what a moved document keeps."""
    sequencer: str = ""
    generation: str = ""
    """A token that differs with every write; a write names the one it has seen."""
    edge_generation: str = ""
    """The token of the write that put the reverse edges, which carry it."""
    indexed_at: str = ""
    owes: tuple[str, ...] = ()
    """What must still be done about others because of this write: `dependents`, `claim:<path>`."""
    announced: str = ""
    """The state that was last published (X-7)."""

    @property
    def exists(self) -> bool:
        return self.version is not None

    @property
    def state(self) -> str:
        """What a change of is worth an event: the version and what is found in it."""
        if not self.exists:
            return "removed"
        codes = sorted({each.code for each in self.findings})
        return ":".join([self.version or "", self.verdict, *codes])

    def targets(self) -> tuple[Location, ...]:
        """The documents it includes, in order, each once; where one was found, at its stored key."""
        return tuple(self.location.at(each.target) for each in self.includes if each.counts and each.target)

    def lookups(self) -> tuple[Location, ...]:
        """Every key under which a target may be stored: its own, and its other Unicode forms (I-5)."""
        keys = (each.key for each in self.includes if each.counts and each.key)
        return tuple(self.location.at(form) for key in keys for form in (key, *unicode_forms(key)))
