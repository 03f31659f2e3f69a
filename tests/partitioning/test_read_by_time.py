"""Partitions on one host are read by time where most queries need the groups of all partitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from terascope.cli import app
from terascope.config import Config
from terascope.connectors.base import Edge, Split
from terascope.explain.from_partitions import READ_BY_TIME
from terascope.physical.splits import by_time, ranges_of_tasks
from terascope.session import Session

PROTOCOL = "PROTOCOL FLOW (at UINT increasing clock(s), a UINT, b UINT, c UINT, n UINT);"
PAIRS = ("b", "c", "n", "b, c", "b, n", "c, n", "b, c, n")
CENTRAL = [
    f"QUERY q{i}: SELECT tb, {keys}, COUNT(*) AS k, MAX(a) AS most FROM f.FLOW"
    f" GROUP BY at/100 AS tb, {keys};"
    for i, keys in enumerate(PAIRS)
]
KEPT = "QUERY kept: SELECT tb, a, COUNT(*) AS k FROM f.FLOW GROUP BY at/100 AS tb, a;"
ROWS = 600_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of ten thousand seconds, as a whole and split by `a`."""
    made = tmp_path_factory.mktemp("by_time")
    rng = np.random.default_rng(3)
    columns = {"at": np.arange(ROWS) // 60}
    columns |= {
        name: rng.integers(0, most, ROWS) for name, most in zip("abcn", (50, 7, 9, 4), strict=True)
    }
    pq.write_table(pa.table(columns), made / "flows.parquet", row_group_size=50_000)
    source = f"f=parquet:{made / 'flows.parquet'}"
    words = ["split", source, "--by", "a", "--into", "3", str(made / "parts")]
    assert CliRunner().invoke(app, words).exit_code == 0
    (made / "declared").mkdir()
    for number, part in enumerate(sorted((made / "parts").glob("p*/*.parquet"))):
        (made / "declared" / f"{number}.parquet").write_bytes(part.read_bytes())
    return made


def rows_of(location: Path, text: str, by: str | None = None) -> tuple[dict[str, list[str]], str]:
    """The rows of all queries, and the explanation of the job."""
    with Session(config=Config(split_bytes=1 << 17), engine="local") as session:
        session.source(f"f=parquet:{location}", by)
        queries = session.query(text)
        told = queries.explain("job")
        results = queries.run()
        return {s.name: sorted(map(repr, results[s.name].rows())) for s in queries.queries}, told


def test_many_central_queries_are_read_by_time(folder: Path) -> None:
    text = "\n".join([PROTOCOL, *CENTRAL, KEPT])
    expected, plain = rows_of(folder / "flows.parquet", text)
    found, told = rows_of(folder / "parts", text)
    assert found == expected
    assert READ_BY_TIME in told
    assert READ_BY_TIME not in plain


def test_few_central_queries_are_not(folder: Path) -> None:
    text = "\n".join([PROTOCOL, CENTRAL[0], KEPT])
    expected, _ = rows_of(folder / "flows.parquet", text)
    found, told = rows_of(folder / "parts", text)
    assert found == expected
    assert READ_BY_TIME not in told


def test_a_declared_partitioning_is_read_by_partition(folder: Path) -> None:
    """Reading a partition is what checks the declaration."""
    text = "\n".join([PROTOCOL, *CENTRAL, KEPT])
    expected, _ = rows_of(folder / "flows.parquet", text)
    found, told = rows_of(folder / "declared", text, "a")
    assert found == expected
    assert READ_BY_TIME not in told


def test_ranges_of_time() -> None:
    def split(path: str, low: int, high: int) -> Split:
        return Split("parquet", "f#0", path, 0, low, high, bounds=(("at", low, high),))

    edge = Edge("at", 10)
    parts = [split("x", 0, 19), split("x", 20, 39), split("y", 0, 21), split("y", 22, 39)]
    ranges = by_time(parts, edge)
    assert [sorted(s.path for s in one) for one in ranges] == [["x", "y"], ["x", "y"]]
    assert by_time([*parts, Split("parquet", "f#0", "z", 0, 0, 1)], edge) == []
    assert sorted(s.start for one in ranges_of_tasks(ranges, 1) for s in one) == [0, 0, 20, 22]
