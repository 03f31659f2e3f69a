"""The rule of a split: the number of the partition of each tuple.

In: the hashes of the values of the partitioning set, and the times of the tuples. Out: partition
numbers. Without a set tuples are dealt out in turn, which no query can make use of.

After a re-split other ranges of hashes hold from an edge in time on. The number of a partition is
then a function of the values of the set and of time / edge: to every query such a split is a split
by the set and `time/edge`, and says so (`Layout.full_set`). So a group is complete in one partition
if its epoch determines time / edge, and everything else is computed centrally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from terascope.connectors.base import Column
from terascope.kernels.columns.arrays import Ints
from terascope.partitioning.layout import CLOCK, Generation
from terascope.partitioning.placing import Hashes, even_bounds, partition_numbers, value_hashes
from terascope.partitioning.sets import PartitionSet


@dataclass(frozen=True)
class SplitRule:
    """Which partition a tuple is put into."""

    set: PartitionSet | None
    """None: tuples are dealt out in turn."""
    count: int
    generations: tuple[Generation, ...]

    @staticmethod
    def even(set: PartitionSet | None, count: int) -> SplitRule:
        """Equal ranges of hashes."""
        return SplitRule(set, count, (Generation(even_bounds(count)),))

    def with_bounds(self, bounds: tuple[int, ...], from_time: int | None = None) -> SplitRule:
        """Other ranges, for all tuples or from a time on."""
        new = Generation(bounds, from_time)
        kept = () if from_time is None else self.generations
        return replace(self, generations=(*kept, new))

    def columns(self, offered: Sequence[Column], timed: bool = False) -> tuple[Column, ...]:
        """The columns of the source that it reads. `timed`: the clock, too."""
        wanted = {CLOCK} if timed or len(self.generations) > 1 else set[str]()
        wanted |= {*self.set.columns} if self.set is not None else set[str]()
        return tuple(column for column in offered if column.name in wanted)

    def numbers(self, hashes: Hashes, times: Ints | None) -> Ints:
        """The partitions of tuples with these hashes and times."""
        if len(self.generations) == 1 or times is None:
            return partition_numbers(hashes, self.generations[0].bounds)
        starts = [one.from_time for one in self.generations[1:]]
        at = np.searchsorted(np.array(starts, np.int64), times, side="right")
        numbers = np.empty(len(hashes), np.int64)
        for place in np.unique(at):
            rows = np.flatnonzero(at == place)
            numbers[rows] = partition_numbers(hashes[rows], self.generations[place].bounds)
        return numbers


@dataclass
class Placed:
    """Places tuples batch by batch; it knows whose turn it is."""

    rule: SplitRule
    turn: int = 0
    """The tuples that were dealt out."""
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    """The hashes of the last batch."""

    def dealt(self, count: int) -> Ints:
        """The partitions of tuples that are dealt out in turn."""
        numbers = (np.arange(count, dtype=np.int64) + self.turn % self.rule.count) % self.rule.count
        self.turn += count
        return numbers

    def numbers(self, batch: pa.RecordBatch, times: Ints | None) -> Ints:
        """The partitions of the tuples of a batch."""
        if self.rule.set is None:
            return self.dealt(batch.num_rows)
        self.hashes = value_hashes(self.rule.set, batch)
        return self.rule.numbers(self.hashes, times)
