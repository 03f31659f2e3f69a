"""Tuples that came too late for rows that are computed above the low level: merged, joined, or
grouped there.

In: a plan, and how far each of its queries was released. Out: by interface, the value of a column
below which a tuple may have missed a row that was released already. A selection that tasks release
as tuples come misses nothing. Groups of the low level know themselves what is late for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from terascope.analysis.bounded import JoinBound
from terascope.analysis.moving import ALL, moved
from terascope.analysis.row_bounds import RowBound, RowBounds
from terascope.functions.base import Trend, Value
from terascope.physical.stream.plan import StreamPlan
from terascope.plan.rel import WEND, WSTART, Join, Read, Rel, Scan, Sliding, Window
from terascope.streaming.partners import streams_below
from terascope.streaming.state.late import ClosedColumn
from terascope.streaming.state.state import StreamProgress, StreamState


def late_key(query: str) -> str:
    """Under what the tuples that come too late for the rows of a query are counted."""
    return f"query:{query}"


def late_keys(plan: StreamPlan, query: str) -> frozenset[str]:
    """The late keys of a query and of the running aggregates that it is made of."""
    below = streams_below(plan, query)
    return frozenset(
        late_key(name) for name in (query, *(r.name for r in plan.running if r.name in below))
    )


class LateBounds(RowBounds):
    """Bounds carried down to the leaves: tuples before them may be part of a row that is earlier
    than a value. Where a tuple has a part in many rows, the earliest counts.
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

    def of_band_left(self, join: Join, bound: JoinBound, value: Value) -> Iterator[RowBound]:
        """Rows with a left side, x before `value`: their partners end before x + high."""
        _, high = bound.band or (None, None)
        yield from self.of_expr(join.left, bound.left, value)
        yield from self.of_expr(join.right, bound.right, moved(value, high or 0, Trend.INCREASING))

    def of_band_right(self, join: Join, bound: JoinBound, value: Value) -> Iterator[RowBound]:
        """Rows with a right side, y before `value`: their partners end before y - low."""
        low, _ = bound.band or (None, None)
        yield from self.of_expr(join.right, bound.right, value)
        yield from self.of_expr(join.left, bound.left, moved(value, -(low or 0), Trend.INCREASING))


def late_columns(plan: StreamPlan, state: StreamState) -> Iterator[tuple[str, ClosedColumn]]:
    """By interface: a column, the value below which a tuple came too late for rows of a query, and
    the key of that query.
    """
    raw = {stream.name for stream in plan.low if stream.groups is None}
    limits: dict[tuple[str, str, str, bool], int | float] = {}
    for key, need in missing(plan, state):
        if not isinstance(need.leaf, Read) or need.leaf.stream not in raw:
            continue
        if need.column is None or need.bound is None or need.bound is ALL:
            continue
        tree = plan.trees.streams[need.leaf.stream]
        for below in LateBounds(plan.trees, ()).of_column(tree, need.column, need.bound):
            for interface, column, value, falls in of_scan(below):
                known = limits.get((interface, column, key, falls), value)
                limits[interface, column, key, falls] = (min if falls else max)(known, value)
    for (interface, column, key, falls), value in limits.items():
        yield interface, (column, value, key, falls)


def missing(plan: StreamPlan, state: StreamState) -> Iterator[tuple[str, RowBound]]:
    """Bounds of the stored rows that released rows are made of, with the late key of the query."""
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
    """How far a query was released; None: it has not begun, and misses nothing."""
    if value is None or progress.since is None:
        return value
    return value if value != progress.since and (value < progress.since) == falls else None


def of_scan(need: RowBound) -> Sequence[tuple[str, str, int | float, bool]]:
    """The columns of interfaces that a bound on a scan is about, and whether they fall."""
    scan = need.leaf
    if not isinstance(scan, Scan) or need.column is None or need.bound in (None, ALL):
        return ()
    column = next(c for c in scan.columns if c.name == need.column)
    return [(name, column.read_from, need.bound, column.falls) for name in scan.interfaces]
