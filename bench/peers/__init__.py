"""Contenders: each runs a `Workload` in its own way and writes every query's rows as Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

AS_SPARK_STARTS: Final[Mapping[str, str]] = {
    "spark.driver.extraJavaOptions": "-XX:+UseG1GC",
    "spark.python.daemon.module": "pyspark.daemon",
}
"""Settings of a Spark whose JVM and workers are as they are without Terascope."""
