"""A task that reads one partition of each partitioned source, and finishes what the partition owns.

Where there are many more partitions than processes a task reads several, and owns the groups of all
of them: a task costs Spark 20 ms, whatever it does.

In: the reads of partitioned sources with their low-level plans, and the streams above the low level
that a partition computes by itself. Out: the `Outgoing` rows of reading tasks, without those that
stay inside: groups whose keys determine the partition are complete here, so that windows are
assembled, and joins and further aggregations are computed, without an exchange (paper 2, 5.2, 5.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from terascope.connectors.base import Split, partition_of
from terascope.execute.merge import Merging
from terascope.execute.partition_check import PartitionCheck
from terascope.execute.reading_task import Bundle, NativeRead, low_rows
from terascope.execute.relation_task import RelationTask, no_horizon
from terascope.execute.reports import Outgoing
from terascope.execute.rows.steps import batch_of
from terascope.execute.spill import temporary_file
from terascope.functions.base import Value
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import InsideStream, Target
from terascope.physical.low_plan import LowAggregate
from terascope.physical.splits import EVERYTHING, Epochs, owned
from terascope.plan.horizon import Horizons

HELD_BYTES = 64 << 20
"""The bytes of rows that wait in memory for the end of a task; more are on disk."""


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
    compiled: bool = True

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


def partition_rows(work: PartitionWork, bundles: Sequence[Bundle]) -> Iterator[Outgoing]:
    """Run the work of one task."""
    number = bundles[0].number
    held = HeldRows(work)
    for reading, bundle, check in zip(work.readings, bundles, work.checks, strict=True):
        see = None if check is None else check.of_task(number)
        yield from held.keep(low_rows(reading, bundle, see))
        if see is not None:
            yield from see.reports()
    groups = list(held.groups())
    if groups:
        joins = tuple(join for reading in work.readings for join in reading.joins)
        merging = Merging(work.targets, work.readings[0].sink, work.memory_bytes, joins)
        yield from held.keep(merging.merged(held.unpacked(groups)))
    now = [one for one in work.inside if not one.later]
    if now:
        numbers = {target.name: at for at, target in work.targets.items() if target.inside}
        horizons = Horizons(no_horizon, {}, work.parameters)

        def rows_of(stream: str) -> pa.RecordBatch:
            return held.batch(numbers[stream])

        yield from work.finishing(now).outgoing(rows_of, horizons, number)


def later_rows(
    work: PartitionWork,
    horizons: Horizons,
    number: int,
    packed: Iterable[tuple[int, bytes]],
) -> Iterator[Outgoing]:
    """The streams of a partition that have rows up to the last tuple of the sources, which is known
    now. `packed`: rows of the partition that its first task has given.
    """
    held = HeldRows(work)
    for stream, payload in packed:
        held.hold(Outgoing(stream, number, "rows", payload))
    numbers = {target.name: at for at, target in work.targets.items() if target.later}
    later = [one for one in work.inside if one.later]
    finishing = work.finishing(later)
    yield from finishing.outgoing(lambda stream: held.batch(numbers[stream]), horizons, number)


class HeldRows:
    """The rows of a task that it needs itself: partial groups of kept streams, which no other
    partition has, and tuples of low-level streams for the streams above them.
    """

    def __init__(self, work: PartitionWork) -> None:
        self._work = work
        self._rows: list[tuple[int, bool, bytes | None, int, int]] = []
        """Stream, whether they are groups, the payload or None, and its place on disk."""
        self._file = temporary_file()
        self._bytes = 0

    def keep(self, rows: Iterable[Outgoing]) -> Iterator[Outgoing]:
        """Hold the rows that stay inside, and yield all others."""
        for row in rows:
            target = self._work.targets.get(row.stream)
            if row.kind == "groups" and row.stream in self._work.kept:
                self.hold(row)
                continue
            if row.kind == "rows" and target is not None and target.inside:
                self.hold(row)
                if not (target.high or target.later):
                    continue
            yield row

    def hold(self, row: Outgoing) -> None:
        """Hold a packed row, on disk where there are many."""
        payload = row.payload
        assert payload is not None
        at = self._file.size
        self._bytes += len(payload)
        on_disk = self._bytes > HELD_BYTES
        if on_disk:
            self._file.append(payload)
        self._rows.append(
            (row.stream, row.kind == "groups", None if on_disk else payload, at, len(payload))
        )

    def groups(self) -> Iterator[int]:
        """The places of packed groups."""
        return (at for at, row in enumerate(self._rows) if row[1])

    def unpacked(self, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for place in places:
            stream, _, payload, at, size = self._rows[place]
            yield stream, self._file.read(at, size).tobytes() if payload is None else payload

    def batch(self, stream: int) -> pa.RecordBatch:
        """All tuples of a low-level stream."""
        places = [at for at, row in enumerate(self._rows) if row[0] == stream and not row[1]]
        batches = (b for _, payload in self.unpacked(places) for b in unpack_tuples(payload))
        return batch_of(batches, self._work.targets[stream].fields)
