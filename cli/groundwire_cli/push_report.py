"""What push shows people: a bar while it runs, a line for each document that was not as it should be."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.text import Text

from groundwire_cli.pushing import OUTCOMES, Outcome, Pushed
from groundwire_cli.wording import FINDING_STYLES, plural, visible

_STYLES: Final[dict[Outcome, tuple[str, str]]] = {
    "uploaded": ("green", "✓"),
    "would_upload": ("green", "→"),
    "unchanged": ("dim", "="),
    "invalid": ("red", "✗"),
    "failed": ("red", "✗"),
}
_WORDS: Final[dict[Outcome, str]] = {"would_upload": "would be uploaded"}


def bar(documents: Iterator[Pushed], total: int, words: str) -> Iterable[Pushed]:
    """The documents as they come, with a bar on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return documents
    return track(documents, words, total=total, console=console, transient=True)


def print_push(documents: Sequence[Pushed]) -> None:
    """Where each document went, or why it did not, then one line of totals."""
    console = Console(highlight=False, soft_wrap=True)
    for document in documents:
        if document.outcome != "unchanged" or document.findings:
            _print_document(console, document)
    counts = Counter(each.outcome for each in documents)
    line = Text(plural(len(documents), "document"))
    for outcome in OUTCOMES:
        if counts[outcome]:
            style, symbol = _STYLES[outcome]
            line.append(f"  {symbol} {counts[outcome]:,} {_WORDS.get(outcome, outcome)}", style)
    console.print(line)


def _print_document(console: Console, document: Pushed) -> None:
    style, symbol = _STYLES[document.outcome]
    line = Text.assemble((f"{symbol} ", style), (visible(document.path), "bold"))
    if document.place != document.path:
        line.append(f" → {visible(document.place)}")
    if document.problem:
        line.append(f"  {visible(document.problem)}", "red")
    console.print(line)
    for each in sorted(document.findings, key=lambda found: (found.line or 0, found.column or 0)):
        where = f"{each.line}:{each.column or 1}" if each.line else "-"
        colour, mark = FINDING_STYLES[each.severity]
        console.print(
            Text.assemble(f"  {where:>7} ", (f"{mark} {each.code}", colour), f"  {visible(each.message)}")
        )
        if each.hint:
            console.print(Text(f"          → {visible(each.hint)}"))
