"""The parts of Spark that the session names, and DataFrames for users.

Only terascope.spark imports pyspark; other modules find its types here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.plan.rel import Field
from terascope.spark.catalyst.casts import wide_number, written_address
from terascope.spark.catalyst.frame import place
from terascope.types import Type

__all__ = [
    "DataFrame",
    "SparkSession",
    "readable_frame",
    "running_session",
    "silence_mistakes",
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


def readable_frame(df: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """The same rows in the same order, with addresses as text and WIDE as the numbers they are:
    decimals of 20 digits, as Spark reads unsigned integers of 64 bits.
    """
    if not any(f.type.is_address or f.type is Type.WIDE for f in fields):
        return df

    def readable(column: Column, type: Type) -> Column:
        if type.is_address:
            return written_address(column)
        return wide_number(column) if type is Type.WIDE else column

    # PySpark looks columns up by name, and takes a dot in one for a field of a struct.
    plain = df.toDF(*(place(i) for i in range(len(fields))))
    shown = (readable(F.col(place(i)), f.type).alias(f.name) for i, f in enumerate(fields))
    return plain.select(*shown)
