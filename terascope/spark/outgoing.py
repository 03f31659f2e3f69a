"""The output rows of tasks (`Outgoing`) as rows of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from terascope.execute.delivery import Outgoing
from terascope.execute.task_reports import ReportFilter, ReportRow, TaskReports

OUTGOING = T.StructType(
    [
        T.StructField("stream", T.IntegerType()),
        T.StructField("destination", T.IntegerType()),
        T.StructField("kind", T.StringType()),
        T.StructField("payload", T.BinaryType()),
        T.StructField("told", T.StringType()),
    ]
)
OUTGOING_ARROW = pa.schema(
    [
        ("stream", pa.int32()),
        ("destination", pa.int32()),
        ("kind", pa.string()),
        ("payload", pa.binary()),
        ("told", pa.string()),
    ]
)


def to_arrow(row: Outgoing) -> pa.RecordBatch:
    values = (row.stream, row.destination, row.kind, row.payload, row.told)
    arrays = [pa.array([v], f.type) for v, f in zip(values, OUTGOING_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTGOING_ARROW)


def packed_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The stream and the payload of each row, as Spark gives them to a task."""
    for batch in batches:
        for stream, payload in zip(batch["stream"], batch["payload"], strict=True):
            yield stream.as_py(), payload.as_py()


def collected_reports(df: DataFrame, sent: ReportFilter) -> TaskReports:
    """The rows of a DataFrame of `OUTGOING` that are sent to the driver."""
    kind, stream, payload = F.col("kind"), F.col("stream"), F.col("payload")
    wanted = F.col("told").isNotNull() | (kind == "groups")
    most = F.lit(sent.groups_bytes)
    if sent.leftovers:
        wanted |= (kind == "rows") & stream.isin(*sent.leftovers)
        most = F.when(kind == "rows", sent.rows_bytes).otherwise(most)
    size = F.coalesce(F.length(payload), F.lit(0))
    payloads = F.when(size <= most, payload)
    rows = df.filter(wanted).select(stream, kind, "told", payloads, size).collect()
    return TaskReports(
        [ReportRow(s, k, t, None if p is None else bytes(p), n) for s, k, t, p, n in rows]
    )
