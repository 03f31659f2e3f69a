"""The reports of tasks as rows of Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import types as T

REPORT: Final = T.StructType(
    [T.StructField("kind", T.StringType()), T.StructField("text", T.StringType())]
)
REPORT_ARROW: Final = pa.schema([("kind", pa.string()), ("text", pa.string())])


def report_batch(kind: str, text: str) -> pa.RecordBatch:
    """One report as a batch of rows."""
    columns = [pa.array([kind], pa.string()), pa.array([text], pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=REPORT_ARROW)
