"""What is computed once for a batch stays what it is a fact of."""

from __future__ import annotations

import weakref

import numpy as np
import pyarrow as pa

from terascope.kernels.columns.batch import NOTHING, VectorBatch
from terascope.kernels.columns.task_dictionaries import TaskDictionaries


def test_a_fact_keeps_the_array_it_is_named_after() -> None:
    """Else another array may get the same identity, and somebody the wrong fact."""
    columns = pa.RecordBatch.from_arrays([pa.array([1, 2, 3])], ["x"])
    batch = VectorBatch(columns, TaskDictionaries(), NOTHING, lambda *_: None)
    rows = np.array([0, 2], np.int32)
    kept = weakref.ref(rows)
    assert batch.once(("sum", id(rows)), np.sum, rows) == 2
    del rows
    assert kept() is not None
