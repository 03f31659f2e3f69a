"""Sessions on the local engine: rows, files, mistakes and counts, and no Spark in the process."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import terascope
from terascope.functions.base import ValueMistake
from terascope.results import MalformedInput, SessionClosed
from terascope.session import Session

FLOW = "PROTOCOL FLOW (time UINT increasing, host UINT, len UINT);"
SET = f"""
{FLOW}
QUERY busy: SELECT tb, host, COUNT(*) AS n FROM log.FLOW GROUP BY time/10 AS tb, host;
QUERY both: SELECT a.tb, a.host, a.n, b.n AS before FROM busy a LEFT JOIN busy b
  ON a.host = b.host AND a.tb = b.tb + 1;
QUERY spread: SELECT tb, n, COUNT(*) AS hosts, MAX(host) AS most FROM busy GROUP BY tb, n;
"""
PROGRAM = f"""
import sys, terascope
with terascope.Session() as ts:
    ts.source("log=csv:" + sys.argv[2])
    results = ts.query({SET!r}).run()
    assert results.choice.engine == "local"
    for name in results:
        assert len(results[name].rows()) == len(results[name])
    results.write(sys.argv[1], "parquet")
    ts.query({SET!r}).write(sys.argv[1], "csv", parts=True)
assert "pyspark" not in sys.modules
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    lines = (f"{i // 7},{i * i % 11},{i % 5}\n" for i in range(700))
    path.write_text("time,host,len\n" + "".join(lines), encoding="utf-8")
    return path


def test_nothing_on_the_way_imports_pyspark(log: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(log)]
    subprocess.run(command, check=True, timeout=300)
    written = {path.name for path in tmp_path.iterdir()}
    assert {"busy.parquet", "both.parquet", "spread.parquet", "busy", "both", "spread"} <= written


@pytest.fixture
def session(log: Path) -> Session:
    session = Session(engine="local")
    session.source(f"log=csv:{log}")
    return session


def test_rows_and_files_are_the_same(session: Session, tmp_path: Path) -> None:
    queries = session.query(SET)
    with queries.run() as results:
        rows = {name: result.rows() for name, result in results.items()}
    queries.write(tmp_path / "files", "parquet")
    queries.write(tmp_path / "parts", "csv", parts=True)
    for name, expected in rows.items():
        assert expected
        assert pq.read_table(tmp_path / "files" / f"{name}.parquet").to_pylist() == expected
        lines: list[list[str]] = []
        for part in (tmp_path / "parts" / name).glob("*.csv"):
            with part.open(newline="") as file:
                lines += list(csv.reader(file))[1:]
        wanted = [["" if v is None else str(v) for v in row.values()] for row in expected]
        assert sorted(lines) == sorted(wanted)


def test_results_stay_when_the_session_is_closed(session: Session) -> None:
    with session:
        results = session.query(SET).run()
    assert results["spread"].rows() == results["spread"].to_arrow().to_pylist()
    assert results.total.tuples > 0
    with pytest.raises(SessionClosed, match="is closed"):
        _ = results["spread"].dataframe  # it would start Spark


def test_mistakes_of_values_name_their_query(session: Session) -> None:
    with pytest.raises(ValueMistake, match="big"):
        session.query(
            f"{FLOW} QUERY big: SELECT tb, SUM(len * 900000000000000000) AS s FROM log.FLOW"
            " GROUP BY time/1000 AS tb"
        ).run()


def test_a_failing_aggregate_of_the_user_is_named(session: Session) -> None:
    @terascope.aggregate(takes=("UINT",), returns="UINT")
    class broken:
        def zero(self) -> int:
            return 0

        def reduce(self, state: int, x: int) -> int:
            return state // 0

        def merge(self, left: int, right: int) -> int:
            return left

        def finish(self, state: int) -> int:
            return state

    session.register(broken)  # type: ignore[arg-type]  # mypy does not follow class decorators
    queries = session.query(f"{FLOW} SELECT tb, broken(len) FROM log.FLOW GROUP BY time/9 AS tb")
    with pytest.raises(ValueMistake, match=r"query .*: function broken: ZeroDivisionError"):
        queries.run()


def test_a_strict_run_refuses_malformed_tuples(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("t,n\n1,2\n2,x\n3,4\n", encoding="utf-8")
    with Session(engine="local") as session:
        session.source(f"log=csv:{path}")
        queries = session.query(
            "PROTOCOL LOG (t UINT increasing, n UINT); SELECT t, n FROM log.LOG"
        )
        assert queries.run().total.malformed.total() == 1
        with pytest.raises(MalformedInput):
            queries.run(strict=True)
