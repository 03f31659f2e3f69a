"""Which rows of two batches meet where a join has more conditions than equalities.

In: the rows of both sides, the keys that must be equal, and the condition. Out: the places of the
pairs that meet. Pairs with equal keys are looked at some at a time, because there may be many more
of them than rows: n packets of one flow make n * n. Where the condition limits the difference of a
number of each side, as a band of time does, only the pairs within the limits are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.analysis.bounded import compared_columns
from terascope.kernels.columns.arrays import Ints, decoded
from terascope.kernels.columns.batch import FinishedRows
from terascope.physical.row_pipeline import Keep, RowPipeline, RowPlanner
from terascope.plan.expr import Expr, columns_of
from terascope.plan.rel import Join
from terascope.types import INTEGERS

PAIRS_AT_ONCE: Final = 1 << 20
NOBODY: Final = -1
"""The key of a row that has no partner."""
LARGEST: Final = 1 << 62

Places: TypeAlias = tuple[Ints, Ints]
"""Of the left and of the right row of each pair."""


@dataclass(frozen=True)
class Band:
    """Limits of the difference of a column of the right side and one of the left side; None: no
    limit.
    """

    left: str
    right: str
    low: int | None
    high: int | None


@dataclass(frozen=True)
class PairCondition:
    """The condition of a join beside its equalities. `band`: limits that follow from it."""

    predicate: Expr
    band: Band | None = None

    @classmethod
    def of(cls, join: Join, planner: RowPlanner) -> Self | None:
        """None where the kernels have no form for the condition, or the join has none."""
        if join.residual is None:
            return None
        both = (*join.left.fields, *join.right.fields)
        made = planner.kept(RowPipeline("", ()), join.residual, both)
        if made is None or len(made.steps) != 1:
            return None
        (step,) = made.steps
        return cls(step.predicate, band_of(join)) if isinstance(step, Keep) else None


def band_of(join: Join) -> Band | None:
    """The first limits that the condition of a join sets to the difference of two integer columns,
    if possible from both sides.
    """
    found: list[Band] = []
    for (left, right), (lows, highs) in compared_columns(join).items():
        if {join.left.type_of(left), join.right.type_of(right)} <= INTEGERS:
            low = max((math.floor(one) for one in lows), default=-LARGEST)
            high = min((math.ceil(one) for one in highs), default=LARGEST)
            found.append(Band(left, right, limit(low, -LARGEST), limit(high, LARGEST)))
    closed = (one for one in found if one.low is not None and one.high is not None)
    return next(closed, next(iter(found), None))


def limit(number: int, unlimited: int) -> int | None:
    """A limit of which sums fit into 64 bits, or can be seen not to."""
    if (number <= unlimited) if unlimited < 0 else (number >= unlimited):
        return None
    return max(-LARGEST, min(LARGEST, number))


def matching_pairs(
    left: pa.RecordBatch,
    right: pa.RecordBatch,
    keys: Sequence[tuple[pa.Array, pa.Array]],
    condition: PairCondition,
) -> Places:
    """The pairs that meet, in the order of the left side. `keys`: integers, equal for equal
    values; NULL equals nothing.
    """
    names = columns_of(condition.predicate)
    read = [[n for n in side.schema.names if n in names] for side in (left, right)]
    sides = left.select(read[0]), right.select(read[1])
    found: list[Places] = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for places in candidates(left, right, keys, condition.band):
        columns = [c for side, p in zip(sides, places, strict=True) for c in taken(side, p)]
        rows = pa.RecordBatch.from_arrays(columns, [*read[0], *read[1]])
        passing = FinishedRows(rows).passing(condition.predicate)
        found.append((places[0][passing], places[1][passing]))
    one, other = zip(*found, strict=True)
    return np.concatenate(one), np.concatenate(other)


def taken(side: pa.RecordBatch, places: Ints) -> Sequence[pa.Array]:
    columns: Sequence[pa.Array] = side.take(pa.array(places)).columns
    return columns


def candidates(
    left: pa.RecordBatch,
    right: pa.RecordBatch,
    keys: Sequence[tuple[pa.Array, pa.Array]],
    band: Band | None,
) -> Iterator[Places]:
    """The pairs with equal keys and a difference within the band, some at a time."""
    one, other = key_numbers(keys, left.num_rows, right.num_rows)
    lows, highs, ranks, width = band_ranks(left, right, band)
    # Right rows in the order of keys and ranks: the partners of a left row stand side by side.
    combined = other * width + ranks
    order = np.argsort(combined, kind="stable")
    ordered = combined[order]
    begins = np.searchsorted(ordered, one * width + lows)
    counts = np.maximum(np.searchsorted(ordered, one * width + highs) - begins, 0)
    counts[one == NOBODY] = 0
    before = np.concatenate([[0], np.cumsum(counts)])
    start = 0
    while start < len(one) and before[start] < before[-1]:
        end = int(np.searchsorted(before, before[start] + PAIRS_AT_ONCE, "right")) - 1
        end = max(end, start + 1)
        some = counts[start:end]
        lefts = np.repeat(np.arange(start, end), some)
        within = np.arange(len(lefts)) - np.repeat(before[start:end] - before[start], some)
        yield lefts, order[np.repeat(begins[start:end], some) + within]
        start = end


def key_numbers(keys: Sequence[tuple[pa.Array, pa.Array]], left: int, right: int) -> Places:
    """A number for each row of both sides, the same for the same keys."""
    numbers = np.zeros(left + right, np.int64)
    missing = np.zeros(left + right, np.bool_)
    for pair in keys:
        coded = pa.concat_arrays(list(pair)).dictionary_encode()
        missing |= np.asarray(coded.indices.is_null())
        both = numbers * len(coded.dictionary) + np.asarray(coded.indices.fill_null(0))
        numbers = np.asarray(pa.array(both).dictionary_encode().indices, np.int64)
    numbers[missing] = NOBODY
    return numbers[:left], numbers[left:]


def band_ranks(
    left: pa.RecordBatch, right: pa.RecordBatch, band: Band | None
) -> tuple[Ints, Ints, Ints, int]:
    """For each left row the first rank within its band and the first above it; the rank of each
    right row; and a number that is larger than all of these.
    """
    if band is None:
        none = np.zeros(left.num_rows, np.int64)
        return none, none + 1, np.zeros(right.num_rows, np.int64), 2
    x, y = (values_of(side.column(n)) for side, n in ((left, band.left), (right, band.right)))
    known, ranks = np.unique(y, return_inverse=True)
    lows = highs = np.zeros(len(x), np.int64)
    if band.low is not None:
        lows = np.searchsorted(known, shifted(x, band.low), "left")
    if band.high is None:
        highs = np.full(len(x), len(known), np.int64)
    else:
        highs = np.searchsorted(known, shifted(x, band.high), "right")
    return lows, highs, ranks.astype(np.int64), len(known) + 1


def values_of(column: pa.Array) -> Ints:
    """The integers of a column; any number for NULL, which no condition accepts."""
    return np.asarray(decoded(column).cast(pa.int64()).fill_null(0))


def shifted(values: Ints, by: int) -> Ints:
    """The sums; the smallest or the largest number where a sum does not fit."""
    made = values + np.int64(by)
    limits = np.iinfo(np.int64)
    overflows = (made > values) if by < 0 else (made < values)
    return np.where(overflows, limits.min if by < 0 else limits.max, made)
