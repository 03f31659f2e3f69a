"""The last steps of a query without Spark: conditions and projections on columns of results.

In: the columns of a low-level stream, groups merged. Out: the columns of a query that only filters
and projects them (HAVING, computed columns), so that a task can write its rows itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.functions.base import ValueMistake
from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.physical.row_pipeline import Compute, Keep, Step
from terascope.plan.expr import Expr
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
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(arrow_type(type))
