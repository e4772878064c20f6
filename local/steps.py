"""The steps of the demo, shown while they run: moving on a terminal, line by line elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text


class Step:
    """A running step, which may say how far it is and what came of it."""

    def __init__(self, progress: Progress, title: str, total: int | None) -> None:
        self.result = ""
        self._progress = progress
        self._task = progress.add_task(title, total=total)

    def advance(self, done: int) -> None:
        """`done` of the total that the step was begun with."""
        self._progress.update(self._task, completed=done)


@contextmanager
def step(console: Console, title: str, total: int | None = None) -> Iterator[Step]:
    """One step; with `total` it has a bar that fills. A failed one is marked and its error goes on."""
    if not console.is_terminal:
        console.print(f"… {title}")
    columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    if total is not None:
        columns[2:2] = [BarColumn(bar_width=24), MofNCompleteColumn()]
    started = time.monotonic()
    mark = ("✗", "red")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        running = Step(progress, title, total)
        try:
            yield running
            mark = ("✓", "green")
        finally:
            seconds = f"  {time.monotonic() - started:.1f} s"
            progress.console.print(Text.assemble(mark, f" {title}", (seconds, "cyan"), f"  {running.result}"))
