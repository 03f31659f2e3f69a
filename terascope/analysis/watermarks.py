"""Watermarks of every relation: heartbeats carried through the operators (dissertation 4.5).

In: the values that the tuples of every scan have reached. Out: for an ordered expression over any
relation a value V: the rows earlier than V (smaller, where the expression increases) are complete,
and no further one will appear. None: nothing is complete yet. ALL: everything is, rows whose value
is NULL included; these are complete only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from terascope.analysis.bounded import JoinBound, is_true_always, only_column, stream_side
from terascope.analysis.moving import (
    ALL,
    EndOfTime,
    earlier,
    earliest,
    is_number,
    moved,
    open_from,
    reaches,
    value_at,
)
from terascope.analysis.order import Trees
from terascope.functions.base import Trend, Value
from terascope.plan.expr import Col, Expr, columns_of
from terascope.plan.horizon import Horizons
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Window,
    inputs,
)

Seen: TypeAlias = Mapping[str, Value] | EndOfTime
"""For ordered columns of a scan: the furthest value, or ALL at the end of the stream."""


@dataclass(frozen=True)
class Watermarks:
    """The watermark of every ordered expression over every relation."""

    trees: Trees
    scan: Callable[[Scan], Seen]
    """For each ordered column of a scan the furthest value that all of its interfaces have reached
    (the smallest of their largest), or the value of the clock. The disorder that the PROTOCOL
    declares is subtracted here, not by the caller."""
    present: Callable[[Aggregate], Value] | None = None
    """For an aggregation that also gives rows for empty windows (`emit_empty`): the release key of
    its last complete row with tuples. Empty windows are known up to there and not further; None: at
    the end only."""
    limits: Mapping[str, tuple[str, Value]] = field(default_factory=dict)
    """Streams that were released only up to a value of one of their columns, whatever the watermark
    is.
    """
    in_order: bool = False
    """`scan` gives watermarks: the disorder is taken off already."""

    def of(self, expr: Expr, rel: Rel) -> Value:
        """V such that the rows of `rel` with `expr` earlier than V are complete."""
        if self.finished(rel):
            return ALL
        if not self.trees.slope(expr, rel).is_ordered:
            return None
        values = {name: self.of_column(name, rel) for name in sorted(columns_of(expr))}
        if not values or any(v is None or v is ALL for v in values.values()):
            return None
        # Rows to come have no column earlier than its watermark; so neither is the expression.
        return value_at(expr, values, self.trees.parameters)

    def finished(self, rel: Rel) -> bool:
        """Whether all streams below have ended."""
        match rel:
            case Scan():
                seen = self.scan(rel)
                return seen is ALL or (not isinstance(seen, EndOfTime) and ALL in seen.values())
            case Read():
                return self.finished(self.trees.streams[rel.stream])
            case _:
                return all(self.finished(part) for part in inputs(rel))

    def of_column(self, name: str, rel: Rel) -> Value:
        if self.finished(rel):
            return ALL
        orders = self.trees.orders(rel)
        if name not in orders:
            return None
        trend = orders[name].slope.trend
        match rel:
            case Scan():
                band = 0 if self.in_order else orders[name].slope.band
                return self.of_scan(name, rel, -band if trend is Trend.INCREASING else band, trend)
            case Read():
                return self.of_stream(name, rel.stream, trend)
            case Lookup():
                return ALL
            case Filter():
                return self.of_column(name, rel.source)
            case Rank():
                # Which rows are the first of a group is known when all of the group are there.
                whole = rel.limit is None or name in rel.per
                return self.of_column(name, rel.source) if whole else None
            case Project():
                return self.of(dict(rel.items)[name], rel.source)
            case Window():
                return self.of_window(name, rel)
            case Aggregate():
                return self.of_group(name, rel, trend)
            case Running():
                key = rel.keys[0][1]
                return self.of(key, rel.source) if self.has_horizon(key, rel.source) else None
            case Join():
                return self.of_join(name, rel, trend)
            case Merge():
                place = rel.names.index(name)
                found = earliest((self.of_column(s.names[place], s) for s in rel.sources), trend)
                return moved(found, -rel.slack if trend is Trend.INCREASING else rel.slack, trend)
            case _:
                assert_never(rel)

    def of_stream(self, name: str, stream: str, trend: Trend) -> Value:
        found = self.of_column(name, self.trees.streams[stream])
        if stream not in self.limits:
            return found
        column, limit = self.limits[stream]
        if name == column:
            return earliest((found, limit), trend)
        reached = self.of_column(column, self.trees.streams[stream])
        return None if earlier(limit, reached, trend) else found

    def of_scan(self, name: str, scan: Scan, disorder: int | float, trend: Trend) -> Value:
        seen = self.scan(scan)
        value = seen.get(name) if not isinstance(seen, EndOfTime) else ALL
        return moved(value, disorder, trend) if is_number(value) else None

    def of_window(self, name: str, rel: Window) -> Value:
        """A window is complete when time is past its end; one of elements, when none that ends
        inside can still come.
        """
        if name not in (WSTART, WEND):
            return self.of_column(name, rel.source)
        time = WEND if rel.elements else rel.on
        if self.trees.orders(rel.source)[time].slope.trend is not Trend.INCREASING:
            return None
        reached = self.of_column(time, rel.source)
        if not isinstance(reached, int):
            return reached if reached is ALL else None
        return open_from(rel.spec, name, reached if rel.elements else reached + 1)

    def of_group(self, name: str, rel: Aggregate, trend: Trend) -> Value:
        found = self.of(dict(rel.keys)[name], rel.source)
        if rel.emit_empty is None:
            return found
        last = None if self.present is None else self.present(rel)
        keyed_by_window = rel.emit_empty != "epoch"
        if keyed_by_window and dict(rel.keys)[name] != Col(WEND, rel.type_of(name)):
            return None
        return earliest((found, last), trend)

    def has_horizon(self, key: Expr, rel: Rel) -> bool:
        """Whether it is known how far epochs go when no tuple is there; else rows of a group that
        is alive are certain only when the stream has ended.
        """
        anywhere = Horizons(
            lambda scan: dict.fromkeys(scan.names, 1), self.trees.streams, self.trees.parameters
        )
        return anywhere.of(key, rel) is not None

    # ---- joins

    def of_join(self, name: str, join: Join, trend: Trend) -> Value:
        """Rows of a join by a column of its temporal condition."""
        side = join.side_of(name)
        column = Col(name, side.type_of(name))
        table_joined = stream_side(join)
        if table_joined is not None:
            false = join.may_miss(side) and join.is_filled(column)
            return None if side is not table_joined or false else self.of_column(name, side)
        for mine_side, mine, other_side, other in self.trees.temporal_equalities(join):
            if mine_side is not side or only_column(mine, side) != column:
                continue
            null_or_true = is_true_always(join, side, mine, other) or not join.is_filled(mine)
            if null_or_true:
                moving = self.trees.trend(mine, side)
                both = (self.of(mine, side), self.of(other, other_side))
                value = earliest(both, moving)
                return reaches(mine, moving, column, trend, value, self.trees.parameters)
        bound = self.trees.temporal_bound(join)
        if bound is None or bound.band is None or bound.left != column or join.is_filled(column):
            return None
        return self.of_band(join, bound, by_left=True)

    def of_equality(self, join: Join, bound: JoinBound) -> Value:
        """Rows of a join by the value both sides of its temporal equality have in common."""
        both = (self.of(bound.left, join.left), self.of(bound.right, join.right))
        return earliest(both, self.trees.trend(bound.left, join.left))

    def of_band(self, join: Join, bound: JoinBound, by_left: bool) -> Value:
        """Rows of a band join by the time of one side: no partner up to x + high, or up to y - low,
        can still come.
        """
        assert bound.band is not None
        low, high = bound.band
        left, right = self.of(bound.left, join.left), self.of(bound.right, join.right)
        if by_left:
            return earliest((left, moved(right, -high, Trend.INCREASING)), Trend.INCREASING)
        return earliest((right, moved(left, low, Trend.INCREASING)), Trend.INCREASING)
