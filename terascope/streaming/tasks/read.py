"""The low level of a stream in a reading task: new tuples in, segments of the slice store out.

In: the splits of a micro-batch for one task. Out: reports only: the segments and the parts that
were written, and the heartbeat of the task: the tuples of each interface, whether a query took them
or not (dissertation 4.4).
"""

from __future__ import annotations

import json
import resource
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from terascope.connectors.base import Split
from terascope.execute.delivery import Delivery
from terascope.execute.reading_task import NativeRead, Partials, taken
from terascope.execute.task import Groups, LowTask, Ready
from terascope.files import PRIVATE
from terascope.kernels.tables.slots import Shape
from terascope.physical.delivery import PartFormat
from terascope.physical.ownership import Epochs
from terascope.physical.stream.slice_streams import SliceValue
from terascope.streaming.engine import Report
from terascope.streaming.heartbeat import Heartbeat, Watch
from terascope.streaming.late import ClosedColumn, LateWatch, kept_fields
from terascope.streaming.replan.samples import Sampler
from terascope.streaming.replan.tree_plans import TreesInForce, grafted, narrowed, widened_places
from terascope.streaming.state.segments import SegmentWriter, Stored
from terascope.streaming.tasks.close import store_payloads


@dataclass(frozen=True)
class StreamRead:
    """The plan and the folders for the tasks of a stream; it travels as an option."""

    reads: tuple[NativeRead, ...]
    stored: Mapping[int, Stored]
    store: str
    """The folder of the slice store."""
    late: str | None = None
    """The folder for late tuples."""
    late_format: PartFormat = "parquet"
    starts: Mapping[str, SliceValue] = field(default_factory=dict)
    """For new queries: the first whole slice of each."""
    tree_leaves: str = "bounded"
    """The setting of that name: which tables of aggregate trees are bounded."""


@dataclass(frozen=True)
class ReadTask:
    """The new tuples of a micro-batch that one task reads."""

    read: int
    splits: tuple[Split, ...]
    number: int
    owned: Mapping[int, Epochs | None]
    """By query: epochs that this task owns, and that end with the batch."""
    closed: Mapping[str, tuple[ClosedColumn, ...]]
    """By interface: columns, the value below which a slice of a stream is closed, and its key."""
    planned: float
    """The time when the batch was planned, for the trace of its heartbeats."""
    end: str
    """The offset at which the batch ends."""
    trees: TreesInForce = field(default_factory=TreesInForce)
    sample: int = 0
    """The number of tuples to sample."""


def read_tuples(reading: StreamRead, given: ReadTask) -> Iterator[Report]:
    """Run the low level over new tuples, and report the written files and the heartbeat."""
    began = time.time()
    native = reading.reads[given.read]
    flat = native.read.low
    assert flat is not None
    plan, shared = flat, given.trees.shared
    if shared:
        plan = grafted(native.read.name, flat, shared, reading.tree_leaves).low
    wide = widened_places(flat, plan)
    task = LowTask(plan, given.owned)
    home = given.number % native.destinations
    mine = {native.streams[place]: epochs for place, epochs in given.owned.items()}
    delivery = Delivery(native.targets, native.sink, home, (), mine, reading.starts, task.meter)
    partials = Partials(native, task.meter, "store")
    fields = kept_fields(plan.columns)
    mode = PRIVATE if native.sink is None else native.sink.mode
    late = LateWatch(given.closed, reading.late, fields, reading.late_format, mode)
    sampler = None
    if given.sample:
        seed = zlib.crc32(f"{given.number} {given.end}".encode())
        sampler = Sampler(native.read.name, flat, given.sample, seed)
    watch = Watch(native.read.clocks, late, sampler)
    with SegmentWriter(Path(reading.store)) as writer:
        for ready in task.run(given.splits, (), watch.see):
            known = of_own_slots(ready, wide)
            yield from store_payloads(
                taken(known, native, delivery, partials), reading.stored, writer
            )
        yield from store_payloads(partials.close(), reading.stored, writer)
        yield from store_payloads(delivery.close(), reading.stored, writer)
        writer.close()
    yield from watch.close()
    yield from writer.reports()
    hops = [("source", given.planned), ("low level", began), ("slice store", time.time())]
    names = [query.name for query in plan.queries]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    counters = task.report(native.read.name)
    samples = list(watch.samples())
    beat = Heartbeat.of(given.number, task.reports, watch, counters, names, hops, memory)
    beat.read, beat.trees = native.read.name, given.trees.number
    beat.inner = [node.name for node in plan.inner]
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
