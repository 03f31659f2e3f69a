"""Several sessions of one Spark read side by side, in any order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.spark.run import run_job
from terascope.spark.session import adopt_session
from tests.settings import config_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_sibling_sessions_read_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,n\n1,10\n2,20\n")
    text = "PROTOCOL T (ts UINT increasing, n UINT); QUERY q: SELECT ts, n FROM T;"
    bindings = Bindings({"t": Interface("t", "csv", str(tmp_path / "t.csv"))})
    job = compile_set(Source(text), bindings).job()
    for session in (spark, adopt_session(spark), spark, adopt_session(spark)):
        with run_job(job, session) as result:
            assert [tuple(row) for row in result.dataframes["q"].collect()] == [(1, 10), (2, 20)]


@pytest.mark.spark
@pytest.mark.parametrize("low", ["native", "catalyst"])
def test_what_is_kept_of_a_run_is_not_taken_for_the_next_one(
    spark: SparkSession, tmp_path: Path, low: str
) -> None:
    file = tmp_path / "t.csv"
    text = "PROTOCOL T (ts UINT increasing, n UINT); QUERY q: SELECT ts, n FROM T;"
    bindings = Bindings({"t": Interface("t", "csv", str(file))}, config=config_with(low=low))
    file.write_text("ts,n\n1,10\n2,20\n")
    with run_job(compile_set(Source(text), bindings).job(), spark) as first:
        assert [row[1] for row in first.dataframes["q"].collect()] == [10, 20]
        file.write_text("ts,n\n1,30\n2,40\n")
        with run_job(compile_set(Source(text), bindings).job(), spark) as second:
            assert [row[1] for row in second.dataframes["q"].collect()] == [30, 40]
