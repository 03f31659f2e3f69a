"""A worker that is killed changes no answer: Spark tries its task again, and nobody reads what the
first attempt left behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from terascope.reference.rows import Row
from terascope.streaming.state.manifest import DeliveredBatch, ManifestReader
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.spark.killed_runs import RUNS, STREAMED

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]

QUERIES = """
QUERY syns: SELECT time, timestamp, srcIP, destIP, destPort FROM link.TCP WHERE SYN AND NOT ACK;
QUERY senders: SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS bytes
  FROM link.TCP GROUP BY time/10 AS tb, srcIP;
QUERY pairs: SELECT tb, srcIP, destIP, COUNT(*) AS packets, SUM(len) AS bytes
  FROM link.TCP GROUP BY time/1000000 AS tb, srcIP, destIP;

DEFINE { query_name 'opened'; visibility 'internal'; }
SELECT time/60 AS tb, timestamp, srcIP, destIP, srcPort, destPort FROM link.TCP
WHERE SYN AND NOT ACK;
DEFINE { query_name 'answered'; visibility 'internal'; }
SELECT time/60 AS tb, timestamp, srcIP, destIP, srcPort, destPort FROM link.TCP WHERE SYN AND ACK;
QUERY delays: SELECT S.tb, S.srcIP, S.destPort, A.timestamp - S.timestamp AS delay
  FROM opened S JOIN answered A
  WHERE S.tb = A.tb AND S.srcIP = A.destIP AND S.destIP = A.srcIP
    AND S.srcPort = A.destPort AND S.destPort = A.srcPort;
"""
"""Tuples and groups that tasks write when they read, groups that have to be merged, and a join that
is Spark's.
"""

NAMES = ("syns", "senders", "pairs", "delays")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    generate(Profile(packets=5000, duration=100.0, seed=3, hosts=200), folder / "link.pcap")
    (folder / "queries.gsql").write_text(QUERIES, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(spark_home(folder / "spark")),
    }
    results = folder / "runs"
    results.mkdir()
    command = [sys.executable, "-m", "tests.spark.killed_runs"]
    done = subprocess.run(
        [*command, str(folder / "link.pcap"), str(folder / "queries.gsql"), str(results)],
        capture_output=True, text=True, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    return results


def spark_home(folder: Path) -> Path:
    """The Spark that is installed. Its executors write beside it, which is none of their business:
    here it is in a folder of its own.
    """
    folder.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
    return folder


def in_one_file(runs: Path, run: str, query: str) -> pa.Table:
    return pq.ParquetFile(runs / run / f"{query}.parquet").read()


def sorted_rows(*tables: pa.Table) -> list[Row]:
    rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    return sorted(rows, key=repr)


def killed_parts(runs: Path, run: str) -> set[str]:
    """The parts that those who were killed had completed."""
    found = {(runs / f"{run}.{victim}").read_text("utf-8") for victim in RUNS[run].killed}
    assert len(found) == len(RUNS[run].killed)
    return found


@pytest.mark.soak
@pytest.mark.parametrize("query", NAMES)
def test_one_file_has_the_same_rows_in_the_same_order(runs: Path, query: str) -> None:
    assert killed_parts(runs, "killed")
    calm = in_one_file(runs, "calm", query)
    assert calm.num_rows > 100
    assert in_one_file(runs, "killed", query).equals(calm)


@pytest.mark.parametrize("run", [name for name, one in RUNS.items() if one.parts])
@pytest.mark.parametrize("query", NAMES)
def test_parts_have_the_same_rows(runs: Path, query: str, run: str) -> None:
    paths = sorted((runs / run / query).iterdir())
    assert not {path.name for path in paths} & killed_parts(runs, run)
    found = sorted_rows(*(pq.ParquetFile(path).read() for path in paths))
    assert found == sorted_rows(in_one_file(runs, "calm", query))


@pytest.mark.parametrize("query", NAMES)
def test_a_stream_on_a_cluster_has_the_same_rows(runs: Path, query: str) -> None:
    folder = runs / STREAMED / query
    files = [file.name for batch in batches_of(folder) for file in batch.files]
    assert (runs / f"{STREAMED}.executor").read_text("utf-8") not in files
    found = sorted_rows(*(pq.ParquetFile(folder / name).read() for name in files))
    assert found == sorted_rows(in_one_file(runs, "calm", query))


def batches_of(folder: Path) -> list[DeliveredBatch]:
    return [entry for entry in ManifestReader(folder).new() if isinstance(entry, DeliveredBatch)]


def test_nothing_else_is_left(runs: Path) -> None:
    for name, run in RUNS.items():
        wanted = {query if run.parts else f"{query}.parquet" for query in NAMES}
        wanted |= {f"{query}.manifest.json" for query in NAMES}
        assert {path.name for path in (runs / name).iterdir()} == wanted
