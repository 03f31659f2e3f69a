"""A split by a column that the queries read as another type gives the rows of the whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from terascope.cli import app
from terascope.session import Session

QUERIES = """PROTOCOL FLOW (at UINT increasing clock(s), src IP, n UINT);
QUERY q: SELECT tb, src, COUNT(*) AS c, SUM(n) AS total FROM f.FLOW GROUP BY at/10 AS tb, src;"""


@pytest.mark.parametrize("by", ["src", "n", "src, n"])
def test_addresses_that_were_hashed_as_texts(by: str, tmp_path: Path) -> None:
    count = 500
    table = pa.table({
        "at": pa.array([k // 7 for k in range(count)], pa.int64()),
        "src": pa.array([f"10.0.{k % 13}.{k % 5}" for k in range(count)]),
        "n": pa.array([k % 9 for k in range(count)], pa.int32()),
    })  # fmt: skip
    path = tmp_path / "flows.parquet"
    pq.write_table(table, path)
    parts = tmp_path / "parts"
    words = ["split", f"f=parquet:{path}", "--by", by, "--into", "3", str(parts)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    answers = []
    for location in (path, parts):
        with Session(engine="local") as session:
            session.source(f"f=parquet:{location}")
            rows = session.query(QUERIES).run()["q"].rows()
            answers.append(sorted(map(repr, rows)))
    assert answers[0] == answers[1]
    assert answers[0]
