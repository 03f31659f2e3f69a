"""The Python API, from binding sources to rows; one Spark session for all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import terascope
from terascope import (
    ConfigError,
    FunctionMistake,
    MalformedInput,
    OutputError,
    QueryError,
    Session,
    SourceError,
    ValueMistake,
)
from tests.cli.calls import FLOWS, small_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PER_SECOND = "QUERY q: SELECT time, count(*) AS cnt, sum(len) AS total FROM PKT GROUP BY time;"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap")


@pytest.fixture(scope="module")
def damaged(trace: Path) -> Path:
    """The same trace, cut within its last packet."""
    path = trace.with_name("damaged.pcap")
    path.write_bytes(trace.read_bytes()[:-20])
    return path


# ---- without Spark -------------------------------------------------------------------------------


def test_the_package_offers_its_names() -> None:
    assert {"Session", "scalar", "aggregate", "QueryError"} <= set(dir(terascope))
    assert all(getattr(terascope, name) is not None for name in terascope.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        terascope.nonsense  # noqa: B018


def test_a_set_is_checked_when_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "wrong.gsql"
    path.write_text("SELECT nothing FROM TCP")
    with pytest.raises(QueryError) as caught:
        Session().load(path)
    assert caught.value.codes == ("unknown-column",)
    with pytest.raises(SourceError, match="no such query file"):
        Session().load(tmp_path / "missing.gsql")


def test_sources_may_be_bound_after_loading(trace: Path) -> None:
    session = Session()
    queries = session.query("QUERY q: SELECT time FROM TCP")
    assert "no source is bound" in queries.explain("job")
    with pytest.raises(SourceError, match="no source is bound"):
        queries.run()
    session.source(f"eth0=pcap:{trace}")
    assert f"eth0        pcap:{trace} (1 file" in queries.explain("job")
    assert queries.check() == ()
    with pytest.raises(SourceError, match="two sources are called 'eth0'"):
        session.source(f"eth0=pcap:{trace}")


def test_a_session_takes_its_words_from_a_configuration(trace: Path, tmp_path: Path) -> None:
    config = tmp_path / "t.toml"
    config.write_text(
        f'master = "local[1]"\n[sources]\na = "pcap:{trace}"\nb = "pcap:{trace}"\n'
        '[sets]\nmain = ["a", "b"]\n[params]\nlimit = "7"\n'
    )
    session = Session(config=config, master="local[2]")
    assert session.config.master == "local[2]"
    queries = session.query("QUERY q: SELECT time FROM [main].TCP WHERE len > $limit")
    text = queries.explain()
    assert "Scan a+b.TCP" in text
    assert "$limit INT = 7" in text
    assert "$limit INT = 9" in session.query(queries.source.text, limit=9).explain()
    config.write_text("colour = 1")
    with pytest.raises(ConfigError, match="colour"):
        Session(config=config)


def test_query_sets_show_themselves_in_a_notebook() -> None:
    queries = Session().query(PER_SECOND)
    assert queries._repr_html_().startswith('<div style="overflow:auto"><svg class="ts-pic"')
    assert repr(queries) == "<query set query: q>"


def test_functions_are_registered_once() -> None:
    @terascope.scalar(takes=("INT",), returns="INT")
    def doubled(x: int) -> int:
        return 2 * x

    session = Session()
    session.register(doubled)
    assert "doubled(len)" in session.query("SELECT doubled(len) AS d FROM TCP").explain()
    with pytest.raises(FunctionMistake, match="there is a function doubled already"):
        session.register(doubled)


# ---- on both engines -----------------------------------------------------------------------------

on_spark = pytest.mark.spark


@pytest.fixture(params=["local", "spark"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Session]:
    """A session on each engine; the local one finds the Spark of the tests when it needs one."""
    given = spark if request.param == "spark" else None
    with Session(spark=given, engine=request.param) as session:
        yield session


@on_spark
@pytest.mark.spark
def test_rows_come_in_every_form(session: Session, trace: Path) -> None:
    session.source(f"eth0=pcap:{trace}")
    results = session.query(FLOWS, threshold=3).run()
    assert list(results) == ["flows", "heavy"]
    with pytest.raises(KeyError, match="no query 'nothing'; there are flows, heavy"):
        results["nothing"]
    flows = results["flows"]
    rows = flows.rows()
    assert flows.columns == ("tb", "srcIP", "destIP", "packets", "bytes")
    assert len(flows) == len(rows) > 100
    assert [r["tb"] for r in rows] == sorted(r["tb"] for r in rows)
    flooded = [r for r in rows if r["destIP"] == "10.9.9.9"]
    assert len(flooded) > 50
    assert flows.to_arrow().to_pylist() == rows
    assert flows.to_pandas().to_dict("records") == rows
    assert [row.asDict() for row in flows.dataframe.collect()] == rows
    assert flows.head(5).to_pylist() == rows[:5]
    report = results.reports["eth0"]
    assert report.tuples == 1500
    assert report.bytes_read == trace.stat().st_size
    assert not report.malformed
    assert results.summary() == f"1,500 tuples, {report.bytes_read:,} bytes read"
    assert f"<em>... {len(rows) - 20:,} more; {len(rows):,} rows</em>" in flows._repr_html_()
    assert "<caption" in results._repr_html_()


@on_spark
@pytest.mark.spark
def test_a_given_spark_stays_open(spark: SparkSession, trace: Path) -> None:
    with Session(spark=spark) as session:
        session.source(f"eth0=pcap:{trace}")
        assert str(session.run(PER_SECOND).choice).endswith("was given a SparkSession")
    assert spark.range(3).count() == 3


@on_spark
@pytest.mark.spark
def test_a_table_is_printed(
    session: Session, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session.source(f"pcap:{trace}")
    text = "QUERY q: SELECT protocol AS p, count(*) AS cnt FROM PKT GROUP BY time/1000, protocol"
    session.query(f"{text} HAVING count(*) > 1000").run()["q"].show()
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == "q"
    assert shown[1].split() == ["p", "cnt"]
    assert shown[3].split()[0] == "6"
    assert shown[4] == "1 row"


@on_spark
@pytest.mark.spark
def test_results_are_written_all_or_none(session: Session, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    session.source(f"eth0=pcap:{trace}")
    results = session.query(FLOWS, threshold=3).run()
    assert results.write(out) == [out / "flows.csv", out / "heavy.csv"]
    names = sorted(path.name for path in out.iterdir())
    assert names == [
        "flows.csv", "flows.manifest.json", "heavy.csv", "heavy.manifest.json",
    ]  # fmt: skip
    header, *lines = (out / "heavy.csv").read_text().splitlines()
    rows = results["heavy"].rows()
    assert header == "tb,srcIP,most"
    assert lines == [f"{r['tb']},{r['srcIP']},{r['most']}" for r in rows]
    results.write(out, "parquet")
    assert pq.read_table(out / "heavy.parquet").to_pylist() == rows
    manifest = json.loads((out / "heavy.manifest.json").read_text())
    assert manifest["file"] == "heavy.parquet"
    assert manifest["rows"] == len(rows)
    assert manifest["tuples"] == 1500
    assert manifest["gsql"].startswith("SELECT tb, srcIP, max(packets) AS most\nFROM flows")
    assert list(manifest["reads"]) == ["flows"]
    assert manifest["parameters"] == [{"name": "threshold", "type": "INT", "value": "3"}]
    assert manifest["columns"][0] == {
        "name": "tb", "type": "UINT", "order": "increasing", "strict": False, "disorder": 0,
        "clock": None,
    }  # fmt: skip
    assert manifest["sources"][0]["interface"] == "eth0"
    assert manifest["sources"][0]["bytes_read"] == trace.stat().st_size
    with pytest.raises(OutputError, match="its parent directory does not exist"):
        results.write(tmp_path / "no" / "out")


@on_spark
@pytest.mark.spark
def test_a_failure_leaves_earlier_results_alone(
    session: Session, trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "fine.csv").write_text("earlier\n")
    text = (
        "QUERY fine: SELECT time, count(*) AS cnt FROM PKT GROUP BY time;\n"
        "QUERY overflows: SELECT time, len * 9223372036854775807 AS x FROM PKT;"
    )
    session.source(f"pcap:{trace}")
    queries = session.query(text)
    for parts in (False, True):
        with pytest.raises(ValueMistake, match="integer overflow"):
            queries.write(out, parts=parts)
    with pytest.raises(ValueMistake, match="integer overflow"):
        queries.run()["overflows"].rows()
    assert [path.name for path in out.iterdir()] == ["fine.csv"]
    assert (out / "fine.csv").read_text() == "earlier\n"


@on_spark
@pytest.mark.spark
def test_malformed_tuples_are_counted_or_refused(session: Session, damaged: Path) -> None:
    session.source(f"eth0=pcap:{damaged}")
    queries = session.query(PER_SECOND)
    results = queries.run()
    assert sum(row["cnt"] for row in results["q"].rows()) == 1499
    assert sum(results.total.malformed.values()) == 1
    assert "malformed: 1 " in results.summary()
    with pytest.raises(MalformedInput, match="malformed input: 1 "):
        queries.run(strict=True)


@on_spark
@pytest.mark.spark
def test_own_functions_run_in_the_workers(session: Session, trace: Path) -> None:
    @terascope.scalar(takes=("UINT",), returns="STRING")
    def service(port: int) -> str:
        return {80: "web", 443: "web", 53: "names"}.get(port, "other")

    @terascope.aggregate(takes=("UINT",), returns="UINT")
    class longest:
        def zero(self) -> int:
            return 0

        def reduce(self, state: int, x: int) -> int:
            return max(state, x)

        def merge(self, left: int, right: int) -> int:
            return max(left, right)

        def finish(self, state: int) -> int:
            return state

    text = """
        SELECT kind, longest(len) AS most, max(len) AS same FROM TCP
        GROUP BY time/1000, service(destPort) AS kind
    """
    session.source(f"pcap:{trace}")
    session.register(service, longest)  # type: ignore[arg-type]  # mypy does not follow class decorators
    rows = session.query(text).run()["query1"].rows()
    assert {row["kind"] for row in rows} == {"web", "other"}
    assert all(row["most"] == row["same"] for row in rows)


@pytest.mark.spark
def test_text_can_be_run_at_once(session: Session, trace: Path) -> None:
    session.source(f"eth0=pcap:{trace}")
    found = session.run(PER_SECOND)["q"].rows()
    assert found == session.query(PER_SECOND).run()["q"].rows()


AFTER_THE_BLOCK = """
import sys, terascope
with terascope.Session(master="local[1]") as ts:
    ts.source(f"eth0=pcap:{sys.argv[1]}")
    result = ts.run(sys.argv[2])["q"]
    result.show()
    rows = result.rows()
assert result.rows() == rows, "few rows stay"
try:
    result.dataframe
except terascope.SessionClosed as closed:
    assert "before it is (inside the `with` block)" in str(closed)
else:
    raise SystemExit("a closed session gave a DataFrame")
"""


@pytest.mark.spark
def test_a_result_of_a_closed_session_says_what_to_do(trace: Path) -> None:
    command = [sys.executable, "-c", AFTER_THE_BLOCK, str(trace), PER_SECOND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
