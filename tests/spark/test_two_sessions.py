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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.xdist_group("spark")
def test_sibling_sessions_read_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,n\n1,10\n2,20\n")
    text = "PROTOCOL T (ts UINT increasing, n UINT); QUERY q: SELECT ts, n FROM T;"
    bindings = Bindings({"t": Interface("t", "csv", str(tmp_path / "t.csv"))})
    job = compile_set(Source(text), bindings).job()
    for session in (spark, adopt_session(spark), spark, adopt_session(spark)):
        with run_job(job, session) as result:
            assert [tuple(row) for row in result.dataframes["q"].collect()] == [(1, 10), (2, 20)]
