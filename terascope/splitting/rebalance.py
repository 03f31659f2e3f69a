"""Skew: how hashes are spread over their range, and ranges with even loads.

In: the hashes of tuples. Out: the ends of ranges of hashes that have about equally many tuples, and
whether one value alone is too much for a partition: no move of ranges parts the tuples of a value.

In a split with an edge (a number of seconds) ranges may change where time / edge does. A change is
decided between two batches and holds from the first edge that is later than every tuple before it,
so that no tuple was placed by other ranges than those of its time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from terascope.kernels.columns.arrays import Ints
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.partitioning.balance import HOT
from terascope.partitioning.placing import WHOLE, Hashes, partition_numbers
from terascope.splitting.rule import SplitRule

BIN_BITS: Final = 14
BINS: Final = 1 << BIN_BITS
SHIFT: Final = 64 - BIN_BITS
WORTH: Final = 0.9
"""Other ranges are taken if the largest load becomes at most this part of what it is."""
FEWEST: Final = 1000
"""Tuples without which nothing can be said."""


@dataclass
class HashCounts:
    """The tuples by the first bits of their hashes."""

    counts: Ints = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, hashes: Hashes, every: int = 1) -> None:
        """Count tuples; `every`: only one in so many, which is enough for advice."""
        add_counts(hashes, every, self.counts)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def loads(self, bounds: tuple[int, ...]) -> Ints:
        """The tuples in each range, as far as bins tell."""
        middles = (np.arange(BINS, dtype=np.uint64) << np.uint64(SHIFT)) + np.uint64(
            1 << (SHIFT - 1)
        )
        numbers = partition_numbers(middles, bounds)
        return np.bincount(numbers, self.counts, len(bounds)).astype(np.int64)

    def even_loads(self, count: int) -> tuple[int, ...]:
        """The ends of ranges that have about equally many tuples, where bins end."""
        ends = np.cumsum(self.counts)
        wanted = ends[-1] * np.arange(1, count, dtype=np.float64) / count
        after = np.searchsorted(ends, wanted)  # the bin in which each range should end
        below = np.where(after > 0, ends[after - 1], 0)
        nearer = after + ((ends[after] - wanted) < (wanted - below))
        bins = np.minimum(nearer, BINS - 1).tolist()
        return (*(place << SHIFT for place in bins), WHOLE)

    def skew(self, bounds: tuple[int, ...]) -> float:
        """The largest load as a multiple of the mean."""
        return float(self.loads(bounds).max() * len(bounds) / max(self.total, 1))

    @property
    def largest_share(self) -> float:
        """The largest part of all tuples whose hashes begin alike: about that of one value."""
        return float(self.counts.max() / max(self.total, 1))

    def value_advice(self, count: int) -> str:
        """What to do about a value that is too much for any partition; empty: there is none."""
        share = self.largest_share
        if count < 2 or share * count <= HOT or self.total < FEWEST:
            return ""
        return (
            f"one value of the set has about {share:.2%} of all tuples: moving the ranges does not"
            " part them; split by more attributes"
        )


@dataclass
class Rebalancer:
    """Decides between batches which ranges hold from the next edge on."""

    edge: int
    latest: int = -1
    """The largest time of all tuples that were placed."""
    counts: HashCounts = field(default_factory=HashCounts)
    _slice: int = -1
    """The slice of time of the last decision."""

    def see(self, hashes: Hashes, times: Ints) -> None:
        if len(times):
            self.counts.add(hashes)
            self.latest = max(self.latest, int(times.max()))

    def decided(self, rule: SplitRule) -> SplitRule:
        """The rule from now on; the same one where nothing would be gained."""
        now = self.latest // self.edge
        started = rule.generations[-1].from_time
        if now == self._slice or (started is not None and self.latest < started):
            return rule
        self._slice = now
        if self.counts.total < FEWEST:
            return rule
        before = self.counts.skew(rule.generations[-1].bounds)
        bounds = self.counts.even_loads(rule.count)
        better = before > HOT and self.counts.skew(bounds) <= WORTH * before
        self.counts.counts //= 2  # what is older counts for less
        if not better:
            return rule
        return rule.with_bounds(bounds, (now + 1) * self.edge)


@compiled_for(column(np.uint64), INTEGER, output(np.int64))
def add_counts(hashes: Hashes, every: int, counts: Ints) -> None:
    for i in range(0, len(hashes), every):
        counts[hashes[i] >> np.uint64(SHIFT)] += 1
