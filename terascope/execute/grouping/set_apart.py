"""Tuples that do not enter a table, because a FLOAT to be summed is beyond the ordinary range.

In: the tuples of a query, as vectors. Out: the tuples that enter, and for each of the others a row
of its own, a partial group of one tuple (terascope.kernels.merge.float_ranges).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from terascope.execute.grouping.pending_tuples import TupleVectors
from terascope.functions.aggregates.float_sums import FLOAT_DIGIT
from terascope.functions.slots import RANGE
from terascope.kernels.columns.arrays import Codes, Ints, Rows, Values
from terascope.kernels.merge.float_ranges import digits_of, ranges_of
from terascope.kernels.tables.open_table import grouped
from terascope.kernels.tables.slots import Shape, TableColumns
from terascope.physical.low_plan import LowAggregate, Slot
from terascope.plan.expr import Call, Expr, Lit


@dataclass(frozen=True)
class SetApart:
    """The tuples of a query that enter its table, and separate groups for the others."""

    rows: Codes
    """The tuples that enter."""
    columns: TableColumns
    """The columns of the tuples that enter, without ranges."""
    apart: Codes
    groups: Rows | None = None
    """A row for each tuple that does not enter; None when there is none."""


def set_apart(
    tuples: TupleVectors, rows: Codes, query: LowAggregate, columns: TableColumns, shape: Shape
) -> SetApart:
    """Separate the tuples that do not enter. `query`: as its table reads it; `shape`: the shape of
    the groups in it.
    """
    slots = [slot for slot in query.slots if slot.kept.takes_argument]
    nothing = tuples.once("no values", np.zeros, tuples.count, np.int64)
    values: list[Values] = []
    found: dict[Expr, tuple[Values, Ints]] = {}
    beyond = np.zeros(len(rows), np.bool_)
    for slot, vector, masks in zip(slots, columns.values, columns.masks, strict=True):
        values.append(nothing if slot.kept == RANGE else vector)
        if slot.kept == RANGE:
            ranges = tuples.once(("ranges", id(vector)), ranges_of, vector)
            if ranges is not None:
                assert slot.argument is not None
                found[slot.argument] = vector, ranges
                beyond |= (ranges[rows] != 0) & (masks[rows] != 0)
    entering = replace(columns, values=values)
    if not beyond.any():
        return SetApart(rows, entering, rows[:0])
    apart = rows[beyond]
    groups = lone_groups(apart, slots, columns, found, shape)
    return SetApart(rows[~beyond], entering, apart, groups)


def lone_groups(
    apart: Codes,
    slots: Sequence[Slot],
    columns: TableColumns,
    found: Mapping[Expr, tuple[Values, Ints]],
    shape: Shape,
) -> Rows:
    """A group for each of some tuples."""
    digits = {
        expr: digits_of(np.ascontiguousarray(vector[apart]), np.ascontiguousarray(ranges[apart]))
        for expr, (vector, ranges) in found.items()
        if vector.dtype == np.float64
    }
    values: list[Values] = []
    for slot, vector in zip(slots, columns.values, strict=True):
        own = vector[apart]
        match slot.argument:
            case expr if expr is not None and slot.kept == RANGE:
                own = found[expr][1][apart] if expr in found else np.zeros(len(apart), np.int64)
            case Call(function, (expr, Lit(value=int(place)))) if function == FLOAT_DIGIT:
                if expr in digits:
                    own = np.where(found[expr][1][apart] == 0, own, digits[expr][place])
        values.append(own)
    codes = [code[apart] for code in columns.codes]
    lone = TableColumns(codes, values, [mask[apart] for mask in columns.masks])
    each = np.arange(len(apart))
    return grouped(shape, each.astype(np.int32), each, lone)
