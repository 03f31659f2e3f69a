"""Runs the stream of a case on Spark, as a program would.

In: a `StreamCase`, a session and a folder. Out: results in `FOLDER/out`, and how many micro-batches
there were. A kill of the case is a batch that Spark does not know to be done: the newest file of
its commits is removed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from terascope.running import RunningSet, open_running
from tests.properties.stream_cases import Stop, StreamCase
from tests.settings import Changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from terascope.streaming.heartbeat import BatchReport

PATIENCE: Final = 120.0
"""Seconds after which a run hangs that says nothing."""


@dataclass
class Watching:
    """Hears of every batch of one run, and when so many of them are done."""

    after: int
    done: int = 0
    tuples: int = 0
    late: int = 0
    reached: threading.Event = field(default_factory=threading.Event)

    def __call__(self, report: BatchReport) -> None:
        self.done += 1
        self.tuples = sum(seen.tuples for seen in report.state.seen.values())
        self.late = sum(seen.late for seen in report.state.seen.values())
        if self.done > self.after or report.state.ended:
            self.reached.set()


@dataclass(frozen=True)
class SparkRuns:
    """The runs of one case, one after the other on the same checkpoint."""

    spark: SparkSession
    case: StreamCase
    folder: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def replay(self) -> Watching:
        """The files as they are, as fast as can be, with the stops of the case."""
        for stop, tasks in zip(self.case.stops, self.case.tasks, strict=False):
            self.stopped(stop, tasks)
        watching = Watching(0)
        with self.running(self.case.tasks[-1], watching) as running:
            assert running.wait(PATIENCE), f"seed {self.case.seed}: the stream hangs"
        return watching

    def stopped(self, stop: Stop, tasks: int) -> None:
        """A run that is not left to its end."""
        watching = Watching(stop.after)
        with self.running(tasks, watching) as running:
            while not watching.reached.wait(0.2):
                assert not running.wait(0), "it is over, and its last batch was not told"
        running.wait(0)  # tells why it failed, if it did
        if stop.kill is not None:
            forget_newest(self.checkpoint)

    def running(self, tasks: int, watching: Watching) -> RunningSet:
        settings: Changes = {
            "speed": "max",
            "until_idle": True,
            "heartbeat": self.case.heartbeat_seconds,
            "trigger": 0,
            "batch_bytes": self.case.batch_bytes,
            "tasks": tasks,
        }
        return open_running(
            lambda: self.spark,
            self.case.compiled.with_settings(**settings),
            self.checkpoint,
            self.folder / "out",
            self.case.format,
            watching,
            restarted,
        )


def restarted(why: str) -> None:
    raise AssertionError(why)


def forget_newest(checkpoint: Path) -> None:
    """As if Spark had been killed before it noted that the newest batch was done."""
    done = [path for path in (checkpoint / "commits").glob("*") if path.name.isdigit()]
    if done:
        newest = max(done, key=lambda path: int(path.name))
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
