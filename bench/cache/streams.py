"""Tuples for the tables of `cache`: uniform and Zipf-like groups, as columns.

In: how many groups and tuples, and a seed. Out: columns as the low level has them, and tables fed
with them. The aggregation is paper 1's: COUNT, MIN and MAX for each source address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from terascope.functions.aggregates.folding import MAX_INT, MIN_INT
from terascope.functions.slots import COUNT
from terascope.kernels.columns.arrays import Codes, Rows
from terascope.kernels.tables.bounded_tables import BoundedTable, Flush, Taker
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import Policy

PAPER_SHAPE = Shape(1, (COUNT, MIN_INT, MAX_INT), with_epoch=True)
BATCH = 1 << 16
PACKET_BYTES = 1500


@dataclass(frozen=True)
class Tuples:
    """Columns: the group of each tuple, and an integer to aggregate."""

    groups: Codes
    values: Rows

    def __len__(self) -> int:
        return len(self.groups)

    def batches(self) -> Iterator[Tuples]:
        for first in range(0, len(self), BATCH):
            yield Tuples(self.groups[first : first + BATCH], self.values[first : first + BATCH])


def uniform_tuples(groups: int, count: int, seed: int) -> Tuples:
    """Every group as likely as the others."""
    chance = np.random.default_rng([seed, groups])
    return Tuples(chance.integers(0, groups, count, dtype=np.int32), _values(chance, count))


def zipf_tuples(groups: int, exponent: float, count: int, seed: int) -> Tuples:
    """The k-th group has a share in proportion to k ** -exponent. Codes are in an order of their
    own, the same for every seed.
    """
    chance = np.random.default_rng([seed, groups, round(1000 * exponent)])
    shares = zipf_shares(groups, exponent)
    ranks = np.searchsorted(shares, chance.random(count), side="right")
    codes = np.random.default_rng(groups).permutation(groups).astype(np.int32)
    return Tuples(codes[np.minimum(ranks, groups - 1)], _values(chance, count))


def zipf_shares(groups: int, exponent: float) -> npt.NDArray[np.float64]:
    """Of the first, the first two, the first three groups, ..."""
    sums = np.cumsum(np.arange(1.0, groups + 1) ** -exponent)
    shares: npt.NDArray[np.float64] = sums / sums[-1]
    return shares


def _values(chance: np.random.Generator, count: int) -> Rows:
    return chance.integers(40, PACKET_BYTES + 1, count)


def ignore(rows: Rows) -> None:
    """Partials nobody asks for."""


def paper_table(
    policy: Policy, capacity: int, flush: Flush = "eager", taker: Taker = ignore
) -> BoundedTable:
    return BoundedTable(PAPER_SHAPE, policy, capacity, flush, taker)


def feed(table: BoundedTable, tuples: Tuples, epoch: int = 0) -> None:
    """All tuples, of one epoch; every slot with an argument gets the same."""
    size = min(BATCH, len(tuples))
    epochs: Rows = np.full(size, epoch, np.int64)
    rows: Codes = np.arange(size, dtype=np.int32)
    mask: npt.NDArray[np.uint8] = np.ones(size, np.uint8)
    arguments = len(table.shape.slots) - 1
    for batch in tuples.batches():
        some = rows[: len(batch)]
        values = [batch.values] * arguments
        table.add(epochs, some, [batch.groups], values, [mask] * arguments)


def evicted_share(table: BoundedTable, first: Tuples, then: Tuples) -> float:
    """Evicted partials per tuple of `then`, after a table was filled with `first`."""
    feed(table, first)
    before = table.counters.evictions
    feed(table, then)
    return (table.counters.evictions - before) / len(then)
