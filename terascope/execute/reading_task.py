"""A reading task: the low level of a query set over the splits of one task.

In: a read with its low-level plan, the targets of its streams, and the splits of one task. Out: a
few large `Outgoing` rows: packed partials for the exchange, packed tuples for the high level, one
line of JSON for each part that was written, one for the counts of the reader, one for the counters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from terascope.connectors.base import Split
from terascope.connectors.registry import read_split
from terascope.execute.delivery import Delivery
from terascope.execute.grouping.pending_groups import own
from terascope.execute.partition_check import PartitionCheck
from terascope.execute.reports import Meter, Outgoing, reports_to_json
from terascope.execute.task import Groups, LowTask, Reached, Ready, SplitReader, Tuples
from terascope.functions.overflow import states_of
from terascope.kernels.columns.arrays import Ints
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.groups import NO_EPOCH, Block
from terascope.kernels.merge.payload import pack
from terascope.kernels.tables.slots import Shape
from terascope.physical.delivery import Sink, Target, TaskJoin
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate
from terascope.physical.splits import Epochs, bundles, by_time, owned, ranges_of_tasks
from terascope.physical.time_cuts import cut_at_edges

PARTIAL_ROWS = 1 << 17
"""The number of pending partials of a stream from which on they are sent."""
PARTIAL_SHARE = 16
"""The share of the memory from which on all pending partials are sent."""


@dataclass(frozen=True)
class NativeRead:
    """A read with a native low level, and the targets of its streams."""

    read: SourceRead
    streams: tuple[int, ...]
    """For each query of the low-level plan, the number of its stream."""
    targets: Mapping[int, Target]
    sink: Sink | None
    destinations: int
    joins: tuple[TaskJoin, ...] = ()
    """The joins of its streams."""
    kept: frozenset[int] = frozenset()
    """The streams whose groups only one partition has: they are sent nowhere else."""
    check: PartitionCheck | None = None
    """Whether the tuples of a stream are in the partitions they belong to."""

    @property
    def is_partitioned(self) -> bool:
        """Whether all its interfaces are partitions."""
        return all(one.partition is not None for one in self.read.interfaces)

    @property
    def users(self) -> dict[str, str]:
        """By low-level stream: the query that reads it, for messages."""
        streams = self.targets.values()
        return {one.name: one.user or one.name.removesuffix("_low") for one in streams}


@dataclass(frozen=True)
class Bundle:
    """The splits one task reads, one after the other."""

    splits: tuple[Split, ...]
    owned: Mapping[int, Epochs | None] | None = None
    """By query: the epochs of which no other task has tuples."""
    number: int = 0


def native_bundles(reading: NativeRead, tasks: int) -> list[Bundle]:
    """The splits of each task, with the epochs that it owns."""
    read = reading.read
    assert read.low is not None
    ranges: list[tuple[Split, ...]] = []
    if read.edge is not None and all(one.is_part for one in read.interfaces):
        ranges = by_time(read.splits, read.edge)
    if len(ranges) > 1:
        parts = ranges_of_tasks(ranges, tasks)
    else:
        parts = bundles(read.splits, tasks, read.edge, float("inf"))
    parts = cut_at_edges(parts, read.edge, len(read.aggregations))
    mine = owned_by_tasks(reading, parts)
    return [Bundle(splits, mine[i], i) for i, splits in enumerate(parts)]


def owned_by_tasks(
    reading: NativeRead, parts: Sequence[Sequence[Split]]
) -> list[dict[int, Epochs | None]]:
    """For each task the epochs that it owns, by query. `parts`: the splits of the tasks."""
    names = {i.name for i in reading.read.interfaces}
    mine: list[dict[int, Epochs | None]] = [{} for _ in parts]
    # Windows are put together where all slices of a group are.
    feeding = {i for i, stream in enumerate(reading.streams) if reading.targets[stream].feeds}
    for place, query in enumerate(reading.read.queries):
        if isinstance(query, LowAggregate) and set(query.interfaces) <= names:
            for task, epochs in enumerate(owned(query, parts)):
                mine[task][place] = None if place in feeding else epochs
    return mine


def low_rows(
    reading: NativeRead,
    bundle: Bundle,
    see: Callable[[pa.RecordBatch, Split], None] | None = None,
    read: SplitReader = read_split,
) -> Iterator[Outgoing]:
    """The output of a reading task. `see` is called with every batch, and its split. `read`: gives
    the tuples of a split.
    """
    source = reading.read
    assert source.low is not None
    owned = bundle.owned or {}
    meter = Meter()
    task = LowTask(source.low, owned, meter)
    home = bundle.number % reading.destinations
    mine = {reading.streams[place]: epochs for place, epochs in owned.items()}
    delivery = Delivery(reading.targets, reading.sink, home, reading.joins, mine, meter=meter)
    partials = Partials(reading, meter, home=home)
    with states_of("", reading.users), delivery:
        for ready in task.run(bundle.splits, source.clocks, see, read):
            yield from taken(ready, reading, delivery, partials)
        yield from partials.close()
        yield from delivery.close()
    yield Outgoing(-1, home, "report", None, reports_to_json(task.reports))
    yield Outgoing(-1, home, "counters", None, json.dumps(task.report(source.name)))


def taken(
    ready: Ready, reading: NativeRead, delivery: Delivery, partials: Partials
) -> Iterator[Outgoing]:
    stream = reading.streams[ready.query]
    match ready:
        case Tuples():
            yield from delivery.take(stream, ready.columns)
        case Reached():
            yield from delivery.reach(stream, ready.epoch)
        case Groups(complete=True):
            yield from delivery.take_groups(stream, ready.block, ready.dictionaries)
        case Groups():
            delivery.lose(stream, ready.block.epochs)
            yield from partials.take(stream, ready)


class Partials:
    """Groups on their way to the exchange, or to the slice store of a stream."""

    def __init__(
        self, reading: NativeRead, meter: Meter, operator: str = "exchange", home: int = 0
    ) -> None:
        """`home`: the destination of groups that stay in their partition."""
        self._operator = operator
        self._home = home
        self._reading = reading
        self._meter = meter
        self._pending: dict[int, list[Groups]] = {}
        self._rows: Counter[int] = Counter()
        self._bytes = 0
        low = reading.read.low
        self._memory_bytes = 1 << 30 if low is None else low.memory_bytes

    def take(self, stream: int, groups: Groups) -> Iterator[Outgoing]:
        waiting = self._pending.setdefault(stream, [])
        known = waiting[0].dictionaries if waiting else groups.dictionaries
        if any(a is not b for a, b in zip(known, groups.dictionaries, strict=True)):
            yield from self._send(stream)
            waiting = self._pending.setdefault(stream, [])
        block = replace(groups.block, rows=own(groups.block.rows))
        waiting.append(replace(groups, block=block))
        self._bytes += block.bytes
        self._rows[stream] += len(block.rows)
        if self._rows[stream] >= PARTIAL_ROWS * self._reading.destinations:
            yield from self._send(stream)
        elif PARTIAL_SHARE * self._bytes > self._memory_bytes:
            yield from self.close()

    def _send(self, stream: int) -> Iterator[Outgoing]:
        name = f"{self._operator} {self._reading.targets[stream].name}"
        self._meter.add(name, taken=self._rows[stream], given=self._rows[stream])
        for row in self._meter.over(name, self._packed(stream)):
            self._meter.add(name, exchanged_bytes=len(row.payload or b""))
            yield row

    def _packed(self, stream: int) -> Iterator[Outgoing]:
        waiting = self._pending.pop(stream)
        self._rows[stream] = 0
        self._bytes -= sum(g.block.bytes for g in waiting)
        target, several = self._reading.targets[stream], self._reading.destinations
        assert target.groups is not None
        blocks, shape = [g.block for g in waiting], target.groups.shape
        dictionaries = waiting[0].dictionaries
        if stream in self._reading.kept:
            for _, payload in pack(blocks, dictionaries, shape, 1):
                yield Outgoing(stream, self._home, "groups", payload)
            return
        yield from addressed(stream, target, blocks, dictionaries, shape, several)

    def close(self) -> Iterator[Outgoing]:
        for stream in list(self._pending):
            yield from self._send(stream)


def addressed(
    stream: int,
    target: Target,
    blocks: Sequence[Block],
    dictionaries: Sequence[Dictionary],
    shape: Shape,
    destinations: int,
) -> Iterator[Outgoing]:
    """Packed groups, each for the merging task in which all its partials meet."""
    if target.by_epoch and not target.feeds:
        for home in range(destinations):
            some = [b.where(home_of(b.epochs, destinations) == home) for b in blocks]
            for _, payload in pack(some, dictionaries, shape, 1):
                yield Outgoing(stream, home, "groups", payload)
        return
    packed = pack(blocks, dictionaries, shape, destinations, by_key=bool(target.feeds))
    for destination, payload in packed:
        yield Outgoing(stream, destination, "groups", payload)


def home_of(epochs: Ints, destinations: int) -> Ints:
    """The task in which all groups of an epoch meet."""
    return np.where(epochs == NO_EPOCH, 0, epochs) % destinations
