"""Paper 1, Table 2: how long an arriving tuple waits for the groups of the epoch before it.

The paper counts lost packets. Here the time between two consumed tuples is taken, tuple by tuple,
from the end of an epoch on, and the longest one told. As the paper does, several queries that share
nothing take each tuple. The same edge is crossed several times with the same tuples and each tuple
has its shortest time, so that what else the machine did does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Final, TypeAlias

import numpy as np

from bench.cache.streams import Tuples, feed, paper_table, uniform_tuples
from terascope.kernels.columns.arrays import Codes, Masks, Rows
from terascope.kernels.tables.bounded_tables import BoundedTable, Flush
from terascope.kernels.tables.table_policies import Policy

PLACES_PER_GROUP: Final = 2
TUPLES_PER_GROUP: Final = 5
Batch: TypeAlias = tuple[Rows, Codes, list[Codes], list[Rows], list[Masks]]
FLUSHES: Final[tuple[Flush, ...]] = ("eager", "lazy")


@dataclass(frozen=True)
class Case:
    """A line of Table 2: groups, queries, and the percentage of packets lost."""

    groups: int
    queries: int
    eager_loss: float
    lazy_loss: float


PAPER: Final = (
    Case(50_000, 2, 1.8, 0.1),
    Case(25_000, 3, 0.4, 0.0),
    Case(12_000, 5, 0.5, 0.3),
)


@dataclass(frozen=True)
class Edge:
    """What happened at the end of an epoch."""

    longest_us: float
    """The longest time between two tuples, in microseconds."""
    most_at_once: int
    """The most groups of a query that one tuple sent off."""


def cross(policy: Policy, flush: Flush, case: Case, tuples: int, crossings: int, seed: int) -> Edge:
    """So many tuples behind the end of an epoch, in full tables."""
    kept: list[Rows] = []
    places = PLACES_PER_GROUP * case.groups
    tables = [
        paper_table(policy, places, flush, lambda rows: kept.append(rows.copy()))
        for _ in range(case.queries)
    ]
    before = uniform_tuples(case.groups, TUPLES_PER_GROUP * case.groups, seed)
    after = uniform_tuples(case.groups, tuples, seed + 1)
    shortest = np.full(len(after), np.iinfo(np.int64).max)
    for crossing in range(crossings):
        for table in tables:
            feed(table, before, 2 * crossing)
        shortest = np.minimum(shortest, gaps(tables, after, 2 * crossing + 1))
        kept.clear()
        for table in tables:
            table.flush()
    feed(tables[0], before, 2 * crossings)
    return Edge(float(shortest.max()) / 1000, most_at_once(tables[0], after, 2 * crossings + 1))


def gaps(tables: list[BoundedTable], tuples: Tuples, epoch: int) -> Rows:
    """Nanoseconds from tuple to tuple, the first one being the first of its epoch."""
    times = np.zeros(len(tuples) + 1, np.int64)
    times[0] = perf_counter_ns()
    for i, single in enumerate(singles(tuples, epoch), 1):
        for table in tables:
            table.add(*single)
        times[i] = perf_counter_ns()
    return np.diff(times)


def most_at_once(table: BoundedTable, tuples: Tuples, epoch: int) -> int:
    most, before = 0, table.counters.flushed
    for single in singles(tuples, epoch):
        table.add(*single)
        flushed = table.counters.flushed
        most, before = max(most, flushed - before), flushed
    return most


def singles(tuples: Tuples, epoch: int) -> Iterator[Batch]:
    """Batches of one tuple."""
    epochs: Rows = np.full(len(tuples), epoch, np.int64)
    mask = np.ones(len(tuples), np.uint8)
    rows = np.arange(len(tuples), dtype=np.int32)
    for i in range(len(tuples)):
        yield epochs, rows[i : i + 1], [tuples.groups], [tuples.values] * 2, [mask] * 2
