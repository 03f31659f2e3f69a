"""The low level of a stream in tasks: reading new tuples, and closing slices.

A reading task gets the splits that a micro-batch has for it. It reports the segments and the parts
that it wrote, and its heartbeat: the tuples of each interface, whether a query took them or not
(dissertation 4.4). A closing task gets the segments of one destination whose slices close. It
merges the partial groups of all micro-batches, and reports the parts of queries that tasks write
and the segments of rows that other queries read. No partial passes through the JVM.
"""

from __future__ import annotations

import json
import resource
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from terascope.connectors.base import Split
from terascope.execute.delivery import Delivery
from terascope.execute.merge import Merger, Merging
from terascope.execute.reading_task import NativeRead, Partials, taken
from terascope.execute.reports import Meter, Outgoing
from terascope.execute.task import Groups, LowTask, Ready
from terascope.files import PRIVATE
from terascope.functions.overflow import overflow_of, states_of
from terascope.kernels.tables.slots import Shape
from terascope.physical.delivery import PartFormat, Sink, Target
from terascope.physical.splits import Epochs
from terascope.physical.stream.slice_streams import SliceValue
from terascope.sketches.base import Levels
from terascope.streaming.closing import ClosingSlices
from terascope.streaming.context import Report
from terascope.streaming.heartbeat import Heartbeat, Watch
from terascope.streaming.replan.samples import Sampler
from terascope.streaming.replan.strategies import with_chosen
from terascope.streaming.replan.tree_plans import TreesInForce, grafted, narrowed, widened_places
from terascope.streaming.sources import ClosedColumn, kept_fields
from terascope.streaming.state.segments import (
    Layouts,
    Segment,
    SegmentWriter,
    Stored,
    groups_between,
    read_segment,
)

MEMORY_PARTS: Final = 4
"""The divisor of a task's memory for one merge; streams are merged one after the other."""


@dataclass(frozen=True)
class StreamRead:
    """The plan and the folders for the tasks of a stream; it travels as an option."""

    reads: tuple[NativeRead, ...]
    stored: Mapping[int, Stored]
    store: str
    """The folder of the slice store."""
    late: str | None
    """The folder for late tuples."""
    late_format: PartFormat
    starts: Mapping[str, SliceValue]
    """The first whole slice of each new query."""
    tree_leaves: str
    """The setting of that name: which tables of aggregate trees are bounded."""
    levels: Levels
    """The cores of the low and the high level."""


@dataclass(frozen=True)
class ReadTask:
    """The new tuples of a micro-batch that one task reads."""

    read: int
    splits: tuple[Split, ...]
    number: int
    owned: Mapping[int, Epochs | None]
    """The epochs of each query that this task owns, and that end with the batch."""
    closed: Mapping[str, Sequence[ClosedColumn]]
    """The closed columns of each interface."""
    planned: float
    """The time when the batch was planned, for the trace of its heartbeats."""
    end: str
    """The offset at which the batch ends."""
    trees: TreesInForce
    sample: int
    """The number of tuples to sample."""


def read_tuples(reading: StreamRead, given: ReadTask) -> Iterator[Report]:
    """Run the low level over new tuples, and report the written files and the heartbeat."""
    began = time.time()
    native = reading.reads[given.read]
    flat = native.read.low
    assert flat is not None
    shared, traffic = given.trees.shared, given.trees.traffic
    plan = with_chosen(native.read.name, flat, traffic, reading.levels)
    if shared:
        plan = grafted(native.read.name, plan, shared, reading.tree_leaves).low
    wide = widened_places(flat, plan)
    task = LowTask(plan, given.owned)
    home = given.number % native.destinations
    mine = {native.streams[place]: epochs for place, epochs in given.owned.items()}
    delivery = Delivery(native.targets, native.sink, home, (), mine, reading.starts, task.meter)
    partials = Partials(native, task.meter, "store", home)
    sampler = None
    if given.sample:
        seed = zlib.crc32(f"{given.number} {given.end}".encode())
        sampler = Sampler(native.read.name, flat, given.sample, seed)
    fields = kept_fields(plan.columns)
    mode = PRIVATE if native.sink is None else native.sink.mode
    watch = Watch(
        native.read.clocks, given.closed, reading.late, fields, reading.late_format, mode, sampler
    )
    checked = None if native.check is None else native.check.of_task(given.number)

    def see(batch: pa.RecordBatch, split: Split) -> None:
        watch.see(batch, split.interface)
        if checked is not None:
            checked(batch, split)

    with states_of("", native.users), delivery, SegmentWriter(Path(reading.store)) as writer:
        for ready in task.run(given.splits, (), see):
            known = of_own_slots(ready, wide)
            yield from store_payloads(
                taken(known, native, delivery, partials), reading.stored, writer
            )
        yield from store_payloads(partials.close(), reading.stored, writer)
        yield from store_payloads(delivery.close(), reading.stored, writer)
        writer.close()
    for row in () if checked is None else checked.reports():
        yield row.kind, row.report or ""
    yield from watch.late_parts()
    yield from writer.reports()
    hops = [("source", given.planned), ("low level", began), ("slice store", time.time())]
    names = [query.name for query in plan.queries]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    counters = task.report(native.read.name)
    samples = list(watch.samples())
    watch.add(task.reports)
    inner = [node.name for node in plan.inner]
    beat = Heartbeat(
        given.number, watch.interfaces, counters, names, hops, memory, watch.cost_ns, inner,
        given.trees.number, native.read.name,
    )  # fmt: skip
    for place, epochs in given.owned.items():
        if epochs is not None and epochs.last is not None:
            key = reading.stored[native.streams[place]].key
            yield "emitted", json.dumps([key, epochs.last + 1])
    yield "heartbeat", beat.to_text()
    for sample in samples:
        yield "sample", sample
    yield "offset", given.end


def of_own_slots(ready: Ready, wide: Mapping[int, Shape]) -> Ready:
    """Groups with the slots of their own query, without those for its children."""
    if isinstance(ready, Groups) and ready.query in wide:
        return replace(ready, block=narrowed(ready.block, wide[ready.query]))
    return ready


@dataclass(frozen=True)
class CloseSlices:
    """The slices of one destination that close, or whose partials are only compacted."""

    targets: Mapping[int, Target]
    stored: Mapping[int, Stored]
    sink: Sink
    store: str
    work: tuple[ClosingSlices, ...]
    layouts: Layouts
    starts: Mapping[str, SliceValue]
    """The first slice of which each new query has all tuples."""

    def __call__(self) -> Iterator[Report]:
        meter = Meter()
        merging = Merging(self.targets, self.sink, self.sink.memory_bytes)
        home = self.work[0].destination if self.work else 0
        delivery = Delivery(self.targets, self.sink, home, starts=self.starts, meter=meter)
        folder = Path(self.store)
        with delivery, SegmentWriter(folder) as writer:
            for slices in self.work:
                number = slices.number
                merger = merging.merger(number, MEMORY_PARTS)
                for segment in slices.segments:
                    payload = self.payload(number, folder, segment)
                    for some in groups_between(payload, slices.low, slices.high):
                        merger.add(some)
                if slices.together:
                    self.keep(merger, slices, writer)
                    continue
                with overflow_of(self.targets[number].user):
                    merged = meter.over(f"merge {self.targets[number].name}", merger.results())
                    for groups in merged:
                        rows = merging.delivered(number, groups, delivery, meter)
                        yield from store_payloads(rows, self.stored, writer)
            yield from store_payloads(delivery.close(), self.stored, writer)
            writer.close()
        yield from writer.reports()
        yield "measures", json.dumps(meter.figures)

    def payload(self, number: int, folder: Path, segment: Segment) -> bytes:
        how, fields = self.stored[number], self.targets[number].groups
        assert fields is not None
        payload = read_segment(folder, segment)
        return self.layouts.groups(payload, segment.layout, how.texts, len(fields.keys))

    def keep(self, merger: Merger, slices: ClosingSlices, writer: SegmentWriter) -> None:
        """Store the merged partials of slices that stay open."""
        for payload in merger.partials():
            writer.append(self.stored[slices.number], "groups", slices.destination, payload)


def store_payloads(
    rows: Iterator[Outgoing], stored: Mapping[int, Stored], writer: SegmentWriter
) -> Iterator[Report]:
    """Write the payloads among the output of a task to the store, and yield all other reports."""
    for row in rows:
        if row.kind in ("groups", "rows"):
            assert row.payload is not None
            writer.append(stored[row.stream], row.kind, row.destination, row.payload)
        elif row.report is not None:
            yield row.kind, row.report
