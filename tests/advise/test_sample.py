"""The sample of the sources: contiguous, of all partitions, ending together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.advise.sample import Limits, Sample, read_sample, tuples_for
from terascope.partitioning.basic_queries import basic_queries
from terascope.plan.rel import Scan, walk
from terascope.session import Session

LEFT = "PROTOCOL L (time UINT increasing clock(s), a UINT);\n"
RIGHT = "PROTOCOL R (time UINT increasing clock(s), b UINT);\n"
ONE = LEFT + "SELECT time, a, COUNT(*) AS n FROM l.L GROUP BY time, a;"
JOIN = LEFT + RIGHT + "SELECT x.time, x.a FROM l.L x, r.R y WHERE x.time = y.time AND x.a = y.b;"


def table(path: Path, column: str, seconds: range) -> None:
    rows = {"time": list(seconds), column: [s % 7 for s in seconds]}
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(rows), path)


def sampled(text: str, limits: Limits, **sources: str) -> tuple[Sample, list[Scan]]:
    session = Session()
    for name, location in sources.items():
        by, _, path = location.rpartition("@")
        session.source(f"{name}=parquet:{path}", partitioned_by=by or None)
    compiled = session.query(text).compiled
    nodes = basic_queries(compiled.optimized)
    scans = [rel for node in nodes for rel in walk(node.rel) if isinstance(rel, Scan)]
    return read_sample(scans, session.bindings.interfaces, limits), scans


def test_the_first_tuples_of_a_source(tmp_path: Path) -> None:
    table(tmp_path / "l.parquet", "a", range(100, 1100))
    sample, scans = sampled(ONE, Limits(tuples=50), l=str(tmp_path / "l.parquet"))
    found = sample.sources["l"]
    assert found.tuples.column("time").to_pylist() == list(range(100, 150))
    assert found.seconds == 49.0
    assert not found.is_whole
    batch = sample.batch(scans[0])
    assert batch.num_rows == 50
    assert set(batch.schema.names) == set(scans[0].names)


def test_a_small_source_is_read_whole(tmp_path: Path) -> None:
    table(tmp_path / "l.parquet", "a", range(10))
    sample, _ = sampled(ONE, Limits(), l=str(tmp_path / "l.parquet"))
    assert sample.sources["l"].is_whole


def test_sources_end_together(tmp_path: Path) -> None:
    table(tmp_path / "l.parquet", "a", range(1000))
    pq.write_table(
        pa.table({"time": [s // 10 for s in range(1000)], "b": [s % 7 for s in range(1000)]}),
        tmp_path / "r.parquet",
    )
    paths = {"l": str(tmp_path / "l.parquet"), "r": str(tmp_path / "r.parquet")}
    sample, _ = sampled(JOIN, Limits(tuples=400), **paths)
    ends = [max(one.tuples.column("time").to_pylist()) for one in sample.sources.values()]
    assert ends == [19, 19]


def test_partitions_end_together(tmp_path: Path) -> None:
    table(tmp_path / "parts" / "p0.parquet", "a", range(0, 1000, 7))
    rows = {"time": [s // 5 for s in range(1000)], "a": [1 + s % 3 for s in range(1000)]}
    pq.write_table(pa.table(rows), tmp_path / "parts" / "p1.parquet")
    sample, _ = sampled(ONE, Limits(tuples=100), l=f"a@{tmp_path / 'parts'}")
    times = sample.sources["l"].tuples.column("time").to_pylist()
    assert max(times) <= 9
    assert len(times) == 2 + 50


def test_hundreds_of_queries_get_fewer_tuples() -> None:
    assert [tuples_for(n) for n in (1, 60, 200, 10_000)] == [100_000, 100_000, 30_000, 10_000]


@pytest.mark.parametrize("location", ["generate:packets=10"])
def test_a_live_source_has_no_sample(location: str) -> None:
    session = Session()
    session.source(f"eth0={location}")
    compiled = session.query("SELECT time, COUNT(*) AS n FROM TCP GROUP BY time").compiled
    nodes = basic_queries(compiled.optimized)
    scans = [rel for node in nodes for rel in walk(node.rel) if isinstance(rel, Scan)]
    assert not read_sample(scans, session.bindings.interfaces, Limits()).sources
