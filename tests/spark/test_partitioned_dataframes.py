"""A DataFrame that Spark has partitioned: queries in its partitions, without another exchange."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import terascope
from terascope.diagnostic import QueryError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = """
PROTOCOL FLOW (start UINT increasing clock(s), srcIP ULLONG, port UINT, bytes ULLONG);
QUERY counts: SELECT tb, srcIP, port, count(*) AS n, sum(bytes) AS total FROM flows.FLOW
    GROUP BY start/60 AS tb, srcIP, port;
QUERY heavy: SELECT tb, srcIP, max(n) AS most FROM counts GROUP BY tb, srcIP;
QUERY joined: SELECT x.tb, x.srcIP, x.port, x.n, y.most FROM counts x LEFT JOIN heavy y
    ON x.tb = y.tb AND x.srcIP = y.srcIP;
"""
NAMES = ("counts", "heavy", "joined")

pytestmark = pytest.mark.spark


def flows(spark: SparkSession) -> DataFrame:
    from pyspark.sql import functions as F

    number = F.col("id")
    return spark.range(3000).select(
        (number / 10).cast("long").alias("start"),
        (number % 17).alias("srcIP"),
        (number % 5).alias("port"),
        (number * 7 % 100).alias("bytes"),
    )


@contextmanager
def results(spark: SparkSession, df: DataFrame, by: str) -> Iterator[terascope.results.Results]:
    with terascope.Session(spark=spark) as ts:
        ts.dataframe("flows", df, partitioned_by=by)
        yield ts.query(QUERIES).run()


def exchanges(df: DataFrame) -> list[str]:
    """The exchanges of a plan, without those of the user and those that sort a result."""
    lines = df._jdf.queryExecution().executedPlan().toString().splitlines()
    found = [line for line in lines if "Exchange" in line and "REPARTITION_BY" not in line]
    return [line for line in found if "rangepartitioning" not in line]


def test_queries_run_in_the_partitions_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    flows(spark).write.parquet(str(tmp_path / "flows"))
    with terascope.Session(engine="local") as ts:
        ts.source(f"flows=parquet:{tmp_path / 'flows'}")
        expected = ts.query(QUERIES).run()
        whole = {name: expected[name].to_arrow().to_pylist() for name in NAMES}
    with results(spark, flows(spark).repartition(4, "srcIP"), "srcIP") as found:
        for name in NAMES:
            assert exchanges(found[name].dataframe) == []
            assert found[name].to_arrow().to_pylist() == whole[name]
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"


def test_other_partitions_than_declared_are_an_error(spark: SparkSession) -> None:
    said = r"partitions of DataFrame 'flows' are not by port: .* tuples with port = \d"
    with (
        pytest.raises(SourceError, match=said),
        results(spark, flows(spark).repartition(4, "srcIP"), "port"),
    ):
        pass


def test_a_declared_set_names_columns(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="dstIP"), results(spark, flows(spark), "dstIP"):
        pass


def test_what_spark_does_not_know_is_still_right(spark: SparkSession) -> None:
    """One partition has all values; Spark does not know that, and exchanges groups."""
    with results(spark, flows(spark).repartition(4, "srcIP"), "srcIP") as first:
        whole = {name: first[name].to_arrow().to_pylist() for name in NAMES}
    with results(spark, flows(spark).coalesce(1), "srcIP % 2") as found:
        assert {name: found[name].to_arrow().to_pylist() for name in NAMES} == whole


def test_a_malformed_value_of_the_set_costs_no_row(spark: SparkSession) -> None:
    """Nanoseconds cannot hold the year 9999; no query reads the column."""
    from pyspark.sql import functions as F

    df = flows(spark).withColumn(
        "seen", F.when(F.col("port") == 0, F.to_timestamp(F.lit("9999-01-01")))
    )
    with results(spark, df.repartition(4, "srcIP"), "seen") as found:
        assert sum(row["n"] for row in found["counts"].to_arrow().to_pylist()) == 3000
