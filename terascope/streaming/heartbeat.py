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
from terascope.kernels.columns.dictionary import Ints
from terascope.machine_code import INTEGER, column, compiled_for
from terascope.physical.stream.slice_streams import SliceValue
from terascope.streaming.late import LateWatch
from terascope.streaming.replan.samples import Sampler, TupleSample
from terascope.streaming.state.state import StreamState


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
class Ends:
    """The ends of one ordered column of an interface."""

    smallest: SliceValue
    largest: SliceValue
    behind: SliceValue = 0

    def add(self, other: Ends) -> None:
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)
        self.behind = max(self.behind, other.behind)


class Watch:
    """Observes all tuples of a task."""

    def __init__(
        self, columns: Sequence[str], late: LateWatch, sampler: Sampler | None = None
    ) -> None:
        """`sampler`: draws a sample of the tuples, if one is due."""
        self._columns = tuple(columns)
        self._late = late
        self._sampler = sampler
        self.ends: dict[str, dict[str, Ends]] = {}
        self.cost_ns = 0

    def see(self, batch: pa.RecordBatch, interface: str) -> None:
        began = time.thread_time_ns()
        self._see(batch, interface)
        if self._sampler is not None:
            self._sampler.see(batch)
        self.cost_ns += time.thread_time_ns() - began

    def _see(self, batch: pa.RecordBatch, interface: str) -> None:
        known = self.ends.setdefault(interface, {})
        smallest: dict[str, SliceValue] = {}
        largest: dict[str, SliceValue] = {}
        for name in self._columns:
            at = batch.schema.get_field_index(name)
            found = None if at < 0 else column_ends(batch.column(at), known.get(name))
            if found is None:
                continue
            smallest[name], largest[name] = found.smallest, found.largest
            if name in known:
                known[name].add(found)
            else:
                known[name] = found
        self._late.see(batch, interface, smallest, largest)

    @property
    def late(self) -> LateWatch:
        return self._late

    def samples(self) -> Iterator[str]:
        """The samples of the tuples, as text."""
        began = time.thread_time_ns()
        samples = () if self._sampler is None else self._sampler.samples()
        texts = [sample.to_text() for sample in samples]
        self.cost_ns += time.thread_time_ns() - began
        yield from texts

    def close(self) -> Iterator[tuple[str, str]]:
        """Close the files of late tuples, and report each."""
        yield from self._late.close()


def column_ends(values: pa.Array, known: Ends | None) -> Ends | None:
    if pa.types.is_int64(values.type) and values.null_count == 0 and len(values):
        before = np.iinfo(np.int64).min if known is None else int(known.largest)
        least, most, behind = ends(values.to_numpy(), before)
        return Ends(int(least), int(most), int(behind))
    if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        return None
    found = pc.min_max(values)
    if not found["min"].is_valid:
        return None
    return Ends(found["min"].as_py(), found["max"].as_py())


@dataclass
class InterfaceReport:
    """The part of a heartbeat about one interface."""

    tuples: int = 0
    bytes: int = 0
    late: int = 0
    malformed: dict[str, int] = field(default_factory=dict)
    smallest: dict[str, SliceValue] = field(default_factory=dict)
    largest: dict[str, SliceValue] = field(default_factory=dict)
    behind: dict[str, SliceValue] = field(default_factory=dict)
    late_streams: dict[str, int] = field(default_factory=dict)
    """By the key of a low-level stream: tuples whose slice of it was closed."""
    late_behind: dict[str, SliceValue] = field(default_factory=dict)
    """By column: the largest distance of a late tuple from the end of a closed slice."""
    skipped_bytes: int = 0
    """Bytes of damaged input that were skipped."""
    files: dict[str, str] = field(default_factory=dict)
    """Path -> reason, for files that could not be used, or not to their end."""


@dataclass
class Heartbeat:
    """The heartbeat of one task."""

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

    @staticmethod
    def of(
        task: int,
        reports: Reports,
        watch: Watch,
        counters: dict[str, Any],
        queries: Sequence[str],
        hops: Sequence[tuple[str, float]],
        memory_bytes: int,
    ) -> Heartbeat:
        began = time.thread_time_ns()
        interfaces: dict[str, InterfaceReport] = {}
        for name, report in reports.items():
            one = interfaces.setdefault(name, InterfaceReport())
            one.tuples, one.bytes = report.tuples, report.bytes_read
            one.malformed = dict(report.malformed)
            one.skipped_bytes = sum(report.skipped.values())
            one.files = report.files
        for name, columns in watch.ends.items():
            one = interfaces.setdefault(name, InterfaceReport())
            for column_name, found in columns.items():
                one.smallest[column_name] = found.smallest
                one.largest[column_name] = found.largest
                one.behind[column_name] = found.behind
        for name, count in watch.late.counts.items():
            one = interfaces.setdefault(name, InterfaceReport())
            one.late = count
            one.late_streams = dict(watch.late.by_stream.get(name, {}))
            one.late_behind = dict(watch.late.behind.get(name, {}))
        cost = watch.cost_ns + time.thread_time_ns() - began
        return Heartbeat(task, interfaces, counters, list(queries), list(hops), memory_bytes, cost)

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
    replayed: bool = False
    hearing_ns: int = 0
    """The processor time of the driver for ingesting the heartbeats."""
    samples: list[TupleSample] = field(default_factory=list)
    measures: list[dict[str, Any]] = field(default_factory=list)
    """The figures of the operators of each closing task."""
    """The samples of the tasks."""

    @property
    def heartbeat_seconds(self) -> float:
        """Processor time of the heartbeats of the batch, in all processes."""
        return (self.hearing_ns + sum(beat.cost_ns for beat in self.beats)) / 1e9
