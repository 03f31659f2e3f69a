"""The executor of the low level: read, merge partial groups, join leftovers, hand rows up.

In: a Job whose reads carry low-level plans, and an engine. Out: for each low-level stream that the
high level reads its rows, and for each query that the tasks wrote themselves its parts. A source is
read in one pass; partial groups, if any task had to give some up, then meet in the merge, where
windows are assembled from their slices, too.

An engine runs the tasks and moves their rows: terascope.spark.engine as jobs of Spark,
terascope.local.run in this process. Both run the same reading tasks, merging tasks and joins of
leftover rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from terascope.execute.merge import LeftoverJoin, Merging, small_leftovers
from terascope.execute.partition_check import PartitionHashes, check_of, checked_across
from terascope.execute.partition_task import PartitionWork
from terascope.execute.prepare import prepare
from terascope.execute.range_task import RangeWork
from terascope.execute.reading_task import NativeRead
from terascope.execute.relation_task import FinalTask, RelationTask, small_relations
from terascope.execute.reports import (
    ExchangeTask,
    Outgoing,
    Reports,
    TaskReports,
    reports_from_json,
    scan_horizon,
    small_payloads,
)
from terascope.execute.results.parts import Part
from terascope.kernels.codegen.generated_modules import report_used
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.physical.delivery import Sink, Target, TaskJoin
from terascope.physical.job import Deliveries, Job, SourceRead
from terascope.physical.operators import Measure, measures_from
from terascope.physical.ownership import KeyOwnership
from terascope.physical.rules.finish_in_tasks import stream_numbers
from terascope.physical.time_ranges import partition_part, ranges_for, read_parts, sent_part
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Field, Rel, Scan, walk

EngineName: TypeAlias = Literal["local", "spark"]


class Pass(Protocol):
    """The output of the tasks of one pass, over a source or over partial groups."""

    @property
    def reports(self) -> TaskReports: ...


OnePass = TypeVar("OnePass", bound=Pass)
"""An engine's form of the output of a pass."""
HighRows = TypeVar("HighRows", covariant=True)
"""An engine's form of rows for the high level."""


class BatchEngine(Protocol[OnePass, HighRows]):
    """Runs tasks and moves their rows."""

    @property
    def tasks(self) -> int:
        """The number of tasks of a pass, if its source is large enough."""
        ...

    @property
    def processes(self) -> int:
        """The number of tasks that run at once."""
        ...

    @property
    def partition_tasks(self) -> int:
        """The most tasks that read partitions; where there are more partitions, tasks read several
        of them.
        """
        ...

    def read(self, reading: NativeRead, leftovers: Collection[int]) -> OnePass:
        """Run the reading tasks. `leftovers`: the streams of tuples that no task could join."""
        ...

    def read_partitions(
        self,
        work: PartitionWork,
        leftovers: Collection[int],
        hosts: Sequence[Sequence[str]],
    ) -> OnePass:
        """Run the tasks that read partitions, each on a host that holds its partitions if Spark
        allows it. `hosts`: of each task.
        """
        ...

    def finish_partitions(
        self, work: PartitionWork, before: OnePass, horizons: Horizons
    ) -> OnePass:
        """Run a second task of each partition, over the rows that its first task has given."""
        ...

    def combine_on_hosts(
        self, one: OnePass, merging: Merging, hosts: int, destinations: int
    ) -> OnePass:
        """Merge the partial groups of the tasks of each host into fewer ones."""
        ...

    def exchange(
        self,
        passes: Sequence[OnePass],
        task: ExchangeTask,
        leftovers: Collection[int],
        size: int,
        destinations: int,
    ) -> OnePass:
        """Exchange the rows of some passes that a task takes, so that all rows of a destination
        meet in one of this many tasks, and run these. `size`: the bytes of all these rows.
        """
        ...

    def holding(self, rows: Sequence[Outgoing]) -> OnePass:
        """A pass with rows that the driver has made."""
        ...

    def join_leftovers(self, passes: Sequence[OnePass], joining: LeftoverJoin) -> list[Part]:
        """Join the leftover rows of some passes in one task."""
        ...

    @property
    def finishes(self) -> bool:
        """Whether one task computes relations that read little; else the high level computes all of
        them in this process.
        """
        ...

    def finish(self, passes: Sequence[OnePass], final: FinalTask) -> TaskReports:
        """Run the one task that computes relations over rows of some passes."""
        ...

    def rows(self, passes: Sequence[OnePass], number: int, target: Target) -> HighRows:
        """The tuples of one low-level stream, for the high level."""
        ...


Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a phase, the number of its steps that are done, and the number of all."""


@dataclass
class LowResult(Generic[HighRows]):
    rows: dict[str, HighRows] = field(default_factory=dict)
    """By low-level stream: the tuples that the high level reads."""
    parts: list[Part] = field(default_factory=list)
    direct: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The queries whose rows are in parts, with their columns."""
    leftover: dict[str, Rel] = field(default_factory=dict)
    """For queries in parts with too many leftover rows for one task: the join of these rows, for
    the high level."""
    reports: dict[str, Reports] = field(default_factory=dict)
    """The counts of the readers, by read and interface."""
    counters: list[dict[str, Any]] = field(default_factory=list)
    """The counters of each task."""
    measures: dict[str, Measure] = field(default_factory=dict)
    """The figures of the relations that one task computed."""


def run_low_level(
    job: Job, engine: BatchEngine[OnePass, HighRows], sink: Sink | None, tell: Progress
) -> LowResult[HighRows]:
    """Run the low level of a job. `sink`: the folder of the queries that tasks finish; None for a
    job whose tasks finish none.

    Raises:
        SourceError: a source cannot be read.
        ValueMistake: a value no answer exists for, such as an integer overflow.
    """
    if all(read.low is None for read in job.reads):
        return LowResult()
    planned = job.deliveries
    prepare_kernels(planned, job.ownership, tell, engine.processes)
    tell("reading", 0, 1)
    result = LowLevelRun(job, planned, engine, sink).run()
    tell("reading", 1, 1)
    return result


def prepare_kernels(
    planned: Deliveries, owned: KeyOwnership | None, tell: Progress, processes: int
) -> None:
    """Compile the generated kernels once for all tasks, in as many processes as run tasks."""
    plans = [read.low for read in read_parts(planned.reads, owned) if read.low is not None]
    for done, plan in enumerate(plans):
        prepare(plan, lambda made, total: tell("compiling kernels", made, total), processes)
        tell("compiling kernels", done + 1, len(plans))
    for target in planned.targets.values():
        if target.feeds and target.groups is not None and any(plan.compiled for plan in plans):
            assemble_kernel(target.groups.shape).compile()
    report_used()


class LowLevelRun(Generic[OnePass, HighRows]):
    def __init__(
        self,
        job: Job,
        planned: Deliveries,
        engine: BatchEngine[OnePass, HighRows],
        sink: Sink | None,
    ) -> None:
        self._job, self._planned, self._engine, self._sink = job, planned, engine, sink
        self._destinations = max(1, engine.tasks // 2)
        lows = [read.low for read in planned.reads if read.low is not None]
        self._budget = max(low.memory_bytes for low in lows)
        self._result: LowResult[HighRows] = LowResult(direct=planned.fields)
        self._sources: dict[int, list[OnePass]] = {}
        """By stream: the passes with rows of it."""
        self._partial: dict[int, list[OnePass]] = {}
        """By stream: the passes with partial groups of it."""
        self._groups: list[Outgoing] = []
        """The partial groups of all reads, with payloads where they are small."""
        self._leftovers: list[Outgoing] = []
        """The leftover rows of all reads, likewise."""
        self._leftover_bytes: Counter[str] = Counter()
        self._numbers_of_leftovers = frozenset(leftover_streams(planned.joins))
        self._handed: Counter[int] = Counter()
        """By stream: the bytes of other tuples for the high level."""

    def run(self) -> LowResult[HighRows]:
        owned = self._job.ownership
        inside = [read for read in self._planned.reads if owned and owned.has(read.interfaces)]
        for read in self._planned.reads:
            if read not in inside:
                self._read(read)
        if owned is not None and inside:
            self._read_partitions(owned, inside)
        merged = [self._merge()] if self._partial else []
        for number, target in self._planned.targets.items():
            for stream, _ in target.feeds:  # windows are assembled where their slices are merged
                by_merge = number in self._partial
                made = merged if by_merge else self._sources[number]
                self._sources.setdefault(stream, []).extend(made)
        self._join_leftovers()
        if self._engine.finishes and self._sink is not None:
            self._finish_small()
        self._hand_up()
        return self._result

    def _reading(self, read: SourceRead) -> NativeRead:
        planned, numbers = self._planned, stream_numbers(self._job, read)
        own = tuple(p for p in planned.joins if p.left.stream in numbers)
        return NativeRead(read, numbers, planned.targets, self._sink, self._destinations, own)

    def _range_work(self, reads: Sequence[SourceRead], owned: KeyOwnership) -> RangeWork:
        """The work of the tasks that get the tuples which partitions send."""
        sending = [read for read in reads if read.name in owned.sending]
        return RangeWork.of(
            [self._reading(sent_part(read, owned)) for read in sending],
            [ranges_for(read, self._engine.tasks) for read in sending],
            [read.name for read in sending],
        )

    def _read(self, read: SourceRead) -> None:
        reading = self._reading(read)
        leftovers = leftover_streams(reading.joins)
        one = self._engine.read(reading, leftovers)
        self._result.reports[read.name] = reports_from_json(one.reports.lines("report"))
        self._take_pass(one, [*reading.streams, *leftovers])

    def _read_partitions(self, owned: KeyOwnership, reads: Sequence[SourceRead]) -> None:
        """Run the tasks of all partitions: each reads its partition of every source."""
        planned = self._planned
        readings = tuple(self._reading(partition_part(read, owned)) for read in reads)
        ranged = self._range_work(reads, owned)
        names = {number: target.name for number, target in planned.targets.items()}
        checks = tuple(check_of(read, owned) for read in reads)
        work = PartitionWork(
            readings,
            owned.homes(self._engine.partition_tasks),
            frozenset(number for number, name in names.items() if name in owned.kept),
            tuple(planned.inside.values()),
            planned.targets,
            self._budget,
            self._job.parameters,
            checks,
            {number: owned.values[name] for number, name in names.items() if name in owned.values},
            compiled_in(planned),
            ranged.sending(bool(owned.host_count)),
        )
        leftovers = [n for reading in readings for n in leftover_streams(reading.joins)]
        one = self._engine.read_partitions(work, leftovers, owned.task_hosts(work.homes))
        seen = list(map(PartitionHashes.of_json, one.reports.lines("values")))
        checked_across(seen, reads, owned)
        reports = reports_from_json(one.reports.lines("report"))
        for read in reads:
            own = {i.name for i in read.interfaces}
            mine = {name: report for name, report in reports.items() if name in own}
            self._result.reports[read.name] = mine
        above = [inside.number for inside in work.inside if inside.number and not inside.later]
        if any(inside.later for inside in work.inside):
            self._finish_partitions(work, one)
        streams = [n for reading in readings for n in reading.streams]
        fed = [n for stream in streams for n, _ in planned.targets[stream].feeds if n in work.kept]
        self._take_pass(one, [*dict.fromkeys((*streams, *fed, *leftovers, *above))])
        if owned.combined and one.reports.packed("groups"):
            self._combine_on_hosts(owned, one)
        if ranged.readings:
            self._read_ranges(ranged, one)

    def _read_ranges(self, work: RangeWork, sent: OnePass) -> None:
        """Run the tasks that get the tuples of a range of time."""
        leftovers = [n for reading in work.readings for n in leftover_streams(reading.joins)]
        size = sum(row.size for row in sent.reports.packed("tuples"))
        task = ExchangeTask("tuples", work.rows, self._planned.targets)
        one = self._engine.exchange([sent], task, leftovers, size, work.count)
        streams = [n for reading in work.readings for n in reading.streams]
        self._take_pass(one, [*dict.fromkeys((*streams, *leftovers))])

    def _combine_on_hosts(self, owned: KeyOwnership, one: OnePass) -> None:
        """Merge the partial groups of the partitions of each host, before they leave it."""
        merging = Merging(self._planned.targets, self._sink, self._budget)
        fewer = self._engine.combine_on_hosts(one, merging, owned.host_count, self._destinations)
        before = one.reports.packed("groups")
        replaced = set(map(id, before))
        self._groups = [row for row in self._groups if id(row) not in replaced]
        for number in {row.stream for row in before}:
            self._partial[number].remove(one)
            self._sources[number].append(fewer)
        self._take_groups(fewer)

    def _finish_partitions(self, work: PartitionWork, one: OnePass) -> None:
        """Run a second task of each partition: how far time has moved in all sources is known."""
        job, known = self._job, [*self._result.reports.values()]
        reports = {name: report for some in known for name, report in some.items()}
        streams = {name: job.trees[name] for name in job.trees}
        furthest = {
            scan: scan_horizon(scan, reports)
            for rel in streams.values()
            for scan in walk(rel)
            if isinstance(scan, Scan)
        }
        finished = self._engine.finish_partitions(
            work, one, Horizons(furthest.__getitem__, streams, job.parameters)
        )
        later = [inside.number for inside in work.inside if inside.number and inside.later]
        self._take_pass(finished, later)

    def _take_pass(self, one: OnePass, streams: Iterable[int]) -> None:
        self._take_reports(one)
        for number in streams:
            self._sources.setdefault(number, []).append(one)
        self._take_groups(one)

    def _take_groups(self, one: OnePass) -> None:
        groups = one.reports.packed("groups")
        self._groups += groups
        for number in {row.stream for row in groups}:
            self._partial.setdefault(number, []).append(one)

    def _take_reports(self, one: OnePass) -> None:
        """Ingest the reports of parts that tasks wrote and of leftover rows."""
        self._result.parts += map(Part.of, one.reports.lines("part"))
        self._result.counters += map(json.loads, one.reports.lines("counters"))
        for rest in map(json.loads, one.reports.lines("rest")):
            self._leftover_bytes[rest["query"]] += rest["bytes"]
        for row in one.reports.packed("rows"):
            if row.stream in self._numbers_of_leftovers:
                self._leftovers.append(row)
            else:
                self._handed[row.stream] += row.size

    def _merge(self) -> OnePass:
        """Merge all partial groups. The driver merges few of them: a shuffle takes longer."""
        joins = self._planned.joins
        merging = Merging(self._planned.targets, self._sink, self._budget, joins)
        few = small_payloads(self._groups)
        if few is not None:
            merged = self._engine.holding(list(merging.merged(few)))
        else:
            having = [one for some in self._partial.values() for one in some]
            leftovers, size = leftover_streams(joins), sum(row.size for row in self._groups)
            task = ExchangeTask("groups", merging.merged, merging.targets)
            merged = self._engine.exchange(having, task, leftovers, size, self._destinations)
        self._take_reports(merged)
        sides = [side for p in joins for side in p.sides]
        for number in {*self._partial, *(s.leftovers for s in sides if s.stream in self._partial)}:
            self._sources[number].append(merged)
        return merged

    def _join_leftovers(self) -> None:
        """Join leftover rows in one task, or in the driver; the high level joins many of them."""
        joins, sizes = self._planned.joins, self._leftover_bytes
        small = small_leftovers(sizes, self._budget)
        if small and self._sink is not None:
            joining = LeftoverJoin(tuple(p for p in joins if p.query in small), self._sink)
            few = small_payloads(self._leftovers)
            if few is not None:
                self._result.parts += joining.parts(few)
            else:
                having = [one for n in leftover_streams(joins) for one in self._sources[n]]
                self._result.parts += self._engine.join_leftovers(having, joining)
        joined = self._planned.joined
        self._result.leftover = {q: joined[q].of_leftovers for q in sizes if q not in small}

    def _finish_small(self) -> None:
        """Compute the relations that read little in one task, which writes their parts."""
        planned, job = self._planned, self._job
        # Spark has other tuples of a low-level stream that the high level computes as well.
        in_spark = job.streams.keys() - planned.inside.keys()
        targets = {
            number: target
            for number, target in planned.targets.items()
            if target.high and number in self._sources and target.name not in in_spark
        }
        by_name = {target.name: number for number, target in targets.items()}
        sizes = {name: self._handed[number] for name, number in by_name.items()}
        small = small_relations(planned.above, sizes, job.parameters)
        if not small:
            return
        wanted = {read.stream for one in small for read in reads(one.rel)} & by_name.keys()
        numbers = [by_name[name] for name in wanted]
        task = RelationTask(small, job.parameters, self._sink, compiled=compiled_in(planned))
        final = FinalTask(task, {number: targets[number] for number in numbers})
        having = [one for number in numbers for one in self._sources[number]]
        reports = self._engine.finish(having, final)
        self._result.parts += map(Part.of, reports.lines("part"))
        for figures in map(json.loads, reports.lines("counters")):
            self._result.measures |= measures_from(figures["measures"])
        written = {one.name: one.written for one in small if one.written}
        self._result.direct = {**self._result.direct, **written}

    def _hand_up(self) -> None:
        done = (p for p in self._planned.joins if p.query not in self._result.leftover)
        unread = set(leftover_streams(done))
        for number, target in self._planned.targets.items():
            if target.high and number not in unread:
                made = self._engine.rows(self._sources[number], number, target)
                self._result.rows[target.name] = made


def compiled_in(planned: Deliveries) -> bool:
    """Whether tasks run machine code."""
    return all(read.low is None or read.low.compiled for read in planned.reads)


def leftover_streams(joins: Iterable[TaskJoin]) -> list[int]:
    """The numbers of the streams of leftover rows of both sides of joins."""
    return [side.leftovers for join in joins for side in join.sides]
