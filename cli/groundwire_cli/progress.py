"""What reindex prints for people: a bar for each storage root while it runs, one line at its end."""

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from groundwire_cli.reindexing import COUNTS, DeployedStack, Run
from groundwire_cli.wording import plural, visible

LOOK_EVERY_S = 2.0
_STYLES = {"invalid": "yellow", "failed": "red"}


def watch(stack: DeployedStack, runs: Sequence[Run], *, bars: bool = True) -> list[Run]:
    """The runs when all are over; on a terminal, with a bar for each meanwhile."""
    console = Console(stderr=True)
    if not (bars and console.is_terminal):
        return _followed(stack, runs, lambda _: None)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        tasks = {run.execution: progress.add_task(run.root, total=None, words="listing") for run in runs}

        def show(run: Run) -> None:
            task = tasks[run.execution]
            progress.update(task, total=run.listed or None, completed=run.done, words=words(run))

        return _followed(stack, runs, show)


def _followed(stack: DeployedStack, runs: Sequence[Run], show: Callable[[Run], None]) -> list[Run]:
    now = list(runs)
    while True:
        now = [run if run.is_over else stack.look(run) for run in now]
        for run in now:
            show(run)
        if all(run.is_over for run in now):
            return now
        time.sleep(LOOK_EVERY_S)


def words(run: Run) -> str:
    """`120 listed  3 indexed  117 unchanged ...`: of what is known yet."""
    known = (f"{run.counts[name]:,} {name}" for name in COUNTS if name in run.counts)
    return "  ".join([f"{run.listed:,} listed", *known])


def print_runs(runs: Sequence[Run]) -> None:
    """One line for each run, the documents that failed, and what to do about it."""
    console = Console(highlight=False, soft_wrap=True)
    for run in runs:
        symbol, style = ("✓", "green") if run.is_fine else ("✗", "red")
        line = Text.assemble((f"{symbol} ", style), (run.root, "bold"), f"  {plural(run.listed, 'object')}")
        for name in COUNTS:
            if name in run.counts:
                style = _STYLES.get(name, "") if run.counts[name] else "dim"
                line.append(f"  {run.counts[name]:,} {name}", style)
        console.print(line)
        for failure in run.failures:
            console.print(Text(f"    {failure['code']}  {visible(failure['key'])}", "red"))
        if run.status != "SUCCEEDED":
            console.print(Text(f"    {run.status} {run.cause}".rstrip(), "red"))
            console.print(Text(f"    → go on with what is missing: --resume {run.execution}"))
        elif not run.is_fine:
            console.print(Text("    → run it again: what is indexed already is left alone"))
