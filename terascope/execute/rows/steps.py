"""The last steps of a query without Spark: conditions, projections and joins of finished rows.

In: the columns of a low-level stream, groups merged. Out: the columns of a query that filters,
projects or joins them, so that a task can write its rows itself. In a join NULL equals nothing, and
duplicates on both sides multiply. Its keys become numbers first, equal for equal values of both
sides; Arrow's hash join then finds which rows meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import arrow_type
from terascope.functions.base import ValueMistake
from terascope.kernels.columns.arrays import decoded
from terascope.kernels.columns.batch import FinishedRows
from terascope.physical.row_pipeline import Compute, Keep, Step
from terascope.plan.expr import Expr
from terascope.plan.rel import JoinKind, Named
from terascope.types import Type


def run_steps(steps: Sequence[Step], columns: pa.RecordBatch) -> pa.RecordBatch:
    for step in steps:
        columns = run_step(step, columns)
    return columns


def run_step(step: Step, columns: pa.RecordBatch) -> pa.RecordBatch:
    rows = FinishedRows(columns)
    match step:
        case Keep(predicate):
            return columns.filter(pa.array(rows.passing(predicate)))
        case Compute(items):
            made = [rows.column(expr) for _, expr in items]
            return pa.RecordBatch.from_arrays(made, [name for name, _ in items])


def admitted(columns: pa.RecordBatch, predicate: Expr) -> pa.RecordBatch:
    """The tuples that some query may select: those for which a predicate is TRUE. The queries keep
    their own filters above, so all tuples pass where the predicate has no value, as after an
    integer overflow: the query that meets the overflow reports it.
    """
    try:
        return run_step(Keep(predicate), columns)
    except ValueMistake:
        return columns


def plain_column(column: pa.Array, type: Type) -> pa.Array:
    """A column without a dictionary, as Arrow holds values of a type."""
    return decoded(column).cast(arrow_type(type))


ARROW_KINDS: Final[Mapping[JoinKind, str]] = {
    "inner": "inner",
    "left": "left outer",
    "right": "right outer",
    "full": "full outer",
    "semi": "left semi",
}


def matched(
    kind: JoinKind,
    left: pa.RecordBatch,
    right: pa.RecordBatch,
    equalities: Sequence[tuple[Expr, Expr]],
    fills: Sequence[Named] = (),
) -> pa.RecordBatch:
    """The join of two batches; see plan.rel.Join."""
    rows = FinishedRows(left), FinishedRows(right)
    pairs = [comparable(rows[0].column(a), rows[1].column(b)) for a, b in equalities]
    tables = [
        pa.Table.from_arrays(
            [*(pair[i] for pair in pairs), pa.array(np.arange(side.num_rows, dtype=np.int64))],
            [*(f"{letter}{k}" for k in range(len(pairs))), letter],
        )
        for i, (letter, side) in enumerate(zip("lr", (left, right), strict=True))
    ]
    found = tables[0].join(
        tables[1],
        [f"l{k}" for k in range(len(pairs))],
        [f"r{k}" for k in range(len(pairs))],
        ARROW_KINDS[kind],
        coalesce_keys=False,
        use_threads=False,
    )
    places = found.column("l").combine_chunks()
    columns = left.take(places).columns
    if kind == "semi":
        return pa.RecordBatch.from_arrays(columns, left.schema.names)
    others = found.column("r").combine_chunks()
    names = [*left.schema.names, *right.schema.names]
    joined = pa.RecordBatch.from_arrays([*columns, *right.take(others).columns], names)
    missing = {n: places.is_null() for n in left.schema.names}
    missing |= {n: others.is_null() for n in right.schema.names}
    for name, expr in fills:
        joined = filled(joined, name, expr, missing[name])
    return joined


def comparable(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both sides of an equality as numbers: integers unchanged, others as their number among the
    values of both.
    """
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return left.cast(pa.int64()), right.cast(pa.int64())
    values = [c.dictionary if pa.types.is_dictionary(c.type) else c for c in (left, right)]
    numbers = pa.concat_arrays(values).dictionary_encode().indices
    split = (numbers[: len(values[0])], numbers[len(values[0]) :])
    made = [
        part.take(column.indices) if pa.types.is_dictionary(column.type) else part
        for part, column in zip(split, (left, right), strict=True)
    ]
    return made[0], made[1]


def filled(rows: pa.RecordBatch, name: str, expr: Expr, missing: pa.Array) -> pa.RecordBatch:
    """A column with another value in the rows whose side is missing."""
    column = decoded(rows.column(name))
    value = decoded(FinishedRows(rows.filter(missing)).column(expr))
    made = pc.replace_with_mask(column, missing, value.cast(column.type))
    return rows.set_column(rows.schema.names.index(name), name, made)
