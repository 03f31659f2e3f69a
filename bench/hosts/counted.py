"""`hosts-rows`: the rows that one aggregator receives in all configurations of paper 2, section 6,
counted in one process.

The tasks of the partitions run here, one after the other, so that neither hosts nor root are needed
and the figures are the same on every machine. `fig8-9` and the others run them on hosts, and
measure processor time and the network as well.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.harness import made_once
from bench.hosts.aggregator import Received, job_with
from bench.hosts.configurations import (
    BYTES,
    DIGEST,
    FINAL,
    GROUPS,
    ROWS,
    Configuration,
    digest,
    figure,
)
from bench.hosts.figures import (
    FIG6_10_11,
    FIG8_9,
    FIG10_11,
    FIG13_14,
    PACKETS,
    SIZES,
    HostsExperiment,
    below,
    growth,
    received_rows,
)
from bench.hosts.traffic import PER_HOST, Trace, split_trace, trace_file
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table
from terascope.execute.merge import Merging
from terascope.execute.partition_task import PartitionWork, partition_rows
from terascope.execute.reports import Outgoing
from terascope.local.run import LocalEngine, LocalPass, run_locally
from terascope.session import Session

EXPERIMENTS: Final = {one.name: one for one in (FIG8_9, FIG10_11, FIG13_14, FIG6_10_11)}


@dataclass(frozen=True)
class CountingEngine(LocalEngine):
    """Runs all tasks here, and counts what those of partitions hand on."""

    combining: bool = False
    received: Received = field(default_factory=Received)

    def read_partitions(
        self,
        work: PartitionWork,
        leftovers: Collection[int],
        hosts: Sequence[Sequence[str]],
    ) -> LocalPass:
        del leftovers, hosts
        tasks = [list(partition_rows(work, one)) for one in work.bundles()]
        if self.combining:
            merging = Merging(work.targets, None, work.memory_bytes)
            pairs = range(0, len(tasks), PER_HOST)
            tasks = [combined(merging, tasks[n : n + PER_HOST]) for n in pairs]
        rows = [row for task in tasks for row in task]
        for row in rows:
            if row.payload is not None and (row.kind == "groups" or row.kind == "rows"):
                self.received.add(row.kind, row.payload)
        return LocalPass(rows)

    def combine_on_hosts(
        self, one: LocalPass, merging: Merging, hosts: int, destinations: int
    ) -> LocalPass:
        """Done before, where it is done."""
        del merging, hosts, destinations
        return one


def combined(merging: Merging, tasks: Sequence[Sequence[Outgoing]]) -> list[Outgoing]:
    """The rows of the tasks of one host, with their partial groups merged."""
    rows = [row for task in tasks for row in task]
    groups = [(row.stream, row.payload) for row in rows if row.kind == "groups"]
    packed = ((stream, payload) for stream, payload in groups if payload is not None)
    return [row for row in rows if row.kind != "groups"] + list(merging.combined(packed, 1))


@dataclass(frozen=True)
class Counted:
    """A configuration of an experiment, with one host, two, and so on."""

    experiment: str
    configuration: Configuration
    trace: Trace
    data: Path
    sizes: tuple[int, ...] = SIZES
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.experiment} {self.configuration.name}"

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def figures(self) -> Figures:
        found: dict[str, float] = {WRONG: 0.0}
        for hosts in self.sizes:
            found |= self.counted(hosts)
        digests = {value for name, value in found.items() if name.startswith(DIGEST)}
        return {**found, WRONG: len(digests) - 1, "rows": found[figure(FINAL, self.sizes[0])]}

    def counted(self, hosts: int) -> Figures:
        engine = CountingEngine(combining=self.configuration.combining)
        with Session() as session:
            session.source(f"trace=parquet:{self.partitions(hosts)}")
            compiled = session.query(EXPERIMENTS[self.experiment].text).compiled
            job = job_with(compiled, self.configuration.central)
            result = run_locally(job, engine=engine)
            tables = {output.stream: result.table(output.stream) for output in job.outputs}
        found = {
            GROUPS: engine.received.rows["groups"],
            ROWS: engine.received.rows["rows"],
            BYTES: sum(engine.received.sizes.values()),
            FINAL: sum(table.num_rows for table in tables.values()),
            DIGEST: digest(tables),
        }
        return {figure(what, hosts): value for what, value in found.items()}

    def partitions(self, hosts: int) -> Path:
        by = self.configuration.by
        words = "".join(filter(str.isalnum, by)) or "in-turn"

        def make(path: Path) -> None:
            table = pq.read_table(trace_file(self.data, self.trace))
            split_trace(table, by, [f"host{n}" for n in range(hosts)], path)

        return made_once(self.data / f"counted-{self.trace.name}-{words}-{hosts}", make)


def concluded(outcomes: list[Outcome]) -> list[RenderableType]:
    names = ["configuration", "hosts", "partial groups", "rows", "payload KB"]
    table = new_table("what the aggregator receives", names)
    lines: list[RenderableType] = [table]
    for experiment in EXPERIMENTS.values():
        prefix = f"{experiment.name} "
        measured = {
            one.contender.removeprefix(prefix): one
            for one in outcomes
            if one.contender.startswith(prefix) and one.figures
        }
        for name, outcome in measured.items():
            for hosts in SIZES:
                groups, rows, size = (
                    outcome.figure(figure(what, hosts)) or 0.0 for what in (GROUPS, ROWS, BYTES)
                )
                first = prefix + name if hosts == SIZES[0] else ""
                cells = (f"{groups:,.0f}", f"{rows:,.0f}", f"{size / 1e3:,.0f}")
                table.add_row(first, str(hosts), *cells)
        lines += said(experiment, measured)
    return lines


def said(experiment: HostsExperiment, measured: dict[str, Outcome]) -> list[str]:
    """The growth of each configuration, and its reduction against the first and another one."""
    lines = [f"{experiment.name}: {growth(n, o, SIZES)}" for n, o in measured.items()]
    first = experiment.configurations[0].name
    last = experiment.configurations[-1].name
    for base in dict.fromkeys((first, experiment.versus)):
        for name in measured:
            compared = base == first or name == last
            if name != base and base in measured and compared and received_rows(measured[base], 1):
                lines.append(f"{experiment.name}: {below(measured, name, base, SIZES)}")
    return lines


@dataclass(frozen=True)
class HostsRows:
    name: str = "hosts-rows"
    title: str = "rows that one aggregator receives from 1 to 4 hosts (paper 2, 6), counted"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        trace = Trace(settings.count(PACKETS), seed=settings.seed)
        tell(f"{trace.packets:,} packets in {settings.data}")
        trace_file(settings.data, trace)
        contenders: list[Contender] = [
            Counted(experiment.name, one, trace, settings.data)
            for experiment in EXPERIMENTS.values()
            for one in experiment.configurations
        ]
        return Prepared(
            tuple(contenders),
            NothingWrong("numbers of hosts with other rows"),
            (
                f"{trace.packets:,} TCP packets of {trace.seconds} s;"
                f" {PER_HOST} partitions on each host; the time is that of counting",
            ),
            runs=0,
            alternating=False,
            conclude=concluded,
        )


EXPERIMENT = HostsRows()
