"""Any join of two batches.

In: the rows of both sides, the equalities, and the condition beside them. Out: the rows of the
join. NULL equals nothing, and duplicates on both sides multiply. Keys become numbers first, equal
for equal values of both sides; Arrow's hash join then finds which rows meet, or, where a join has a
condition, `terascope.execute.rows.pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.execute.rows.pairs import PairCondition, Places, matching_pairs
from terascope.kernels.columns.arrays import decoded
from terascope.kernels.columns.batch import FinishedRows
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
    condition: PairCondition | None = None,
) -> pa.RecordBatch:
    """The join of two batches; see plan.rel.Join. `condition`: its residual, if it has one."""
    rows = FinishedRows(left), FinishedRows(right)
    keys = [comparable(rows[0].column(a), rows[1].column(b)) for a, b in equalities]
    if condition is None:
        places, others = equal_places(kind, left.num_rows, right.num_rows, keys)
    else:
        pairs = matching_pairs(left, right, keys, condition)
        places, others = with_unmatched(kind, left.num_rows, right.num_rows, pairs)
    columns = left.take(places).columns
    if kind == "semi":
        return pa.RecordBatch.from_arrays(columns, left.schema.names)
    names = [*left.schema.names, *right.schema.names]
    joined = pa.RecordBatch.from_arrays([*columns, *right.take(others).columns], names)
    missing = {n: places.is_null() for n in left.schema.names}
    missing |= {n: others.is_null() for n in right.schema.names}
    for name, expr in fills:
        joined = filled(joined, name, expr, missing[name])
    return joined


def equal_places(
    kind: JoinKind, left: int, right: int, keys: Sequence[tuple[pa.Array, pa.Array]]
) -> tuple[pa.Array, pa.Array]:
    """The left and the right row of each row of a join by equal keys; NULL: it has none."""
    tables = [
        pa.Table.from_arrays(
            [*(pair[i] for pair in keys), pa.array(np.arange(count, dtype=np.int64))],
            [*(f"{letter}{k}" for k in range(len(keys))), letter],
        )
        for i, (letter, count) in enumerate((("l", left), ("r", right)))
    ]
    found = tables[0].join(
        tables[1],
        [f"l{k}" for k in range(len(keys))],
        [f"r{k}" for k in range(len(keys))],
        ARROW_KINDS[kind],
        coalesce_keys=False,
        use_threads=False,
    )
    places = found.column("l").combine_chunks()
    return places, places if kind == "semi" else found.column("r").combine_chunks()


def with_unmatched(
    kind: JoinKind, left: int, right: int, pairs: Places
) -> tuple[pa.Array, pa.Array]:
    """The left and the right row of each row of a join, from the pairs that meet."""
    met = [np.zeros(count, np.bool_) for count in (left, right)]
    for side, places in zip(met, pairs, strict=True):
        side[places] = True
    if kind == "semi":
        kept = pa.array(np.flatnonzero(met[0]))
        return kept, kept
    alone = [np.flatnonzero(~side) for side in met]
    mine = alone[0] if kind in ("left", "full") else alone[0][:0]
    theirs = alone[1] if kind in ("right", "full") else alone[1][:0]
    nulls = [pa.nulls(len(some), pa.int64()) for some in (theirs, mine)]
    return (
        pa.concat_arrays([pa.array(pairs[0]), pa.array(mine), nulls[0]]),
        pa.concat_arrays([pa.array(pairs[1]), nulls[1], pa.array(theirs)]),
    )


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
