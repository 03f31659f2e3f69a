"""Finished rows whose expressions are computed one by one, by numpy.

In: a batch of columns of results. Out: any expression over it, for all rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.low.lanes import Batch, Dictionaries
from terascope.low.program import Function, Program
from terascope.plan.expr import Expr

NOTHING: Final = Program(Function(), 0, Function(), ())


class FinishedRows:
    """All rows of a batch."""

    def __init__(self, columns: pa.RecordBatch) -> None:
        self._batch = Batch(columns, Dictionaries(), NOTHING, lambda *_: None)
        self._everybody = np.arange(columns.num_rows, dtype=np.int32)

    def column(self, expr: Expr) -> pa.Array:
        return self._batch.column(expr, self._everybody)

    def passing(self, predicate: Expr) -> NDArray[np.bool_]:
        """Which rows a predicate is TRUE for."""
        return self._batch.passing(predicate, self._everybody)
