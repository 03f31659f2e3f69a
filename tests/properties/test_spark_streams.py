"""A stream on Spark gives the rows of a batch, stopped and begun anew, with batches run twice.

Many more cases run without Spark (test_streams.py); here it is Spark's offsets, tasks and high
level. TERASCOPE_STREAM_SPARK_SEEDS=60 runs more of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agreement import INTERPRETED, configured
from tests.properties.spark_streams import SparkRuns
from tests.properties.stream_cases import make_stream_case
from tests.properties.stream_results import assert_delivered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(5000, 5000 + int(os.environ.get("TERASCOPE_STREAM_SPARK_SEEDS", "1")))
ONE_PARTITION = {**INTERPRETED, "spark.sql.shuffle.partitions": "1"}


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"stream-seed-{s}")
def test_a_stream_on_spark_gives_the_rows_of_a_batch(
    seed: int, tmp_path: Path, spark: SparkSession
) -> None:
    case = make_stream_case(seed, tmp_path / "in", queries=5, rows=40)
    expected = case.expected()
    with configured(spark, ONE_PARTITION):
        watching = SparkRuns(spark, case, tmp_path).replay()
    assert watching.late == 0, f"seed {seed}: tuples came too late"
    assert_delivered(expected, tmp_path / "out", case)
