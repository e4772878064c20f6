"""What can be said about a document: one table of codes, their severity and what to do.

Findings are errors unless the contract calls them warning or information (spec section 2).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from groundwire.limits import HEAD_BYTES, INCLUDES_PER_DOCUMENT, KEY_BYTES, MESSAGE_CHARS_STORED

Severity = Literal["error", "warning", "information"]
Verdict = Literal["valid", "warnings", "invalid"]

_E: Final = "error"
_W: Final = "warning"
_I: Final = "information"

CODES: Final[dict[str, tuple[Severity, str]]] = {
    # frontmatter (F)
    "encoding_unsupported": (_E, "Save the file as UTF-8."),
    "frontmatter_too_large": (
        _E,
        f"Close the frontmatter with a line --- within the first {HEAD_BYTES:,} bytes.",
    ),
    "frontmatter_unterminated": (_E, "Add a line --- after the last frontmatter key."),
    "frontmatter_language_unsupported": (_W, "Write --- alone on the first line; only YAML is read."),
    "frontmatter_not_first": (_W, "Move the frontmatter to the very first line of the file."),
    "frontmatter_not_mapping": (
        _W,
        "If this is frontmatter, write it as `key: value` lines; if it is a rule, nothing is wrong.",
    ),
    "yaml_error": (_E, "Correct the YAML; put values with special characters between quotes."),
    "yaml_duplicate_key": (_E, "Keep one of the two keys; until then neither counts."),
    "title_not_string": (_W, "Put the title between quotes."),
    "unknown_key_near_miss": (_W, "Rename the key, or ignore this if it is meant for another tool."),
    "not_readable": (_E, "Grant the indexer access to the object, or to the key that encrypts it."),
    "unsupported_mime": (_I, "Keep a PDF of it beside it; models take no Office files."),
    # includes (I)
    "includes_not_list": (_E, "Write includes as a list: one `- path` a line."),
    "include_not_string": (_E, "Put the path between quotes."),
    "include_empty": (_W, "Remove the empty entry, or write a path."),
    "too_many_includes": (_E, f"List at most {INCLUDES_PER_DOCUMENT} includes; split the document."),
    "include_absolute": (_E, "Write the path relative to this document, as ./x.md or ../y/x.md."),
    "include_url": (_E, "Include a document of this knowledge base by its relative path."),
    "include_backslash": (_E, "Write forward slashes: folder/file.md."),
    "include_control_character": (_E, "Retype the path; it holds a character that cannot be seen."),
    "include_escapes_root": (_E, "Name a document inside the storage root."),
    "include_encoded_traversal": (_E, "Write the path plainly, without percent codes for / or dots."),
    "include_is_directory": (_E, "Name a file, not a folder."),
    "include_empty_segment": (_E, "Remove the doubled slash."),
    "include_too_long": (_E, f"Shorten the path: a key has at most {KEY_BYTES:,} bytes."),
    "include_duplicate": (_I, "The document is listed twice; the first entry counts."),
    "self_include": (_I, "The document includes itself; the entry has no effect."),
    "unicode_form_differs": (_W, "The name is stored in another Unicode form; copy it from the file list."),
    "target_missing": (_E, "Upload the document, or correct the path."),
    # canonical_path (C)
    "canonical_path_invalid": (_E, "Write a relative path from the storage root, like sops/x.md."),
    "canonical_path_mismatch": (_W, "Move the document to its canonical_path, or correct the key."),
    "canonical_path_conflict": (_E, "Give each document a canonical_path of its own."),
    "canonical_path_missing": (_W, "Declare a canonical_path; until then the upload stays in the inbox."),
    "placement_refused": (_E, "Declare a canonical_path below the folders that the inbox may place into."),
}

LOSES_INCLUDES: Final = frozenset(
    {
        "encoding_unsupported",
        "frontmatter_too_large",
        "frontmatter_unterminated",
        "frontmatter_language_unsupported",
        "not_readable",
        "yaml_error",
        "includes_not_list",
        "include_not_string",
        "too_many_includes",
    }
)
"""B-6: findings after which a document may have includes that nobody saw."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark; `line` and `column` count from 1 in the stored file."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""
    loses_includes: bool = False
    """Whether includes may have been lost unseen (rule B-6)."""
    moved_to: str | None = None
    """The URI where a missing target's content is now, as far as its fingerprint tells (X-6)."""

    @property
    def severity(self) -> Severity:
        return CODES[self.code][0]


def finding(
    code: str,
    message: str,
    *,
    line: int | None = None,
    column: int | None = None,
    hint: str | None = None,
    loses_includes: bool | None = None,
) -> Finding:
    """A finding with the hint and the weight that the table gives its code."""
    lost = code in LOSES_INCLUDES if loses_includes is None else loses_includes
    return Finding(code, message, line, column, CODES[code][1] if hint is None else hint, lost)


def verdict(findings: Iterable[Finding]) -> Verdict:
    """`invalid` with any error, else `warnings` with any warning, else `valid`."""
    severities = {each.severity for each in findings}
    if _E in severities:
        return "invalid"
    return "warnings" if _W in severities else "valid"


def kept(findings: Iterable[Finding], most: int) -> tuple[Finding, ...]:
    """Findings as a node holds them: the first of each code whatever comes, then the others up to `most`.

    So the verdict and the codes of what is kept are those of all.
    """
    cut = [replace(each, message=each.message[:MESSAGE_CHARS_STORED]) for each in findings]
    firsts: dict[str, int] = {}
    for number, each in enumerate(cut):
        firsts.setdefault(each.code, number)
    others = [number for number in range(len(cut)) if number not in firsts.values()]
    chosen = sorted([*firsts.values(), *others[: max(0, most - len(firsts))]])
    return tuple(cut[number] for number in chosen)
