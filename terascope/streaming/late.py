"""Late tuples: tuples that arrive when a slice they belong to is closed.

In: a plan and the value up to which each query was released. Out: by interface, the value of a
column below which a tuple may belong to a row that was released already. Tasks compare their tuples
with these values (`heartbeat.Watch`): late tuples are counted and, on request, written to files of
their own. A tuple is late by the watermark of its own source, which said that no such tuple would
come. No tuple is late for a selection that tasks emit at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from terascope.analysis.bounded import JoinBound
from terascope.analysis.moving import ALL
from terascope.analysis.retention import RowBound, RowBounds
from terascope.connectors.base import Column
from terascope.functions.base import Value
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.rel import WEND, WSTART, Aggregate, Field, Read, Rel, Scan, Sliding, Window
from terascope.streaming.partners import streams_below
from terascope.streaming.state.state import StreamProgress, StreamState

ClosedColumn: TypeAlias = tuple[str, SliceValue, str, bool]
"""A column, the value below which a slice of a stream is closed, the key of the stream, and whether
the column falls: then slices above the value are closed."""
LATE: Final = "late:"
"""The prefix of an interface's name in the name of the result with its late tuples."""


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
    """By interface: a column, the value below which a tuple is late for the groups of a stream or
    for the rows of a query, and the key of that stream or query.
    """
    limits: dict[tuple[str, str, str, bool], SliceValue] = {}
    for key, need in (*closed_groups(plan, state), *released_rows(plan, state)):
        for interface, column, value, falls in of_scan(need):
            known = limits.get((interface, column, key, falls), value)
            limits[interface, column, key, falls] = (min if falls else max)(known, value)
    found: dict[str, list[ClosedColumn]] = {}
    for (interface, column, key, falls), value in limits.items():
        found.setdefault(interface, []).append((column, value, key, falls))
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
        if need.column is not None and need.bound is not None and need.bound is not ALL:
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


def of_scan(need: RowBound) -> Sequence[tuple[str, str, int | float, bool]]:
    """The columns of interfaces that a bound on a scan refers to, and whether they fall."""
    scan = need.leaf
    if not isinstance(scan, Scan) or need.column is None or need.bound in (None, ALL):
        return ()
    column = next(c for c in scan.columns if c.name == need.column)
    return [(name, column.read_from, need.bound, column.falls) for name in scan.interfaces]


def kept_fields(columns: Sequence[Column]) -> tuple[Field, ...]:
    """The columns that are kept of late tuples: those that were read, but for marks of our own."""
    return tuple(Field(c.name, c.type) for c in columns if not c.name.startswith("#"))
