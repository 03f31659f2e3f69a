"""The reporter of a run: from what its batches did to what people are shown.

In: the plan of a stream, a `BatchReport` after every micro-batch, what the links say. Out: a
`Status`, made anew whenever somebody asks. No engine is needed: reports can be made by hand.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import LinkState
from terascope.operate.low_report import LowReporter
from terascope.operate.memory import memory_now
from terascope.operate.query_report import QueryReporter, store_status
from terascope.operate.rates import Rates
from terascope.operate.source_report import Pace, Pulse, SourceReporter, ordered_columns
from terascope.operate.status import RunStatus, State, Status, StoreStatus
from terascope.physical.stream.plan import StreamPlan
from terascope.streaming.late_rows import late_keys
from terascope.streaming.report import BatchReport
from terascope.streaming.state.state import StreamState as BatchState
from terascope.units import NANOSECONDS


@dataclass(frozen=True)
class RunFacts:
    """What does not change while a set runs."""

    pid: int
    started: float
    """Unix seconds."""
    set_name: str
    checkpoint: str
    output: str | None
    trigger_seconds: float = 1.0
    heartbeat_seconds: float = 1.0
    skew_seconds: float = 0.0
    live: bool = True
    """Whether the present is that of the clock on the wall; in a replay the trace has its own."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    liveness_seconds: float = 300.0
    own_liveness_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of sources for which queries say so."""


@dataclass(frozen=True)
class Supervised:
    """How the process itself is."""

    state: State = "starting"
    restarts: int = 0
    last_error: str | None = None
    batch: int = -1
    """The last that is done, in this process or an earlier one."""


class Reporter:
    """Hears of every batch, and tells how the run is. Both may be done by any thread."""

    def __init__(
        self,
        plan: StreamPlan,
        facts: RunFacts,
        clock: Callable[[], float] = time.time,
        memory: Callable[[], tuple[int, int]] = memory_now,
    ) -> None:
        """`memory`: bytes of the driver and of its workers."""
        self._facts = facts
        self._clock = clock
        self._memory = memory
        self._lock = threading.Lock()
        self._report: BatchReport | None = None
        self._rates = Rates()
        self._pulse = Pulse()
        self._pace = Pace(
            facts.trigger_seconds, facts.heartbeat_seconds, facts.skew_seconds,
            facts.liveness_seconds, facts.own_liveness_seconds,
        )  # fmt: skip
        self._low = LowReporter((), {})
        self._resumed: BatchState | None = None
        """What the run goes on from; until its first batch that is all that is known."""
        self._follow(plan)

    def _follow(self, plan: StreamPlan) -> None:
        self._plan = plan
        kinds = {i.name: i.kind for read in plan.job.reads for i in read.interfaces}
        self._queries = QueryReporter(plan, self._pace)
        streams = {
            query: frozenset(stream.key for stream in leaves) | late_keys(plan, query)
            for query, leaves in self._queries.leaves.items()
        }
        self._sources = SourceReporter(
            ordered_columns(plan), kinds, self._pace, self._pulse, streams
        )
        readers = {
            stream.name: tuple(q for q, leaves in self._queries.leaves.items() if stream in leaves)
            for stream in plan.low
        }
        self._low.follow(plan.low, readers)

    def follow(self, plan: StreamPlan, state: BatchState) -> None:
        """The set goes on as another plan, from a state that was made for it."""
        with self._lock:
            self._follow(plan)
            self._resumed = state
            if self._report is not None:
                watermarks = Watermarks(plan.trees, self._report.watermarks.scan)
                self._report = replace(self._report, state=state, watermarks=watermarks)

    def hear(self, report: BatchReport) -> None:
        """A batch is done."""
        with self._lock:
            now = self._clock()
            counts: Counter[str] = Counter()
            for beat in report.beats:
                for name, heard in beat.interfaces.items():
                    counts[name] += heard.tuples
            self._rates.add(now - report.seconds, now, counts)
            self._pulse.hear(report, now)
            self._low.hear(report)
            self._report = report

    def status(
        self,
        supervised: Supervised,
        links: Sequence[LinkState] = (),
        rows: Mapping[str, int] | None = None,
    ) -> Status:
        """How the run is now. `rows`: by query, all that were delivered so far."""
        with self._lock:
            now = self._clock()
            report, plan, facts = self._report, self._plan, self._facts
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
                self._run(supervised, report, now, now_ns),
                sources,
                queries,
                StoreStatus() if state is None else store_status(state),
                self._low.status(report),
                self._low.traces,
                facts.parameters,
                operators=self._low.operators,
            )

    def _present(self, now: float, report: BatchReport | None) -> int:
        """What time it is for the run."""
        told = 0 if report is None else report.offset.now_ns
        return max(told, round(now * NANOSECONDS)) if self._facts.live else told

    def _run(
        self, supervised: Supervised, report: BatchReport | None, now: float, now_ns: int
    ) -> RunStatus:
        facts = self._facts
        driver, workers = self._memory()
        told = [] if report is None else [beat.memory_bytes for beat in report.beats]
        return RunStatus(
            pid=facts.pid,
            started=facts.started,
            set_name=facts.set_name,
            checkpoint=facts.checkpoint,
            output=facts.output,
            batch=supervised.batch if report is None else report.batch,
            batch_seconds=0.0 if report is None else report.seconds,
            state=supervised.state,
            updated=now,
            restarts=supervised.restarts,
            last_error=supervised.last_error,
            trigger_seconds=facts.trigger_seconds,
            heartbeat_seconds=facts.heartbeat_seconds,
            skew_seconds=facts.skew_seconds,
            now_ns=now_ns,
            driver_memory_bytes=driver,
            # Workers on other machines are not among our processes: they tell it themselves.
            worker_memory_bytes=max([workers, *told]),
        )
