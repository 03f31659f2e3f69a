"""The status of each source of a run.

In: a plan, the reports of its batches, the states of the links. Out: a `SourceStatus` for each
interface: its rate, its watermark, and whether it gives signs of life. A sign of life is a tuple,
or a heartbeat: the source was looked at, and everything older than now was there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from terascope.analysis.moving import moved
from terascope.analysis.order import FINENESS
from terascope.connectors.arrival import is_arrival
from terascope.connectors.live import LinkState, Offset
from terascope.functions.base import Trend, Value
from terascope.operate.status import RunStatus, SourceStatus
from terascope.physical.stream.plan import StreamPlan
from terascope.plan.rel import SourceField
from terascope.streaming.closing import reached
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.state.state import Seen
from terascope.units import NANOSECONDS, readable_seconds

OVERDUE = 3
"""The number of heartbeats, and of triggers, that may be missed."""


@dataclass(frozen=True)
class RunFacts:
    """Facts that do not change while a set runs."""

    run: RunStatus
    """The first status of the run."""
    live: bool = True
    """Whether the wall clock is the present; in a replay the trace has its own."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    liveness_seconds: float = math.inf
    own_liveness_seconds: Mapping[str, float] = field(default_factory=dict)
    """The limit that the queries of a source set, by source."""

    def patience(self, batch_seconds: float) -> float:
        """The time that a source may give no sign of life."""
        run = self.run
        return OVERDUE * (run.heartbeat_seconds + max(run.trigger_seconds, batch_seconds))


class Pulse:
    def __init__(self) -> None:
        self._signs: dict[str, tuple[int, float, int | None]] = {}
        """By source: the number of its signs of life, the time of the last one, and the time up to
        which it was quiet then."""
        self._last_batch = 0.0
        self.first_ns: int | None = None
        """The present of the run at its first report."""

    def ingest(self, report: BatchReport, at: float) -> None:
        """Ingest the report of a batch that ended `at`."""
        self._last_batch = at
        if self.first_ns is None:
            self.first_ns = report.offset.now_ns
        spoken = {n for beat in report.beats for n, part in beat.interfaces.items() if part.tuples}
        for name, link in report.offset.links.items():
            count, _, quiet_ns = self._signs.get(name, (0, 0.0, None))
            if not count or name in spoken or link.quiet_ns != quiet_ns:
                self._signs[name] = count + 1, at, link.quiet_ns

    def count(self, name: str) -> int:
        return self._signs[name][0] if name in self._signs else 0

    def age(self, name: str) -> float:
        """The age of a source's last sign of life when the last batch ended: a long batch is not
        the fault of a source.
        """
        return self._last_batch - self._signs[name][1] if name in self._signs else 0.0


# ---- columns -------------------------------------------------------------------------------------


def ordered_columns(plan: StreamPlan) -> dict[str, tuple[SourceField, ...]]:
    """The columns that move with time, by interface, the finest clock first."""
    found: dict[str, dict[str, SourceField]] = {
        interface.name: {} for read in plan.job.reads for interface in read.interfaces
    }
    for stream in plan.low:
        for column in stream.scan.columns:
            if column.slope is not None and column.slope.is_ordered:
                for interface in stream.scan.interfaces:
                    found[interface].setdefault(column.read_from, column)
    return {
        name: tuple(sorted(columns.values(), key=lambda c: -fineness(c)))
        for name, columns in found.items()
    }


def fineness(column: SourceField) -> int:
    """Ticks a second of a clock. The arrival time, the same for all sources, comes last."""
    if column.clock is None:
        return 0
    return -1 if is_arrival(column.read_from) else FINENESS[column.clock]


def watermark_of(column: SourceField, seen: Seen | None, skew_ns: int) -> Value:
    """The watermark of a column: the value reached so far, less the declared disorder."""
    assert column.slope is not None
    value = reached(column, seen, skew_ns)
    rising = column.slope.trend is Trend.INCREASING
    return moved(value, -column.slope.band if rising else column.slope.band, column.slope.trend)


# ---- the status ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceReporter:
    columns: Mapping[str, tuple[SourceField, ...]]
    kinds: Mapping[str, str]
    facts: RunFacts
    pulse: Pulse
    streams: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The keys of the low-level streams that a query reads, by query."""

    def status(
        self,
        name: str,
        report: BatchReport | None,
        link: LinkState | None,
        rate: float,
        now_ns: int,
    ) -> SourceStatus:
        """The status of a source; before the first batch little is known."""
        columns = self.columns[name]
        clock = next((c for c in columns if c.clock is not None), None)
        backlog = 0 if link is None else link.backlog_bytes
        stalled = None if link is None else link.stalled
        if report is None:
            return SourceStatus(
                name, self.kinds[name], backlog_bytes=backlog, stalled=stalled,
                clock=clock is not None,
            )  # fmt: skip
        seen = report.state.seen.get(name) or Seen()
        here = report.offset.link(name)
        skew_ns = round(self.facts.run.skew_seconds * NANOSECONDS)
        watermarks = {
            c.read_from: value
            for c in columns
            if isinstance(value := watermark_of(c, seen, skew_ns), int | float)
        }
        main = columns[0] if columns else None
        # Where values fall, that of a late tuple.
        disorder = seen.late_behind if main is not None and main.falls else seen.disorder
        largest_ns = clock_ns(clock, seen.largest)
        behind_ns = None if largest_ns is None else now_ns - largest_ns
        last_ns = seen.last_tuple_ns if seen.last_tuple_ns is not None else self.pulse.first_ns
        return SourceStatus(
            name,
            self.kinds[name],
            rate=rate,
            tuples=seen.tuples,
            bytes=seen.bytes,
            watermark_ns=clock_ns(clock, watermarks),
            watermarks=watermarks,
            backlog_bytes=backlog,
            late=seen.late,
            malformed=sum(seen.malformed.values()),
            malformed_reasons=dict(seen.malformed),
            skipped_bytes=seen.skipped_bytes,
            unusable_files=dict(seen.files),
            disorder_observed=0.0 if main is None else disorder.get(main.read_from, 0),
            disorder_declared=0.0 if main is None or main.slope is None else main.slope.band,
            disorder_unit="" if main is None or main.clock is None else main.clock,
            falls=main is not None and main.falls,
            silent_seconds=max(0.0, (now_ns - (last_ns or now_ns)) / NANOSECONDS),
            stalled=stalled or self.overdue(name, report, backlog),
            heartbeat=self.pulse.count(name),
            heartbeat_age_seconds=self.pulse.age(name),
            clock=clock is not None,
            begun=here.begun or seen.tuples > 0,
            replay=bool(here.is_replay),
            replay_behind_seconds=(
                behind_ns / NANOSECONDS if here.is_replay and behind_ns is not None else None
            ),
            away=here.is_away,
            waited_for_seconds=self.waited_for(name, report.offset),
            left_behind=here.is_left_behind,
            late_queries=self.late_queries(seen),
            late_seconds=late_seconds(columns, seen),
            late_after_absence=late_after_absence(columns, seen),
        )

    def late_queries(self, seen: Seen) -> dict[str, int]:
        """The late tuples of a source, by query."""
        counts = {
            query: sum(seen.late_streams.get(key, 0) for key in keys)
            for query, keys in self.streams.items()
        }
        return {query: count for query, count in counts.items() if count}

    def waited_for(self, name: str, offset: Offset) -> float | None:
        """The time that others will still wait for a source that gives nothing. None: the source is
        alive, or there is no limit, or others do not wait any more.
        """
        link = offset.link(name)
        limit = self.facts.own_liveness_seconds.get(name, self.facts.liveness_seconds)
        if link.is_left_behind or link.alive_ns is None or math.isinf(limit):
            return None
        silent = (offset.now_ns - link.alive_ns) / NANOSECONDS
        is_missed = link.is_away or (link.is_replay and silent > self.facts.run.heartbeat_seconds)
        return max(0.0, limit - silent) if is_missed else None

    def overdue(self, name: str, report: BatchReport, backlog: int) -> str | None:
        """The reason why a source is stalled whose link reports no problem; None: it is not."""
        beat = self.facts.run.heartbeat_seconds
        link = report.offset.link(name)
        if not beat or backlog or report.state.ended or link.is_replay:
            return None
        if not link.begun and link.quiet_ns is None:
            return None  # no window can be open
        behind_ns = report.offset.now_ns - (link.quiet_ns or 0)
        age = self.pulse.age(name)
        # In a replay the clock of the run may stand still while others are read.
        if behind_ns <= OVERDUE * beat * NANOSECONDS or age <= self.facts.patience(report.seconds):
            return None
        return f"no heartbeat for {readable_seconds(age)}"


def late_seconds(columns: Sequence[SourceField], seen: Seen) -> float | None:
    """The largest distance of a late tuple behind a closed window, where a clock measures it."""
    found = [
        seen.late_behind[c.read_from] / FINENESS[c.clock]
        for c in columns
        if c.clock is not None and c.read_from in seen.late_behind
    ]
    return max(found, default=None)


def late_after_absence(columns: Sequence[SourceField], seen: Seen) -> bool:
    """Whether the last late tuples are from a time when others went on without their source."""
    if any(seen.late_smallest.get(name, value) < value for name, value in seen.passed.items()):
        return True
    moments = [clock_ns(column, seen.late_smallest) for column in columns]
    return seen.left_ns is not None and any(m is not None and m < seen.left_ns for m in moments)


def clock_ns(clock: SourceField | None, values: Mapping[str, int | float]) -> int | None:
    """A value of the clock column as a moment."""
    if clock is None or clock.clock is None or clock.read_from not in values:
        return None
    return round(values[clock.read_from] * (NANOSECONDS // FINENESS[clock.clock]))
