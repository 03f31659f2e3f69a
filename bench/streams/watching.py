"""What is noted of a stream while it runs: every micro-batch, and memory every so often.

In: the reports of the batches, the folder of the slice store, the tree of processes. Out: figures
of the whole run, and series that a picture can be made of.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from bench.experiment import Outcome
from bench.streams.usage import memory_of

if TYPE_CHECKING:
    from terascope.connectors.live import Offset
    from terascope.streaming.heartbeat import BatchReport

SERIES = "_series.json"
MB = 1e6

Series = Mapping[str, list[float]]


@dataclass
class Batches:
    """The micro-batches of a run."""

    clock: Callable[[], float] = time.monotonic
    wall: list[float] = field(default_factory=list)
    """When each was done, in seconds after the stream was started."""
    trace: list[float] = field(default_factory=list)
    """How far in the trace each had come, in seconds after its first packet."""
    seconds: list[float] = field(default_factory=list)
    held_mb: list[float] = field(default_factory=list)
    """In open slices and merge buffers after each."""
    segments: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    tuples: list[int] = field(default_factory=list)
    """Read until then."""
    merging: list[float] = field(default_factory=list)
    """Seconds that each spent on closing slices, the high level, and what it delivers."""
    high_level: list[float] = field(default_factory=list)
    delivering: list[float] = field(default_factory=list)
    beating: float = 0.0
    """Seconds of processor time for heartbeats."""
    last: BatchReport | None = None
    _began: float = 0.0

    def __post_init__(self) -> None:
        self._began = self.clock()

    def note(self, report: BatchReport) -> None:
        """Called after each batch."""
        self.wall.append(self.clock() - self._began)
        self.trace.append(reached_seconds(report.offset))
        self.seconds.append(report.seconds)
        self.held_mb.append(sum(segment.length for segment in report.state.segments) / MB)
        self.segments.append(float(len(report.state.segments)))
        self.rows.append(float(sum(report.delivered.values())))
        self.tuples.append(sum(seen.tuples for seen in report.state.seen.values()))
        for stage, seconds in zip(self._stages, stage_seconds(report), strict=True):
            stage.append(seconds)
        self.beating += report.heartbeat_seconds
        self.last = report

    @property
    def _stages(self) -> tuple[list[float], ...]:
        return self.merging, self.high_level, self.delivering

    def figures(self) -> dict[str, float]:
        """Of the whole run."""
        assert self.last is not None, "a stream without a batch"
        state = self.last.state
        # The end of the trace closes all that is open, in the last batch.
        before_end = self.rows[:-1] if state.ended else self.rows
        first = next((t for t, n in zip(self.trace, self.rows, strict=True) if n), self.trace[-1])
        return {
            "rows": sum(self.rows),
            "batches": len(self.rows),
            "tuples": sum(seen.tuples for seen in state.seen.values()),
            "bytes_read": sum(seen.bytes for seen in state.seen.values()),
            "late": sum(seen.late for seen in state.seen.values()),
            "held_mb": max(self.held_mb),
            "brought_mb": state.peak_bytes / MB,
            "most_rows": max(before_end, default=0.0),
            "rows_before_end": sum(before_end),
            "first_rows_at": first,
            # The first batch is planned and its workers are started in it.
            "longest_batch": max(self.seconds[1:] or self.seconds),
            "mean_batch": fmean(self.seconds),
            "heartbeat_seconds": self.beating,
            "sustained": self.sustained(),
            "mean_merging": fmean(self.merging),
            "mean_high_level": fmean(self.high_level),
            "mean_delivering": fmean(self.delivering),
        }

    def sustained(self) -> float:
        """Tuples a second, from the end of the first batch on: before it Spark's query starts."""
        if len(self.wall) < 3:
            return 0.0
        return (self.tuples[-1] - self.tuples[0]) / (self.wall[-1] - self.wall[0])

    def series(self) -> dict[str, list[float]]:
        names = (
            *("wall", "trace", "seconds", "held_mb", "segments", "rows"),
            *("merging", "high_level", "delivering"),
        )
        return {f"batch_{name}": getattr(self, name) for name in names}


def stage_seconds(report: BatchReport) -> list[float]:
    """Between the hops of a batch on the driver."""
    return [after - before for (_, before), (_, after) in pairwise(report.hops)]


def reached_seconds(offset: Offset) -> float:
    """The newest packet that was admitted, after the oldest."""
    ends = [link.seen["timestamp"] for link in offset.links.values() if "timestamp" in link.seen]
    if not ends:
        return 0.0
    return (max(high for _, high in ends) - min(low for low, _ in ends)) / 1e9


@dataclass
class MemoryOverTime:
    """Memory of the tree of processes, and what the slice store has on disk."""

    slices: Path
    root: int = field(default_factory=os.getpid)
    series: dict[str, list[float]] = field(default_factory=dict)

    def sample(self, after: float) -> None:
        """What is there now, `after` so many seconds."""
        memory = memory_of(self.root)
        files, held = on_disk(self.slices)
        now = {
            "sample_wall": after,
            "driver_mb": memory.driver,
            "jvm_mb": memory.jvm,
            "workers_mb": memory.workers,
            "store_files": float(files),
            "store_mb": held / MB,
        }
        for name, value in now.items():
            self.series.setdefault(name, []).append(value)

    def figures(self) -> dict[str, float]:
        """The most that was seen of each."""
        return {name: max(v) for name, v in self.series.items() if name != "sample_wall"}


def on_disk(folder: Path) -> tuple[int, int]:
    """Files and their bytes; one that goes meanwhile is not there."""
    files = held = 0
    try:
        for entry in os.scandir(folder):
            try:
                held += entry.stat().st_size
                files += 1
            except FileNotFoundError:
                continue
    except FileNotFoundError:
        return 0, 0
    return files, held


def write_series(output: Path, *parts: Series) -> None:
    """Beside the results, for whoever looks at them."""
    told = {name: values for part in parts for name, values in part.items()}
    (output / SERIES).write_text(json.dumps(told), encoding="utf-8")


def read_series(outcome: Outcome, output: Path) -> None:
    """Take what was written into the outcome."""
    path = output / SERIES
    if path.exists():
        outcome.series = json.loads(path.read_text(encoding="utf-8"))
