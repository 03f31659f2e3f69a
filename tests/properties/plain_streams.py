"""Streams without Spark: the same sources, tasks, slices and states, driven by a loop.

In: a compiled set and how it runs. Out: `PlainRun`, whose batches are run one by one, and which
can be killed within one. What Spark would do is done here: offsets are noted before a batch, and
that it is done after it; tasks run one after the other; and the high level is computed by the
reference. So a hundred random streams take a minute, and a batch can be killed at any step.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast
from unittest.mock import patch

from pyspark.sql import SparkSession

from terascope.connectors.live import Links, journal
from terascope.pipeline import Compiled
from terascope.spark.stream.runner import Runner, StreamRun
from terascope.streaming import batch as stream_batch
from terascope.streaming import closing, live_source
from terascope.streaming import release as stream_release
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.live_source import LiveSource, initial_offset
from terascope.streaming.replan.window_plans import WindowPlans
from terascope.streaming.state.manifest import GrowingResult
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.state import StateFolder
from terascope.streaming.tasks.read import read_tuples
from terascope.streams import planned_stream
from tests.properties.plain_high_level import PlainEngine
from tests.properties.stream_cases import KillPoint

Offset = dict[str, str]


# ---- Spark's part --------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


STEPS: Final[Mapping[KillPoint, tuple[object, str]]] = {
    "closing": (stream_batch.MicroBatch, "_closed"),
    "high level": (stream_release, "run_due"),
    "manifest": (GrowingResult, "deliver"),
    "state": (StateFolder, "save"),
}


@contextmanager
def killed_at(point: KillPoint | None, nth: int) -> Iterator[None]:
    """Killed before the nth step of that kind, if it comes to that."""
    if point is None or point not in STEPS:
        yield
        return
    owner, name = STEPS[point]
    step = getattr(owner, name)
    calls = itertools.count()

    def perhaps(*arguments: Any) -> Any:
        if next(calls) == nth:
            raise Killed(point)
        return step(*arguments)

    with patch.object(owner, name, perhaps):
        yield


@dataclass
class OffsetLog:
    """What Spark has in the checkpoint."""

    offsets: list[Offset] = field(default_factory=list)
    done: int = 0
    """Batches that are known to be done."""


class PlainRun:
    """A run of a set, from its checkpoint on."""

    def __init__(
        self,
        compiled: Compiled,
        settings: StreamRun,
        log: OffsetLog,
        now: Callable[[], int] | None = None,
    ) -> None:
        folder = RunFolder.of(settings.checkpoint)
        before = StateFolder(folder.state).newest()
        self.windows = WindowPlans.of(folder.path)
        plan = planned_stream(compiled, before, self.windows)
        self.reports: list[BatchReport] = []
        self._plan = compiled.optimized
        self._log = log
        self.runner = Runner(
            cast(SparkSession, None), plan, settings, self.reports.append, self.windows
        )
        source = self.source = self.runner.source()
        links = None
        if now is not None:
            links = Links(
                source.interfaces, source.clocks, source.edge, source.settings, source.journal, now
            )
        self.live = LiveSource(source, links)

    @property
    def ended(self) -> bool:
        return self.runner.ended

    def step(self, kill: KillPoint | None = None, nth: int = 0) -> bool:
        """Run the next batch, or the one that was not done; whether there was one.

        Raises:
            Killed: at that step of the batch.
        """
        log = self._log
        again = log.done < len(log.offsets)
        start = log.offsets[log.done - 1] if log.done else initial_offset(self.source)
        if not again:
            end = self.live.latest(start)
            if end == start:
                return False
            noted = self.runner.run.checkpoint / "offsets" / str(len(log.offsets))
            noted.parent.mkdir(parents=True, exist_ok=True)
            noted.touch()
            log.offsets.append(json.loads(json.dumps(end)))
            if log.done:
                self.live.commit(start)
        with killed_at(kill, nth):
            self.batch(start, log.offsets[log.done])
        if kill == "noted":
            raise Killed(kill)
        log.done += 1
        return True

    def batch(self, start: Offset, end: Offset) -> None:
        tasks = self.live.tasks(start, end)
        told = [row for task in tasks for row in read_tuples(self.source, task)]
        self.runner.pipeline.run(self._log.done, lambda: told, PlainEngine(self._plan))

    def close(self) -> None:
        self.runner.close()


@contextmanager
def limited_to(portion: int | None) -> Iterator[None]:
    """Slices close in portions of so many bytes, few segments are put together already, and what
    nobody needs is removed at once.
    """
    if portion is None:
        yield
        return
    with (
        patch.object(stream_batch, "portion_of", lambda state: portion),
        patch.object(live_source, "portion_of", lambda state: portion),
        patch.object(stream_batch, "GRACE_SECONDS", -1.0),
        patch.object(closing, "MANY_SEGMENTS", 3),
        patch.object(journal, "MOST_WEIGHT", 0),
    ):
        yield
