"""The status of each query of a run.

In: a plan, the report of a batch, the statuses of the sources. Out: a `QueryStatus` for each
visible query: the value up to which it is closed, the stored bytes of its open slices, and the
inputs that hold it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from terascope.analysis.moving import is_number
from terascope.analysis.order import FINENESS, Trees
from terascope.analysis.retention import RowBound, RowBounds
from terascope.analysis.watermarks import Watermarks
from terascope.functions.base import Value
from terascope.operate.source_report import RunFacts
from terascope.operate.status import THE_END, Hold, QueryStatus, SourceStatus, StoreStatus
from terascope.physical.stream.plan import LowStream, StreamOutput, StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Join,
    Rank,
    Rel,
    Running,
    Scan,
    Window,
)
from terascope.streaming.closing import epoch_watermark
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.sources import streams_below
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import StreamState
from terascope.units import NANOSECONDS, readable_moment

AT_END = "its rows are known when all sources have ended"


class QueryReporter:
    def __init__(self, plan: StreamPlan, facts: RunFacts) -> None:
        self._plan = plan
        self._facts = facts
        below = {output.name: streams_below(plan, output.name) for output in plan.outputs}
        self.leaves = {
            query: tuple(stream for stream in plan.low if stream.name in names)
            for query, names in below.items()
        }
        """The low-level streams below each query."""
        kept = plan.leaves
        self._keys = {
            query: {kept[name] for name in names if name in kept} for query, names in below.items()
        }
        # The same edge is converted after every batch until the next slice closes.
        self._moment = lru_cache(maxsize=1024)(partial(moment_ns, trees=plan.trees))

    def status(
        self,
        output: StreamOutput,
        rows: int,
        report: BatchReport | None,
        sources: Sequence[SourceStatus],
        now_ns: int,
        resumed: StreamState | None = None,
    ) -> QueryStatus:
        """The status of a query; before the first batch, that of the checkpoint."""
        state = resumed if report is None else report.state
        if state is None or output.name not in state.queries:
            return QueryStatus(output.name, rows=rows)
        leaves = self.leaves[output.name]
        read = {name for leaf in leaves for name in leaf.scan.interfaces}
        mine = [] if report is None else [s for s in sources if s.name in read]
        keys = self._keys[output.name]
        pending = [s for s in state.segments if s.stream in keys]
        known = replace(
            self.closed(output, state, mine),
            rows=rows,
            pending_rows=sum(s.rows for s in pending),
            pending_bytes=sum(s.length for s in pending),
            open_slices=open_slices(pending, state),
        )
        if report is None:
            return replace(known, closes_ns=None)
        now_ns, closed_ns = present_of(mine, now_ns), known.closed_until_ns
        flushing = any(is_flushing(leaf, report, self._plan) for leaf in leaves)
        return replace(
            known,
            lag_seconds=None if closed_ns is None else (now_ns - closed_ns) / NANOSECONDS,
            holds=self.holds(output, flushing, report, mine, now_ns, known.closes_ns),
            late=sum(s.late_queries.get(output.name, 0) for s in mine),
            inputs=tuple(s.name for s in mine),
            flushing=flushing,
        )

    # ---- up to where it is closed

    def closed(
        self, output: StreamOutput, state: StreamState, sources: Sequence[SourceStatus]
    ) -> QueryStatus:
        """The value up to which all rows of a query were emitted, and the end of its next window
        where epochs are counted one by one.
        """
        name, progress = output.name, state.queries[output.name]
        if state.ended:
            return QueryStatus(name, closed_until=THE_END)
        if not waits(output, self._plan):
            moments = [s.watermark_ns for s in sources if s.watermark_ns is not None]
            if not moments or len(moments) < len(sources):
                return QueryStatus(name)
            first = min(moments)
            return QueryStatus(name, closed_until=readable_moment(first), closed_until_ns=first)
        if output.release is None:
            assert output.low is not None
            stream = self._plan.low[output.low]
            rel = stream.read
            column = Col(stream.value or "", rel.type_of(stream.value or ""))
            if progress.until is None:
                groups = (s for s in state.segments if s.stream == stream.key)
                lows = [int(s.low) for s in groups if s.kind == "groups" and s.low is not None]
                ends = self._moment(column, min(lows) + 1, rel) if lows else None
                return QueryStatus(name, closes_ns=ends)
            return self.reached(name, [(column, progress.until)], rel)
        release = output.release
        bounds = progress.lows(len(release.parts))
        values = [part.value for part in release.parts]
        return self.reached(name, list(zip(values, bounds, strict=True)), release.node)

    def reached(
        self, name: str, parts: Sequence[tuple[Expr, SliceValue | None]], rel: Rel
    ) -> QueryStatus:
        """The earliest of the values up to which rows were emitted."""
        if not parts or any(value is None for _, value in parts):
            return QueryStatus(name)
        moments = [self._moment(expr, value, rel) for expr, value in parts]
        known = [ns for ns in moments if ns is not None]
        least = min(known) if len(known) == len(moments) else None
        expr, value = parts[0]
        text = str(value) if least is None else readable_moment(least)
        last = last_epoch(expr, value)
        following = None
        if last is not None and isinstance(value, int) and least is not None:
            following = self._moment(expr, value + 1, rel)
        return QueryStatus(
            name,
            last_epoch=last,
            closed_until=text,
            closed_until_ns=least,
            closes_ns=following,
        )

    # ---- inputs that hold it back

    def holds(
        self,
        output: StreamOutput,
        flushing: bool,
        report: BatchReport,
        sources: Sequence[SourceStatus],
        now_ns: int,
        next_ns: int | None,
    ) -> tuple[Hold, ...]:
        """The inputs that keep windows open, the earliest watermark first. There are none when all
        watermarks are late enough and the run itself is behind, or when the next window, which ends
        at `next_ns`, is not over yet.
        """
        if report.state.ended or not waits(output, self._plan):
            return ()
        if output.release is not None and output.release.kind == "at_end":
            return (Hold("the sources", None, None, AT_END),)
        if flushing:
            return ()
        patience = self._facts.patience(report.seconds) + self._facts.run.skew_seconds
        found = []
        for source in sources:
            ns = source.watermark_ns
            behind = None if ns is None else (now_ns - ns) / NANOSECONDS
            late = source.silent_seconds if behind is None else behind
            is_due = next_ns is None or next_ns <= now_ns or source.stalled is not None
            if (late > patience and is_due) or not source.watermarks:
                found.append((ns or 0, Hold(source.name, source.watermark_text, behind)))
        return tuple(hold for _, hold in sorted(found, key=lambda one: one[0]))


def present_of(sources: Sequence[SourceStatus], now_ns: int) -> int:
    """The present of a query: the time of its last tuple when all its sources are replays."""
    behind = [s.replay_behind_seconds for s in sources if s.replay]
    known = [b for b in behind if b is not None]
    if not sources or len(known) < len(sources):
        return now_ns
    return now_ns - round(min(known) * NANOSECONDS)


def waits(output: StreamOutput, plan: StreamPlan) -> bool:
    """Whether rows are pending until their slice closes; those of a selection are not."""
    if output.release is not None:
        return output.release.kind != "at_once"
    assert output.low is not None
    return plan.low[output.low].groups is not None


def is_flushing(stream: LowStream, report: BatchReport, plan: StreamPlan) -> bool:
    """Whether slices of a stream are complete by the watermark and not emitted yet."""
    if stream.groups is None or stream.value is None:
        return False
    watermark = epoch_watermark(stream, Watermarks(plan.trees, report.watermarks.scan))
    until = report.state.streams[stream.key].until
    if not is_number(watermark) or (until is not None and watermark <= until):
        return False
    pending = (s for s in report.state.segments if s.stream == stream.key and s.kind == "groups")
    return any(segment.has_before(watermark) for segment in pending)


def last_epoch(expr: Expr, value: SliceValue | None) -> str | None:
    """The last closed epoch, where epochs are counted one by one."""
    one_by_one = not (isinstance(expr, Col) and (expr.name in (WSTART, WEND) or "#" in expr.name))
    return str(value - 1) if isinstance(value, int) and one_by_one else None


# ---- the store -----------------------------------------------------------------------------------


def store_status(state: StreamState) -> StoreStatus:
    segments = state.segments
    return StoreStatus(
        files=len({s.file for s in segments}),
        bytes=sum(s.length for s in segments),
        segments=len(segments),
        open_slices=open_slices(segments, state),
        groups=sum(s.rows for s in segments if s.kind == "groups"),
    )


def open_slices(segments: Iterable[Segment], state: StreamState) -> int:
    """The number of slices in some segments, stream by stream."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for segment in segments:
        if segment.kind != "groups" or segment.low is None or segment.high is None:
            continue
        progress = state.streams.get(segment.stream)
        low = int(segment.low)
        if progress is not None and progress.until is not None:
            low = max(low, int(progress.until))
        spans.setdefault(segment.stream, []).append((low, int(segment.high)))
    return sum(covered(found) for found in spans.values())


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """The whole numbers in one of the spans, ends included."""
    total, done = 0, None
    for low, high in sorted(spans):
        first = low if done is None else max(low, done + 1)
        if high >= first:
            total += high - first + 1
            done = high
    return total


# ---- moments -------------------------------------------------------------------------------------


class ClockBounds(RowBounds):
    """Carries a value down to the clock of its source. The edges of a window are values of the
    column that it is measured on.
    """

    def of_column(self, rel: Rel, name: str, bound: Value) -> Iterator[RowBound]:
        match rel:
            case Window() if name in (WSTART, WEND):
                yield from self.of_column(rel.source, name if rel.elements else rel.on, bound)
            case Rank():
                yield from self.of_column(rel.source, name, bound)
            case Aggregate() | Running():
                keys = dict(rel.keys)
                if name in keys:
                    yield from self.of_expr(rel.source, keys[name], bound)
            case Join():
                yield from self.of_column(rel.side_of(name), name, bound)
            case _:
                yield from super().of_column(rel, name, bound)


def moment_ns(expr: Expr, value: Value, rel: Rel, trees: Trees) -> int | None:
    """The moment, in nanoseconds since 1970, at which the clock of the source reaches a value of an
    expression over `rel`; None: there is no clock. For `time/60` and the value 28333333 that is the
    beginning of this minute.
    """
    if not is_number(value):
        return None
    bounds = ClockBounds(trees, ())
    if isinstance(expr, Col):
        reached = next(bounds.of_column(rel, expr.name, value), None)
    else:
        reached = next(bounds.of_expr(rel, expr, value), None)
    if reached is None or not isinstance(reached.leaf, Scan) or not is_number(reached.bound):
        return None
    clock = next(c.clock for c in reached.leaf.columns if c.name == reached.column)
    return None if clock is None else round(reached.bound * (NANOSECONDS // FINENESS[clock]))
