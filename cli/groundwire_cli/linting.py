"""Lint: what the indexer would say of documents in a folder, and whether their targets are there."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from groundwire.errors import FetchError
from groundwire.findings import Finding, Verdict, finding, verdict
from groundwire.includes import Declaration, Include, declare, find, fold, near_keys
from groundwire.limits import HEAD_BYTES
from groundwire.media_types import media_type
from groundwire.pointers import Location
from groundwire.shapes import findings_json, include_json
from groundwire_cli.folder import Folder, enclosing_root, nested_roots


@dataclass(frozen=True, slots=True)
class LintedDocument:
    """One document's verdict, its includes with their codes, and what was found."""

    location: Location
    file: Path
    includes: tuple[Include, ...]
    findings: tuple[Finding, ...]
    canonical_path: str | None

    @property
    def verdict(self) -> Verdict:
        return verdict(self.findings)

    def as_json(self) -> dict[str, Any]:
        """The shape of spec section 10."""
        return {
            "path": self.location.relative_path,
            "uri": self.location.uri,
            "verdict": self.verdict,
            "includes": [include_json(each, self.location) for each in self.includes],
            "findings": findings_json(self.findings),
        }


_BY_TARGET = frozenset({"include_duplicate", "self_include"})
"""Codes that are given anew, by where the targets are stored."""


class Linter:
    """Judges the documents of one storage root; reads each file once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._declared: dict[str, Declaration] = {}

    def lint(self, key: str) -> LintedDocument:
        """The document at `key`; a FetchError where it cannot be read."""
        location = Location(self._folder.root, key)
        declared = self._declaration(key)
        includes: list[Include] = []
        findings = [each for each in declared.findings if each.code not in _BY_TARGET]
        reached: dict[str, Include] = {}
        for include in declared.includes:
            judged = self._target(include, location, reached, findings) if include.key else include
            includes.append(judged)
        findings += self._conflicts(key, declared)
        file = self._folder.path / key
        return LintedDocument(location, file, tuple(includes), tuple(findings), declared.canonical_path)

    def _target(
        self, include: Include, location: Location, reached: dict[str, Include], findings: list[Finding]
    ) -> Include:
        """The include with its stored target (I-5), judged by that for I-6 and I-7."""
        assert include.key is not None
        stored, code = find(include.key, self._folder.stored)
        key = stored or include.key
        message, hint = "", None
        if key in reached:
            code = "include_duplicate"
            message = f"{include.raw!a} names {key!a}, which line {reached[key].line} already includes."
        elif key == location.key:
            code, message = "self_include", f"{include.raw!a} names the document itself."
        elif code == "unicode_form_differs":
            message = f"{include.raw!a} names a document that is stored as {key!a}."
        elif code:
            message, hint = f"{include.raw!a} names {key!r}, which does not exist.", self._missing_hint(key)
        reached.setdefault(key, include)
        if code:
            findings.append(finding(code, message, line=include.line, column=include.column, hint=hint))
        return replace(include, key=key, code=code)

    def _declaration(self, key: str) -> Declaration:
        if key not in self._declared:
            location = Location(self._folder.root, key)
            head = self._folder.head(location, HEAD_BYTES)
            self._declared[key] = declare(location, media_type(None, key), head.content, head.size_bytes)
        return self._declared[key]

    @cached_property
    def _claims(self) -> dict[str, list[str]]:
        """Which documents of the whole root claim a canonical_path."""
        claims: defaultdict[str, list[str]] = defaultdict(list)
        for key in self._folder.texts():
            try:
                claimed = self._declaration(key).canonical_path
            except FetchError:
                continue  # lint says so itself where the document was asked for
            if claimed is not None:
                claims[claimed].append(key)
        return claims

    def _conflicts(self, key: str, declared: Declaration) -> list[Finding]:
        if declared.canonical_path is None:
            return []
        others = [other for other in self._claims.get(declared.canonical_path, ()) if other != key]
        if not others:
            return []
        message = f"{declared.canonical_path!r} is also claimed by {', '.join(map(repr, others))}."
        return [finding("canonical_path_conflict", message, line=declared.canonical_line)]

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {fold(key): key for key in self._folder.files()}

    def _missing_hint(self, key: str) -> str | None:
        for candidate, difference in near_keys(key):
            if found := self._folded.get(candidate):
                return f"{found!r} exists; it differs by {difference}."
        return None


@dataclass(frozen=True, slots=True)
class LintResult:
    """Everything that was linted, and files that could not be read."""

    documents: tuple[LintedDocument, ...]
    unreadable: tuple[FetchError, ...]

    def as_json(self) -> dict[str, Any]:
        """The shape of spec section 10."""
        verdicts = Counter(document.verdict for document in self.documents)
        severities = Counter(each.severity for document in self.documents for each in document.findings)
        return {
            "documents": [document.as_json() for document in self.documents],
            "summary": {
                "documents": len(self.documents),
                **{name: verdicts[name] for name in ("valid", "warnings", "invalid")},
                "errors": severities["error"],
                "warningFindings": severities["warning"],
                "information": severities["information"],
                "unreadable": [str(error) for error in self.unreadable],
            },
        }

    @property
    def failed(self) -> bool:
        """Whether anything of severity error was found, or could not be looked at."""
        return bool(self.unreadable) or any(document.verdict == "invalid" for document in self.documents)


Keys = Sequence[tuple[Path, str]]


def lint(
    paths: Iterable[Path], root: Path | None, watch: Callable[[Keys], Iterable[tuple[Path, str]]] = iter
) -> LintResult:
    """Lints files and folders; the storage root of each is `root`, or the nearest one around it.

    `watch` hands the documents on one by one, and may show how far they are.
    """
    linters: dict[Path, Linter] = {}
    folders: dict[Path, Folder] = {}
    wanted: dict[tuple[Path, str], None] = {}  # an ordered set: a file named twice is linted once
    for path in paths:
        starts = [path] if root or path.is_file() else [path, *nested_roots(path)]
        for start in starts:
            top = (
                root or enclosing_root(start.absolute()) or (path if path.is_dir() else path.parent)
            ).resolve()
            folder = folders.setdefault(top, Folder(top, is_whole=root is not None))
            if start.is_dir():
                wanted.update({(top, key): None for key in folder.texts(start.resolve())})
            else:
                wanted[top, folder.location(start).relative_path] = None
    documents: list[LintedDocument] = []
    unreadable: list[FetchError] = [error for folder in folders.values() for error in folder.unaddressable]
    for top, key in watch(list(wanted)):
        linter = linters.setdefault(top, Linter(folders[top]))
        try:
            documents.append(linter.lint(key))
        except FetchError as error:
            unreadable.append(error)
    return LintResult(tuple(documents), tuple(unreadable))
