"""Sources that the others go on without, and whose ordered columns are no clocks.

In: a plan, how far everything is, and which sources were left behind. Out: by source, how far its
columns are taken to be: as far as the streams have come that they are merged or joined with. A
clock is moved by the time of day; of any other column nobody but its partners can say how far it
would be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from terascope.analysis.bounded import is_timeless, join_bound
from terascope.analysis.join_times import temporal_equalities
from terascope.analysis.moving import is_number
from terascope.analysis.row_bounds import RowBounds
from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import Offset
from terascope.functions.base import Trend
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import Join, Merge, Rel, Scan, walk
from terascope.streaming.state.state import Seen, StreamState

Tie = tuple[Rel, Expr, Rel, Expr]
"""A side, an expression over it, and another side that waits for it, with its own expression."""


def pass_by(state: StreamState, offset: Offset, plan: StreamPlan, watermarks: Watermarks) -> bool:
    """Take the columns of sources that were left behind to be as far as their partners; whether
    there are any.
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
    """Source, column, and a value: no tuple below it is waited for."""
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
    elif isinstance(rel, Join) and not is_timeless(rel.left) and not is_timeless(rel.right):
        slopes = watermarks.trees.slope_over(rel.left), watermarks.trees.slope_over(rel.right)
        yield from temporal_equalities(rel, *slopes)
        bound = join_bound(rel, *slopes)
        if bound is not None and bound.band is not None:
            yield rel.left, bound.left, rel.right, bound.right
            yield rel.right, bound.right, rel.left, bound.left
