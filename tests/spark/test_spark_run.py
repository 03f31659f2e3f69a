"""Sources are read once, answers come in order, mistakes are one line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from terascope.connectors.base import Column, Split
from terascope.connectors.registry import Interface
from terascope.diagnostic import SourceError
from terascope.functions.base import ValueMistake
from terascope.functions.overflow import overflow_message
from terascope.physical.job import Job, Output, SourceRead
from terascope.physical.splits import bundles
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate, Filter, Project, Scan
from terascope.spark.mistakes import translating
from terascope.spark.run import run_job
from terascope.types import INT_MAX, Type
from tests.oracle.build import agg, aggs, call, col, columns, ints, named, plan
from tests.spark.spark_rows import Tables, columns_of, job_of, run_in_spark, write_tables

pytestmark = pytest.mark.spark

SOURCE = ints("t", names="ts k x")
TABLES: Tables = {"t": [{"ts": i, "k": i % 7, "x": i * i, "unused": 1} for i in range(5000)]}
X, K = col("x"), col("k")


def twenty(source: Scan) -> Plan:
    """Twenty queries over the same columns."""
    streams = {
        f"q{i}": Aggregate(
            Filter(source, call(">", X, i)),
            named(tb=call("div", col("ts"), 100 + i), k=K),
            aggs(n=agg("count"), s=agg("sum", X)),
        )
        for i in range(20)
    }
    return plan(**streams)


def test_twenty_queries_read_the_bytes_of_one(spark: SparkSession, tmp_path: Path) -> None:
    interfaces = write_tables(plan(a=SOURCE), TABLES, tmp_path, 500)
    all_queries = twenty(SOURCE)
    one = Plan(all_queries.streams[:1])
    bytes_read = []
    phases: list[tuple[str, int, int]] = []
    for queries in (one, all_queries):
        job = job_of(queries, interfaces)
        phases.clear()
        with run_job(job, spark, lambda *step: phases.append(step)) as result:
            counted = [df.count() for df in list(result.dataframes.values())[:3]]
            report = result.reports["t"]
            bytes_read.append(report.bytes_read)
            assert report.tuples == 5000
            assert report.horizon["ts"] == 4999
            assert all(counted)
        assert phases[0] == ("reading", 0, 1)
        assert phases[-1] == ("planning", len(job.streams), len(job.streams))
    assert bytes_read[0] == bytes_read[1] > 0


def test_a_source_is_read_once_however_often_its_rows_are_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    interfaces = write_tables(plan(a=SOURCE), TABLES, tmp_path, 500)
    with run_job(job_of(twenty(SOURCE), interfaces), spark) as result:
        # The file is gone: whoever reads it again fails.
        Path(interfaces["t"].location).unlink()
        assert sum(df.count() for df in result.dataframes.values()) > 0


def test_unused_columns_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    few = plan(a=ints("t", names="ts"))
    interfaces = write_tables(plan(a=SOURCE), TABLES, tmp_path, 500)
    read = []
    for queries in (few, plan(a=SOURCE)):
        with run_job(job_of(queries, interfaces), spark) as result:
            read.append(result.reports["t"].bytes_read)
    assert read[0] < read[1]


def test_the_source_predicate_drops_tuples_but_not_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    queries = plan(kept=SOURCE)
    interfaces = write_tables(queries, TABLES, tmp_path, 500)
    job = job_of(queries, interfaces, call("and", call("<", X, 100), call("!=", K, 3)))
    with run_job(job, spark) as result:
        rows = sorted(tuple(r) for r in result.dataframes["kept"].collect())
        assert rows == [(i, i % 7, i * i) for i in range(10) if i % 7 != 3]
        assert result.reports["t"].tuples == 5000
        assert result.reports["t"].horizon["ts"] == 4999


def test_outputs_have_their_columns_in_order(spark: SparkSession, tmp_path: Path) -> None:
    counted = Aggregate(SOURCE, named(k=K), aggs(n=agg("count"), last=agg("max", X)))
    shown = Project(counted, (*columns(counted, "n k"), ("#last", col("last"))))
    queries = plan(out=shown)
    interfaces = write_tables(plan(a=SOURCE), TABLES, tmp_path, 500)
    read = SourceRead(
        "t", (interfaces["t"],), columns_of(plan(a=SOURCE), "t"), None,
        tuple(interfaces["t"].splits(1)),
    )  # fmt: skip
    job = Job(
        (read,),
        {"out": queries["out"].rel},
        (Output("out", ("n", "k"), (("n", True), ("#last", False))),),
        kept=frozenset({"out"}),
    )
    with run_job(job, spark) as result:
        assert result.dataframes["out"].columns == ["n", "k"]
        assert [tuple(r) for r in result.dataframes["out"].collect()] == [
            (715, 0), (715, 1), (714, 2), (714, 3), (714, 4), (714, 5), (714, 6),
        ]  # fmt: skip
        assert [f.name for f in result.fields["out"]] == ["n", "k"]


def test_an_unreadable_source_is_one_clear_line(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"other": [1]}), path)
    split = Split("parquet", "t", str(path), 0, 0, 1)
    interface = Interface("t", "parquet", str(path))
    read = SourceRead("t", (interface,), (Column("ts", Type.INT),), None, (split,))
    with pytest.raises(SourceError) as raised:
        run_job(Job((read,)), spark)
    assert str(raised.value) == f"'{path}' has no column 'ts'; its columns are other"


def test_a_sum_that_overflows_is_one_clear_line(spark: SparkSession, tmp_path: Path) -> None:
    summed = plan(s=Aggregate(SOURCE, named(k=K), aggs(total=agg("sum", X))))
    fits: Tables = {"t": [{"ts": 1, "k": 1, "x": x} for x in (INT_MAX, 1, INT_MAX, -INT_MAX, -1)]}
    given = run_in_spark(summed, fits, spark, tmp_path, 1)
    assert given.rows["s"] == [(1, INT_MAX)]
    too_much: Tables = {"t": [{"ts": 1, "k": 1, "x": x} for x in (INT_MAX, 1)]}
    with pytest.raises(ValueMistake) as raised:
        run_in_spark(summed, too_much, spark, tmp_path, 1)
    assert str(raised.value).startswith("integer overflow in SUM(x)")


def test_a_mistake_in_a_query_over_rows_is_translated(spark: SparkSession, tmp_path: Path) -> None:
    job = job_of(
        plan(out=Project(SOURCE, named(y=call("*", X, INT_MAX)))),
        write_tables(plan(a=SOURCE), TABLES, tmp_path, 500),
    )
    with run_job(job, spark) as result, pytest.raises(ValueMistake) as raised, translating():
        result.dataframes["out"].collect()
    assert str(raised.value) == overflow_message("*")


def test_an_empty_source_gives_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    queries = plan(a=Aggregate(SOURCE, named(k=K), aggs(n=agg("count"))))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({c: pa.array([], pa.int64()) for c in ("ts", "k", "x")}), path)
    with run_job(job_of(queries, {"t": Interface("t", "parquet", str(path))}), spark) as result:
        assert result.dataframes["a"].collect() == []
        assert result.reports["t"].tuples == 0


def test_small_splits_are_read_together(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x" * 1000)
    with large.open("wb") as file:
        file.truncate(1 << 30)
    many = [Split("csv", "t", str(small), i, i * 10, i * 10 + 10) for i in range(100)]
    put_together = bundles(many, 8)
    assert 8 <= len(put_together) <= 10
    assert [s for bundle in put_together for s in bundle] == many
    big = [Split("csv", "t", str(large), i, i << 26, (i + 1) << 26) for i in range(16)]
    assert bundles(big, 8) == [(s,) for s in big]
    assert bundles(big[:3], 8) == [(s,) for s in big[:3]]
    assert bundles([], 8) == [()]
