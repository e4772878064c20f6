"""Rules F-1 to F-9, I-1 and I-2: what the head of one document declares.

Everything is judged on the first 65,536 bytes and on whether the file is longer, as the indexer sees it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from yaml import MappingNode, Node, ScalarNode, SequenceNode, YAMLError
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.error import MarkedYAMLError
from yaml.reader import ReaderError
from yaml.resolver import BaseResolver

HEAD = 65_536
MAX_ENTRIES = 100
BOM = b"\xef\xbb\xbf"
STRING_TAG = "tag:yaml.org,2002:str"

LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
LANGUAGE = re.compile(r"---[ \t]*[A-Za-z][A-Za-z0-9_+.-]*[ \t]*")
# YAML 1.2 core schema, section 10.3.2: what a plain scalar may be besides text.
NULL = re.compile(r"null|Null|NULL|~|")
OTHER = re.compile(
    r"true|True|TRUE|false|False|FALSE"
    r"|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)
# What libyaml refuses to read at all; it reports a byte offset, not a line.
UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
YAML_11_BREAKS = "\x85\u2028\u2029"

WARNINGS = {
    "canonical_path_mismatch",
    "frontmatter_language_unsupported",
    "frontmatter_not_first",
    "frontmatter_not_mapping",
    "include_empty",
    "title_not_string",
    "unicode_form_differs",
    "unknown_key_near_miss",
}
INFORMATION = {"include_duplicate", "self_include"}
KEYS = ("title", "canonical_path", "includes")
NEAR_MISSES = {"title", "canonicalpath", "includes", "include"}


@dataclass(frozen=True)
class Finding:
    """One finding; `line` is None where the contract does not say which line it is on."""

    code: str
    line: int | None = None

    @property
    def severity(self) -> str:
        """Errors, unless the contract says otherwise."""
        if self.code in WARNINGS:
            return "warning"
        return "information" if self.code in INFORMATION else "error"


@dataclass(frozen=True)
class Entry:
    """One item of `includes` among the first hundred; `code` says why it is not a usable string."""

    index: int
    line: int
    raw: str | None
    code: str | None


@dataclass
class Frontmatter:
    """What a document declares, before anything is resolved."""

    title: str | None = None
    canonical_path: str | None = None
    canonical_line: int | None = None
    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    loses_includes: bool = False
    readable: bool = True

    def add(self, code: str, line: int | None = None) -> None:
        """Record a finding."""
        self.findings.append(Finding(code, line))


class Composer(CParser, BaseResolver):
    """YAML into nodes: no constructor, no resolver for anything but `str`, `seq` and `map`."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        BaseResolver.__init__(self)


def read(data: bytes) -> Frontmatter:
    """Judge a document by its bytes."""
    longer = len(data) > HEAD
    body = data[:HEAD].removeprefix(BOM)
    lines = _lines(body, longer)
    if body.endswith(b"\r") and data[HEAD : HEAD + 1] == b"\n":
        # The limit cuts a line end in two: it is not within the limit.
        lines[-2:] = [(lines[-2][0], False)]
    found = Frontmatter()
    try:
        # A character cut by the limit is not the author's mistake.
        first = _decode(lines[0][0], cut=longer and not lines[0][1])
    except UnicodeDecodeError:
        found.add("encoding_unsupported")
        found.loses_includes, found.readable = True, False
        return found
    if first.rstrip(" \t") != "---":
        _explain_absence(found, first, lines)
        return found
    closing = next(
        (n for n in range(1, len(lines)) if lines[n][1] and lines[n][0].rstrip(b" \t") in (b"---", b"...")),
        None,
    )
    if closing is None:
        found.add("frontmatter_too_large" if longer else "frontmatter_unterminated")
        found.loses_includes, found.readable = True, False
        return found
    try:
        inner = b"\n".join(line for line, _ in lines[1:closing]).decode("utf-8")
    except UnicodeDecodeError:
        found.add("encoding_unsupported")
        found.loses_includes, found.readable = True, False
        return found
    _read_block(found, inner + "\n" if closing > 1 else "")
    return found


def _lines(body: bytes, longer: bool) -> list[tuple[bytes, bool]]:
    """Split at the three line ends; each line with whether it is known to be whole."""
    lines: list[tuple[bytes, bool]] = []
    at = 0
    while True:
        match = LINE.match(body, at)
        if match is None:
            raise AssertionError("every position starts a line")
        lines.append((match[1], bool(match[2]) or not longer))
        at = match.end()
        if not match[2]:
            return lines


def _decode(line: bytes, cut: bool) -> str:
    if cut:
        for missing in range(4):
            try:
                return line[: len(line) - missing].decode("utf-8")
            except UnicodeDecodeError as error:
                if error.reason != "unexpected end of data":
                    raise
    return line.decode("utf-8")


def _explain_absence(found: Frontmatter, first: str, lines: list[tuple[bytes, bool]]) -> None:
    """F-3: no block opens on line 1; say so where the author seems to have meant one."""
    if LANGUAGE.fullmatch(first):
        found.add("frontmatter_language_unsupported", 1)
        found.loses_includes = True
        return
    inside_comment = False
    for number, (line, whole) in enumerate(lines, 1):
        if not inside_comment and whole and line.rstrip(b" \t") == b"---":
            found.add("frontmatter_not_first", number)
            return
        rest = line
        while True:
            if inside_comment:
                _, mark, rest = rest.partition(b"-->")
                if not mark:
                    break
                inside_comment = False
            rest = rest.lstrip(b" \t")
            if not rest.startswith(b"<!--"):
                break
            rest = rest[4:]
            inside_comment = True
        if rest and not inside_comment:
            return


def _read_block(found: Frontmatter, inner: str) -> None:
    # F-2: three YAML 1.1 line breaks are ordinary characters here, so libyaml must not see them.
    unused = (chr(point) for point in range(0xE000, 0xF8FF) if chr(point) not in inner)
    masks = {char: next(unused) for char in YAML_11_BREAKS}
    # The line end in front stands for the fence: libyaml drops a byte order mark where its input begins,
    # but F-1 drops only the file's own.
    masked = "\n" + inner.translate({ord(char): mask for char, mask in masks.items()})
    unmask = {ord(mask): char for char, mask in masks.items()}
    try:
        top = Composer(masked).get_single_node()
    except (YAMLError, RecursionError) as error:
        found.add("yaml_error", _error_line(error, masked))
        found.loses_includes, found.readable = True, False
        return
    if top is None:
        return
    if not isinstance(top, MappingNode):
        found.add("frontmatter_not_mapping")
        return

    seen: dict[tuple[str, str], list[tuple[Node, Node]]] = {}
    for key, value in top.value:
        if isinstance(key, ScalarNode):
            seen.setdefault((_kind(key), str(key.value).translate(unmask)), []).append((key, value))
    for (kind, name), pairs in seen.items():
        for key, _ in pairs[1:]:
            found.add("yaml_duplicate_key", _line(key))
        if len(pairs) > 1 and (kind, name) == ("string", "includes"):
            found.loses_includes = True
        if kind == "string" and name not in KEYS and re.sub(r"[_\- ]", "", name).lower() in NEAR_MISSES:
            found.add("unknown_key_near_miss", _line(pairs[0][0]))

    def value_of(name: str) -> tuple[Node, Node] | None:
        pairs = seen.get(("string", name), [])
        return pairs[0] if len(pairs) == 1 else None

    if pair := value_of("title"):
        if _kind(pair[1]) == "string":
            found.title = str(pair[1].value).translate(unmask)
        else:
            found.add("title_not_string", _line(pair[1]))
    if pair := value_of("canonical_path"):
        found.canonical_line = _line(pair[1])
        if _kind(pair[1]) == "string":
            found.canonical_path = str(pair[1].value).translate(unmask)
        elif _kind(pair[1]) != "null":
            found.add("canonical_path_invalid", _line(pair[1]))
    if pair := value_of("includes"):
        _read_includes(found, pair, unmask)


def _read_includes(found: Frontmatter, pair: tuple[Node, Node], unmask: dict[int, str]) -> None:
    value = pair[1]
    if _kind(value) == "null" or (_kind(value) == "string" and value.value == ""):
        return
    if not isinstance(value, SequenceNode):
        found.add("includes_not_list", _line(value))
        found.loses_includes = True
        return
    items = cast(Sequence[Node], value.value)
    for index, item in enumerate(items[:MAX_ENTRIES]):
        kind = _kind(item)
        raw = str(item.value).translate(unmask) if kind == "string" else None
        code = None
        if kind == "null" or (raw is not None and not raw.strip(" \t\r\n")):
            code = "include_empty"
        elif raw is None:
            code = "include_not_string"
            found.loses_includes = True
        if code:
            found.add(code, _line(item))
        found.entries.append(Entry(index, _line(item), raw, code))
    if len(items) > MAX_ENTRIES:
        found.add("too_many_includes")
        found.loses_includes = True


def _kind(node: Node) -> str:
    """F-5: what a node is under the YAML 1.2 core schema."""
    if not isinstance(node, ScalarNode):
        return "collection"
    if node.tag != STRING_TAG:
        return "tagged"
    if node.style in ("", None):
        if NULL.fullmatch(node.value):
            return "null"
        if OTHER.fullmatch(node.value):
            return "other"
    return "string"


def _line(node: Node) -> int:
    # Marks count from 0.
    return int(node.start_mark.line) + 1


def _error_line(error: Exception, text: str) -> int | None:
    if isinstance(error, ReaderError):
        match = UNREADABLE.search(text)
        return None if match is None else text.count("\n", 0, match.start()) + 1
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return None if mark is None else int(mark.line) + 1
    return None
