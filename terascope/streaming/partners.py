"""Sources that wait for each other because some query combines them.

In: the plan of a stream, and its watermarks. Out: by source, the partners that a merge, a join or a
set of interfaces combines with it: a silent source holds back these and no others. A source that
was left behind gets the watermarks of its partners, in columns that are no clocks: the time of day
moves a clock; for any other column only the partners have a watermark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from terascope.analysis.bounded import stream_side
from terascope.analysis.moving import is_number
from terascope.analysis.retention import RowBounds
from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import Offset
from terascope.functions.base import Trend
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import Col, Expr
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import Join, Merge, Rel, Scan, walk
from terascope.streaming.state.state import Seen, StreamState

Tie = tuple[Rel, Expr, Rel, Expr]
"""A side and an expression over it, and the side that waits for it, with its own expression."""


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
                scan = need.leaf
                if not isinstance(scan, Scan) or not is_number(need.bound):
                    continue
                column = next(c for c in scan.columns if c.name == need.column)
                if column.clock is None:
                    for name in (n for n in scan.interfaces if n in left):
                        yield name, column.read_from, need.bound


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
