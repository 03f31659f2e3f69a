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
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import Offset
from terascope.execute.reports import Reports
from terascope.execute.results.parts import Part, PartWriter
from terascope.files import escaped, make_folder
from terascope.kernels.columns.arrays import Ints
from terascope.machine_code import INTEGER, column, compiled_for
from terascope.physical.delivery import PartFormat
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.rel import Field
from terascope.streaming.replan.samples import Sampler, TupleSample
from terascope.streaming.sources import LATE, ClosedColumn
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
    """Observes all tuples of a task: the ends of their columns, late tuples, and a sample."""

    columns: Sequence[str]
    """The ordered columns."""
    closed: Mapping[str, Sequence[ClosedColumn]]
    folder: str | None
    """The folder for late tuples; None: they are only counted."""
    fields: Sequence[Field]
    """The columns of late tuples that are written."""
    format: PartFormat
    mode: int
    sampler: Sampler | None
    """Draws a sample of the tuples, if one is due."""
    interfaces: dict[str, InterfaceReport] = field(default_factory=dict)
    cost_ns: int = 0
    _writers: dict[str, PartWriter] = field(default_factory=dict)

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
        late = self._late(batch, interface, smallest, largest)
        if late is not None:
            self._keep(batch.filter(late), interface)
        if self.sampler is not None:
            self.sampler.see(batch)
        self.cost_ns += time.thread_time_ns() - began

    def _late(
        self,
        columns: pa.RecordBatch,
        interface: str,
        smallest: Mapping[str, SliceValue],
        largest: Mapping[str, SliceValue],
    ) -> pa.Array | None:
        """Count late tuples, and return their mask. `smallest`, `largest`: the ends of the ordered
        columns, which show for most batches that no tuple is late.
        """
        late: pa.Array | None = None
        found: dict[tuple[str, SliceValue], pa.Array] = {}
        report = self.interfaces[interface]
        for name, limit, stream, falls in self.closed.get(interface, ()):
            if name not in smallest:
                continue
            excess = largest[name] - limit if falls else limit - smallest[name]
            if excess <= 0:
                continue
            if (name, limit) not in found:
                is_late = pc.greater if falls else pc.less
                mask = pc.fill_null(is_late(columns.column(name), limit), False)
                found[name, limit] = mask
                late = mask if late is None else pc.or_(late, mask)
                keep(report.late_behind, {name: excess}, max)
            keep(report.late_streams, {stream: pc.sum(found[name, limit]).as_py() or 0}, add, 0)
        return late

    def _keep(self, rows: pa.RecordBatch, interface: str) -> None:
        self.interfaces[interface].late += rows.num_rows
        if self.folder is None or not rows.num_rows:
            return
        if interface not in self._writers:
            folder = Path(self.folder) / escaped(interface)
            make_folder(folder, self.mode)
            self._writers[interface] = PartWriter(folder, self.format, self.fields, mode=self.mode)
        self._writers[interface].write(rows.select([f.name for f in self.fields]))

    def late_parts(self) -> Iterator[tuple[str, str]]:
        """Close the files of late tuples, and report them."""
        for interface, writer in self._writers.items():
            yield "part", Part(LATE + interface, *writer.close()).to_json()

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
