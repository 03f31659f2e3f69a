"""The parts of Spark that the session names, and DataFrames for users.

Only terascope.spark imports pyspark; other modules find its types here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from terascope.kernels.encode.text import address_text
from terascope.plan.rel import Field
from terascope.spark.catalyst.casts import wide_number
from terascope.spark.catalyst.frame import place, schema_of, spark_type
from terascope.spark.mistakes import working
from terascope.types import Type

__all__ = [
    "DataFrame",
    "SparkSession",
    "readable_frame",
    "running_session",
    "silence_mistakes",
    "table_frame",
    "tasks",
]


def silence_mistakes() -> None:
    """Stop PySpark from writing every exception to stderr as JSON: Terascope reports each once."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # So does py4j, for every connection to a JVM that is gone, to its own logger and to the root.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(is_not_py4j)


def is_not_py4j(record: logging.LogRecord) -> bool:
    """Whether a log record is not from py4j."""
    return "py4j" not in Path(record.pathname).parts


def running_session() -> SparkSession | None:
    """The Spark that is already running in this process."""
    return SparkSession.getActiveSession()


def tasks(spark: SparkSession) -> tuple[int, int] | None:
    """The tasks of the running stages that are done, and all of them."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    if not known:
        return None
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)


def table_frame(spark: SparkSession, table: pa.Table, fields: Sequence[Field]) -> DataFrame:
    """Rows of this process, in order, as a DataFrame."""
    schema = schema_of(fields)
    plain = table.rename_columns([f.name for f in schema])
    df = (
        spark.createDataFrame(plain, schema)
        if plain.num_rows
        else spark.createDataFrame([], schema)
    )
    return df.toDF(*(f.name for f in fields))


def readable_frame(df: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """The same rows in the same order, with addresses as text and WIDE as numbers."""
    return with_numbers(with_addresses(df, fields), fields)


def with_numbers(df: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """ULLONG columns of 64 bits as decimals of 20 digits, as Spark reads unsigned integers."""
    if not any(f.type is Type.WIDE for f in fields):
        return df
    # A dot in a name would be taken for a field of a struct.
    plain = df.toDF(*(place(i) for i in range(len(fields))))
    columns = [F.col(place(i)) for i in range(len(fields))]
    return plain.select(
        *(
            (wide_number(c) if f.type is Type.WIDE else c).alias(f.name)
            for c, f in zip(columns, fields, strict=True)
        )
    )


def with_addresses(df: DataFrame, fields: Sequence[Field]) -> DataFrame:
    if not any(f.type.is_address for f in fields):
        return df
    types = [f.type for f in fields]
    names = [f.name for f in fields]
    schema = T.StructType(
        [
            T.StructField(f.name, T.StringType() if f.type.is_address else spark_type(f.type))
            for f in fields
        ]
    )

    def readable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for batch in batches:
                columns = [
                    address_text(c) if t.is_address else c
                    for c, t in zip(batch.columns, types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, names)

    # PySpark looks the columns up by name, and takes a dot in one for a field of a struct.
    plain = df.toDF(*(place(i) for i in range(len(fields))))
    return plain.mapInArrow(readable, schema)
