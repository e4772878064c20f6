"""Includes, pure: a document and what it declares in, targets or coded refusals out (I-1 to I-7, C-1, C-2).

Paths are folded by whole segments. Nothing is decoded, normalised or case-folded to find a target.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote_to_bytes

from groundwire import frontmatter
from groundwire.errors import InvalidRequest
from groundwire.findings import Finding, finding
from groundwire.invisible import INVISIBLE
from groundwire.limits import KEY_BYTES, MESSAGE_CHARS, PERCENT_DECODINGS
from groundwire.media_types import is_text
from groundwire.pointers import Location, unicode_forms
from groundwire.roots import StorageRoot

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


@dataclass(frozen=True, slots=True)
class Include:
    """One entry of `includes`, judged: `key` is its target in the store, `code` what I-2 to I-7 give it."""

    index: int
    raw: str | None
    line: int
    column: int
    key: str | None = None
    code: str | None = None
    stored: str | None = None
    """Where the target was found, if that is another Unicode form of `key` (I-5)."""

    @property
    def target(self) -> str | None:
        """The key of the target document, found or not."""
        return self.stored or self.key

    @property
    def counts(self) -> bool:
        """Whether the search sees it: a string, not empty, and not a second spelling (I-2, I-6)."""
        return self.code not in ("include_not_string", "include_empty", "include_duplicate")


@dataclass(frozen=True, slots=True)
class Declaration:
    """All that follows from a document's own path and first bytes."""

    title: str | None = None
    canonical_path: str | None = None
    """From the storage root, dot segments folded; None where absent or invalid."""
    canonical_line: int | None = None
    includes: tuple[Include, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def loses_includes(self) -> bool:
        """B-6: whether the document may have includes that nobody saw."""
        return any(each.loses_includes for each in self.findings)


def declare(location: Location, mime_type: str, content: bytes, size: int) -> Declaration:
    """What the document at `location` declares; `content` is its first 65,536 bytes or more of `size`."""
    if not is_text(mime_type):
        return Declaration()
    block = frontmatter.parse(content, size)
    findings = list(block.findings)
    canonical = None
    if block.canonical_path:
        path = _resolve(block.canonical_path.text, (), location.root.prefix)
        if isinstance(path, _Refusal):
            findings.append(
                finding(
                    "canonical_path_invalid",
                    f"canonical_path {quoted(block.canonical_path.text)} {path.problem}.",
                    line=block.canonical_path.line,
                    column=block.canonical_path.column,
                )
            )
        else:
            canonical = location.root.relative(path)
            if canonical != location.relative_path and not location.in_inbox:
                findings.append(
                    finding(
                        "canonical_path_mismatch",
                        f"The document is stored at {location.relative_path!r}"
                        f" but says that it belongs at {canonical!r}.",
                        line=block.canonical_path.line,
                        column=block.canonical_path.column,
                    )
                )
    base = tuple((canonical or location.relative_path).split("/")[:-1])
    includes = _judge(block.entries, base, location)
    findings += [each for include in includes if (each := _remark(include, includes))]
    line = block.canonical_path.line if block.canonical_path else None
    return Declaration(block.title, canonical, line, includes, tuple(findings))


def _judge(
    entries: tuple[frontmatter.Entry, ...], base: tuple[str, ...], location: Location
) -> tuple[Include, ...]:
    judged: list[Include] = []
    seen: set[str] = set()
    for entry in entries:
        include = Include(entry.index, entry.raw, entry.line, entry.column, code=entry.code)
        if entry.code is None and entry.raw is not None:
            target = _resolve(entry.raw, base, location.root.prefix)
            if isinstance(target, _Refusal):
                include = replace(include, code=target.code)
            elif target in seen:
                include = replace(include, key=target, code="include_duplicate")
            else:
                seen.add(target)
                code = "self_include" if target == location.key else None
                include = replace(include, key=target, code=code)
        judged.append(include)
    return tuple(judged)


def _remark(include: Include, includes: tuple[Include, ...]) -> Finding | None:
    """The finding that goes with an entry's code; frontmatter.py has made those of I-2."""
    if include.code in (None, "include_not_string", "include_empty"):
        return None
    raw = quoted(include.raw or "")
    if include.code == "include_duplicate":
        first = next(each for each in includes if each.key == include.key)
        message = f"{raw} names {include.key!r}, which line {first.line} already includes."
    elif include.code == "self_include":
        message = f"{raw} names the document itself."
    else:
        message = f"{raw} {REFUSALS[include.code or '']}."
        if include.code == "include_control_character":
            message = (
                f"{raw} holds U+{ord(INVISIBLE.findall(include.raw or '')[0]):04X}, which cannot be seen."
            )
    return finding(include.code or "", message, line=include.line, column=include.column)


def quoted(text: str) -> str:
    """An author's text as a message shows it: escaped, and only its beginning."""
    return ascii(text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "...")


@dataclass(frozen=True, slots=True)
class _Refusal:
    code: str

    @property
    def problem(self) -> str:
        return REFUSALS[self.code]


REFUSALS: Final = {
    "include_absolute": "begins with a slash",
    "include_url": "begins like a URL or a drive letter",
    "include_backslash": "holds a backslash",
    "include_control_character": "holds a character that cannot be seen",
    "include_escapes_root": "leads out of the storage root",
    "include_encoded_traversal": "hides a path separator or dot segment behind percent codes",
    "include_is_directory": "names a folder",
    "include_empty_segment": "has an empty segment",
    "include_too_long": "leads to a key that is too long",
}
"""I-4: the codes of entries that resolve to no key, and what each message says."""


def _resolve(raw: str, base: tuple[str, ...], prefix: str) -> str | _Refusal:
    """The full key that `raw` names from `base` below `prefix`, or the first refusal that holds (I-4)."""
    if raw.startswith("/"):
        return _Refusal("include_absolute")
    if _SCHEME.match(raw):
        return _Refusal("include_url")
    if "\\" in raw:
        return _Refusal("include_backslash")
    if INVISIBLE.search(raw):
        return _Refusal("include_control_character")
    segments = raw.split("/")
    folded = _fold(base, segments)
    if folded is None:
        return _Refusal("include_escapes_root")
    if _hides_traversal(raw):
        return _Refusal("include_encoded_traversal")
    if segments[-1] in ("", ".", ".."):
        return _Refusal("include_is_directory")
    if "" in segments:
        return _Refusal("include_empty_segment")
    key = "/".join(folded if not prefix else (prefix, *folded))
    if len(key.encode()) > KEY_BYTES:
        return _Refusal("include_too_long")
    return key


def key_below(root: StorageRoot, path: str) -> str:
    """The full key of a path from the storage root, by the rules of C-1, or InvalidRequest."""
    key = _resolve(path, (), root.prefix)
    if isinstance(key, _Refusal):
        raise InvalidRequest("path", f"{quoted(path)} {key.problem}")
    return key


def _fold(base: tuple[str, ...], segments: list[str]) -> list[str] | None:
    """`segments` walked from `base`; None as soon as they climb above the storage root."""
    stack = list(base)
    for segment in segments:
        if segment == "..":
            if not stack:
                return None
            stack.pop()
        elif segment != ".":
            stack.append(segment)
    return stack


def _hides_traversal(raw: str) -> bool:
    plain = _signs(raw.encode())
    decoded = raw.encode()
    for _ in range(PERCENT_DECODINGS):
        if b"%" not in decoded:
            return False
        decoded = unquote_to_bytes(decoded)
        if any(now > before for now, before in zip(_signs(decoded), plain, strict=True)):
            return True
    return False


def _signs(path: bytes) -> tuple[int, int, int, int]:
    """How many dot segments, slashes, backslashes and NULs."""
    dots = sum(segment in (b".", b"..") for segment in path.split(b"/"))
    return dots, path.count(b"/"), path.count(b"\\"), path.count(b"\0")


def find(key: str, lookup: Callable[[str], str | None]) -> tuple[str | None, str | None]:
    """The stored key that `key` means and the code that goes with it (I-5).

    `lookup` gives the stored key for an exact one (SharePoint answers in its own letter case), or None.
    The code is None for an exact hit, `unicode_form_differs`, or `target_missing` beside no key.
    """
    if (found := lookup(key)) is not None:
        return found, None
    for form in unicode_forms(key):
        if (found := lookup(form)) is not None:
            return found, "unicode_form_differs"
    return None, "target_missing"


def fold(key: str) -> str:
    """What two keys share that differ only by letter case or Unicode form; for hints, never for identity."""
    return unicodedata.normalize("NFC", key).casefold()


def near_keys(key: str) -> Iterator[tuple[str, str]]:
    """Folded keys the author may have meant instead of a missing `key`, each with what differs."""
    yield fold(key), "letter case"
    for sign, what in (("#", "the #fragment"), ("?", "the ?query")):
        if sign in key:
            yield fold(key.split(sign, 1)[0]), what
            yield fold(key.rsplit(sign, 1)[0]), what
    yield fold(key + ".md"), "the extension .md"
    if key.lower().endswith(".md"):
        yield fold(key[:-3]), "the extension .md"
