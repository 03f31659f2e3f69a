"""The status of a running set: pure data, made after every micro-batch.

A `Status` is written as JSON and read back. New fields have defaults, and unknown fields are
ignored: a command may be older or newer than the run it looks at. Numbers are finite; an unknown
value is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from terascope.diagnostic import StreamError
from terascope.physical.operators import Measure
from terascope.streaming.replan.sharing_status import TreeStatus, WindowStatus
from terascope.units import readable_moment

State: TypeAlias = Literal["starting", "running", "restarting", "stopping", "stopped", "failed"]
OVER: frozenset[State] = frozenset({"stopped", "failed"})
"""States after which no batch comes."""

THE_END = "the end"
"""The text of `closed until` when all sources of a query have ended."""
Hop: TypeAlias = tuple[str, float]
"""An operator, and the time (Unix seconds) at which a traced tuple left it."""


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
    batch: int = -1
    """The last micro-batch that is complete; -1 before the first."""
    batch_seconds: float = 0.0
    state: State = "starting"
    updated: float = 0.0
    """The time of this status, in Unix seconds."""
    restarts: int = 0
    last_error: str | None = None
    trigger_seconds: float = 1.0
    heartbeat_seconds: float = 1.0
    """The interval at which the clock moves watermarks; 0: never."""
    skew_seconds: float = 0.0
    now_ns: int = 0
    """The present of the run, in nanoseconds since 1970."""
    driver_memory_bytes: int = 0
    worker_memory_bytes: int = 0
    parameter_edges: Mapping[str, str] = field(default_factory=dict)
    """By parameter that was changed: the slice edge from which the new value is valid."""
    callback: CallStatus | None = None
    callback_seconds: float = 0.0
    """Time in calls of the callback that have returned, in this process."""


@dataclass(frozen=True)
class SourceStatus:
    """One source. Its watermark: no tuple with an earlier value will follow."""

    name: str
    kind: str
    rate: float = 0.0
    """Tuples a second over the last seconds."""
    tuples: int = 0
    bytes: int = 0
    watermark_ns: int | None = None
    watermarks: Mapping[str, int | float | str] = field(default_factory=dict)
    """The watermark of each ordered column."""
    backlog_bytes: int = 0
    late: int = 0
    malformed: int = 0
    malformed_reasons: Mapping[str, int] = field(default_factory=dict)
    """Each reason of the fixed set that occurred, and its count."""
    skipped_bytes: int = 0
    """Bytes of damaged input that were skipped."""
    unusable_files: Mapping[str, str] = field(default_factory=dict)
    """Path -> reason, for the last files that could not be used, or not to their end."""
    disorder_observed: float = 0.0
    disorder_declared: float = 0.0
    disorder_unit: str = "s"
    falls: bool = False
    """Whether its main ordered column falls with time."""
    silent_seconds: float = 0.0
    stalled: str | None = None
    """The reason why its watermark stands still; None when it moves."""
    heartbeat: int = 0
    """The sequence number of its last heartbeat."""
    heartbeat_age_seconds: float = 0.0
    clock: bool = True
    """Whether a column is declared clock(): then silence, too, moves the watermark on."""
    begun: bool = True
    """Whether it has given a tuple."""
    replay: bool = False
    """Whether it keeps its own clock, far from the wall clock: silence closes no window."""
    replay_behind_seconds: float | None = None
    """For a replay: the distance of its last tuple behind the wall clock; negative: ahead of it."""
    away: bool = False
    """Whether it cannot be read; `stalled` gives the reason."""
    waited_for_seconds: float | None = None
    """How long others still wait, for a source that is away or a replay without tuples."""
    left_behind: bool = False
    """Whether the liveness limit is over and others go on without it."""
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
    rows: int = 0
    last_epoch: str | None = None
    closed_until: str | None = None
    closed_until_ns: int | None = None
    lag_seconds: float | None = None
    pending_rows: int = 0
    pending_bytes: int = 0
    open_slices: int = 0
    holds: tuple[Hold, ...] = ()
    """The inputs that hold it back, the earliest watermark first."""
    late: int = 0
    """Late tuples of its sources."""
    inputs: tuple[str, ...] = ()
    """The sources whose tuples it reads."""
    closes_ns: int | None = None
    """The end of its next window as a moment, which the watermarks of its inputs must reach."""
    flushing: bool = False
    """Whether slices are complete that the run has not written yet."""


@dataclass(frozen=True)
class StoreStatus:
    """The disk space of open slices."""

    files: int = 0
    bytes: int = 0
    segments: int = 0
    open_slices: int = 0
    groups: int = 0


@dataclass(frozen=True)
class LowStatus:
    """One low-level stream, which runs next to its source."""

    name: str
    queries: tuple[str, ...] = ()
    tuples_in: int = 0
    passed: int = 0
    selectivity: float = 0.0
    groups: int = 0
    evicted: int = 0
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
    operators: tuple[OperatorStatus, ...] = ()

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
