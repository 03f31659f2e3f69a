"""Binding Spark DataFrames from Python, alone and beside other sources."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import terascope
from terascope import Config, MalformedInput, Session, SourceError, ValueMistake
from tests.cli.calls import small_trace
from tests.docs.blocks import blocks, page

pytestmark = pytest.mark.spark

LOGINS = """
PROTOCOL LOGIN (at UINT clock(s), client IP, host STRING);
QUERY logins: SELECT tb, client, COUNT(*) AS tries FROM logins.LOGIN GROUP BY at/10 AS tb, client;
"""
BESIDE = f"""
{LOGINS}
QUERY packets: SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS bytes FROM TCP
GROUP BY time/10 AS tb, srcIP;
QUERY knocked: SELECT p.tb AS tb, p.srcIP AS client, l.tries AS tries, p.packets AS packets
FROM packets p, logins l WHERE p.tb = l.tb AND p.srcIP = l.client;
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap", 300)


def logins(spark: SparkSession) -> DataFrame:
    rows = [(1_700_000_000 + i, f"10.0.0.{i % 4}", "door") for i in range(40)]
    return spark.createDataFrame(rows, "at bigint, client string, host string")


def numpy_session(spark: SparkSession, **settings: Any) -> Session:
    """Without machine code, which small sets need not wait for."""
    return Session(spark=spark, config=Config(kernels="numpy", **settings))


def test_a_dataframe_answers_queries(spark: SparkSession) -> None:
    with numpy_session(spark) as session:
        interface = session.dataframe("logins", logins(spark))
        assert (interface.name, interface.kind) == ("logins", "dataframe")
        results = session.query(LOGINS).run()
        rows = results["logins"].rows()
        assert rows[0] == {"tb": 170000000, "client": "10.0.0.0", "tries": 3}
        assert len(rows) == 16
        assert results.reports["logins"].tuples == 40
        assert results.summary() == "40 tuples"
    assert spark.range(3).count() == 3


def test_a_session_takes_the_spark_of_the_dataframe(spark: SparkSession) -> None:
    session = Session(config=Config(kernels="numpy"))
    session.dataframe("logins", logins(spark))
    assert not session.has_spark
    assert len(session.query(LOGINS).run()["logins"].rows()) == 16
    session.close()
    assert spark.range(3).count() == 3


def test_settings_of_the_other_session_do_not_matter(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "false")
    df = other.range(4).select("id", F.lit(2**62).alias("x"))
    with numpy_session(spark) as session:
        session.dataframe("d", df)
        text = "PROTOCOL D (id UINT increasing, x LLONG); SELECT tb, SUM(x) AS s FROM d.D"
        with pytest.raises(ValueMistake, match="integer overflow"):
            session.query(f"{text} GROUP BY id/10 AS tb").run()["query1"].rows()
    assert other.conf.get("spark.sql.ansi.enabled") == "false"
    assert other.catalog.listTables("global_temp") == []


def test_results_are_bound_again(spark: SparkSession) -> None:
    """Addresses as text, or as they are held."""
    text = """PROTOCOL T (tb UINT increasing, client IP, tries UINT);
        SELECT client, SUM(tries) AS tries FROM before.T GROUP BY client, tb/100"""
    with numpy_session(spark) as session:
        session.dataframe("logins", logins(spark))
        first = session.query(LOGINS).run()["logins"]
        want = [{"client": f"10.0.0.{i}", "tries": 10} for i in range(4)]
        for df in (first.dataframe, first.held):
            with numpy_session(spark) as after:
                after.dataframe("before", df)
                assert after.query(text).run()["query1"].rows() == want


def test_malformed_values_are_counted_or_refused(spark: SparkSession) -> None:
    df = logins(spark).withColumn("client", F.expr("if(at % 10 = 7, 'nobody', client)"))
    with numpy_session(spark) as session:
        session.dataframe("logins", df)
        queries = session.query(LOGINS)
        results = queries.run()
        assert sum(row["tries"] for row in results["logins"].rows()) == 36
        assert results.summary() == "36 tuples, malformed: 4 column 'client': not an IP address"
        with pytest.raises(MalformedInput, match="malformed input: 4 column 'client'"):
            queries.run(strict=True)


# ---- beside a capture ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guests(spark: SparkSession, trace: Path) -> DataFrame:
    """Logins of some who are in the capture."""
    with numpy_session(spark) as session:
        session.source(f"eth0=pcap:{trace}")
        seen = session.query("SELECT time, srcIP FROM TCP WHERE len % 3 = 0").run()["query1"]
        rows = [(row["time"], row["srcIP"], "door") for row in seen.rows()]
    return spark.createDataFrame(rows, "at bigint, client string, host string")


def beside(spark: SparkSession, trace: Path, guests: DataFrame, **settings: Any) -> Session:
    session = numpy_session(spark, **settings)
    session.source(f"eth0=pcap:{trace}")
    session.dataframe("logins", guests)
    return session


def test_a_capture_and_a_dataframe_run_in_one_job(
    spark: SparkSession, trace: Path, guests: DataFrame, tmp_path: Path
) -> None:
    found = {}
    for low in ("auto", "catalyst"):
        with beside(spark, trace, guests, low=low) as session:
            queries = session.query(BESIDE)
            results = queries.run()
            assert set(results.reports) == {"eth0", "logins"}
            found[low] = {name: results[name].rows() for name in results}
            if low == "auto":
                queries.write(tmp_path / "parts", "parquet", parts=True)
                queries.write(tmp_path / "whole", "parquet")
    assert found["auto"] == found["catalyst"]
    assert all(found["auto"].values())
    for name, rows in found["auto"].items():
        assert pq.read_table(tmp_path / "whole" / f"{name}.parquet").to_pylist() == rows
        parts = pq.read_table(tmp_path / "parts" / name).to_pylist()
        assert sorted(map(repr, parts)) == sorted(map(repr, rows))
    manifest = json.loads((tmp_path / "whole" / "knocked.manifest.json").read_text())
    assert [(s["interface"], s["kind"], len(s["files"])) for s in manifest["sources"]] == [
        ("eth0", "pcap", 1),
        ("logins", "dataframe", 0),
    ]


def test_explain_tells_who_runs_what(spark: SparkSession, trace: Path, guests: DataFrame) -> None:
    with beside(spark, trace, guests) as session:
        queries = session.query(BESIDE)
        text = queries.explain("job")
        boxes = {b["id"]: b for b in json.loads(queries.explain("job", "json"))["boxes"]}
    frame = text[text.index("read logins:") :]
    assert frame.splitlines()[1] == "  logins   dataframe (3 columns)"
    assert "note: low level by catalyst: a DataFrame" in frame.partition("\n\n")[0]
    source = boxes["source:logins"]
    assert source["notes"] == ["low level by catalyst: a DataFrame"]
    assert boxes["source:packets"]["notes"] == []
    assert boxes["stream:logins_low"]["marks"] == ["low"]
    assert "signature" not in boxes["stream:logins_low"]["facts"]
    assert "signature" in boxes["stream:packets_low"]["facts"]


def test_explain_shows_a_stream_of_both_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "logins.csv"
    path.write_text("at,client,host\n1700000000,10.0.0.1,door\n")
    with numpy_session(spark) as session:
        session.source(f"doors=csv:{path}")
        session.dataframe("logins", logins(spark))
        queries = session.query(LOGINS.replace("logins.LOGIN", "LOGIN"))
        boxes = json.loads(queries.explain("job", "json"))["boxes"]
        (low,) = (b for b in boxes if b["id"] == "stream:logins_low")
        assert low["facts"]["catalyst"] == "the tuples of logins"
        assert sum(row["tries"] for row in queries.run()["logins"].rows()) == 41


def test_native_alone_is_refused(spark: SparkSession) -> None:
    with numpy_session(spark, low="native") as session:
        session.dataframe("logins", logins(spark))
        queries = session.query(LOGINS)
        for asked in (queries.run, queries.check, lambda: queries.explain("job")):
            with pytest.raises(SourceError, match=r"'logins' is a DataFrame.*set low to auto"):
                asked()


# ---- what cannot be bound ------------------------------------------------------------------------


def test_what_is_no_dataframe_of_spark_is_refused(spark: SparkSession) -> None:
    session = Session()
    few = pd.DataFrame({"a": [1]})
    with pytest.raises(SourceError) as caught:
        session.dataframe("t", few)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "'t' is bound to a pandas.DataFrame, not to a DataFrame of Spark;"
        " make one of it with spark.createDataFrame(...)"
    )
    with pytest.raises(SourceError, match=r"'t' is bound to a builtins\.str, not to a DataFrame"):
        session.dataframe("t", "parquet:t.parquet")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="DataFrame 't' is a stream; only a DataFrame of Spark's"):
        session.dataframe("t", spark.readStream.format("rate").load())
    one = spark.range(1)
    with pytest.raises(SourceError, match="two columns of DataFrame 't' are called 'id'"):
        session.dataframe("t", one.crossJoin(one))
    with pytest.raises(SourceError, match="a DataFrame needs a name"):
        session.dataframe("", one)
    session.dataframe("t", one)
    with pytest.raises(SourceError, match="two sources are called 't'; name them, such as t2"):
        session.dataframe("t", one)
    with pytest.raises(SourceError, match="two sources are called 't'"):
        session.source("t=csv:t.csv")


def test_columns_of_any_name_are_found(spark: SparkSession) -> None:
    df = spark.range(3).selectExpr("id", "id * 2 as `a.b`", "id * 3 as `it's`", "'7' as `p.x`")
    text = "PROTOCOL D (id UINT increasing, `a.b` INT, `it's` INT, `p.x` INT); SELECT * FROM d.D"
    with numpy_session(spark) as session:
        session.dataframe("d", df)
        assert session.query(text).run()["query1"].rows() == [
            {"id": i, "a.b": 2 * i, "it's": 3 * i, "p.x": 7} for i in range(3)
        ]


def test_the_page_shows_what_happens(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example of docs/language.md, and the rows it says it prints."""
    (block,) = (b for b in blocks(page("language.md")) if "ts.dataframe(" in b.text)
    exec(compile(block.text, "language.md", "exec"), {"spark": spark, "terascope": terascope})
    said = [line.strip()[1:].strip() for line in block.text.splitlines() if "    #" in line]
    assert capsys.readouterr().out.strip() == " ".join(said)
    assert len(said) == 2


@pytest.mark.parametrize("low", ["auto", "catalyst"])
def test_all_sources_of_a_run_arrive_at_one_time(
    spark: SparkSession, trace: Path, low: str
) -> None:
    text = """
    PROTOCOL L { uint id get_id; uint came get_system_time (increasing); };
    PROTOCOL P (PKT) { uint came get_system_time (increasing); };
    QUERY rows: SELECT came, COUNT(*) AS n, SUM(id) AS total FROM d.L GROUP BY came;
    QUERY packets: SELECT came, COUNT(*) AS n FROM P GROUP BY came;
    QUERY listed: SELECT came, id FROM d.L WHERE id < 2;
    """
    before = int(time.time())
    with numpy_session(spark, low=low) as session:
        session.dataframe("d", spark.range(5))
        session.source(f"eth0=pcap:{trace}")
        results = session.query(text).run()
        (row,) = results["rows"].rows()
        assert before <= row["came"] <= time.time()
        assert (row["n"], row["total"]) == (5, 10)
        assert results["packets"].rows() == [{"came": row["came"], "n": 300}]
        assert results["listed"].rows() == [{"came": row["came"], "id": i} for i in range(2)]
