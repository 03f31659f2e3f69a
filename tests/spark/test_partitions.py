"""Partitioned sources on Spark: right answers, and no shuffle for what partitions finish."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source, SourceError
from terascope.physical.delivery import Sink
from terascope.physical.job import Job
from terascope.physical.operators import Exchange, MergeGroups
from terascope.physical.planner import plan_job
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from tests.agreement import (
    Answer,
    Answers,
    assert_same_answers,
    configured,
    delivered,
    table_rows,
)
from tests.properties.engines import write_table
from tests.properties.partitioned_tables import as_partitions, divided
from tests.properties.random_sets import PROTOCOL, random_rows
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = """
QUERY counts: SELECT tb, a, b, count(*) AS n, sum(b) AS total FROM left.S
    GROUP BY ts/10 AS tb, a, b;
QUERY heavy: SELECT tb, a, max(n) AS most, count(*) AS kinds FROM counts GROUP BY tb, a;
QUERY joined: SELECT x.tb, x.a, x.b, x.n, y.most FROM counts x LEFT JOIN heavy y
    ON x.tb = y.tb AND x.a = y.a;
QUERY both: SELECT tb, a, count(*) AS n FROM S GROUP BY ts/10 AS tb, a;
QUERY windows: SELECT a, count(*) AS n, sum(b) AS total FROM left.S [RANGE 20 SLIDE 5] GROUP BY a;
QUERY alive: SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/10 AS tb, a
    CLOSING_WHEN count(*) = 0;
QUERY sides: SELECT x.tb, x.a, x.n, y.n AS m FROM counts x FULL JOIN both y
    ON x.tb = y.tb AND x.a = y.a;
QUERY first_of: SELECT ts, a, b FROM left.S WHERE b > 0;
"""
CENTRAL = "QUERY all: SELECT tb, count(*) AS n, sum(b) AS total FROM left.S GROUP BY ts/10 AS tb;"
ROWS = 400


@dataclass(frozen=True)
class Case:
    job: Job
    expected: Answers


def case_of(
    text: str,
    folder: Path,
    by: str = "a",
    count: int = 4,
    empty: bool = False,
    low: Literal["native", "catalyst"] = "native",
    swapped: bool = False,
    send: Literal["never", "always"] = "never",
) -> Case:
    """A set over two tables in partitions whose ranges of hashes are known. `empty`: one of the
    tables has no tuples; `swapped`: its first partitions are in each other's place; `send`: whether
    they send tuples for what they cannot finish.
    """
    interfaces: dict[str, Interface] = {}
    for place, name in enumerate(("left", "right")):
        tuples = random_rows(place + 1, ROWS)
        if send == "always":  # whose times are known
            tuples = [row for row in tuples if row["ts"] is not None]
        paths = []
        for number, some in enumerate(divided(tuples, by, count)):
            at = 1 - number if swapped and number < 2 else number
            paths.append(folder / f"{name}-{at:03}.parquet")
            write_table(paths[-1], [] if empty and name == "right" else some)
        interfaces |= as_partitions(Interface(name, "parquet", ""), sorted(paths), by, False)
    config = config_with(kernels="numpy", split_bytes=1, low=low, send_tuples=send)
    compiled = compile_set(Source(PROTOCOL + text), Bindings(interfaces, config=config))
    plan = compiled.optimized
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    return Case(plan_job(plan, interfaces, 1, config, destination="rows"), expected)


def spark_answers(case: Case, folder: Path, spark: SparkSession) -> tuple[Answers, int]:
    """The answers of Spark, whose tasks write what they finish, and the bytes that it shuffled."""
    from terascope.spark.run import run_job

    begun = stages(spark)
    sink = Sink(str(folder), "held", compiled=False)
    with run_job(case.job, spark, sink=sink) as result:
        found = {}
        for name, fields in result.fields.items():
            has_parts = name in result.parts
            table = result.table(name) if has_parts else result.dataframes[name].toArrow()
            found[name] = Answer(fields, table_rows(table))
        names = [output.stream for output in case.job.outputs]
        return {name: found[name] for name in names}, shuffled(spark, begun)


def stages(spark: SparkSession) -> dict[int, int]:
    """The bytes that each stage so far has written to a shuffle, or read from it."""
    context: Any = spark.sparkContext
    quantiles = context._gateway.new_array(context._jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, quantiles, None)
    every = (found.apply(place) for place in range(found.size()))
    return {one.stageId(): one.shuffleWriteBytes() + one.shuffleReadBytes() for one in every}


def shuffled(spark: SparkSession, before: dict[int, int]) -> int:
    return sum(size for stage, size in stages(spark).items() if stage not in before)


def test_kept_queries_have_no_exchange(tmp_path: Path) -> None:
    job = case_of(KEPT, tmp_path).job
    assert job.ownership is not None
    assert {output.stream for output in job.outputs} <= job.ownership.kept, job.ownership.reasons
    assert not [o for o in job.operators if isinstance(o, Exchange | MergeGroups)]
    assert {place for operator in job.operators for place in operator.places} == {
        "task",
        "partition",
    }


SENT = """
QUERY by_b: SELECT tb, b, count(*) AS n, sum(a) AS total FROM left.S GROUP BY ts/10 AS tb, b;
QUERY by_s: SELECT tb, s, count(*) AS n, first(b) AS early FROM left.S GROUP BY ts/10 AS tb, s;
QUERY pairs: SELECT x.tb, x.b, x.n, y.n AS m FROM by_b x LEFT JOIN all y ON x.tb = y.tb;
QUERY windows_of_b: SELECT b, count(*) AS n FROM left.S [RANGE 20 SLIDE 5] GROUP BY b;
QUERY most: SELECT tb, max(n) AS n FROM by_b GROUP BY tb;
"""


@pytest.mark.spark
@pytest.mark.parametrize("exchange_bytes", [1 << 28, 0], ids=["plain rows", "DataFrames"])
def test_tuples_are_sent_for_the_others(
    exchange_bytes: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terascope.spark.engine.EXCHANGE_BYTES", exchange_bytes)
    case = case_of(KEPT + CENTRAL + SENT, tmp_path, send="always")
    assert case.job.ownership is not None
    (sent,) = case.job.ownership.sending.values()
    assert {"by_b_low", "by_s_low"} <= sent
    with configured(spark, {"spark.sql.shuffle.partitions": "6"}):
        found, size = spark_answers(case, tmp_path / "out", spark)
    assert_same_answers(case.expected, found)
    assert size > 0


@pytest.mark.spark
@pytest.mark.parametrize(("cores", "empty"), [(1, False), (2, True)], ids=["filled", "one-side"])
def test_kept_queries_are_not_shuffled(
    cores: int, empty: bool, tmp_path: Path, spark: SparkSession
) -> None:
    case = case_of(KEPT, tmp_path, empty=empty)
    with configured(spark, {"spark.sql.shuffle.partitions": str(cores)}):
        found, size = spark_answers(case, tmp_path / "out", spark)
    assert_same_answers(case.expected, found)
    assert size == 0


@pytest.mark.spark
def test_a_set_is_shuffled_as_far_as_it_must_be(tmp_path: Path, spark: SparkSession) -> None:
    """Only the groups of the query that the set is not compatible with are exchanged."""
    case = case_of(KEPT + CENTRAL, tmp_path)
    exchanges = [o.name for o in case.job.operators if isinstance(o, Exchange)]
    assert exchanges == ["exchange all_low"]
    found, _ = spark_answers(case, tmp_path / "out", spark)
    assert_same_answers(case.expected, found)


@pytest.mark.spark
@pytest.mark.parametrize("low", ["native", "catalyst"])
def test_both_low_levels_agree(
    low: Literal["native", "catalyst"], tmp_path: Path, spark: SparkSession
) -> None:
    case = case_of(KEPT + CENTRAL, tmp_path, low=low)
    found, _ = spark_answers(case, tmp_path / "out", spark)
    assert_same_answers(case.expected, found)


@pytest.mark.spark
def test_many_partitions_share_tasks(tmp_path: Path, spark: SparkSession) -> None:
    from terascope.spark.engine import SparkBatchEngine

    case = case_of(KEPT, tmp_path, count=60)
    assert case.job.ownership is not None
    tasks = SparkBatchEngine(spark, []).partition_tasks
    assert set(case.job.ownership.homes(tasks)["left"]) == set(range(tasks))
    found, size = spark_answers(case, tmp_path / "out", spark)
    assert_same_answers(case.expected, found)
    assert size == 0


@pytest.mark.spark
def test_a_tuple_in_a_wrong_partition_is_named(tmp_path: Path, spark: SparkSession) -> None:
    case = case_of(KEPT, tmp_path, swapped=True)
    wrong = r"(left|right)-00[01].parquet' is in partition [01] of '(left|right)' and belongs to"
    with pytest.raises(SourceError, match=wrong):
        spark_answers(case, tmp_path / "out", spark)
