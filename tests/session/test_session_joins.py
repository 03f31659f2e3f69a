"""Joins have the same rows wherever they are made: in the tasks, in one task for what these could
not join, or in Spark when that is much or no files are written.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import terascope.execute.low_level as low_level
from terascope.config import Config
from terascope.execute.merge import small_leftovers
from terascope.session import Session

pytestmark = pytest.mark.spark

SET = """
PROTOCOL FLOW (time UINT increasing, host UINT, peer UINT, size UINT);
QUERY sent: SELECT tb, host, COUNT(*) AS n FROM flows.FLOW GROUP BY time/10 AS tb, host;
QUERY got: SELECT tb, peer, SUM(size) AS total FROM flows.FLOW GROUP BY time/10 AS tb, peer;
QUERY steady: SELECT a.tb, a.host, a.n, b.n AS before FROM sent a, sent b
  WHERE a.host = b.host AND a.tb = b.tb + 1;
QUERY lonely: SELECT s.tb, s.host, g.total FROM sent s LEFT JOIN got g
  ON s.tb = g.tb AND s.host = g.peer;
QUERY either: SELECT tb, s.host, g.peer, g.total, s.n FROM sent s FULL JOIN got g
  ON s.tb = g.tb AND s.host = g.peer;
QUERY silent: SELECT s.tb, s.host FROM sent s LEFT JOIN got g ON s.tb = g.tb AND s.host = g.peer
  WHERE g.peer IS NULL;
"""
JOINS = ("steady", "lonely", "either", "silent")


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four row groups, two epochs each."""
    path = tmp_path_factory.mktemp("joins") / "flows.parquet"
    random = np.random.default_rng(3)
    rows = 40_000
    columns = {
        "time": np.arange(rows) // 500,
        "host": random.integers(0, 6000, rows),
        "peer": random.integers(3000, 9000, rows),
        "size": random.integers(0, 1500, rows),
    }
    pq.write_table(pa.table(columns), path, row_group_size=rows // 4)
    return path


Rows = list[tuple[object, ...]]


def sorted_rows(table: pa.Table) -> Rows:
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def session_over(flows: Path, spark: SparkSession, **settings: object) -> Session:
    config = Config.model_validate({"split_bytes": 1 << 16, "kernels": "numpy", **settings})
    session = Session(spark, config=config)
    session.source(f"flows=parquet:{flows}")
    return session


@pytest.fixture(scope="module")
def expected(flows: Path, spark: SparkSession) -> dict[str, Rows]:
    """Joined by Spark alone."""
    with session_over(flows, spark) as session, session.query(SET).run() as results:
        return {name: sorted_rows(results[name].to_arrow()) for name in JOINS}


@pytest.mark.parametrize(
    ("memory", "parts"),
    [
        (1 << 30, True),
        (1 << 20, False),
        pytest.param(1 << 20, True, marks=pytest.mark.soak),
        pytest.param(1 << 30, False, marks=pytest.mark.soak),
    ],
)
def test_joins_of_written_results(
    memory: int,
    parts: bool,
    flows: Path,
    expected: dict[str, Rows],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small: list[list[str]] = []

    def chosen(sizes: dict[str, int], memory_bytes: int) -> list[str]:
        small.append(small_leftovers(sizes, memory_bytes))
        return small[-1]

    monkeypatch.setattr(low_level, "small_leftovers", chosen)
    with session_over(flows, spark, memory_bytes=memory) as session:
        session.query(SET).write(tmp_path / "out", "parquet", parts=parts)
    for name in JOINS:
        path = tmp_path / "out" / (name if parts else f"{name}.parquet")
        files = sorted(path.glob("*.parquet")) if parts else [path]
        found = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
        assert sorted_rows(found) == expected[name]
        assert len(expected[name]) > 5_000
    # Little was left at the ends of the tasks, or everything.
    assert small == ([["steady"]] if memory == 1 << 30 else [[]])
