"""Progress on stderr: a moving line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from terascope.cli.command import errors

Told = Callable[[str, int, int], None]
Counted = Callable[[int, int], None]
Tasks = Callable[[], tuple[int, int] | None]
"""Returns the number of done and of all tasks of Spark; None when no task runs."""


class Counts(ProgressColumn):
    """3/8, where there is an end."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("")
        return Text(f"{int(task.completed):,}/{int(task.total):,}", style="green")


LOOK = 0.3
"""Seconds between two looks at Spark."""


@contextmanager
def counting(phase: str, total: int, unit: str, quiet: bool) -> Iterator[Counted | None]:
    """Progress of one thing that is counted."""
    console = errors()
    if quiet or not console.is_terminal:
        yield None
        return
    with bar(console, unit) as shown:
        task = shown.add_task(phase, total=total)
        yield lambda done, of: shown.update(task, completed=done, total=of)


@contextmanager
def phases(quiet: bool, tasks: Tasks | None = None) -> Iterator[Told]:
    """Progress of a run: what is being done and, while Spark works, how far its tasks are."""
    console = errors()
    if quiet:
        yield lambda phase, done, total: None
    elif not console.is_terminal:
        yield plain(console)
    else:
        with bar(console, "") as shown, watching(shown, tasks) as tell:
            yield tell


def plain(console: Console) -> Told:
    """A line when a phase begins."""
    seen: set[str] = set()

    def tell(phase: str, done: int, total: int) -> None:
        if phase not in seen:
            seen.add(phase)
            console.print(phase)

    return tell


def bar(console: Console, unit: str) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        Counts(),
        TextColumn(unit),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


@contextmanager
def watching(shown: Progress, tasks: Tasks | None) -> Iterator[Told]:
    """One line for the phase; Spark's own count of tasks while it is at work."""
    task = shown.add_task("starting", total=None)
    done = threading.Event()

    def count(finished: int, total: int) -> None:
        # A bar that is full would stop its clock, and one step is no count.
        if finished < total and total > 1:
            shown.update(task, completed=finished, total=total)

    def tell(phase: str, finished: int, total: int) -> None:
        shown.update(task, description=phase)
        count(finished, total)

    def watch() -> None:
        while not done.wait(LOOK):
            found = tasks() if tasks is not None else None
            if found is not None:
                count(*found)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield tell
    finally:
        done.set()
        watcher.join()
