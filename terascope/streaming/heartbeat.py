"""Heartbeats: the reports of reading tasks, with or without tuples (dissertation 4.3, 4.4, 4.6).

In: every batch of tuples a task reads, before the prefilter drops any (4.4.2). Out: `Heartbeat`:
for each interface the ends of its ordered columns, from which watermarks are made, and the disorder
of its tuples; statistics; and the trace: which operator received the heartbeat, and when. The
report of a micro-batch holds the heartbeats of its tasks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import Offset
from terascope.execute.reports import Reports
from terascope.kernels.columns.arrays import Ints
from terascope.machine_code import INTEGER, column, compiled_for
from terascope.physical.stream.slice_streams import SliceValue
from terascope.streaming.late import LateWatch
from terascope.streaming.replan.samples import Sampler, TupleSample
from terascope.streaming.state.state import InterfaceReport, StreamState, keep


@compiled_for(column(np.int64), INTEGER)
def ends(values: Ints, before: int) -> tuple[int, int, int]:
    """The smallest and the largest value, and the most that one fell behind an earlier one."""
    least, most, behind = values[0], max(before, values[0]), np.int64(0)
    for value in values:
        if value > most:
            most = value
        else:
            behind = max(behind, most - value)
            least = min(least, value)
    return least, most, behind  # type: ignore[return-value]


@dataclass
class Watch:
    """Observes all tuples of a task."""

    columns: Sequence[str]
    late: LateWatch
    sampler: Sampler | None = None
    """Draws a sample of the tuples, if one is due."""
    interfaces: dict[str, InterfaceReport] = field(default_factory=dict)
    cost_ns: int = 0

    def see(self, batch: pa.RecordBatch, interface: str) -> None:
        began = time.thread_time_ns()
        report = self.interfaces.setdefault(interface, InterfaceReport())
        smallest: dict[str, SliceValue] = {}
        largest: dict[str, SliceValue] = {}
        for name in self.columns:
            at = batch.schema.get_field_index(name)
            found = None if at < 0 else column_ends(batch.column(at), report.largest.get(name))
            if found is None:
                continue
            smallest[name], largest[name], behind = found
            keep(report.smallest, {name: smallest[name]}, min)
            keep(report.largest, {name: largest[name]}, max)
            keep(report.disorder, {name: behind}, max)
        self.late.see(batch, interface, smallest, largest, report)
        if self.sampler is not None:
            self.sampler.see(batch)
        self.cost_ns += time.thread_time_ns() - began

    def add(self, reports: Reports) -> None:
        """Add the counters of readers to the reports of their interfaces."""
        began = time.thread_time_ns()
        for name, report in reports.items():
            one = self.interfaces.setdefault(name, InterfaceReport())
            one.tuples, one.bytes = report.tuples, report.bytes_read
            one.malformed = dict(report.malformed)
            one.skipped_bytes = sum(report.skipped.values())
            one.files = report.files
        self.cost_ns += time.thread_time_ns() - began

    def samples(self) -> Iterator[str]:
        began = time.thread_time_ns()
        samples = () if self.sampler is None else self.sampler.samples()
        texts = [sample.to_text() for sample in samples]
        self.cost_ns += time.thread_time_ns() - began
        yield from texts


def column_ends(
    values: pa.Array, largest: SliceValue | None
) -> tuple[SliceValue, SliceValue, SliceValue] | None:
    """The smallest and the largest value of a column, and by how much one fell behind an earlier
    one; None: it has none.
    """
    if pa.types.is_int64(values.type) and values.null_count == 0 and len(values):
        before = np.iinfo(np.int64).min if largest is None else int(largest)
        least, most, behind = ends(values.to_numpy(), before)
        return int(least), int(most), int(behind)
    if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        return None
    found = pc.min_max(values)
    return (found["min"].as_py(), found["max"].as_py(), 0) if found["min"].is_valid else None


@dataclass
class Heartbeat:
    task: int
    interfaces: dict[str, InterfaceReport]
    counters: dict[str, Any]
    """Counters of the low level: tuples, evaluated predicates, passed tuples, evicted groups."""
    queries: list[str]
    """The low-level queries, in the order of the counters."""
    hops: list[tuple[str, float]]
    """The operators that received the heartbeat, and the time of each."""
    memory_bytes: int
    cost_ns: int = 0
    """The processor time of the heartbeat: observing all tuples, and building the report."""
    inner: list[str] = field(default_factory=list)
    """The intermediate nodes of its trees, which follow the queries in the counters."""
    trees: int = 0
    """The number of the trees that the task used."""
    read: str = ""
    """The name of the source read that the task works for."""

    @property
    def passed(self) -> dict[str, int]:
        """The number of tuples that each low-level query took."""
        return dict(zip(self.queries, self.counters["passed"], strict=True))

    def to_text(self) -> str:
        return json.dumps(self, default=vars)

    @staticmethod
    def of_text(text: str) -> Heartbeat:
        told = json.loads(text)
        interfaces = {name: InterfaceReport(**one) for name, one in told["interfaces"].items()}
        hops = [(name, when) for name, when in told["hops"]]
        return Heartbeat(**{**told, "interfaces": interfaces, "hops": hops})


@dataclass
class BatchReport:
    """A completed batch: its state is on disk, and its rows are in the manifests."""

    batch: int
    offset: Offset
    state: StreamState
    beats: list[Heartbeat]
    delivered: Mapping[str, int]
    watermarks: Watermarks
    seconds: float
    hops: list[tuple[str, float]] = field(default_factory=list)
    heartbeat_ns: int = 0
    """The processor time of the driver for ingesting the heartbeats."""
    samples: list[TupleSample] = field(default_factory=list)
    """The samples of the tasks."""
    measures: list[dict[str, Any]] = field(default_factory=list)
    """The figures of the operators of each closing task."""

    @property
    def heartbeat_seconds(self) -> float:
        """Processor time of the heartbeats of the batch, in all processes."""
        return (self.heartbeat_ns + sum(beat.cost_ns for beat in self.beats)) / 1e9
