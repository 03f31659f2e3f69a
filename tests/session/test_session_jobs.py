"""A small run takes one job of Spark, and its rows outlive the session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import terascope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SET = """
PROTOCOL T (ts UINT increasing, k UINT, n UINT);
QUERY sums: SELECT tb, k, SUM(n) AS total FROM T GROUP BY ts/7 AS tb, k;
QUERY both: SELECT a.tb, a.k, a.total, b.total AS before FROM sums a, sums b
WHERE a.k = b.k AND a.tb = b.tb + 1;
"""


def test_a_small_run_is_one_job_and_its_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    files = tmp_path / "in"
    files.mkdir()
    for part in range(4):  # four tasks, whose epochs overlap
        lines = "".join(f"{ts},{ts % 3},{ts}\n" for ts in range(part * 25, part * 25 + 25))
        (files / f"{part}.csv").write_text("ts,k,n\n" + lines)
    group = "test-small-run"
    spark.sparkContext.setJobGroup(group, "a run")  # of this thread; later jobs may have it, too
    with terascope.Session(spark) as session:
        session.source(f"t=csv:{files}")
        results = session.query(SET).run()
        rows = results["sums"].rows()
        assert len(results["both"]) > 30
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)) == 1
    assert sum(row["total"] for row in rows) == sum(range(100))
    assert rows == sorted(rows, key=lambda row: (row["tb"], row["k"]))
    assert results["both"].rows()[0] == {"tb": 1, "k": 0, "total": 21, "before": 9}
