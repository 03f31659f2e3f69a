"""`partitioned-peers`: whole query sets over split data, on one host and on four small ones.

`queries78` and `set50`, split by the set that `terascope advise` recommends, against the same data
as they are: seconds on one host, and the processor time of a tuple on one host with two cores and
on four with a core each, which together have the same two cores of this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Final

from rich.console import RenderableType

from bench import queries78, set50
from bench.compare import EachItsOwn, SameRows
from bench.experiment import (
    BenchError,
    Column,
    Contender,
    Figures,
    Outcome,
    Prepared,
    Settings,
    Tell,
)
from bench.harness import made_once
from bench.hosts.cluster import Cluster, own_seconds
from bench.hosts.network import lacking
from bench.peers.duckdb import DuckDb
from bench.streams.usage import cpu_seconds
from bench.workload import Pair, Workload, same_rows

CPU: Final = "cpu_seconds"
PARTITIONS: Final = 4
WARM_RUNS: Final = 2
WHOLE, SPLIT, ONE, FOUR = "whole", "split", "one executor", "four executors"
ONE_HOLDS, FOUR_HOLD = "held by one host", "held by four hosts"
ADDRESSES: Final = tuple(f"10.77.0.{10 + host}" for host in range(1, 5))


@dataclass(frozen=True)
class OnHosts:
    """A workload on some hosts; none: in a Spark of this process."""

    subject: str
    how: str
    workload: Workload
    hosts: int = 0
    cores: int = 2
    """Of each host."""
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.subject} {self.how}"

    def start(self, cores: int) -> HostsWorkload:
        return HostsWorkload(self, cores)


class HostsWorkload:
    """A workload in its process, and the hosts it runs on."""

    def __init__(self, contender: OnHosts, cores: int) -> None:
        from terascope.spark.session import open_session

        self._contender = contender
        self._opened = ExitStack()
        self._cluster: Cluster | None = None
        master = f"local[{cores}]"
        if contender.hosts:
            folder = self._opened.enter_context(
                tempfile.TemporaryDirectory(prefix="terascope-hosts-", ignore_cleanup_errors=True)
            )
            cluster = Cluster(Path(folder), contender.hosts, contender.cores, 1024)
            self._cluster = self._opened.enter_context(cluster)
            cluster.network.enter(0)
            os.environ.update(cluster.environment())
            master = cluster.master
        self._spark = open_session(master, "terascope-peers")
        self._opened.callback(self._spark.stop)

    def warm(self) -> None:
        # All tuples: few of them are one task, which warms one executor and leaves three cold.
        for _ in range(WARM_RUNS):
            with tempfile.TemporaryDirectory(prefix="terascope-bench-") as scratch:
                self._answer(self._contender.workload, Path(scratch))

    def run(self, output: Path) -> Figures:
        before = self._cpu()
        self._answer(self._contender.workload, output)
        return {CPU: self._cpu() - before}

    def _answer(self, workload: Workload, output: Path) -> None:
        from terascope.session import Session

        with Session(self._spark) as session:
            session.source(workload.source)
            session.load(workload.gsql).write(output, format="parquet", parts=True)

    def _cpu(self) -> float:
        if self._cluster is None:
            return cpu_seconds(os.getpid())
        from terascope.spark.session import java_process

        hosts = sum(map(self._cluster.cpu_seconds, self._cluster.network.hosts))
        return process_time() + own_seconds(java_process(self._spark)) + hosts

    def close(self) -> None:
        self._opened.close()


def advised_set(whole: Workload) -> str:
    """The partitioning set that `terascope advise` recommends for a workload."""
    told = terascope("advise", str(whole.gsql), "--source", whole.source, "--json")
    (recommended,) = json.loads(told)["recommended"]
    return ", ".join(recommended["set"])


def terascope(*words: str) -> str:
    """The output of a command of ours."""
    command = [sys.executable, "-m", "terascope", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"terascope {words[0]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def split_workload(whole: Workload, by: str, folder: Path, into: int, hosts: int) -> Workload:
    """The same workload over partitions, split once."""
    name, _, place = whole.source.partition("=")
    kind, _, location = place.partition(":")
    words = "".join(filter(str.isalnum, by))
    made = folder / f"split-{Path(location).stem}-{words}-{into}-on-{hosts}"

    def split(path: Path) -> None:
        on = ("--hosts", ",".join(ADDRESSES[:hosts])) if hosts else ()
        terascope("split", whole.source, str(path), "--by", by, "--into", str(into), *on)

    made_once(made, split)
    stored = "pcap" if kind == "pcap" else "parquet"
    return replace(whole, source=f"{name}={stored}:{made}")


def contenders_of(subject: str, by: str, whole: Workload, folder: Path) -> tuple[OnHosts, ...]:
    def split(hosts: int, into: int) -> Workload:
        return split_workload(whole, by, folder, into, hosts)

    return (
        OnHosts(subject, WHOLE, whole),
        OnHosts(subject, SPLIT, split(0, 2)),
        OnHosts(subject, ONE, split(0, PARTITIONS), hosts=1, cores=2),
        OnHosts(subject, FOUR, split(0, PARTITIONS), hosts=4, cores=1),
        OnHosts(subject, ONE_HOLDS, split(1, PARTITIONS), hosts=1, cores=2),
        OnHosts(subject, FOUR_HOLD, split(4, PARTITIONS), hosts=4, cores=1),
    )


def concluded(outcomes: list[Outcome]) -> list[RenderableType]:
    """The ratios that the targets are about."""
    lines: list[RenderableType] = []
    found = {one.contender: one for one in outcomes if one.seconds}
    for subject in dict.fromkeys(name.partition(" ")[0] for name in found):
        whole, split = (found.get(f"{subject} {how}") for how in (WHOLE, SPLIT))
        if whole and split and whole.median and split.median:
            lines.append(
                f"{subject}: split data take {split.median / whole.median:.2f} times the seconds of"
                " the data as they are, on one host (target: at most 1)"
            )
        for few, many in ((ONE, FOUR), (ONE_HOLDS, FOUR_HOLD)):
            one, four = (found.get(f"{subject} {how}") for how in (few, many))
            if one and four:
                ratio = (four.figure(CPU) or 0.0) / (one.figure(CPU) or 1.0)
                lines.append(
                    f"{subject}, {many}: a tuple takes {ratio:.2f} times the processor time of"
                    f" {few} (target: at most 1.1)"
                )
    return lines


@dataclass(frozen=True)
class PartitionedPeers:
    name: str = "partitioned-peers"
    title: str = "queries78 and set50 over split data, on one host and on four"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        if why := lacking():
            raise BenchError(why)
        records, packets = settings.count(queries78.RECORDS), settings.count(set50.PACKETS)
        tell(f"{records:,} flow records and {packets:,} packets in {settings.data}")
        text, queries = queries78.gsql(queries78.PAIRS), queries78.sql(queries78.PAIRS)
        pairs = {
            "queries78": queries78.flow_pair(settings, records, text, queries),
            "set50": Pair(
                set50.packet_workload(settings, packets),
                set50.packet_workload(settings, min(packets, set50.SMALL)),
            ),
        }
        contenders: list[Contender] = []
        checks: dict[str, SameRows] = {}
        about = [f"{records:,} flow records, {packets:,} packets"]
        for subject, pair in pairs.items():
            by = advised_set(pair.full)
            about.append(f"{subject} is split by {by}")
            tell(about[-1])
            mine = contenders_of(subject, by, pair.full, settings.data)
            contenders += mine
            check = same_rows(settings, DuckDb(pair), pair.full)
            checks |= {one.name: check for one in mine}
        inputs = [pair.full.parquet for pair in pairs.values()]
        return Prepared(
            tuple(contenders),
            EachItsOwn(checks),
            tuple(about),
            columns=(Column(CPU, "CPU s", "{:,.1f}"),),
            inputs=tuple(inputs),
            alternating=False,
            conclude=concluded,
        )


EXPERIMENT = PartitionedPeers()
