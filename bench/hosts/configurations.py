"""A way to partition a trace, measured with one host, two, and so on.

In: a trace, a query set, a partitioning set. Out: for each number of hosts what the aggregator has
received (rows, bytes of payloads, bytes on its network interface), and the processor seconds of the
aggregator and of all hosts, each its JVM and its Python processes together. Each host holds two
partitions.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import BenchError, Figures, Outcome
from bench.harness import made_once
from bench.hosts.cluster import Cluster, own_seconds
from bench.hosts.network import lacking
from bench.hosts.traffic import Trace, split_trace, trace_file

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

GROUPS, ROWS, BYTES, NETWORK = "groups", "rows", "bytes", "network"
AGGREGATOR, HOSTS = "aggregator_cpu", "hosts_cpu"
DIGEST, FINAL = "digest", "final"
REPEATS: Final = 3
"""The runs over which processor time is averaged."""
SETTINGS: Final = {
    "spark.driver.memory": "2g",
    "spark.executor.memory": "1g",
    # The tasks of a partition run on its host and nowhere else.
    "spark.locality.wait": "20s",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
}


def figure(what: str, hosts: int) -> str:
    return f"{what} {hosts}"


@dataclass(frozen=True)
class Configuration:
    """A configuration of section 6."""

    name: str
    by: str = ""
    """The partitioning set; empty: round robin."""
    combining: bool = False
    """Whether partial groups of the partitions of a host are merged before they leave it."""
    central: tuple[str, ...] = ()
    """The streams that the aggregator computes, though partitions could."""


@dataclass(frozen=True)
class HostsContender:
    """A configuration on a cluster of its own."""

    configuration: Configuration
    text: str
    trace: Trace
    data: Path
    sizes: tuple[int, ...] = (1, 2, 3, 4)
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.configuration.name

    def start(self, cores: int) -> HostsRunning:
        del cores  # hosts share them
        return HostsRunning(self)

    def partitions(self, cluster: Cluster, hosts: int) -> Path:
        """The trace, split for so many hosts; made once."""
        by = "".join(filter(str.isalnum, self.configuration.by)) or "in-turn"
        addresses = [cluster.network.address(host) for host in range(1, hosts + 1)]

        def make(path: Path) -> None:
            table = pq.read_table(trace_file(self.data, self.trace))
            split_trace(table, self.configuration.by, addresses, path)

        return made_once(self.data / f"hosts-{self.trace.name}-{by}-{hosts}", make)


class HostsRunning:
    """A cluster, entered by this process as its aggregator."""

    def __init__(self, contender: HostsContender) -> None:
        if why := lacking():
            raise BenchError(why)
        self._contender = contender
        self._opened = ExitStack()
        folder = Path(tempfile.mkdtemp(prefix="terascope-hosts-"))
        self._opened.callback(shutil.rmtree, folder, ignore_errors=True)
        self._cluster = self._opened.enter_context(Cluster(folder, max(contender.sizes)))
        self._cluster.network.enter(0)
        os.environ.update(self._cluster.environment())

    @cached_property
    def _spark(self) -> SparkSession:
        from terascope.spark.session import open_session

        spark = open_session(self._cluster.master, "terascope-hosts", SETTINGS)
        self._opened.callback(spark.stop)
        return spark

    def warm(self) -> None:
        self._measured(self._contender.sizes[-1], 1)

    def run(self, output: Path) -> Figures:
        del output
        found: dict[str, float] = {}
        for hosts in self._contender.sizes:
            self._measured(hosts, 1)
            found |= self._measured(hosts, REPEATS)
        return found

    def close(self) -> None:
        self._opened.close()

    def _measured(self, hosts: int, repeats: int) -> Figures:
        from bench.hosts.aggregator import AggregatorEngine, job_with
        from terascope.config import load_config
        from terascope.local.run import run_locally
        from terascope.session import Session
        from terascope.spark.engine import SparkBatchEngine

        of, network = self._contender, self._cluster.network
        source = f"trace=parquet:{of.partitions(self._cluster, hosts)}"
        with Session(config=load_config(master=self._cluster.master)) as session:
            session.source(source)
            compiled = session.query(of.text).compiled
            job = job_with(compiled, of.configuration.central)
            before, received = self._cpu(), network.received()
            for _ in range(repeats):
                engine = AggregatorEngine(
                    spark=SparkBatchEngine(self._spark, []), combining=of.configuration.combining
                )
                result = run_locally(job, engine=engine)
                tables = {output.stream: result.table(output.stream) for output in job.outputs}
                assert engine.spark is not None
                for kept in engine.spark.kept:
                    kept.unpersist()
            after, bytes_ = self._cpu(), network.received() - received
        found = {
            GROUPS: engine.received.rows["groups"],
            ROWS: engine.received.rows["rows"],
            BYTES: sum(engine.received.sizes.values()),
            NETWORK: bytes_ / repeats,
            FINAL: sum(table.num_rows for table in tables.values()),
            DIGEST: digest(tables),
        }
        found |= {name: (after[name] - before[name]) / repeats for name in after}
        return {figure(name, hosts): value for name, value in found.items()}

    def _cpu(self) -> dict[str, float]:
        """The processor seconds so far of this process with its JVM, and of all hosts."""
        from terascope.spark.session import java_process

        hosts = sum(map(self._cluster.cpu_seconds, self._cluster.network.hosts))
        own = process_time() + own_seconds(java_process(self._spark))
        return {AGGREGATOR: own, HOSTS: hosts}


def digest(tables: Mapping[str, pa.Table]) -> float:
    """A number that is the same for the same rows in any order, exact as a float."""
    import pandas as pd

    total = 0
    for name in sorted(tables):
        frame = tables[name].to_pandas()
        total = 31 * total + int(pd.util.hash_pandas_object(frame, index=False).sum())
    return float(total % (1 << 48))


@dataclass
class SameAnswers:
    """All configurations give the same rows, with any number of hosts."""

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        figures = outcome.figures[0]
        outcome.rows = next(
            round(value) for name, value in figures.items() if name.startswith(FINAL)
        )

    def judge(self, outcomes: list[Outcome]) -> None:
        known = [digests(outcome) for outcome in outcomes if outcome.figures]
        reference = known[0][0] if known else None
        for outcome in outcomes:
            if outcome.figures:
                outcome.checked = set(digests(outcome)) == {reference}
                outcome.remark = (
                    "" if outcome.checked else "other rows than the first configuration"
                )


def digests(outcome: Outcome) -> list[float]:
    return [value for name, value in outcome.figures[0].items() if name.startswith(DIGEST)]
