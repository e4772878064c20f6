"""What lint and explain print for people. Without colour, symbols and words say the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from groundwire.findings import Finding
from groundwire_cli.linting import LintedDocument, LintResult
from groundwire_cli.tree import bundle_tree
from groundwire_cli.wording import FINDING_STYLES, VERDICT_STYLES, plural, size


def print_lint(result: LintResult) -> None:
    """Each document with remarks, its lines shown, then one line of totals."""
    console = Console(highlight=False, soft_wrap=True)
    for document in result.documents:
        if document.findings:
            _print_document(console, document)
    for error in result.unreadable:
        console.print(Text(f"✗ {error}", "red"))
    summary = result.as_json()["summary"]
    parts = [plural(summary["documents"], "document")]
    for name in ("valid", "warnings", "invalid"):
        style, symbol = VERDICT_STYLES[name]
        parts.append(
            f"[{style}]{symbol} {summary[name]} {'with warnings' if name == 'warnings' else name}[/]"
        )
    console.print("  ".join(parts))


def _print_document(console: Console, document: LintedDocument) -> None:
    style, symbol = VERDICT_STYLES[document.verdict]
    console.print(Text.assemble((f"{symbol} ", style), (document.location.relative_path, "bold")))
    lines = _lines(document)
    for finding in sorted(document.findings, key=lambda each: (each.line or 0, each.column or 0)):
        _print_finding(console, finding, lines)
    console.print()


def _print_finding(console: Console, finding: Finding, lines: Sequence[str]) -> None:
    style, symbol = FINDING_STYLES[finding.severity]
    where = f"{finding.line}:{finding.column or 1}" if finding.line else "-"
    console.print(
        Text.assemble(f"  {where:>7} ", (f"{symbol} {finding.code}", style), f"  {_visible(finding.message)}")
    )
    if finding.line and finding.column and finding.line <= len(lines):
        source = lines[finding.line - 1]
        if len(source) <= 200:
            before = source[: finding.column - 1]
            console.print(Text(f"          {_visible(source)}", "dim"))
            console.print(Text(f"          {' ' * len(_visible(before))}^", style))
    if finding.hint:
        console.print(Text(f"          → {_visible(finding.hint)}"))


def _lines(document: LintedDocument) -> list[str]:
    text = document.file.read_bytes()[:65_536].decode("utf-8", "replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _visible(text: str) -> str:
    """The text with what a terminal would obey or hide made visible."""
    return "".join(char if char.isprintable() or char == " " else f"<U+{ord(char):04X}>" for char in text)


def print_bundles(bundles: Sequence[Mapping[str, Any]]) -> None:
    """Each bundle as a tree, with its totals."""
    console = Console(highlight=False, soft_wrap=True)
    for bundle in bundles:
        console.print(bundle_tree(bundle))
        total = sum(each["sizeBytes"] for each in bundle["included"])
        complete = "[green]✓ complete[/]" if bundle["complete"] else "[red]✗ not complete[/]"
        aborted = "  [red]✗ aborted[/]" if bundle["aborted"] else ""
        policy = bundle["policy"]
        console.print(
            f"{complete}{aborted}  {plural(1 + len(bundle['included']), 'document')} of {policy['maxDocs']},"
            f" {size(total)} of {size(policy['maxIncludeBytes'])} included, depth at most {policy['maxDepth']}\n"
        )
