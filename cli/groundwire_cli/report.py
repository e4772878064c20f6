"""What lint and explain print for people. Without colour, symbols and words say the same."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.text import Text

from groundwire.dependents import Dependent
from groundwire.findings import Finding
from groundwire.pointers import Location
from groundwire_cli.linting import Keys, LintedDocument, LintResult
from groundwire_cli.tree import bundle_tree
from groundwire_cli.wording import FINDING_STYLES, VERDICT_STYLES, plural, size, visible

_WIDTH_OF_A_FILE = 160
_MANY = 500


def _console() -> Console:
    """Standard output; what goes to a file or a pipe is not cut to a terminal's width."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDTH_OF_A_FILE
    return console


def watched(keys: Keys) -> Iterable[tuple[Path, str]]:
    """The documents one by one, with a bar on a terminal where there are many."""
    console = Console(stderr=True)
    if len(keys) < _MANY or not console.is_terminal:
        return keys
    return track(keys, "linting", console=console, transient=True)


def print_lint(result: LintResult) -> None:
    """Each document with remarks, its lines shown, then one line of totals."""
    console = _console()
    for document in result.documents:
        if document.findings:
            _print_document(console, document)
    for error in result.unreadable:
        console.print(Text(f"✗ {visible(str(error))}", "red"))
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
    console.print(Text.assemble((f"{symbol} ", style), (visible(document.location.relative_path), "bold")))
    lines = _lines(document)
    for finding in sorted(document.findings, key=lambda each: (each.line or 0, each.column or 0)):
        _print_finding(console, finding, lines)
    console.print()


def _print_finding(console: Console, finding: Finding, lines: Sequence[str]) -> None:
    style, symbol = FINDING_STYLES[finding.severity]
    where = f"{finding.line}:{finding.column or 1}" if finding.line else "-"
    console.print(
        Text.assemble(f"  {where:>7} ", (f"{symbol} {finding.code}", style), f"  {visible(finding.message)}")
    )
    if finding.line and finding.column and finding.line <= len(lines):
        source = lines[finding.line - 1]
        if len(source) <= 200:
            before = source[: finding.column - 1]
            console.print(Text(f"          {visible(source)}", "dim"))
            console.print(Text(f"          {' ' * len(visible(before))}^", style))
    if finding.hint:
        console.print(Text(f"          → {visible(finding.hint)}"))


def _lines(document: LintedDocument) -> list[str]:
    text = document.file.read_bytes()[:65_536].decode("utf-8", "replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def print_bundles(bundles: Sequence[Mapping[str, Any]]) -> None:
    """Each bundle as a tree, with its totals."""
    console = _console()
    for bundle in bundles:
        console.print(bundle_tree(bundle))
        total = sum(each["sizeBytes"] for each in bundle["included"])
        complete = "[green]✓ complete[/]" if bundle["complete"] else "[red]✗ not complete[/]"
        aborted = "  [red]✗ aborted[/]" if bundle["aborted"] else ""
        policy, documents = bundle["policy"], plural(1 + len(bundle["included"]), "document")
        console.print(
            f"{complete}{aborted}  {documents} of {policy['maxDocs']},"
            f" {size(total)} of {size(policy['maxIncludeBytes'])} included,"
            f" depth at most {policy['maxDepth']}\n"
        )


def print_grounded(answer: Mapping[str, Any]) -> None:
    """An answer of `POST /v1/ground`: its bundles, what became of each source, and what has no body."""
    console = _console()
    if answer.get("abridged"):
        # Where reports are cut, edges no longer match skips: there is no tree to draw.
        console.print(Text("✗ abridged: the reports would not have fitted", "red"))
        for document in answer["allDocumentsForAttachment"]:
            console.print(Text(f"✓ {visible(document['uri'])}  {size(document['sizeBytes'])}"))
    else:
        print_bundles([each for each in answer["compositionBundles"] or () if each])
    for source in answer["sources"]:
        if source["code"]:
            what = source["uri"] or f"source {source['index']}"
            why = ": ".join(filter(None, (source["code"], source["detail"])))
            console.print(Text(f"✗ {visible(what)}  {visible(why)}", "red"))
    for document in answer["allDocumentsForAttachment"]:
        if document.get("undelivered"):
            console.print(
                Text(f"✗ {visible(document['uri'])}  undelivered: {document['undelivered']}", "red")
            )
    count = plural(len(answer["allDocumentsForAttachment"]), "document")
    console.print(f"{count}, {'[green]✓ complete[/]' if answer['complete'] else '[red]✗ not complete[/]'}")


def print_dependents(location: Location, found: Sequence[Dependent]) -> None:
    """Each document that would lose this one, with the chain that leads there."""
    console = _console()
    for each in found:
        style, symbol = VERDICT_STYLES[each.node.verdict]
        chain = " → ".join(visible(uri.removeprefix(location.root.uri(""))) for uri in each.why)
        console.print(Text.assemble((f"{symbol} ", style), chain))
    name = visible(location.relative_path)
    console.print(f"{plural(len(found), 'document')} would lose {name}", markup=False)
