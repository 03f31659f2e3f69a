"""Bounds carried down from an operator to the leaves: the rows that its rows are computed from.

In: a value of an operator's rows. Out: for every place at which a leaf is read, the rows from which
operator rows that are not earlier, or have no value (NULL), can be computed. The leaves may hold
more rows: these do not change rows that are not earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import assert_never

from terascope.analysis.bounded import (
    JoinBound,
    is_true_always,
    join_bound,
    may_miss,
    only_column,
    side_of,
    stream_side,
    temporal_equalities,
)
from terascope.analysis.moving import ALL, moved, oldest_start, reaches, value_at
from terascope.analysis.order import Trees
from terascope.analysis.release import Release, ReleasePart, temporal_bound
from terascope.functions.base import Trend, Value
from terascope.plan.expr import Col, Expr
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


@dataclass(frozen=True)
class RowBound:
    """The rows of one leaf, read at one place, that are not earlier than `bound`."""

    leaf: Read | Scan
    column: str | None = None
    bound: Value = None
    """None: all rows."""


@dataclass(frozen=True)
class RowBounds:
    trees: Trees
    leaves: Collection[str]

    def of_release(self, release: Release, values: tuple[Value, ...]) -> Iterator[RowBound]:
        """Bounds of the rows from which later rows of a release are computed."""
        if release.kind == "at_end":
            yield from self.everything(release.node)
        elif release.kind == "at_once" or all(v is ALL for v in values):
            yield from (RowBound(n.leaf, None, ALL) for n in self.everything(release.node))
        else:
            for part, value in zip(release.parts, values, strict=True):
                yield from self.of_part(release.node, part, value)

    def of_part(self, node: Rel, part: ReleasePart, value: Value) -> Iterator[RowBound]:
        bound = temporal_bound(node, self.trees)
        if isinstance(node, Join) and bound is not None:
            if bound.band is None:
                yield from self.of_expr(node.left, bound.left, value)
                yield from self.of_expr(node.right, bound.right, value)
            else:
                yield from self.of_band(node, bound, value, part.value == bound.left)
        elif isinstance(node, Aggregate) and isinstance(part.value, Col):
            # The last row with tuples is not released before the next one, so that gaps are seen.
            yield from self.of_expr(node.source, dict(node.keys)[part.value.name], value)
        else:
            yield from self.of_expr(node, part.value, value)

    def everything(self, rel: Rel) -> Iterator[RowBound]:
        """All rows of all leaves below."""
        match rel:
            case Scan():
                yield RowBound(rel)
            case Read() if rel.stream in self.leaves:
                yield RowBound(rel)
            case Read():
                yield from self.everything(self.trees.streams[rel.stream])
            case _:
                for part in inputs(rel):
                    yield from self.everything(part)

    def of_expr(self, rel: Rel, expr: Expr, value: Value) -> Iterator[RowBound]:
        """Bounds of the rows that make the rows of `rel` in which `expr` is NULL or not earlier
        than `value`.
        """
        column = only_column(expr, rel)
        orders = self.trees.orders(rel)
        slope = self.trees.slope(expr, rel)
        if value is None or column is None or not slope.is_ordered or column.name not in orders:
            yield from self.everything(rel)
            return
        trend, own = slope.trend, orders[column.name].slope.trend
        bound = reaches(expr, trend, column, own, value, self.trees.parameters)
        yield from self.of_column(rel, column.name, bound)

    def of_column(self, rel: Rel, name: str, bound: Value) -> Iterator[RowBound]:
        """The bounds for a column of `rel` that is ordered."""
        if bound is None:
            yield from self.everything(rel)
            return
        match rel:
            case Scan():
                yield RowBound(rel, name, bound)
            case Read() if rel.stream in self.leaves:
                yield RowBound(rel, name, bound)
            case Read():
                yield from self.of_column(self.trees.streams[rel.stream], name, bound)
            case Lookup():
                return
            case Filter():
                yield from self.of_column(rel.source, name, bound)
            case Rank() if rel.limit is None or name in rel.per:
                yield from self.of_column(rel.source, name, bound)
            case Project():
                yield from self.of_expr(rel.source, dict(rel.items)[name], bound)
            case Window() if name in (WSTART, WEND):
                time = WSTART if rel.elements else rel.on
                yield from self.of_time(rel.source, time, oldest_start(rel.spec, name, bound))
            case Window():
                yield from self.of_column(rel.source, name, bound)
            case Aggregate() if rel.emit_empty is None:
                yield from self.of_expr(rel.source, dict(rel.keys)[name], bound)
            case Join():
                yield from self.of_join(rel, name, bound)
            case Merge():
                place = rel.names.index(name)
                for source in rel.sources:
                    yield from self.of_time(source, source.names[place], bound)
            case Rank() | Aggregate() | Running():
                # Running groups are made of all earlier rows; so are gaps.
                yield from self.everything(rel)
            case _:
                assert_never(rel)

    def of_time(self, rel: Rel, name: str, bound: Value) -> Iterator[RowBound]:
        yield from self.of_expr(rel, Col(name, rel.type_of(name)), bound)

    # ---- joins

    def of_join(self, join: Join, name: str, bound: Value) -> Iterator[RowBound]:
        side = side_of(join, name)
        column = Col(name, side.type_of(name))
        slopes = self.trees.slope_over(join.left), self.trees.slope_over(join.right)
        if stream_side(join) is side and not may_miss(join, side):
            yield from self.of_column(side, name, bound)
            return
        for mine_side, mine, other_side, other in temporal_equalities(join, *slopes):
            tells = mine_side is side and only_column(mine, side) == column
            if tells and is_true_always(join, side, mine, other):
                value = value_at(mine, {name: bound}, self.trees.parameters)
                yield from self.of_expr(side, mine, value)
                yield from self.of_expr(other_side, other, value)
                return
        band = None if stream_side(join) else join_bound(join, *slopes)
        if band and band.band and band.left == column and not may_miss(join, join.left):
            yield from self.of_band(join, band, bound, by_left=True)
        else:
            # A missing side makes the value NULL at any time: who is alone must not change.
            yield from self.everything(join)

    def of_band(
        self, join: Join, bound: JoinBound, value: Value, by_left: bool
    ) -> Iterator[RowBound]:
        """Rows of a band join by the time x of the left side, or y of the right side."""
        # Rows not before a value: partners of x begin at x + low, partners of y at y - high.
        assert bound.band is not None
        low, high = bound.band
        left = value if by_left else moved(value, -high, Trend.INCREASING)
        right = moved(value, low, Trend.INCREASING) if by_left else value
        yield from self.of_expr(join.left, bound.left, left)
        yield from self.of_expr(join.right, bound.right, right)
