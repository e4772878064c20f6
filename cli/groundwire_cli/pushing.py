"""Push: documents of a folder to where they belong, judged here and by the API before any of them is sent.

A document with errors stays where it is. A target that comes with the same push is not missing.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

from groundwire.client import GroundwireClient
from groundwire.client_answers import Validation
from groundwire.deadline import Deadline
from groundwire.errors import FetchError, GroundwireApiError
from groundwire.grounded import Finding
from groundwire.includes import find
from groundwire.limits import CLIENT_TIMEOUT_S, DOCUMENT_BYTES, HEAD_BYTES, PUSHED_AT_ONCE
from groundwire.media_types import is_text, media_type
from groundwire_cli.folder import MARKER, Folder, enclosing_root
from groundwire_cli.linting import Linter

Outcome = Literal["uploaded", "would_upload", "unchanged", "invalid", "failed"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("uploaded", "would_upload", "unchanged", "invalid", "failed")
Watch = Callable[[Iterator["Pushed"], int, str], Iterable["Pushed"]]
"""Hands the documents on as they are done; it is told how many there are, and what is done to them."""

_MISSING = "target_missing"
_EVERYBODYS: Final = frozenset({401, 403, 404})
"""Refusals of the caller or of the route, which every other document would meet too."""


class PushUsage(Exception):
    """Paths that cannot be pushed together."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """One file, where it belongs, and what became of it so far."""

    path: str
    """From the folder's root."""
    place: str
    """From the storage root: the canonical_path it declares, else its path."""
    outcome: Outcome = "would_upload"
    uri: str | None = None
    findings: tuple[Finding, ...] = ()
    missing: Mapping[str, Finding | None] = field(default_factory=dict)
    """By place: targets that the store does not hold, with what was said of them."""
    problem: str = ""
    """Why it failed."""

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.findings)

    def as_json(self) -> dict[str, Any]:
        """One entry of `--json`."""
        names = ("code", "severity", "line", "column", "message", "hint")
        return {
            "path": self.path,
            "place": self.place,
            "uri": self.uri,
            "outcome": self.outcome,
            "problem": self.problem or None,
            "findings": [{name: getattr(each, name) for name in names} for each in self.findings],
        }


def as_json(documents: Sequence[Pushed]) -> dict[str, Any]:
    """What `--json` prints."""
    counts = Counter(each.outcome for each in documents)
    summary: dict[str, int] = {name: counts[name] for name in OUTCOMES}
    return {
        "documents": [each.as_json() for each in documents],
        "summary": {"documents": len(documents)} | summary,
    }


def failed(documents: Iterable[Pushed]) -> bool:
    """Whether any has errors, or could not be sent."""
    return any(each.has_errors or each.outcome in ("invalid", "failed") for each in documents)


class Push:
    """One push of files below one folder into one storage root of an API."""

    def __init__(
        self,
        paths: Sequence[Path],
        top: Path | None,
        client: GroundwireClient,
        *,
        to: str | None,
        force: bool,
    ) -> None:
        """`top` is the storage root's folder, by default the nearest around the paths; `to` the API's name of
        the storage root. With `force`, errors and unchanged documents are sent too.

        PushUsage where the paths lie in different folders' roots.
        """
        tops = {_top(path, top) for path in paths}
        if len(tops) > 1:
            raise PushUsage(f"these are {len(tops)} storage roots; push one at a time, or name it: --root")
        self._folder = Folder(tops.pop(), is_whole=top is not None)
        self._linter = Linter(self._folder)
        self._client = client
        self._to = to
        self._force = force
        self._keys = list(dict.fromkeys(key for path in paths for key in self._below(path)))
        # Now: whoever walks the folder again comes upon them again.
        self._unaddressable = {error.uri: error for error in self._folder.unaddressable}

    def run(self, watch: Watch, *, dry_run: bool = False) -> list[Pushed]:
        """Judges all documents, and sends those that may go unless it is a dry run; in the order of paths.

        A ClientError where the API refuses the caller or does not answer: pushing again then goes on.
        """
        here = [self._here(key) for key in self._keys]
        unreadable = [
            Pushed(uri, uri, "failed", problem=error.detail) for uri, error in self._unaddressable.items()
        ]
        judged = list(watch(_side_by_side(self._judged, _apart(here)), len(here), "validating"))
        settled = _settled(judged, force=self._force)
        if dry_run:
            return [*settled, *unreadable]
        return [*watch(_side_by_side(self._sent, settled), len(settled), "uploading"), *unreadable]

    def _below(self, path: Path) -> Iterator[str]:
        if path.is_dir():
            yield from (key for key in self._folder.files(path.resolve()) if Path(key).name != MARKER)
        else:
            yield self._folder.location(path).relative_path

    def _here(self, key: str) -> Pushed:
        """The document as it is judged without the API; what is missing here may be there."""
        if not is_text(media_type(None, key)):
            return Pushed(key, key)
        try:
            linted = self._linter.lint(key)
        except FetchError as error:
            return Pushed(key, key, "failed", problem=error.detail)
        errors = tuple(
            Finding(each.code, each.severity, each.message, each.line, each.column, each.hint)
            for each in linted.findings
            if each.severity == "error" and each.code != _MISSING
        )
        return Pushed(key, linted.canonical_path or key, findings=errors)

    def _judged(self, document: Pushed) -> Pushed:
        """The document with what the API finds at its place."""
        if document.outcome == "failed":
            return document
        content = b""
        try:
            if is_text(media_type(None, document.path)):
                content = self._content(document.path)
            # Only a document's head is judged, and the place of what is no text.
            text = content[: 2 * HEAD_BYTES].decode("utf-8", "replace")
            found = self._client.validate(document.place, text, root=self._to)
        except (FetchError, GroundwireApiError) as error:
            return _failure(document, error)
        known = {(each.code, each.line, each.column) for each in found.findings}
        own = [each for each in document.findings if (each.code, each.line, each.column) not in known]
        return replace(
            document,
            uri=found.uri,
            findings=(*found.findings, *own),
            missing=_missing(found, document.place),
        )

    def _sent(self, document: Pushed) -> Pushed:
        """The document after it was sent, if it has to be."""
        if document.outcome != "would_upload":
            return document
        try:
            content = self._content(document.path)
            if not self._force and self._is_there(document.uri or "", content):
                return replace(document, outcome="unchanged")
            uri = self._client.upload(document.place, content, root=self._to)
        except (FetchError, GroundwireApiError) as error:
            return _failure(document, error)
        return replace(document, outcome="uploaded", uri=uri)

    def _is_there(self, uri: str, content: bytes) -> bool:
        """Whether the index knows these bytes: of what was put in one part, the version is a hash."""
        try:
            version = self._client.document(uri).version
        except GroundwireApiError as error:
            if error.code == "document_not_found":
                return False
            raise
        return version == hashlib.md5(content, usedforsecurity=False).hexdigest()

    def _content(self, key: str) -> bytes:
        location = self._folder.root_location(key)
        deadline = Deadline.after(CLIENT_TIMEOUT_S)
        return self._folder.fetch(location, deadline=deadline, max_bytes=DOCUMENT_BYTES).content


def _top(path: Path, root: Path | None) -> Path:
    return (root or enclosing_root(path.absolute()) or (path if path.is_dir() else path.parent)).resolve()


def _apart(documents: Sequence[Pushed]) -> list[Pushed]:
    """The documents, of which those fail that would overwrite each other."""
    by_place: dict[str, list[Pushed]] = {}
    for each in documents:
        by_place.setdefault(each.place, []).append(each)
    apart: list[Pushed] = []
    for document in documents:
        others = [each.path for each in by_place[document.place] if each is not document]
        problem = f"{others[0]!r} belongs at {document.place!r} too" if others else ""
        apart.append(replace(document, outcome="failed", problem=problem) if others else document)
    return apart


def _missing(found: Validation, place: str) -> dict[str, Finding | None]:
    """The missing targets by place, each with its finding; of very many, the API gives the first ones."""
    base = found.uri.removesuffix(place)
    targets = [each.target for each in found.includes if each.code == _MISSING and each.target]
    findings = [each for each in found.findings if each.code == _MISSING]
    return {
        target.removeprefix(base): remark for target, remark in zip_longest(targets, findings[: len(targets)])
    }


def _settled(documents: Sequence[Pushed], *, force: bool) -> list[Pushed]:
    """The documents without what comes with them among their missing targets; then who has errors stays.

    One that stays is missed by others: they are judged until nothing changes.
    """
    coming = {each.place for each in documents if each.outcome == "would_upload"}
    while True:
        now = [_beside(each, coming, force=force) for each in documents]
        left = {each.place for each in now if each.outcome == "would_upload"}
        if left == coming:
            return now
        coming = left


def _beside(document: Pushed, coming: set[str], *, force: bool) -> Pushed:
    """The document, judged by what comes with it."""
    if document.outcome != "would_upload":
        return document
    brought = [
        place
        for place in document.missing
        if find(place, lambda key: key if key in coming else None)[0] is not None
    ]
    settled = [document.missing[place] for place in brought]
    findings = tuple(each for each in document.findings if each not in settled)
    lacks = len(brought) < len(document.missing) or any(each.severity == "error" for each in findings)
    outcome: Outcome = "invalid" if lacks and not force else "would_upload"
    return replace(document, findings=findings, outcome=outcome)


def _failure(document: Pushed, error: FetchError | GroundwireApiError) -> Pushed:
    """The document as failed; raises where every other would fail for the same reason."""
    if isinstance(error, FetchError):
        return replace(document, outcome="failed", problem=error.detail)
    is_root = any(each.get("field") == "root" for each in error.errors)
    if is_root or (error.status in _EVERYBODYS and error.code != "upload_refused"):
        raise error
    return replace(document, outcome="failed", problem=str(error))


def _side_by_side(work: Callable[[Pushed], Pushed], documents: Sequence[Pushed]) -> Iterator[Pushed]:
    """Each document after the work, in order; what has not begun when one raises never does."""
    with ThreadPoolExecutor(PUSHED_AT_ONCE) as pool:
        try:
            yield from pool.map(work, documents)
        finally:
            pool.shutdown(cancel_futures=True)
