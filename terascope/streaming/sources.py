"""The sources of a stream: which of them wait for each other, and which tuples come too late.

In: the plan of a stream, its watermarks, and the value up to which each query was released.

Out, by source, the partners that a merge, a join or a set of interfaces combines with it: a silent
source holds back these and no others. A source that was left behind gets the watermarks of its
partners, in columns that are no clocks: the time of day moves a clock; for any other column only
the partners have a watermark.

Out, by interface, the value of a column below which a tuple may belong to a row that was released
already. Tasks compare their tuples with these values (`heartbeat.Watch`): late tuples are counted
and, on request, written to files of their own. A tuple is late by the watermark of its own source,
which said that no such tuple would come. No tuple is late for a selection that tasks emit at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from terascope.analysis.bounded import JoinBound, stream_side
from terascope.analysis.moving import is_number
from terascope.analysis.retention import RowBound, RowBounds
from terascope.analysis.watermarks import Watermarks
from terascope.connectors.base import Column
from terascope.connectors.live import Offset
from terascope.functions.base import Trend, Value
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import Col, Expr
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Field,
    Join,
    Merge,
    Read,
    Rel,
    Scan,
    Sliding,
    SourceField,
    Window,
    walk,
)
from terascope.streaming.state.state import Seen, StreamProgress, StreamState

Tie: TypeAlias = tuple[Rel, Expr, Rel, Expr]
"""A side and an expression over it, and the side that waits for it, with its own expression."""
ClosedColumn: TypeAlias = tuple[str, SliceValue, str, bool]
"""A column, the value below which a slice of a stream is closed, the key of the stream, and whether
the column falls: then slices above the value are closed."""
LATE: Final = "late:"
"""The prefix of an interface's name in the name of the result with its late tuples."""


def of_scan(need: RowBound) -> Iterator[tuple[str, SourceField, int | float]]:
    """The column of each interface that a bound on a scan refers to, and the bound."""
    scan = need.leaf
    if isinstance(scan, Scan) and need.column is not None and is_number(need.bound):
        column = next(c for c in scan.columns if c.name == need.column)
        yield from ((name, column, need.bound) for name in scan.interfaces)


# ---- partners ------------------------------------------------------------------------------------


def partners(plan: StreamPlan) -> dict[str, frozenset[str]]:
    """The partners of each source, by its name."""
    found: dict[str, set[str]] = {i.name: set() for read in plan.job.reads for i in read.interfaces}
    for output in plan.outputs:
        names = streams_below(plan, output.name)
        scans = [stream.scan for stream in plan.low if stream.name in names]
        together = {interface for scan in scans for interface in scan.interfaces}
        for name in together:
            found[name] |= together - {name}
    return {name: frozenset(others) for name, others in found.items()}


def streams_below(plan: StreamPlan, query: str, leaves: Collection[str] | None = None) -> set[str]:
    """The streams that a query is made of, down to some, or to the low level; and itself."""
    ends = plan.by_name if leaves is None else leaves
    found: set[str] = set()
    pending = [query]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            if name not in ends:
                pending += [read.stream for read in reads(plan.trees.streams[name])]
    return found


def liveness_limits(plan: Plan) -> dict[str, float]:
    """The seconds that others wait for a source that is gone: by source, the shortest
    `liveness_timeout` of the queries that read it. A source has one watermark for all its readers.
    """
    sources: dict[str, set[str]] = {}
    found: dict[str, float] = {}
    for stream in plan:
        own = {n for rel in walk(stream.rel) if isinstance(rel, Scan) for n in rel.interfaces}
        sources[stream.name] = own.union(*(sources[read.stream] for read in reads(stream.rel)))
        if stream.liveness is not None:
            for name in sources[stream.name]:
                found[name] = min(found.get(name, stream.liveness), stream.liveness)
    return found


def pass_by(state: StreamState, offset: Offset, plan: StreamPlan, watermarks: Watermarks) -> bool:
    """Give sources that were left behind the watermarks of their partners; return whether there are
    any.
    """
    left = [name for name, link in offset.links.items() if link.is_left_behind]
    found = list(passed(plan, watermarks, left)) if left else []
    for name, column, value in found:
        seen = state.seen.setdefault(name, Seen())
        seen.passed[column] = max(seen.passed.get(column, value), value)
    return bool(found)


def passed(
    plan: StreamPlan, watermarks: Watermarks, left: Collection[str]
) -> Iterator[tuple[str, str, SliceValue]]:
    """Source, column, and the value below which no tuple is waited for."""
    for rel in (rel for tree in plan.trees.streams.values() for rel in walk(tree)):
        for mine_side, mine, other_side, other in ties(rel, watermarks):
            if plan.trees.slope(mine, mine_side).trend is not Trend.INCREASING:
                continue
            value = watermarks.of(other, other_side)
            if not is_number(value):
                continue
            for need in RowBounds(plan.trees, ()).of_expr(mine_side, mine, value):
                for name, column, bound in of_scan(need):
                    if column.clock is None and name in left:
                        yield name, column.read_from, bound


def ties(rel: Rel, watermarks: Watermarks) -> Iterable[Tie]:
    """The sides of an operator that wait for each other."""
    if isinstance(rel, Merge):
        place = rel.names.index(rel.on)
        fields = [(side, Col(f.name, f.type)) for side in rel.sources for f in [side.fields[place]]]
        yield from ((*mine, *other) for mine in fields for other in fields if mine is not other)
    elif isinstance(rel, Join) and stream_side(rel) is None:
        yield from watermarks.trees.temporal_equalities(rel)
        bound = watermarks.trees.temporal_bound(rel)
        if bound is not None and bound.band is not None:
            yield rel.left, bound.left, rel.right, bound.right
            yield rel.right, bound.right, rel.left, bound.left


# ---- late tuples ---------------------------------------------------------------------------------


def late_key(query: str) -> str:
    """The key under which tuples that are late for the rows of a query are counted."""
    return f"query:{query}"


def late_keys(plan: StreamPlan, query: str) -> frozenset[str]:
    """The late keys of a query and of the running aggregates that it contains."""
    below = streams_below(plan, query)
    return frozenset(
        late_key(name) for name in (query, *(r.name for r in plan.running if r.name in below))
    )


class LateBounds(RowBounds):
    """Bounds carried down to the leaves: a tuple before its bound may belong to a row that is
    earlier than a value. Where a tuple belongs to many rows, the earliest counts.
    """

    def of_column(self, rel: Rel, name: str, bound: Value) -> Iterator[RowBound]:
        match rel:
            case Window(spec=Sliding(range_, slide), elements=False) if name in (
                WSTART,
                WEND,
            ) and isinstance(bound, int):
                end = bound if name == WEND else bound + range_
                yield from self.of_time(rel.source, rel.on, end - slide)
            case _:
                yield from super().of_column(rel, name, bound)

    def band_ends(self, bound: JoinBound) -> tuple[int | float, int | float]:
        """Rows before a value: partners of x end before x + high, partners of y before y - low."""
        low, high = super().band_ends(bound)
        return high, low


def closed_columns(plan: StreamPlan, state: StreamState) -> dict[str, list[ClosedColumn]]:
    """The columns of each interface, with the value below which a tuple is late for the groups of a
    stream or for the rows of a query, and the key of that stream or query.
    """
    limits: dict[tuple[str, str, str, bool], SliceValue] = {}
    for key, need in (*closed_groups(plan, state), *released_rows(plan, state)):
        for interface, column, value in of_scan(need):
            what = interface, column.read_from, key, column.falls
            limits[what] = (min if column.falls else max)(limits.get(what, value), value)
    found: dict[str, list[ClosedColumn]] = {}
    for (interface, name, key, falls), value in limits.items():
        found.setdefault(interface, []).append((name, value, key, falls))
    return {name: sorted(columns) for name, columns in found.items()}


def closed_groups(plan: StreamPlan, state: StreamState) -> Iterator[tuple[str, RowBound]]:
    """Bounds of the tuples of closed groups, with the key of their stream."""
    for stream in plan.low:
        progress = state.streams[stream.key]
        until, rel = progress.until, plan.job.trees[stream.name]
        if until is None or stream.groups is None or not isinstance(rel, Aggregate):
            continue
        if stream.is_retired:
            continue  # it gets no tuples
        if progress.since is not None and until <= progress.since and not progress.goes_on:
            continue  # it has not begun: nobody misses those tuples
        epoch = dict(rel.keys)[stream.value or ""]
        for need in LateBounds(plan.trees, ()).of_expr(rel.source, epoch, until):
            yield stream.key, need


def released_rows(plan: StreamPlan, state: StreamState) -> Iterator[tuple[str, RowBound]]:
    """Bounds of the tuples of released rows, with the late key of the query."""
    raw = {stream.name for stream in plan.low if stream.groups is None}
    for key, need in stored_rows_of_released(plan, state):
        if not isinstance(need.leaf, Read) or need.leaf.stream not in raw:
            continue
        if need.column is not None and is_number(need.bound):
            tree = plan.trees.streams[need.leaf.stream]
            for below in LateBounds(plan.trees, ()).of_column(tree, need.column, need.bound):
                yield key, below


def stored_rows_of_released(plan: StreamPlan, state: StreamState) -> Iterator[tuple[str, RowBound]]:
    """Bounds of the stored rows of released rows, with the late key of the query."""
    misses = LateBounds(plan.trees, plan.leaves)
    for output in plan.outputs:
        progress = state.queries[output.name]
        if output.release is None or output.release.kind != "ordered" or progress.ended:
            continue
        values = progress.lows(len(output.release.parts))
        for part, low in zip(output.release.parts, values, strict=True):
            value = begun(low, progress, part.descending)
            for need in misses.of_part(output.release.node, part, value):
                yield late_key(output.name), need
    for running in plan.running:
        one = state.streams[running.key]
        if not one.ended:
            value = begun(one.until, one)
            for need in misses.of_expr(running.rel.source, running.rel.keys[0][1], value):
                yield late_key(running.name), need


def begun(value: Value, progress: StreamProgress, falls: bool = False) -> Value:
    """The value up to which a query was released; None: it has not begun."""
    if value is None or progress.since is None:
        return value
    return value if value != progress.since and (value < progress.since) == falls else None


def kept_fields(columns: Sequence[Column]) -> tuple[Field, ...]:
    """The columns of late tuples that are written: all that were read, but for hidden ones."""
    return tuple(Field(c.name, c.type) for c in columns if not c.name.startswith("#"))
