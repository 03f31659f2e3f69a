"""Finished rows whose expressions are computed one by one, by numpy.

In: a batch of columns of results. Out: any expression over it, for all rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from terascope.kernels.codegen.program import Function, Program
from terascope.kernels.columns.batch import TaskDictionaries, VectorBatch
from terascope.plan.expr import Expr, marked_column

NOTHING: Final = Program(Function(), 0, Function(), ())


class FinishedRows:
    """All rows of a batch."""

    def __init__(self, columns: pa.RecordBatch) -> None:
        self._batch = VectorBatch(columns, TaskDictionaries(), NOTHING, lambda *_: None)
        self._everybody = np.arange(columns.num_rows, dtype=np.int32)

    def column(self, expr: Expr) -> pa.Array:
        marked = marked_column(expr)
        if marked is not None:
            return where_true(*map(self.column, marked))
        return self._batch.column(expr, self._everybody)

    def passing(self, predicate: Expr) -> NDArray[np.bool_]:
        """The mask of rows for which a predicate is TRUE."""
        return self._batch.passing(predicate, self._everybody)


def where_true(marker: pa.Array, column: pa.Array) -> pa.Array:
    """The values of a column where a marker is TRUE, NULL elsewhere."""
    if pa.types.is_dictionary(column.type):
        codes = pc.if_else(marker.fill_null(False), column.indices, None)
        return pa.DictionaryArray.from_arrays(codes, column.dictionary)
    return pc.if_else(marker.fill_null(False), column, None)
