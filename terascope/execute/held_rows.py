"""The rows of a partition that its task needs itself, in memory or on disk.

In: the `Outgoing` rows of reading tasks. Out: the partial groups of streams that the partition has
whole, and the tuples of the streams that other streams of the partition read: all at once where
they are few, otherwise in portions.

What is compatible with a partitioning is compatible with a finer one by the same values: tuples
with equal values of the partitioning set stay together. So the task splits a partition that is
larger than its memory once more, by other bits of the same hash, and computes its streams portion
by portion. A portion is as large as the tuples of one value at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.execute.held_payloads import HeldPayload, PayloadStore
from terascope.execute.reports import Outgoing
from terascope.execute.rows.steps import batch_of
from terascope.execute.spill import SpillFile, temporary_file
from terascope.hashing import GOLDEN
from terascope.kernels.columns.arrays import Ints
from terascope.kernels.merge.payload import pack_tuples, unpack_tuples
from terascope.partitioning.placing import value_hashes
from terascope.partitioning.sets import PartitionSet
from terascope.physical.delivery import Target
from terascope.plan.expr import Expr

PORTION_SHARE: Final = 8
"""The share of a task's memory for the rows of a portion: a join has them several times."""
MOST_PORTIONS: Final = 256
SPREAD: Final = np.uint64(GOLDEN)
"""Spreads the hashes of a partition, whose upper bits are alike, over all portions."""


@dataclass(frozen=True)
class HeldRow:
    """A packed row that stays inside its task."""

    stream: int
    is_groups: bool
    packed: HeldPayload


class HeldRows:
    """The rows of one task."""

    def __init__(
        self,
        targets: Mapping[int, Target],
        kept: frozenset[int],
        values: Mapping[int, tuple[Expr, ...]] | None,
        memory_bytes: int,
    ) -> None:
        """`kept`: the streams whose groups no other partition has. `values`: the values of the
        partitioning set over the columns of a stream; None: one portion has all tuples.
        """
        self._targets, self._kept, self._values = targets, kept, values or {}
        self._portion_bytes = max(1, memory_bytes // PORTION_SHARE)
        self._most_portions = 1 if values is None else MOST_PORTIONS
        self._rows: list[HeldRow] = []
        self._store = PayloadStore()

    def keep(self, rows: Iterable[Outgoing]) -> Iterator[Outgoing]:
        """Hold the rows that stay inside, and yield all others."""
        for row in rows:
            target = self._targets.get(row.stream)
            if row.kind == "groups" and row.stream in self._kept:
                self.hold(row)
                continue
            if row.kind == "rows" and target is not None and target.inside:
                self.hold(row)
                if not (target.high or target.later):
                    continue
            yield row

    def hold(self, row: Outgoing) -> None:
        """Hold a packed row, on disk where there are many."""
        assert row.payload is not None
        packed = self._store.hold(row.payload)
        self._rows.append(HeldRow(row.stream, row.kind == "groups", packed))

    @property
    def has_groups(self) -> bool:
        return any(row.is_groups for row in self._rows)

    def groups(self) -> Iterator[tuple[int, bytes]]:
        """All packed partial groups, with their stream. Rows held meanwhile are not among them."""
        rows = tuple(self._rows)
        return ((row.stream, self._store.payload(row.packed)) for row in rows if row.is_groups)

    # ---- tuples

    def portions(self, streams: Mapping[str, int]) -> Iterator[Portion]:
        """The tuples of some streams, in as many portions as fit into memory one by one. `streams`:
        their numbers by name.
        """
        held = {at: [r for r in self._rows if r.stream == at and not r.is_groups]
                for at in streams.values()}  # fmt: skip
        total = sum(row.packed.size for some in held.values() for row in some)
        count = min(self._most_portions, -(-total // self._portion_bytes))
        if count > 1:
            scattered = Scattered(count)
            for at, rows in held.items():
                for row in rows:
                    for batch in unpack_tuples(self._store.payload(row.packed)):
                        scattered.add(at, batch, self._values.get(at, ()))
            for number in range(count):
                yield Portion(streams, self._targets, scattered.of(number))
            return
        batches = {at: (b for row in rows for b in unpack_tuples(self._store.payload(row.packed)))
                   for at, rows in held.items()}  # fmt: skip
        yield Portion(streams, self._targets, batches)


@dataclass(frozen=True)
class Portion:
    """Tuples of which no operator needs those of other portions."""

    streams: Mapping[str, int]
    targets: Mapping[int, Target]
    batches: Mapping[int, Iterable[pa.RecordBatch]]
    """By number of the stream; each can be read once."""

    def rows_of(self, stream: str) -> pa.RecordBatch:
        number = self.streams[stream]
        return batch_of(self.batches.get(number, ()), self.targets[number].fields)


@dataclass
class Scattered:
    """Tuples on disk, by portion."""

    count: int
    _file: SpillFile = field(default_factory=temporary_file)
    _places: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """For each portion: streams, and the places and sizes of their tuples."""

    def __post_init__(self) -> None:
        self._places = [[] for _ in range(self.count)]

    def add(self, stream: int, batch: pa.RecordBatch, values: tuple[Expr, ...]) -> None:
        """`values`: of the partitioning set. A stream without them is read by operators only that
        put no two tuples together, so that any portion will do.
        """
        numbers = self._numbers(batch, values)
        order = np.argsort(numbers, kind="stable")
        ordered = batch.take(pa.array(order))
        ends = np.searchsorted(numbers[order], np.arange(self.count + 1))
        for number, (begin, end) in enumerate(pairwise(ends)):
            if begin < end:
                packed = pack_tuples(ordered.slice(begin, end - begin))
                self._places[number].append((stream, self._file.size, len(packed)))
                self._file.append(packed)

    def _numbers(self, batch: pa.RecordBatch, values: tuple[Expr, ...]) -> Ints:
        portions: Ints = np.arange(batch.num_rows) * self.count // max(1, batch.num_rows)
        if values:
            hashes = value_hashes(PartitionSet(values), batch) * SPREAD >> np.uint64(32)
            portions = (hashes * np.uint64(self.count) >> np.uint64(32)).view(np.int64)
        return portions

    def of(self, number: int) -> dict[int, Iterator[pa.RecordBatch]]:
        """The tuples of a portion, by stream."""
        places = sorted(self._places[number], key=lambda place: place[0])
        return {
            stream: self._read(list(some)) for stream, some in groupby(places, lambda one: one[0])
        }

    def _read(self, places: list[tuple[int, int, int]]) -> Iterator[pa.RecordBatch]:
        for _, at, size in places:
            yield from unpack_tuples(self._file.read(at, size).tobytes())
