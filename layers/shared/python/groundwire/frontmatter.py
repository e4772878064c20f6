"""Frontmatter, pure: the first bytes of a document in, what its author declared out (rules F-1 to F-9).

The block is composed into YAML nodes and never constructed into objects: no tag, alias, date or merge
key does anything. Only the first 65,536 bytes count, so indexer, fetcher and command line judge alike.
"""

import re
from dataclasses import dataclass
from typing import Final

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import BaseResolver

from groundwire.findings import Finding, finding
from groundwire.limits import HEAD_BYTES, INCLUDES_PER_DOCUMENT, MESSAGE_CHARS

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_OPENING: Final = re.compile(rb"---[ \t]*")
_CLOSING: Final = re.compile(rb"(?:---|\.\.\.)[ \t]*")
_LANGUAGE: Final = re.compile(rb"---[ \t]*([A-Za-z][\w+.#-]*)[ \t]*")
_COMMENT_END: Final = b"-->"
_BLANK_RUN: Final = re.compile(rb"[ \t]*")
_FENCE_LINE: Final = re.compile(rb"---[ \t]*(?=[\r\n]|\Z)")
_BLANKS: Final = " \t\r\n"

_STRING: Final = "tag:yaml.org,2002:str"
# YAML 1.2 core schema (chapter 10.3.2): what a plain scalar must look like not to be a string.
_NULL: Final = re.compile(r"(?:null|Null|NULL|~|)")
_NOT_STRING: Final = re.compile(
    r"(?:true|True|TRUE|false|False|FALSE"
    r"|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
)

# libyaml ends lines at these three, rule F-2 does not: they are masked while it looks.
_EXTRA_LINE_ENDS: Final = "\x85\u2028\u2029"
_PRIVATE_USE: Final = range(0xF0000, 0xFFFFE)
_UNREADABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KEYS: Final = ("title", "canonical_path", "includes")
_NEAR_MISSES: Final = {key.replace("_", "").rstrip("s"): key for key in _KEYS}


@dataclass(frozen=True, slots=True)
class Written:
    """A string as the author wrote it, and where (counted from 1)."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `includes`, as written; `code` is why it does not count, if it does not (I-2)."""

    index: int
    raw: str | None
    line: int
    column: int
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What a document declares, before any path is resolved."""

    title: str | None = None
    canonical_path: Written | None = None
    entries: tuple[Entry, ...] = ()
    """The first 100 entries as written, those that do not count among them."""
    findings: tuple[Finding, ...] = ()


def parse(content: bytes, size: int) -> Frontmatter:
    """The frontmatter of a document of `size` bytes, of which `content` holds the first 65,536 or more."""
    head, longer = content[:HEAD_BYTES], size > HEAD_BYTES
    start = len(_BOM) if head.startswith(_BOM) else 0
    first = _LINE_END.search(head, start)
    opening = head[start : first.start() if first else len(head)]
    if not _OPENING.fullmatch(opening):
        return _without_block(head, start, opening, first is None, longer=longer)
    block = _block(head, first, longer)
    if isinstance(block, Finding):
        return Frontmatter(findings=(block,))
    try:
        return _compose(block.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = 2 + len(_LINE_END.findall(block, 0, error.start))
        message = "The frontmatter holds bytes that are not UTF-8."
        return Frontmatter(findings=(finding("encoding_unsupported", message, line=line),))


def _block(head: bytes, first: re.Match[bytes] | None, longer: bool) -> bytes | Finding:
    """The bytes between the fences, or why there is no closing one; `first` ends the opening line."""
    start = line_start = first.end() if first else len(head)
    while line_start < len(head):
        end = _LINE_END.search(head, line_start)
        if longer and (end is None or _is_cut(end, head, first)):
            break
        if _CLOSING.fullmatch(head, line_start, end.start() if end else len(head)):
            return head[start:line_start]
        if end is None:
            break
        line_start = end.end()
    if longer:
        message = f"No closing --- within the first {HEAD_BYTES:,} bytes."
        return finding("frontmatter_too_large", message, line=1)
    return finding("frontmatter_unterminated", "The frontmatter is never closed.", line=1)


def _is_cut(end: re.Match[bytes], head: bytes, first: re.Match[bytes] | None) -> bool:
    """Whether a line end at the very end of the head is half of one, going by the file's own custom."""
    return end.end() == len(head) and end[0] == b"\r" and first is not None and first[0] == b"\r\n"


def _without_block(head: bytes, start: int, opening: bytes, endless: bool, *, longer: bool) -> Frontmatter:
    """A document whose first line opens no frontmatter: only that line is judged."""
    try:
        opening.decode("utf-8")
    except UnicodeDecodeError as error:
        # What a cut of the head may have halved is no fault of the document.
        if not (longer and endless and error.reason == "unexpected end of data"):
            message = "The document is not UTF-8 text."
            return Frontmatter(findings=(finding("encoding_unsupported", message, line=1),))
    tag = _LANGUAGE.fullmatch(opening)
    if tag:
        message = f"Frontmatter in the language {tag[1].decode()!r} is not read."
        return Frontmatter(findings=(finding("frontmatter_language_unsupported", message, line=1),))
    line = _late_fence(head, start, longer=longer)
    if line is None:
        return Frontmatter()
    message = "A frontmatter fence stands here, but frontmatter must begin on line 1."
    return Frontmatter(findings=(finding("frontmatter_not_first", message, line=line),))


def _late_fence(head: bytes, position: int, *, longer: bool) -> int | None:
    """The line of a fence that only blank lines and HTML comments precede; each byte is looked at once."""
    line = 1
    while True:
        blanks = _BLANK_RUN.match(head, position)
        position = blanks.end() if blanks else position
        if head.startswith(b"<!--", position):
            closed = head.find(_COMMENT_END, position + 4)
            if closed < 0:
                return None
            line += len(_LINE_END.findall(head, position, closed))
            position = closed + len(_COMMENT_END)
            continue
        end = _LINE_END.match(head, position)
        if end is None:
            return None
        position, line = end.end(), line + 1
        fence = _FENCE_LINE.match(head, position)
        if fence:
            return None if longer and fence.end() == len(head) else line


class _Composer(CParser, BaseResolver):
    """libyaml's nodes with nothing resolved: every untagged scalar is a string until we look."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        BaseResolver.__init__(self)


class _Masks:
    """Stand-ins, one for one, for the characters libyaml would take for line ends.

    They are private-use characters of four bytes each: more of them exist than a block has room for.
    """

    def __init__(self, text: str) -> None:
        used = set(text)
        spare = (chr(code) for code in _PRIVATE_USE if chr(code) not in used)
        pairs = [(mark, next(spare)) for mark in _EXTRA_LINE_ENDS if mark in used]
        self._hide = str.maketrans(dict(pairs))
        self._show = str.maketrans({mask: mark for mark, mask in pairs})

    def hide(self, text: str) -> str:
        return text.translate(self._hide)

    def show(self, text: str) -> str:
        return text.translate(self._show)


def _compose(block: str) -> Frontmatter:
    masks = _Masks(block)
    # The line end in front stands for the opening fence: marks then count from it.
    text = "\n" + masks.hide(block)
    try:
        node = _Composer(text).get_single_node()
    except yaml.YAMLError as error:
        return Frontmatter(findings=(_yaml_error(error, text, masks),))
    if node is None:
        return Frontmatter()
    if not isinstance(node, MappingNode):
        message = "The text between the --- lines is no list of keys; it is read as part of the document."
        return Frontmatter(findings=(finding("frontmatter_not_mapping", message, line=1),))
    return _Reading(masks).read(node)


class _Reading:
    """One pass over the top-level keys; collects findings as it goes."""

    def __init__(self, masks: _Masks) -> None:
        self._show = masks.show
        self._findings: list[Finding] = []

    def read(self, node: MappingNode) -> Frontmatter:
        values = self._unique(node)
        title = values.get("title")
        if title is not None and not _is_string(title):
            self._note("title_not_string", "The title is not text.", title)
        return Frontmatter(
            title=self._show(title.value) if title is not None and _is_string(title) else None,
            canonical_path=self._canonical_path(values.get("canonical_path")),
            entries=self._entries(values.get("includes")),
            findings=tuple(self._findings),
        )

    def _unique(self, node: MappingNode) -> dict[str, Node]:
        """The values of the string keys that occur once; remarks on the others (F-8, F-9)."""
        seen: dict[tuple[bool, str], list[tuple[Node, Node]]] = {}
        for key, value in node.value:
            if isinstance(key, ScalarNode):
                seen.setdefault((_is_string(key), key.value), []).append((key, value))
        values: dict[str, Node] = {}
        for (is_string, masked), pairs in seen.items():
            name, (first, value) = self._show(masked), pairs[0]
            for key, _ in pairs[1:]:
                message = f"The key {_quoted(name)} stands on lines {_line(first)} and {_line(key)}."
                self._note("yaml_duplicate_key", message, key, loses_includes=name == "includes")
            if is_string and len(pairs) == 1:
                values[name] = value
            near = _NEAR_MISSES.get(re.sub(r"[-_ ]", "", name).lower().rstrip("s"))
            if is_string and near and name not in _KEYS:
                message = f"The key {_quoted(name)} is not read; did you mean {near!r}?"
                self._note("unknown_key_near_miss", message, first)
        return values

    def _canonical_path(self, node: Node | None) -> Written | None:
        if node is None or _is_null(node):
            return None
        if not _is_string(node):
            self._note("canonical_path_invalid", "The canonical_path is not text.", node)
            return None
        return Written(self._show(node.value), _line(node), _column(node))

    def _entries(self, node: Node | None) -> tuple[Entry, ...]:
        if node is None or _is_null(node) or (_is_string(node) and not node.value):
            return ()
        if not isinstance(node, SequenceNode):
            self._note("includes_not_list", "The includes are not a list.", node)
            return ()
        if len(node.value) > INCLUDES_PER_DOCUMENT:
            message = f"{len(node.value)} includes are listed; only the first {INCLUDES_PER_DOCUMENT} count."
            self._note("too_many_includes", message, node.value[INCLUDES_PER_DOCUMENT])
        return tuple(
            self._entry(index, item) for index, item in enumerate(node.value[:INCLUDES_PER_DOCUMENT])
        )

    def _entry(self, index: int, node: Node) -> Entry:
        raw = self._show(node.value) if isinstance(node, ScalarNode) else None
        code = None
        if _is_null(node) or (_is_string(node) and not node.value.strip(_BLANKS)):
            code, message = "include_empty", f"Entry {index + 1} of includes is empty."
        elif not _is_string(node):
            what = _quoted(raw) if raw is not None else "a list or mapping"
            code, message = (
                "include_not_string",
                f"Entry {index + 1} of includes is {what}, which is not text.",
            )
        if code:
            self._note(code, message, node)
        return Entry(index, raw, _line(node), _column(node), code)

    def _note(self, code: str, message: str, node: Node, loses_includes: bool | None = None) -> None:
        self._findings.append(
            finding(code, message, line=_line(node), column=_column(node), loses_includes=loses_includes)
        )


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _column(node: Node) -> int:
    return int(node.start_mark.column) + 1


def _is_plain(node: ScalarNode) -> bool:
    return not node.style  # "" from libyaml; quoted and block scalars name their style


def _is_null(node: Node) -> bool:
    return (
        isinstance(node, ScalarNode)
        and node.tag == _STRING
        and _is_plain(node)
        and _NULL.fullmatch(node.value) is not None
    )


def _is_string(node: Node) -> bool:
    if not isinstance(node, ScalarNode) or node.tag != _STRING:
        return False
    return not _is_plain(node) or not (_NULL.fullmatch(node.value) or _NOT_STRING.fullmatch(node.value))


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "…")


def _yaml_error(error: yaml.YAMLError, text: str, masks: _Masks) -> Finding:
    """Where the YAML stops making sense, in the file's own lines (F-7)."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        line, column, problem = int(mark.line), int(mark.column), str(getattr(error, "problem", "") or "")
    else:
        bad = _UNREADABLE.search(text)
        before = re.split(r"\r\n|\r|\n", text[: bad.start() if bad else 0])
        line, column = len(before) - 1, len(before[-1])
        problem = f"character U+{ord(bad[0]):04X} is not allowed" if bad else "unreadable input"
    lines = re.split(r"\r\n|\r|\n", text)
    hint = _yaml_hint(masks.show(lines[line]) if line < len(lines) else "", column)
    message = masks.show(f"The frontmatter is not valid YAML: {problem or 'it cannot be read'}.")
    return finding("yaml_error", message, line=line + 1, column=column + 1, hint=hint)


_VALUE_START: Final = re.compile(r"^\s*(?:-\s+)*(?:[^\s:#'\"]+:\s+)?(?P<value>\S.*)?$")


def _yaml_hint(line: str, column: int) -> str | None:
    """What the author most likely meant to write on this line, which stops making sense at `column`."""
    if re.match(r"[ ]*\t", line):
        return "Indent with spaces; this line begins with a tab."
    stop = line[column : column + 1]
    if stop == "\t":
        return "Write a space in place of the tab."
    if stop and stop in "@`%":
        return f"Put the value between quotes: it begins with {stop}."
    found = _VALUE_START.match(line)
    value = (found["value"] if found else None) or ""
    if value.startswith("{{"):
        return "Put the value between quotes: it begins with {{."
    if value[:1] in ("*", "@", "`", "%", "&", "!"):
        return f"Put the value between quotes: it begins with {value[0]}."
    if value[:1] not in ("'", '"') and re.search(r":(?:\s|$)", value):
        return "Put the value between quotes: it holds a colon and a space."
    return None
