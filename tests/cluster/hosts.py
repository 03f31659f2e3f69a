"""A cluster with partitions on its hosts and a driver that runs sets over them, for tests."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from bench.hosts.cluster import Cluster
from bench.hosts.traffic import PROTOCOL, Trace, generate, split_trace
from terascope.operate.subscription import Subscription

ROOT: Final = Path(__file__).resolve().parents[2]
TRACE: Final = Trace(packets=30_000, seconds=60, mean=12, subnets=8, servers=12)
LONG_TRACE: Final = Trace(packets=400_000, seconds=60, mean=20, subnets=16, servers=40)
SET: Final = "srcIP"
QUERIES: Final = f"""{PROTOCOL}
DEFINE {{ query_name 'flows'; visibility 'internal'; }}
SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM trace.TCP GROUP BY time/10 AS tb, srcIP, destIP;
QUERY heavy_flows:
SELECT tb, srcIP, MAX(cnt) AS max_cnt FROM flows GROUP BY tb, srcIP;
QUERY flow_pairs:
SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt AS other FROM heavy_flows S1 JOIN heavy_flows S2
WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1;
QUERY servers:
SELECT tb, destIP, COUNT(*) AS packets, SUM(len) AS bytes
FROM trace.TCP GROUP BY time/10 AS tb, destIP;
QUERY flags:
SELECT time, timestamp, srcIP, destIP FROM trace.TCP WHERE flags = 41;
"""
"""Queries that each partition finishes, one that has to be merged, and tuples."""
NAMES: Final = ("heavy_flows", "flow_pairs", "servers", "flags")
RUN_SECONDS: Final = 540
"""The longest that one run takes, with a host that is lost."""


@dataclass
class Runs:
    """A driver that waits for the next run."""

    cluster: Cluster
    folder: Path
    process: subprocess.Popen[str]
    said: queue.Queue[str] = field(default_factory=queue.Queue)

    def start(self, kind: str, name: str) -> None:
        """Begin a run, and wait until it runs."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{kind} {name}\n")
        self.process.stdin.flush()
        self.expect("running")

    def expect(self, *words: str, seconds: float = RUN_SECONDS) -> str:
        """The next line that begins with one of these words."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.said.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                log = (self.folder / "driver.log").read_text("utf-8")[-3000:]
                raise AssertionError(f"no {words} from the driver; {log}") from None
            assert line, (self.folder / "driver.log").read_text("utf-8")[-5000:]
            if line.split()[0] in words:
                return line

    def done(self) -> dict[str, Any]:
        """Wait for the end of a run; what the driver says about it."""
        said: dict[str, Any] = json.loads(self.expect("done").partition(" ")[2])
        return said

    def run(self, kind: str, name: str) -> dict[str, Any]:
        self.start(kind, name)
        return self.done()

    def rows(self, kind: str, name: str) -> Mapping[str, list[tuple[Any, ...]]]:
        """The sorted rows of each query of a run; a row that is there twice counts twice."""
        return {query: sorted(self._rows(kind, name, query)) for query in NAMES}

    def _rows(self, kind: str, name: str, query: str) -> Iterator[tuple[Any, ...]]:
        if kind == "stream":
            results = Subscription(self.folder / name / query, follow=False, from_start=True)
            yield from (tuple(row.values()) for row in results.rows())
            return
        table = pq.ParquetFile(self.folder / name / f"{query}.parquet").read()
        yield from (tuple(row.values()) for row in table.to_pylist())


@contextmanager
def running_driver(folder: Path, hosts: int, by: str = SET, trace: Trace = TRACE) -> Iterator[Runs]:
    """A cluster whose hosts hold two partitions each, and a driver that is ready. A stream takes
    about ten micro-batches.
    """
    row_group = trace.packets // (2 * hosts * 20)
    with Cluster(folder / "cluster", hosts, megabytes=640) as cluster:
        addresses = [cluster.network.address(host) for host in cluster.network.hosts]
        split_trace(generate(trace), by, addresses, folder / "partitions", row_group=row_group)
        size = sum(path.stat().st_size for path in (folder / "partitions").rglob("*.parquet"))
        (folder / "queries.gsql").write_text(QUERIES, encoding="utf-8")
        words = (cluster.master, folder / "partitions", folder / "queries.gsql", folder, size // 10)
        command = [sys.executable, "-m", "tests.cluster.driver", *map(str, words)]
        with (folder / "driver.log").open("w") as log:
            process = subprocess.Popen(
                cluster.command(*command), cwd=ROOT, text=True,
                env={**cluster.environment(), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        runs = Runs(cluster, folder, process)
        reader = threading.Thread(target=lines_of, args=(process, runs.said), daemon=True)
        reader.start()
        try:
            runs.expect("ready", seconds=120)
            yield runs
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reader.join()
            assert process.stdout is not None
            process.stdout.close()


def lines_of(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    """Everything a process says, and an empty line at its end."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line.strip())
    lines.put("")
