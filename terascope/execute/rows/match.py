"""The join of two batches: NULL equals nothing, duplicates on both sides multiply.

In: batches of finished rows with disjoint names. Out: their join. Keys become numbers first, equal
for equal values of both sides; Arrow's hash join then finds the matching rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.plan.expr import Expr
from terascope.plan.rel import JoinKind, Named

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
    column = rows.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    value = FinishedRows(rows.filter(missing)).column(expr)
    if pa.types.is_dictionary(value.type):
        value = value.dictionary_decode()
    made = pc.replace_with_mask(column, missing, value.cast(column.type))
    return rows.set_column(rows.schema.names.index(name), name, made)
