"""Runs the stream of a case without Spark, from stop to stop.

In: a `StreamCase` and a folder. Out: results in `FOLDER/out`, and a `Trace`: what happened on the
way, for tests that must not be about nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from terascope.connectors.live import LiveSettings, Speed
from terascope.spark.stream.runner import StreamRun
from tests.properties.growing_files import Growing
from tests.properties.plain_streams import Killed, OffsetLog, PlainRun
from tests.properties.stream_cases import Stop, StreamCase
from tests.settings import config_with

MEMORY: Final = 1 << 28
LOOKS: Final = 8
"""So often an idle stream is looked at before it must have ended."""


@dataclass
class Trace:
    """What happened to a stream."""

    batches: int = 0
    restarts: int = 0
    kills: int = 0
    late: int = 0
    early: int = 0
    """Queries that gave rows in a batch before the last."""
    log: OffsetLog = field(default_factory=OffsetLog)


@dataclass(frozen=True)
class CaseRuns:
    """The runs of one case, one after the other on the same checkpoint."""

    case: StreamCase
    folder: Path
    trace: Trace = field(default_factory=Trace)

    def replay(self) -> Trace:
        """The files as they are, as fast as can be, with the stops of the case."""
        live = self.live(Speed.parse("max"), until_idle=True)
        for stop, tasks in zip(self.case.stops, self.case.tasks, strict=False):
            self.until_stopped(self.opened(live, tasks), stop)
        self.to_the_end(self.opened(live, self.case.tasks[-1]))
        return self.trace

    def follow(self, growing: Growing) -> Trace:
        """The files as they grow; only when all is there the stream may come to its end."""
        live = self.live(None, until_idle=False)
        stops = list(zip(self.case.stops, self.case.tasks, strict=False))
        tasks = self.case.tasks[-1]
        run: PlainRun | None = None
        while not growing.finished:
            growing.grow()
            if stops and run is None:
                stop, tasks = stops.pop(0)
                self.until_stopped(self.opened(live, tasks, growing.now_ns), stop)
            else:
                run = run or self.opened(live, tasks, growing.now_ns)
                while run.step():
                    self.trace.batches += 1
                if growing.rng.random() < 0.2:
                    self.closed(run)
                    run = None
        if run is not None:
            self.closed(run)
        self.to_the_end(self.opened(self.live(None, until_idle=True), tasks, growing.now_ns))
        return self.trace

    # ---- one run

    def opened(
        self, live: LiveSettings, tasks: int, now: Callable[[], int] | None = None
    ) -> PlainRun:
        settings = StreamRun(
            self.folder / "checkpoint",
            self.folder / "out",
            format=self.case.format,
            live=live,
            config=config_with(
                trigger=0.0,
                memory_bytes=MEMORY,
                kernels=self.case.compiled.bindings.config.kernels,
                tasks=tasks,
            ),
        )
        return PlainRun(self.case.compiled, settings, self.trace.log, now)

    def live(self, speed: Speed | None, until_idle: bool) -> LiveSettings:
        beat = round(self.case.heartbeat_seconds * 1e9)
        if speed is None and "CLOSING_WHEN" in self.case.compiled.source.text:
            beat = 0  # or silence after the last tuple would have epochs, which a batch has not
        split_bytes = self.case.compiled.bindings.cut_bytes(live=True)
        return LiveSettings(speed, until_idle, beat, split_bytes, self.case.batch_bytes)

    def until_stopped(self, run: PlainRun, stop: Stop) -> None:
        try:
            for _ in range(stop.after):
                if run.ended or not run.step():
                    break
                self.trace.batches += 1
            if stop.kill is not None and not run.ended:
                run.step(stop.kill, stop.nth)
                self.trace.batches += 1
        except Killed:
            self.trace.kills += 1
        self.closed(run)
        if stop.torn and stop.kill is not None:
            tear(self.folder)

    def closed(self, run: PlainRun) -> None:
        self.note_early(run)
        run.close()
        self.trace.restarts += 1

    def note_early(self, run: PlainRun) -> None:
        for report in run.reports:
            if not report.state.ended:
                self.trace.early += sum(rows > 0 for rows in report.delivered.values())

    def to_the_end(self, run: PlainRun) -> None:
        idle = 0
        while not run.ended:
            if run.step():
                self.trace.batches += 1
            else:
                idle += 1
                assert idle < LOOKS, f"seed {self.case.seed}: the stream does not end"
        self.note_early(run)
        self.trace.late = sum(seen.late for seen in run.runner.pipeline.state.seen.values())
        run.close()


def tear(folder: Path) -> None:
    """Lines that a process was writing when it was killed."""
    manifests = sorted((folder / "out").glob("*/manifest.jsonl"))
    for path in [*manifests, folder / "checkpoint" / "terascope" / "journal" / "journal.jsonl"]:
        with path.open("ab") as file:
            file.write(b'{"batch": 1')
