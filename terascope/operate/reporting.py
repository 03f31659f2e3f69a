"""The reporter of a run: batch reports become a status.

In: the plan of a stream, a `BatchReport` after every micro-batch, the states of the links. Out: a
`Status`, made anew at every request. No engine is needed: tests make the reports themselves. The
work of the low level is added up from the counters of heartbeats, which also say when each operator
passed them on (dissertation 4.6). The memory of the run is what /proc counts for the driver, which
is this process and the JVM it started, and for the workers, which are the other processes that
descend from them.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import LinkState
from terascope.operate.query_report import QueryReporter, store_status
from terascope.operate.source_report import Pulse, RunFacts, SourceReporter, ordered_columns
from terascope.operate.status import (
    LowStatus,
    OperatorStatus,
    RunStatus,
    Status,
    StoreStatus,
    Trace,
)
from terascope.physical.operators import Measure, measures_from, summed
from terascope.physical.stream.plan import LowStream, StreamPlan
from terascope.streaming.heartbeat import BatchReport, Heartbeat
from terascope.streaming.sources import late_keys
from terascope.streaming.state.state import StreamState as BatchState
from terascope.units import NANOSECONDS

KEPT_TRACES: Final = 16
TRACES_A_BATCH: Final = 4
AT_WORK: Final = ("low level", "slice store")
"""The hops between which a task read its tuples."""


class LowReporter:
    """Adds up the counters of heartbeats."""

    def __init__(self) -> None:
        self._streams: tuple[LowStream, ...] = ()
        self._done: dict[str, Counter[str]] = {}
        """By low-level stream: its counters, and the nanoseconds of its tasks, for all their
        queries together."""
        self._traces: deque[Trace] = deque(maxlen=KEPT_TRACES)
        self._measures: dict[str, Measure] = {}

    def follow(self, streams: Sequence[LowStream], readers: Mapping[str, tuple[str, ...]]) -> None:
        """Report on another set; streams that stay keep their counters. `readers`: by low-level
        stream, the queries above it.
        """
        self._streams = tuple(streams)
        self._readers = readers
        self._done = {stream.name: self._done.get(stream.name, Counter()) for stream in streams}

    def ingest(self, report: BatchReport) -> None:
        for beat in report.beats:
            self._add(beat)
        self._measures = summed([self._measures, *map(measures_from, report.measures)])
        for beat in report.beats[:TRACES_A_BATCH]:
            hops = (*beat.hops, *report.hops)
            sources = ", ".join(sorted(beat.interfaces))
            self._traces.append(Trace(f"{report.batch}-{beat.task}", sources, hops))

    def _add(self, beat: Heartbeat) -> None:
        counters = beat.counters
        self._measures = summed([self._measures, measures_from(counters.get("measures", {}))])
        times = dict(beat.hops)
        seconds = times.get(AT_WORK[1], 0.0) - times.get(AT_WORK[0], 0.0)
        for place, name in enumerate(beat.queries):
            if name in self._done:
                done = {kind: counters[kind][place] for kind in ("passed", "evicted", "partials")}
                done |= {"tuples": counters["tuples"], "ns": round(max(0.0, seconds) * NANOSECONDS)}
                self._done[name].update(done)

    def status(self, report: BatchReport | None) -> tuple[LowStatus, ...]:
        segments = () if report is None else report.state.segments
        found = []
        for stream in self._streams:
            done = self._done[stream.name]
            groups = sum(s.rows for s in segments if s.stream == stream.key and s.kind == "groups")
            found.append(
                LowStatus(
                    stream.name,
                    self._readers.get(stream.name, ()),
                    done["tuples"],
                    done["passed"],
                    done["passed"] / max(1, done["tuples"]),
                    groups,
                    done["evicted"],
                    done["partials"],
                    done["ns"] / max(1, done["tuples"]),
                )
            )
        return tuple(found)

    @property
    def operators(self) -> tuple[OperatorStatus, ...]:
        """The figures of every operator of a task, in the order of first reports."""
        return tuple(
            OperatorStatus(name=name, **asdict(one)) for name, one in self._measures.items()
        )

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The last traces, newest last."""
        return tuple(self._traces)


SPAN_SECONDS: Final = 10.0
"""The number of last seconds over which rates are computed."""
PAGE = os.sysconf("SC_PAGE_SIZE")
JVM = "java"


@dataclass(frozen=True)
class Process:
    """One line of the table of processes."""

    pid: int
    parent: int
    name: str
    memory_bytes: int


def used_memory(pid: int, processes: list[Process]) -> tuple[int, int]:
    """Bytes of the driver and of its workers."""
    children: dict[int, list[Process]] = {}
    for one in processes:
        children.setdefault(one.parent, []).append(one)
    driver = sum(one.memory_bytes for one in processes if one.pid == pid)
    workers = 0
    pending = list(children.get(pid, ()))
    while pending:
        one = pending.pop()
        pending += children.get(one.pid, ())
        if one.name == JVM:
            driver += one.memory_bytes
        else:
            workers += one.memory_bytes
    return driver, workers


def running_processes(proc: Path = Path("/proc")) -> list[Process]:
    found = []
    for path in proc.glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # it ended while we looked
        # The name of a program may have spaces and brackets; the text after the last one is plain.
        head, _, rest = text.rpartition(")")
        number, _, name = head.partition(" (")
        facts = rest.split()
        found.append(Process(int(number), int(facts[1]), name, int(facts[21]) * PAGE))
    return found


def memory_now() -> tuple[int, int]:
    """Bytes of this process as a driver, and of its workers."""
    driver, workers = used_memory(os.getpid(), running_processes())
    return driver or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, workers


class Rates:
    """The rates of several counters that are counted together."""

    def __init__(self, span: float = SPAN_SECONDS) -> None:
        self._span = span
        self._batches: deque[tuple[float, float, Mapping[str, int]]] = deque()
        """The start, the end and the counts of each batch."""

    def add(self, began: float, ended: float, counts: Mapping[str, int]) -> None:
        """Add a batch. The pause before it belongs to it: its tuples came in that time, too."""
        if self._batches:
            began = min(began, self._batches[-1][1])
        self._batches.append((began, ended, counts))

    def at(self, now: float) -> Mapping[str, float]:
        """Counts a second over the batches that ended in the last seconds."""
        while self._batches and self._batches[0][1] <= now - self._span:
            self._batches.popleft()
        if not self._batches:
            return {}
        total: Counter[str] = Counter()
        for _, _, counts in self._batches:
            total.update(counts)
        seconds = max(now - self._batches[0][0], 1e-3)
        return {name: count / seconds for name, count in total.items()}


class Reporter:
    """Ingests the report of every batch and makes statuses; thread-safe."""

    def __init__(
        self,
        plan: StreamPlan,
        facts: RunFacts,
        clock: Callable[[], float] = time.time,
        memory: Callable[[], tuple[int, int]] = memory_now,
    ) -> None:
        """`memory`: bytes of the driver and of its workers."""
        self.facts = facts
        self._clock = clock
        self._memory = memory
        self._lock = threading.Lock()
        self._report: BatchReport | None = None
        self._rates = Rates()
        self._pulse = Pulse()
        self._low = LowReporter()
        self._resumed: BatchState | None = None
        """The state that the run resumes from: all that is known before its first batch."""
        self._follow(plan)

    def _follow(self, plan: StreamPlan) -> None:
        self._plan = plan
        kinds = {i.name: i.kind for read in plan.job.reads for i in read.interfaces}
        self._queries = QueryReporter(plan, self.facts)
        streams = {
            query: frozenset(stream.key for stream in leaves) | late_keys(plan, query)
            for query, leaves in self._queries.leaves.items()
        }
        self._sources = SourceReporter(
            ordered_columns(plan), kinds, self.facts, self._pulse, streams
        )
        readers = {
            stream.name: tuple(q for q, leaves in self._queries.leaves.items() if stream in leaves)
            for stream in plan.low
        }
        self._low.follow(plan.low, readers)

    def follow(self, plan: StreamPlan, state: BatchState) -> None:
        """Report on another plan from now on, which resumes from a state made for it."""
        with self._lock:
            self._follow(plan)
            self._resumed = state
            if self._report is not None:
                watermarks = Watermarks(plan.trees, self._report.watermarks.scan)
                self._report = replace(self._report, state=state, watermarks=watermarks)

    def ingest(self, report: BatchReport) -> None:
        with self._lock:
            now = self._clock()
            counts: Counter[str] = Counter()
            for beat in report.beats:
                for name, part in beat.interfaces.items():
                    counts[name] += part.tuples
            self._rates.add(now - report.seconds, now, counts)
            self._pulse.ingest(report, now)
            self._low.ingest(report)
            self._report = report

    def status(
        self,
        run: RunStatus,
        links: Sequence[LinkState] = (),
        rows: Mapping[str, int] | None = None,
    ) -> Status:
        """The status now. `run`: the state of the process, as its supervisor sees it; `rows`: by
        query, all rows that were emitted so far.
        """
        with self._lock:
            now = self._clock()
            report, plan, facts = self._report, self._plan, self.facts
            now_ns = self._present(now, report)
            rates = self._rates.at(now)
            known = {link.name: link for link in links}
            sources = tuple(
                self._sources.status(name, report, known.get(name), rates.get(name, 0.0), now_ns)
                for name in self._sources.kinds
            )
            queries = tuple(
                self._queries.status(
                    output, (rows or {}).get(output.name, 0), report, sources, now_ns, self._resumed
                )
                for output in plan.outputs
            )
            state = self._resumed if report is None else report.state
            return Status(
                self._run(run, report, now, now_ns),
                sources,
                queries,
                StoreStatus() if state is None else store_status(state),
                self._low.status(report),
                self._low.traces,
                facts.parameters,
                operators=self._low.operators,
            )

    def _present(self, now: float, report: BatchReport | None) -> int:
        """The present of the run: in a replay, the time in the trace."""
        seen = 0 if report is None else report.offset.now_ns
        return max(seen, round(now * NANOSECONDS)) if self.facts.live else seen

    def _run(
        self, run: RunStatus, report: BatchReport | None, now: float, now_ns: int
    ) -> RunStatus:
        driver, workers = self._memory()
        # Workers on other machines are not among our processes: they report their memory.
        reported = [] if report is None else [beat.memory_bytes for beat in report.beats]
        return replace(
            run,
            batch=run.batch if report is None else report.batch,
            batch_seconds=0.0 if report is None else report.seconds,
            updated=now,
            now_ns=now_ns,
            driver_memory_bytes=driver,
            worker_memory_bytes=max([workers, *reported]),
        )
