"""What there is to say of a document because of others: its targets and its canonical_path (I-5, C-3, X-6).

Pure: the other documents' nodes in, the judged node out. Judged again whenever one of them comes or goes,
so a node says at any time what a fresh look at the whole bucket would say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from groundwire.findings import Finding, finding, kept, verdict
from groundwire.includes import Include, find, quoted
from groundwire.limits import FINDINGS_STORED, INCLUDE_CHARS_STORED
from groundwire.nodes import Node
from groundwire.pointers import Location

LOOKED_UP = frozenset({"target_missing", "unicode_form_differs", "canonical_path_conflict"})
"""Codes that depend on other documents; all others follow from the document alone."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a node is judged by."""

    stored: Mapping[str, Node]
    """The living nodes among its `lookups()`, by URI."""
    moved: Mapping[str, Location] = field(default_factory=dict)
    """Where the content of a missing target is now, by the target's URI."""
    rivals: Sequence[Location] = ()
    """Other living documents that claim the same canonical_path."""


def judged(node: Node, around: Surroundings) -> Node:
    """The node with its includes' targets as they are, and the findings and verdict that follow."""
    own = [each for each in node.findings if each.code not in LOOKED_UP]
    remarks: list[Finding] = []
    includes = tuple(
        _judge(each, node, around, remarks) if _is_looked_up(each) else each for each in node.includes
    )
    if around.rivals and node.canonical_path is not None:
        others = ", ".join(sorted(repr(rival.relative_path) for rival in around.rivals))
        remarks.append(
            finding(
                "canonical_path_conflict",
                f"{node.canonical_path[:INCLUDE_CHARS_STORED]!r} is also claimed by {others}.",
            )
        )
    # The node's own findings cannot be found again here, so these take what room is left.
    findings = (*own, *kept(remarks, FINDINGS_STORED - len(own)))
    previously = sum(each.code in LOOKED_UP for each in node.includes)
    previously += any(each.code == "canonical_path_conflict" for each in node.findings)
    return replace(
        node,
        includes=includes,
        findings=findings,
        finding_count=node.finding_count - previously + len(remarks),
        verdict=verdict(findings),
    )


def _is_looked_up(include: Include) -> bool:
    return include.key is not None and include.code in (None, "target_missing", "unicode_form_differs")


def _judge(include: Include, node: Node, around: Surroundings, remarks: list[Finding]) -> Include:
    assert include.key is not None
    key, code = find(include.key, lambda key: key if node.location.at(key).uri in around.stored else None)
    target = node.location.at(key or include.key)
    moved = around.moved.get(target.uri)
    message = hint = None
    raw = quoted(include.raw or "")
    if code == "target_missing":
        message = f"{raw} names {include.key[:INCLUDE_CHARS_STORED]!r}, which is not in the index."
        hint = (
            f"The same content is at {moved.relative_path[:INCLUDE_CHARS_STORED]!r} now." if moved else None
        )
    elif code:
        message = f"{raw} names a document that is stored as {(key or '')[:INCLUDE_CHARS_STORED]!a}."
    if code and message:
        remark = finding(code, message, line=include.line, column=include.column, hint=hint)
        remarks.append(replace(remark, moved_to=moved.uri) if moved else remark)
    stored = key if key is not None and key != include.key else None
    return replace(include, code=code, stored=stored)
