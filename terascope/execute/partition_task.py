"""A task that reads one partition of each partitioned source, and finishes what the partition owns.

Where there are many more partitions than processes a task reads several, and owns the groups of all
of them: a task costs Spark 20 ms, whatever it does.

In: the reads of partitioned sources with their low-level plans, and the streams above the low level
that a partition computes by itself. Out: the `Outgoing` rows of reading tasks, without those that
stay inside: groups whose keys determine the partition are complete here, so that windows are
assembled, and joins and further aggregations are computed, without an exchange (paper 2, 5.2, 5.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from terascope.connectors.base import Split, partition_of
from terascope.execute.held_rows import HeldRows
from terascope.execute.merge import Merging
from terascope.execute.partition_check import PartitionCheck
from terascope.execute.reading_task import Bundle, NativeRead, low_rows
from terascope.execute.relation_task import RelationTask, no_horizon
from terascope.execute.reports import Outgoing
from terascope.execute.sent_tuples import Sending, TupleSender
from terascope.functions.base import Value
from terascope.physical.delivery import InsideStream, Target
from terascope.physical.low_plan import LowAggregate
from terascope.physical.splits import EVERYTHING, Epochs, owned
from terascope.plan.expr import Expr
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Filter, Merge, Project, Read, walk

Observer: TypeAlias = Callable[[pa.RecordBatch, Split], None]


@dataclass(frozen=True)
class PartitionWork:
    """The work of the tasks that read partitions."""

    readings: tuple[NativeRead, ...]
    homes: Mapping[str, Sequence[int]]
    """The task that reads each partition, by source."""
    kept: frozenset[int]
    """The low-level streams whose groups are complete in each partition."""
    inside: tuple[InsideStream, ...]
    """The streams above the low level, in the order they are computed."""
    targets: Mapping[int, Target]
    memory_bytes: int
    parameters: Mapping[str, Value]
    checks: tuple[PartitionCheck | None, ...]
    """For each read: whether its tuples are in the partitions they belong to."""
    values: Mapping[int, tuple[Expr, ...]] = field(default_factory=dict)
    """The values of the partitioning set over the columns of a low-level stream, by its number."""
    compiled: bool = True
    sending: Mapping[str, Sending] = field(default_factory=dict)
    """By name of a read: the tuples that are sent for what partitions cannot finish."""

    @property
    def count(self) -> int:
        """The number of tasks."""
        return 1 + max(home for homes in self.homes.values() for home in homes)

    def bundles(self) -> list[tuple[Bundle, ...]]:
        """For each task, its splits of each read with the epochs that it owns."""
        by_read = [self._bundles_of(reading) for reading in self.readings]
        return [tuple(bundles[number] for bundles in by_read) for number in range(self.count)]

    def finishing(self, streams: Sequence[InsideStream]) -> RelationTask:
        """The work of a task on streams above the low level."""
        remote = frozenset(number for number, target in self.targets.items() if target.remote)
        sink = self.readings[0].sink
        return RelationTask(tuple(streams), self.parameters, sink, remote, self.compiled)

    def held_rows(self) -> HeldRows:
        together = put_together(self.inside)
        whole = any(target.name in together and number not in self.values
                    for number, target in self.targets.items())  # fmt: skip
        return HeldRows(self.targets, self.kept, None if whole else self.values, self.memory_bytes)

    def _bundles_of(self, reading: NativeRead) -> list[Bundle]:
        read = reading.read
        parts: list[list[Split]] = [[] for _ in range(self.count)]
        for split in read.splits:
            number = partition_of(split.interface)
            assert number is not None
            parts[self.homes[split.source][number]].append(split)
        mine: list[dict[int, Epochs | None]] = [{} for _ in parts]
        names = {one.name for one in read.interfaces}
        for place, query in enumerate(read.queries):
            stream = reading.streams[place]
            if not isinstance(query, LowAggregate) or self.targets[stream].feeds:
                continue  # windows are put together from the partial groups of all slices
            if not set(query.interfaces) <= names:
                continue  # other reads have tuples of the same groups
            if stream in self.kept:
                for own in mine:
                    own[place] = EVERYTHING
                continue
            for task, epochs in enumerate(owned(query, parts)):
                mine[task][place] = epochs
        return [Bundle(tuple(some), mine[i], i) for i, some in enumerate(parts)]


def put_together(inside: Sequence[InsideStream]) -> set[str]:
    """The low-level streams of which some operator above needs several tuples at once."""
    below: dict[str, set[str]] = {}
    found: set[str] = set()
    for one in inside:
        names = {name for read in reads(one.rel) for name in below.get(read.stream, {read.stream})}
        below[one.name] = names
        if not all(isinstance(rel, Read | Filter | Project | Merge) for rel in walk(one.rel)):
            found |= names
    return found


def partition_rows(work: PartitionWork, bundles: Sequence[Bundle]) -> Iterator[Outgoing]:
    """Run the work of one task."""
    number = bundles[0].number
    held = work.held_rows()
    for reading, bundle, check in zip(work.readings, bundles, work.checks, strict=True):
        checked = None if check is None else check.of_task(number)
        sending = work.sending.get(reading.read.name)
        sender = None if sending is None else TupleSender(sending)
        yield from held.keep(low_rows(reading, bundle, seen_by(checked, sender)))
        if checked is not None:
            yield from checked.reports()
        if sender is not None:
            yield from sender.rows()
    if held.has_groups:
        joins = tuple(join for reading in work.readings for join in reading.joins)
        merging = Merging(work.targets, work.readings[0].sink, work.memory_bytes, joins)
        yield from held.keep(merging.merged(held.groups()))
    now = [one for one in work.inside if not one.later]
    if now:
        numbers = {target.name: at for at, target in work.targets.items() if target.inside}
        horizons = Horizons(no_horizon, {}, work.parameters)
        finishing = work.finishing(now)
        for portion in held.portions(numbers):
            yield from finishing.outgoing(portion.rows_of, horizons, number)


def seen_by(*observers: Observer | None) -> Observer:
    """An observer of the batches that are read, which shows them to some others."""
    known = [one for one in observers if one is not None]

    def see(batch: pa.RecordBatch, split: Split) -> None:
        for one in known:
            one(batch, split)

    return see


def later_rows(
    work: PartitionWork,
    horizons: Horizons,
    number: int,
    packed: Iterable[tuple[int, bytes]],
) -> Iterator[Outgoing]:
    """The streams of a partition that have rows up to the last tuple of the sources, which is known
    now. `packed`: rows of the partition that its first task has given.
    """
    held = work.held_rows()
    for stream, payload in packed:
        held.hold(Outgoing(stream, number, "rows", payload))
    numbers = {target.name: at for at, target in work.targets.items() if target.later}
    later = [one for one in work.inside if one.later]
    finishing = work.finishing(later)
    for portion in held.portions(numbers):
        yield from finishing.outgoing(portion.rows_of, horizons, number)
