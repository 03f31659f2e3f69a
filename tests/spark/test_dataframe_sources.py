"""A DataFrame gives what a Parquet file of its rows gives, alone and beside native sources."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.config import Config
from terascope.connectors.registry import Interface
from terascope.diagnostic import QueryError, Source, SourceError
from terascope.physical.planner import plan_job
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from terascope.spark.dataframes import bound_dataframe, dataframe_tuples
from terascope.spark.run import SparkResult, run_job
from tests.agreement import (
    CATALYST,
    INTERPRETED,
    WITHOUT_COMPILING,
    Answer,
    Answers,
    assert_same_answers,
    delivered,
    spark_answers,
)
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

pytestmark = pytest.mark.spark

ROWS = 400
START = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)

COLUMNS = """
    n int, at timestamp, local timestamp_ntz, day date, written string, late double,
    src string, dst binary, net bigint, port smallint, flags tinyint, len bigint, share float,
    price decimal(10,2), ok boolean, yes string, host string, size string, nothing void
"""

PROTOCOLS = """
PROTOCOL FLOW (at ULLONG clock(ms), src IP, port UINT, len ULLONG, ok BOOL, host STRING, n INT);
PROTOCOL EVERY (
    n INT increasing, at ULLONG, local ULLONG clock(us), day ULLONG clock(s),
    written UINT clock(s), late ULLONG clock(s), src IP, dst IP, net IP, port UINT, flags INT,
    len FLOAT, share FLOAT, price FLOAT, ok BOOL, yes BOOL, host STRING, size LLONG, nothing INT
);
"""

QUERIES = f"""
{PROTOCOLS}
QUERY talkers: SELECT tb, src, COUNT(*) AS n, SUM(len) AS total, AVG(len) AS mean, MAX(port) AS p
FROM flows.FLOW GROUP BY at/10000 AS tb, src;

QUERY minutes: SELECT tb, SUM(n) AS n, MAX(total) AS most FROM talkers GROUP BY tb/6 AS tb;

QUERY busy: SELECT tb, host, COUNT(*) AS n, COUNT(DISTINCT src) AS sources, COUNT(ok) AS known
FROM flows.FLOW WHERE len > 200 GROUP BY at/20000 AS tb, host
HAVING COUNT(*) > 12 AND SUM(len) > 9000;

QUERY top: SELECT tb, host, SUM(len) AS total FROM flows.FLOW
GROUP BY at/30000 AS tb, host ORDER BY total DESC LIMIT 2;

QUERY ends: SELECT tb, FIRST(n) AS f, LAST(n) AS l, FIRST(host) AS h FROM flows.FLOW
WHERE port IS NOT NULL GROUP BY at/15000 AS tb;

QUERY large: SELECT at, src, port, len, ok, host FROM flows.FLOW
WHERE len > 1200 AND (ok OR ok IS NULL) AND host LIKE 'h%';

QUERY nets: SELECT tb, net, MIN(len) AS least FROM flows.FLOW
WHERE in_subnet(src, '10.0.0.0/8') GROUP BY at/60000 AS tb, prefix(src, 30) AS net;

QUERY pairs: SELECT a.at AS at, a.src AS src, b.len AS len FROM flows.FLOW a, flows.FLOW b
WHERE a.at/1000 = b.at/1000 AND a.src = b.src AND a.n < b.n;

QUERY lonely: SELECT a.tb AS tb, a.host AS host, b.host AS other FROM busy a LEFT OUTER JOIN top b
ON a.tb = b.tb AND a.host = b.host;

QUERY living: SELECT tb, src, COUNT(*) AS now, running_count(*) AS so_far
FROM flows.FLOW WHERE n < 150 GROUP BY at/10000 AS tb, src CLOSING_WHEN running_count(*) > 40;

QUERY slices: SELECT wend, COUNT(*) AS n, SUM(len) AS total
FROM flows.FLOW [RANGE 20 seconds SLIDE 10 seconds];
"""
EVERYTHING = f"{PROTOCOLS} QUERY everything: SELECT * FROM flows.EVERY;"
PLAIN = """
QUERY plain: SELECT n, at, local, day, late, src, dst, port, len, share, price, ok, host
FROM flows WHERE n % 7 = 3;
"""
SETS = (QUERIES, EVERYTHING, PLAIN)
"""A column of a source has one type in a set."""


def some_rows() -> list[tuple[Any, ...]]:
    """Values that fit, NULLs, and now and then one that fits no type."""
    rng = random.Random(7)

    def one(n: int) -> tuple[Any, ...]:
        at = START + timedelta(milliseconds=rng.randrange(200) + 210 * n)
        source = rng.choice(["10.0.0.1", "10.0.0.2", "10.1.0.9", "2001:db8::1", " ::1 ", None, ""])
        return (
            n,
            at,
            at.replace(tzinfo=None) if n % 11 else None,
            date(2023, 11, 14) + timedelta(days=n // 100 - 20_000 * (n % 97 == 0)),
            at.isoformat() if n % 3 else str(int(at.timestamp())),
            at.timestamp() if n % 13 else None,
            "10.0.0.256" if n % 79 == 5 else source,
            bytes([192, 0, 2, n % 8]) if n % 5 else bytes(15) + b"\1",
            3221225984 + n % 4 if n % 89 != 6 else -1,
            rng.choice([80, 443, 22, None]),
            n % 128 - 64,
            rng.randrange(40, 1500) if n % 17 else None,
            rng.choice([0.5, 0.25, None]),
            Decimal(rng.randrange(10**6)).scaleb(-2),
            rng.choice([True, False, None]),
            rng.choice(["yes", "F", "1", " true ", ""]),
            rng.choice(["h1", "h2", "H1", "", None, "straße"]),
            rng.choice(["0x1F", "60.0", "12", "", None, "7e1"]) if n % 71 != 8 else "much",
            None,
        )

    return [one(n) for n in range(ROWS)]


@pytest.fixture(scope="module")
def elsewhere(spark: SparkSession) -> SparkSession:
    """A session whose settings are not ours."""
    other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "false")
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    other.conf.set("spark.sql.caseSensitive", "false")
    return other


def frame(spark: SparkSession, partitions: int) -> DataFrame:
    """The rows in their order, in that many partitions."""
    rows = spark.sparkContext.parallelize(some_rows(), partitions)
    return spark.createDataFrame(rows, COLUMNS)


def only_file(folder: Path) -> str:
    """By its name: as of a DataFrame, no other types can follow in another file."""
    (path,) = folder.glob("*.parquet")
    return str(path)


@pytest.fixture(scope="module")
def file(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Interface:
    """The same rows as Spark writes them."""
    folder = tmp_path_factory.mktemp("flows") / "parquet"
    # A column without a type cannot be written; one of that type holds the same.
    whole = frame(spark, 1).withColumn("nothing", F.col("nothing").cast("int"))
    whole.write.parquet(str(folder))
    return Interface("flows", "parquet", only_file(folder))


def bound(name: str, df: DataFrame) -> Interface:
    return bound_dataframe(name, df)


def compiled(text: str, *interfaces: Interface, **more: Any) -> Compiled:
    named = {interface.name: interface for interface in interfaces}
    return compile_set(Source(text), Bindings(interfaces=named, **more))


def answers(
    text: str,
    spark: SparkSession,
    partitions: int,
    *interfaces: Interface,
    low: Config = WITHOUT_COMPILING,
) -> Answers:
    plan = compiled(text, *interfaces).optimized
    named = {interface.name: interface for interface in interfaces}
    return spark_answers(plan, named, spark, partitions, settings=INTERPRETED, low=low)


def reference(flows: Interface) -> Answers:
    """The meaning of all queries."""
    found: dict[str, Answer] = {}
    for text in SETS:
        plan = compiled(text, flows).plan
        found |= delivered(plan, evaluate(plan, ConnectorSources({"flows": flows})))
    return found


@pytest.fixture(scope="module")
def expected(spark: SparkSession, file: Interface) -> Answers:
    """What the file gives, which is what its reference gives."""
    want = reference(file)
    assert all(answer.rows for answer in want.values())
    for text in SETS:
        found = answers(text, spark, 2, file)
        assert_same_answers({name: want[name] for name in found}, found)
    return want


@pytest.mark.parametrize(
    ("partitions", "low"),
    [pytest.param(1, CATALYST, marks=pytest.mark.soak), (3, WITHOUT_COMPILING)],
)
def test_a_dataframe_gives_what_a_parquet_file_of_its_rows_gives(
    spark: SparkSession,
    elsewhere: SparkSession,
    expected: Answers,
    partitions: int,
    low: Config,
) -> None:
    flows = bound("flows", frame(elsewhere, partitions))
    for text in SETS:
        found = answers(text, spark, partitions, flows, low=low)
        assert_same_answers({name: expected[name] for name in found}, found)


def test_the_reference_reads_a_dataframe(elsewhere: SparkSession, expected: Answers) -> None:
    assert_same_answers(expected, reference(bound("flows", frame(elsewhere, 3))))


def reported(text: str, spark: SparkSession, interface: Interface) -> SparkResult:
    job = plan_job(
        compiled(text, interface).optimized, {interface.name: interface}, config=WITHOUT_COMPILING
    )
    with run_job(job, spark) as result:
        return result


def test_reading_tells_the_same(
    spark: SparkSession, elsewhere: SparkSession, file: Interface
) -> None:
    """Tuples, malformed ones by reason, how far time moved; but bytes nobody knows."""
    want = reported(EVERYTHING, spark, file).interfaces["flows"]
    have = reported(EVERYTHING, spark, bound("flows", frame(elsewhere, 3))).interfaces["flows"]
    assert have.malformed == want.malformed
    assert set(have.malformed) == {
        "column 'src': not an IP address",
        "column 'net': not an IP address",
        "column 'size': not an integer",
        "column 'day': negative, and declared unsigned",
    }
    assert (have.tuples, have.horizon, have.bytes_read) == (want.tuples, want.horizon, 0)
    assert have.tuples == ROWS - sum(have.malformed.values())


def test_only_what_must_be_parsed_leaves_the_jvm(
    spark: SparkSession, elsewhere: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = bound_dataframe("flows", frame(elsewhere, 1))

    def plan_of(text: str) -> str:
        job = plan_job(compiled(text, flows).optimized, {"flows": flows})
        dataframe_tuples(spark, flows, job.reads[0]).explain()
        return capsys.readouterr().out

    typed = """PROTOCOL TYPED (
        at ULLONG clock(ns), local UINT clock(s), day ULLONG, port INT, flags UINT, len FLOAT,
        share FLOAT, price FLOAT, ok BOOL, host STRING, dst BINARY, nothing IP, n STRING
    ); SELECT * FROM flows.TYPED"""
    assert "ArrowEvalPython" not in plan_of(typed)
    assert "ArrowEvalPython" not in plan_of("SELECT * FROM flows")
    parsed = plan_of("PROTOCOL P (at UINT clock(s), src IP, host STRING); SELECT * FROM flows.P")
    assert parsed.count("ArrowEvalPython") == 1
    assert parsed.count("parse(src") == 1


def test_times_that_nanoseconds_cannot_hold_are_malformed(spark: SparkSession) -> None:
    rows = [(datetime(2400, 1, 1), date(2400, 1, 1)), (datetime(1950, 1, 1), date(1950, 1, 1))]
    times = bound("times", spark.createDataFrame(rows, "at timestamp, day date"))
    for column in ("at", "day"):
        text = f"PROTOCOL T ({column} LLONG clock(s)); QUERY q: SELECT {column} FROM times.T"
        plan = compiled(text, times).optimized
        with run_job(plan_job(plan, {"times": times}), spark) as result:
            before = datetime(1950, 1, 1, tzinfo=UTC)
            assert [tuple(r) for r in result.dataframes["q"].collect()] == [
                (int(before.timestamp()),)
            ]
            told = result.interfaces["times"]
        assert told.malformed == {f"column '{column}': integer out of range": 1}
        want = delivered(plan, evaluate(plan, ConnectorSources({"times": times})))
        assert want["q"].rows == [(int(before.timestamp()),)]


def test_counting_needs_no_column(spark: SparkSession) -> None:
    numbers = bound("numbers", spark.range(100).withColumn("at", F.col("id").cast("int")))
    text = "PROTOCOL N (at UINT increasing); SELECT 1 AS one FROM numbers.N"
    assert len(answers(text, spark, 1, numbers)["query1"].rows) == 100


def test_a_dataframe_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    """A frame that is another one whenever it is computed, under queries that must agree."""
    drawn = spark.range(1000).select(F.col("id").alias("at"), F.rand().alias("x"))
    text = """PROTOCOL D (at UINT increasing, x FLOAT);
        QUERY a: SELECT tb, SUM(x) AS s FROM drawn.D GROUP BY at/100 AS tb;
        QUERY b: SELECT tb, SUM(x) AS s FROM drawn.D WHERE x < 2 GROUP BY at/100 AS tb;"""
    found = answers(text, spark, 2, bound("drawn", drawn))
    assert found["a"].rows == found["b"].rows


# ---- beside other sources ------------------------------------------------------------------------

MIXED = f"""
{PROTOCOLS}
QUERY here: SELECT tb, src, COUNT(*) AS n, SUM(len) AS total FROM flows.FLOW
GROUP BY at/10000 AS tb, src;
QUERY there: SELECT tb, src, COUNT(*) AS n, SUM(len) AS total FROM frame.FLOW
GROUP BY at/10000 AS tb, src;
QUERY joined: SELECT a.tb AS tb, a.src AS src, a.total + b.total AS total FROM here a, there b
WHERE a.tb = b.tb AND a.src = b.src AND a.n <= b.n;
QUERY either: SELECT a.tb AS tb, a.src AS src, a.n AS a, b.n AS b
FROM here a FULL OUTER JOIN there b ON a.tb = b.tb + 1 AND a.src = b.src;
QUERY merged: MERGE a.at : b.at FROM flows.FLOW a, frame.FLOW b;
QUERY both: SELECT tb, src, COUNT(*) AS n, AVG(len) AS mean, COUNT(DISTINCT host) AS hosts
FROM [all].FLOW GROUP BY at/10000 AS tb, src HAVING COUNT(*) > 1;
QUERY other_way: SELECT src, tb, MAX(len) AS most FROM [all].FLOW
GROUP BY src, at/10000 AS tb;
QUERY here_too: SELECT src, tb, MAX(len) AS most FROM flows.FLOW GROUP BY src, at/10000 AS tb;
QUERY most: SELECT tb, host, SUM(len) AS total FROM [all].FLOW
GROUP BY at/30000 AS tb, host ORDER BY total DESC LIMIT 3;
QUERY all_rows: SELECT at, src, len FROM FLOW WHERE len > 1000;
QUERY firsts: SELECT tb, FIRST(host) AS h, LAST(n) AS n FROM FLOW GROUP BY at/15000 AS tb;
QUERY living: SELECT tb, src, COUNT(*) AS now, running_count(*) AS so_far
FROM FLOW WHERE n < 150 GROUP BY at/10000 AS tb, src CLOSING_WHEN running_count(*) > 40;
"""
BOTH = {"all": ("flows", "frame")}


def mixed(second: Interface, file: Interface, low: Config) -> Compiled:
    return compiled(MIXED, file, second, sets=BOTH, config=low)


def half(df: DataFrame) -> DataFrame:
    """Others than those of the file, some of them the same."""
    return df.filter("n % 3 > 0").withColumn("len", F.col("len") + F.col("n"))


@pytest.fixture(scope="module")
def half_file(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Interface:
    folder = tmp_path_factory.mktemp("half") / "parquet"
    half(frame(spark, 1)).drop("nothing").write.parquet(str(folder))
    return Interface("frame", "parquet", only_file(folder))


def run_mixed(set_: Compiled, spark: SparkSession, partitions: int) -> Answers:
    interfaces: Mapping[str, Interface] = set_.bindings.interfaces
    low = set_.bindings.config
    return spark_answers(set_.optimized, interfaces, spark, partitions, 1 << 12, INTERPRETED, low)


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_one_job_runs_native_and_dataframe_sources(
    spark: SparkSession,
    elsewhere: SparkSession,
    file: Interface,
    half_file: Interface,
    partitions: int,
) -> None:
    files = mixed(half_file, file, CATALYST)
    reference = ConnectorSources(files.bindings.interfaces)
    want = delivered(files.plan, evaluate(files.plan, reference))
    assert all(answer.rows for answer in want.values())
    beside = mixed(bound("frame", half(frame(elsewhere, partitions))), file, WITHOUT_COMPILING)
    job = beside.job()
    assert {read.name: read.low is not None for read in job.reads} == {
        "flows": True, "frame": False,
    }  # fmt: skip
    in_spark = {name for name in job.streams if name.endswith("_low")}
    native = {output.name for output in job.low}
    assert {"here_low", "both_low"} <= native
    assert {"there_low", "both_low"} <= in_spark
    assert "here_low" not in in_spark
    assert "there_low" not in native
    assert_same_answers(want, run_mixed(beside, spark, partitions))


def test_native_alone_refuses_a_dataframe(spark: SparkSession, file: Interface) -> None:
    native = mixed(bound("frame", frame(spark, 1)), file, config_with(low="native"))
    with pytest.raises(SourceError) as caught:
        native.job()
    assert str(caught.value) == (
        "the low level cannot be native: 'frame' is a DataFrame, whose tuples stay in Spark;"
        " set low to auto, which is native for all other sources, or to catalyst"
    )


# ---- what does not fit ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> Interface:
    one = "select timestamp '2024-01-01 00:00:00' as at, true as ok, array(1) as tags, 1 as Port"
    return bound("odd", spark.sql(one))


@pytest.mark.parametrize(
    ("fields", "code", "message", "help"),
    [
        (
            "port UINT",
            "missing-column",
            "DataFrame 'odd' has no column 'port' that P names",
            "its columns are Port, at, ok",
        ),
        (
            "at IP",
            "wrong-type",
            "column 'at' of DataFrame 'odd' is timestamp, which IP cannot hold",
            "declare it LLONG, or change the column with df.withColumn(...)",
        ),
        (
            "at BOOL",
            "wrong-type",
            "column 'at' of DataFrame 'odd' is timestamp, which BOOL cannot hold",
            "declare it LLONG, or change the column with df.withColumn(...)",
        ),
        (
            "at UINT, ok IPV6",
            "wrong-type",
            "column 'ok' of DataFrame 'odd' is boolean, which IPV6 cannot hold",
            "declare it BOOL, or change the column with df.withColumn(...)",
        ),
        (
            "at UINT, tags STRING",
            "wrong-type",
            "column 'tags' of DataFrame 'odd' is array<int>, which no GSQL type can hold",
            "bind a DataFrame in which it is a plain value, or several: df.withColumn(...) with a"
            " field, a length or a text of it",
        ),
    ],
)
def test_a_protocol_that_does_not_fit_is_told_before_anything_runs(
    odd: Interface, fields: str, code: str, message: str, help: str
) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(f"PROTOCOL P ({fields}); SELECT at FROM odd.P", odd)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == (code, message, help)
    with pytest.raises(QueryError) as caught:
        compiled(f"PROTOCOL P ({fields}); SELECT at FROM P", odd)
    (found,) = caught.value.diagnostics
    assert found.message == "no bound interface provides 'P'"
    assert found.help == f"{message}: {help}"


def test_columns_that_are_no_single_value_are_not_offered(odd: Interface) -> None:
    assert [f.name for f in compiled("SELECT * FROM odd", odd).plan["query1"].rel.visible] == [
        "at", "ok", "Port",
    ]  # fmt: skip
    with pytest.raises(QueryError) as caught:
        compiled("SELECT time FROM odd.TCP", odd)
    (found,) = caught.value.diagnostics
    assert found.message == "interface 'odd' is a DataFrame and delivers no packets"
