"""A running stream on stderr while it runs.

In: a `Status` after every micro-batch. Out: on a terminal tables that stand still, elsewhere a
plain line every ten seconds and at every change of state.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from terascope.cli.status_view import StatusView, first_line
from terascope.operate.notices import stall_text
from terascope.operate.status import Status
from terascope.units import readable_bytes, readable_count, readable_seconds

BETWEEN_LINES: Final = 10.0
"""Seconds between two plain lines when nothing happens."""


def stderr_console() -> Console:
    """Stderr for tables: lines end at the edge of the terminal."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


class LiveView:
    """Shows status after status. Use it in a `with`; the last one stays on the screen."""

    def __init__(
        self,
        console: Console | None = None,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or stderr_console()
        self._quiet = quiet
        self._clock = clock
        self._live: Live | None = None
        self._printed: tuple[object, ...] | None = None
        self._printed_at = 0.0

    def __enter__(self) -> LiveView:
        if not self._quiet and self._console.is_terminal:
            # Drawn when there is something new and at no other time: nothing flickers. What goes to
            # stdout is left alone when it goes elsewhere: it is somebody's rows.
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                vertical_overflow="crop",
                redirect_stdout=sys.stdout.isatty(),
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, status: Status) -> None:
        """The newest status."""
        if self._quiet:
            return
        if self._live is not None:
            # One line less than there are: the cursor stands in the last.
            height = self._console.size.height - 1
            self._live.update(StatusView(status, height), refresh=True)
        elif self._is_news(status):
            self._console.print(Text(plain_line(status)), soft_wrap=True)

    def _is_news(self, status: Status) -> bool:
        news = events(status)
        now = self._clock()
        if news == self._printed and now - self._printed_at < BETWEEN_LINES:
            return False
        self._printed, self._printed_at = news, now
        return True


def events(status: Status) -> tuple[object, ...]:
    """Facts whose change is printed at once."""
    stalled = tuple((s.name, s.stalled) for s in status.sources if s.stalled is not None)
    run = status.run
    return run.state, run.restarts, run.last_error, stalled, tuple(status.parameters.items())


def plain_line(status: Status) -> str:
    """The status in one line."""
    run = status.run
    rate = readable_count(sum(source.rate for source in status.sources))
    rows = readable_count(sum(query.rows for query in status.queries if query.visible))
    memory = readable_bytes(run.driver_memory_bytes + run.worker_memory_bytes)
    backlog = sum(source.backlog_bytes for source in status.sources)
    batch = f"batch {run.batch:,} in {readable_seconds(run.batch_seconds)}"
    parts = [
        *([batch] if run.batch >= 0 else ()),
        f"{rate} tuples/s",
        f"{rows} rows",
        *slowest(status),
        *([f"backlog {readable_bytes(backlog)}"] if backlog else ()),
        f"store {readable_bytes(status.store.bytes)}",
        f"memory {memory}",
    ]
    for word, number in (
        ("late", sum(source.late for source in status.sources)),
        ("malformed", sum(source.malformed for source in status.sources)),
        ("restart" if run.restarts == 1 else "restarts", run.restarts),
    ):
        if number:
            parts.append(f"{number:,} {word}")
    parts += [stall_text(s) for s in status.sources if s.stalled is not None]
    parts += [f"{s.name} is a replay" for s in status.sources if s.replay]
    if run.last_error and run.state != "running":
        parts.append(f"last error: {first_line(run.last_error)}")
    return f"{run.state}: {', '.join(parts)}"


def slowest(status: Status) -> list[str]:
    """The query that lags most."""
    lags = [(q.lag_seconds, q.name) for q in status.queries if q.lag_seconds is not None]
    if not lags:
        return []
    lag, name = max(lags)
    return [f"lag {readable_seconds(lag)} ({name})"]
