"""The status of a running set: pure data, made after every micro-batch.

A `Status` is written as JSON and read back. New fields have defaults, and unknown fields are
ignored: a command may be older or newer than the run it looks at. Numbers are finite; an unknown
value is None. A field made by `counter` or `gauge` is also a metric (terascope.operate.metrics).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from terascope.diagnostic import StreamError
from terascope.partitioning.balance import balances
from terascope.physical.operators import Measure
from terascope.streaming.replan.sharing_status import (
    StrategyStatus,
    TreeStatus,
    WindowStatus,
    counter,
    gauge,
)
from terascope.units import NANOSECONDS, readable_moment

State: TypeAlias = Literal["starting", "running", "restarting", "stopping", "stopped", "failed"]
OVER: frozenset[State] = frozenset({"stopped", "failed"})
"""States after which no batch comes."""

THE_END = "the end"
"""The text of `closed until` when all sources of a query have ended."""
Hop: TypeAlias = tuple[str, float]
"""An operator, and the time (Unix seconds) at which a traced tuple left it."""


def unix_seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS


@dataclass(frozen=True)
class CallStatus:
    """A call of the callback that has not returned: the run waits for it."""

    query: str
    batch: int
    seconds: float
    """The duration so far."""


@dataclass(frozen=True)
class RunStatus:
    """The run as a whole."""

    pid: int
    started: float
    """The start, in Unix seconds."""
    set_name: str
    checkpoint: str
    output: str | None
    batch: int = counter("Micro-batches completed.", -1, "batches", value=lambda last: last + 1)
    """The last micro-batch that is complete; -1 before the first."""
    batch_seconds: float = gauge("Time the last batch took.", 0.0)
    state: State = "starting"
    updated: float = gauge("Last status, unix time.", 0.0, "run_updated_seconds")
    restarts: int = counter("Restarts after failures.", 0)
    last_error: str | None = None
    trigger_seconds: float = 1.0
    heartbeat_seconds: float = 1.0
    """The interval at which the clock moves watermarks; 0: never."""
    skew_seconds: float = 0.0
    now_ns: int = 0
    """The present of the run, in nanoseconds since 1970."""
    driver_memory_bytes: int = gauge("Memory of the driver.", 0)
    worker_memory_bytes: int = gauge("Memory of all workers.", 0)
    parameter_edges: Mapping[str, str] = field(default_factory=dict)
    """By parameter that was changed: the slice edge from which the new value is valid."""
    callback: CallStatus | None = gauge(
        "How long the run has waited for the call of the callback that is at work.",
        None,
        "callback_waiting_seconds",
        value=lambda call: 0.0 if call is None else call.seconds,
    )
    callback_seconds: float = counter("Time in calls of the callback.", 0.0)
    """Of calls that have returned, in this process."""


@dataclass(frozen=True)
class SourceStatus:
    """One source. Its watermark: no tuple with an earlier value will follow."""

    name: str
    kind: str
    rate: float = gauge("Tuples a second, lately.", 0.0)
    tuples: int = counter("Tuples read.", 0)
    bytes: int = counter("Bytes read.", 0)
    watermark_ns: int | None = gauge(
        "Unix time before which no tuple will come any more.",
        None,
        "watermark_seconds",
        value=unix_seconds,
    )
    watermarks: Mapping[str, int | float | str] = field(default_factory=dict)
    """The watermark of each ordered column."""
    backlog_bytes: int = gauge("Bytes that are there and not read yet.", 0)
    late: int = counter("Tuples that came after their window was closed.", 0)
    malformed: int = counter("Packets or rows that could not be read.", 0)
    malformed_reasons: Mapping[str, int] = counter(
        "Packets, rows or files that could not be read, by reason; the reasons are a fixed set.",
        name="malformed_by_reason",
        label="reason",
    )
    skipped_bytes: int = counter("Bytes of damaged input that were skipped.", 0)
    unusable_files: Mapping[str, str] = field(default_factory=dict)
    """Path -> reason, for the last files that could not be used, or not to their end."""
    disorder_observed: float = gauge(
        "Largest disorder seen, in the source's unit.", 0.0, "disorder"
    )
    disorder_declared: float = 0.0
    disorder_unit: str = "s"
    falls: bool = False
    """Whether its main ordered column falls with time."""
    silent_seconds: float = gauge("Time since the last tuple.", 0.0)
    stalled: str | None = gauge(
        "1 while its watermark stands still.", None, value=lambda reason: reason is not None
    )
    """The reason why its watermark stands still; None when it moves."""
    heartbeat: int = counter("Heartbeats given.", 0, "heartbeats")
    heartbeat_age_seconds: float = gauge("Time since the last heartbeat.", 0.0)
    clock: bool = True
    """Whether a column is declared clock(): then silence, too, moves the watermark on."""
    begun: bool = True
    """Whether it has given a tuple."""
    replay: bool = gauge("1 while it keeps its own clock, far from the wall clock.", False)
    """Silence closes no window of a replay."""
    replay_behind_seconds: float | None = None
    """For a replay: the distance of its last tuple behind the wall clock; negative: ahead of it."""
    away: bool = gauge("1 while it cannot be read.", False)
    """`stalled` gives the reason."""
    waited_for_seconds: float | None = None
    """How long others still wait, for a source that is away or a replay without tuples."""
    left_behind: bool = gauge("1 while others go on without it.", False)
    """The liveness limit is over then."""
    late_queries: Mapping[str, int] = field(default_factory=dict)
    """By query: late tuples."""
    late_seconds: float | None = None
    """The largest distance of a late tuple behind the end of a closed window."""
    late_after_absence: bool = False
    """Whether its last late tuples are of a time when others went on without it."""

    @property
    def watermark_text(self) -> str | None:
        """The watermark as a moment where a clock measures it, else that of the first column."""
        if self.watermark_ns is not None:
            return readable_moment(self.watermark_ns)
        return next((f"{name} {value}" for name, value in self.watermarks.items()), None)


@dataclass(frozen=True)
class PartitionsStatus:
    """The partitions of one source together; each of them is a source of its own, too."""

    name: str
    count: int = gauge("Partitions of the source.", 0, "count")
    skew: float = gauge("Tuples of the largest partition, in multiples of the mean.", 1.0)
    hottest: int = gauge("The number of the partition with the most tuples.", 0)
    text: str = ""
    advice: str = ""
    """What to do about a hot partition; empty where there is none."""


@dataclass(frozen=True)
class Hold:
    """An input whose watermark keeps a window of a query open."""

    input: str
    """A source or another stream of the set."""
    watermark: str | None
    behind_seconds: float | None
    reason: str = ""


@dataclass(frozen=True)
class QueryStatus:
    """One named stream of the set."""

    name: str
    visible: bool = True
    rows: int = counter("Rows given.", 0)
    last_epoch: str | None = None
    closed_until: str | None = None
    closed_until_ns: int | None = gauge(
        "Unix time up to which its windows are closed.", None, "closed_seconds", value=unix_seconds
    )
    lag_seconds: float | None = gauge("How far its closed windows are behind the present.", None)
    pending_rows: int = gauge("Rows kept until their window closes.", 0)
    pending_bytes: int = gauge("Bytes kept until their window closes.", 0)
    open_slices: int = gauge("Slices not closed yet.", 0)
    holds: tuple[Hold, ...] = ()
    """The inputs that hold it back, the earliest watermark first."""
    late: int = counter("Tuples that came after their window of it was closed.", 0)
    inputs: tuple[str, ...] = ()
    """The sources whose tuples it reads."""
    closes_ns: int | None = None
    """The end of its next window as a moment, which the watermarks of its inputs must reach."""
    flushing: bool = False
    """Whether slices are complete that the run has not written yet."""


@dataclass(frozen=True)
class StoreStatus:
    """The disk space of open slices."""

    files: int = gauge("Files kept for open slices.", 0)
    bytes: int = gauge("Bytes kept for open slices.", 0)
    segments: int = gauge("Segments kept for open slices.", 0)
    open_slices: int = gauge("Slices not closed yet.", 0)
    groups: int = gauge("Groups kept for open slices.", 0)


@dataclass(frozen=True)
class LowStatus:
    """One low-level stream, which runs next to its source."""

    name: str
    queries: tuple[str, ...] = ()
    tuples_in: int = counter("Tuples looked at next to the source.", 0, "tuples")
    passed: int = counter("Tuples that passed its filter.", 0)
    selectivity: float = 0.0
    groups: int = 0
    evicted: int = counter("Groups put out of a full table.", 0)
    partials: int = 0
    cost_ns: float = 0.0


@dataclass(frozen=True, kw_only=True)
class OperatorStatus(Measure):
    """The figures of a physical operator next to the sources since the run began."""

    name: str
    """The name in `terascope explain --stage job`."""


@dataclass(frozen=True)
class Trace:
    """One tuple followed through the run."""

    id: str
    source: str
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True)
class Status:
    """A run after a micro-batch."""

    run: RunStatus
    sources: tuple[SourceStatus, ...] = ()
    queries: tuple[QueryStatus, ...] = ()
    store: StoreStatus = field(default_factory=StoreStatus)
    low: tuple[LowStatus, ...] = ()
    traces: tuple[Trace, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The value of every parameter, as text."""
    trees: tuple[TreeStatus, ...] = ()
    windows: tuple[WindowStatus, ...] = ()
    strategies: tuple[StrategyStatus, ...] = ()
    operators: tuple[OperatorStatus, ...] = ()

    @property
    def partitions(self) -> tuple[PartitionsStatus, ...]:
        """The sources with partitions, by the tuples that each partition has had."""
        found = balances({source.name: float(source.tuples) for source in self.sources})
        return tuple(
            PartitionsStatus(
                one.source, len(one.loads), one.skew, one.hottest, one.text, one.advice
            )
            for one in found
        )

    def source(self, name: str) -> SourceStatus | None:
        return next((s for s in self.sources if s.name == name), None)

    def query(self, name: str) -> QueryStatus | None:
        return next((q for q in self.queries if q.name == name), None)

    def to_json(self) -> str:
        return adapter().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Status:
        """The status of a line of `to_json`.

        Raises:
            StreamError: it is no status.
        """
        try:
            return adapter().validate_json(text)
        except ValidationError as problem:
            first = problem.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            raise StreamError(f"this is no status of a run: {where}: {first['msg']}") from None


@cache
def adapter() -> TypeAdapter[Status]:
    """The reader and checker of the JSON; made once, because that is slow."""
    return TypeAdapter(Status)
