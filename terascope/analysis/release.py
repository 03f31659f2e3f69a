"""The operator at which rows of a stream are released, and the value (dissertation 4.5).

In: a named stream. Out: `Release`: the operator whose rows become complete in the order of a value,
and that value; `complete_below` gives the value up to which they are complete. Above that operator
there are only operators over one row, or over the rows of one value, at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from terascope.analysis.bounded import JoinBound, is_timeless, is_true_always, stream_side
from terascope.analysis.order import Trees
from terascope.analysis.watermarks import Watermarks
from terascope.functions.base import Scalar, Trend, Value
from terascope.functions.roles import Addition, FloorDivision, Multiplication
from terascope.plan.build import call
from terascope.plan.expr import Call, Cast, Col, Expr, Lit, columns_of
from terascope.plan.rel import (
    TS,
    WEND,
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
)
from terascope.types import unify

ReleaseKind = Literal["ordered", "at_once", "at_end"]
"""Rows are released by a value; at once, because nothing is ordered; or when the stream ends."""


@dataclass(frozen=True)
class ReleasePart:
    """Some rows of the operator, and the value by which they are released."""

    value: Expr
    """Over the columns of the operator. Rows in which it is NULL are released at the end."""
    descending: bool = False
    only: Expr | None = None
    """The condition of its rows; None: all rows. Of several parts, every row belongs to one."""

    @property
    def trend(self) -> Trend:
        return Trend.DECREASING if self.descending else Trend.INCREASING


@dataclass(frozen=True)
class Release:
    """The operator at which rows of a stream are released, and the value."""

    stream: str
    """The named stream whose relation contains the operator."""
    node: Rel
    kind: ReleaseKind
    parts: tuple[ReleasePart, ...] = ()
    """One or two when `kind` is "ordered", else none."""

    @property
    def fills_gaps(self) -> bool:
        """Whether windows without tuples give rows too (`Watermarks.present` is used then)."""
        return isinstance(self.node, Aggregate) and self.node.emit_empty is not None


def release_of(stream: str, trees: Trees, leaves: Collection[str] = ()) -> Release:
    """The release of the rows of a stream. `leaves`: the stored streams, at which the descent
    ends.
    """
    return _Descent(trees, leaves).release(stream, trees.streams[stream], None)


def complete_below(release: Release, watermarks: Watermarks) -> tuple[Value, ...]:
    """For every part: the rows with an earlier value are complete."""
    return tuple(_part_below(part, release.node, watermarks) for part in release.parts)


def _part_below(part: ReleasePart, node: Rel, watermarks: Watermarks) -> Value:
    bound = watermarks.trees.temporal_bound(node)
    if bound is None or not isinstance(node, Join):
        return watermarks.of(part.value, node)
    if bound.band is None:
        return watermarks.of_equality(node, bound)
    return watermarks.of_band(node, bound, by_left=part.value == bound.left)


@dataclass(frozen=True)
class _Descent:
    """Descends from the top of a relation to the operator at which its rows are released."""

    trees: Trees
    leaves: Collection[str]

    def release(self, stream: str, rel: Rel, ranked: frozenset[str] | None) -> Release:
        """`ranked`: the columns a LIMIT above counts rows by, as columns of `rel`. Rows that it
        counts together must be released together.
        """
        match rel:
            case Read() if rel.stream not in self.leaves:
                return self.release(rel.stream, self.trees.streams[rel.stream], ranked)
            case Filter():
                return self.release(stream, rel.source, ranked)
            case Rank():
                per = None if rel.limit is None else frozenset(rel.per)
                both = per if ranked is None else ranked if per is None else per & ranked
                return self.release(stream, rel.source, both)
            case Project():
                below = None if ranked is None else columns_below(rel, ranked)
                return self.release(stream, rel.source, below)
            case Join() if (side := passed_through(rel)) is not None:
                return self.release(stream, side, ranked)
            case Scan() | Read() if ranked is None and not self.trees.orders(rel):
                return Release(stream, rel, "at_once")
            case _:
                for parts in self.choices(rel):
                    used = frozenset[str]().union(*(columns_of(p.value) for p in parts))
                    if ranked is None or used <= ranked:
                        return Release(stream, rel, "ordered", parts)
                return Release(stream, rel, "at_end")

    def choices(self, rel: Rel) -> Iterator[tuple[ReleasePart, ...]]:
        """The ways rows of an operator can be released, the best first."""
        match rel:
            case Scan() | Read() | Window() | Aggregate() | Running():
                yield from (self.by_column(name, rel) for name in release_columns(rel, self.trees))
            case Merge():
                if rel.on in self.trees.orders(rel):
                    yield self.by_column(rel.on, rel)
            case Join():
                yield from self.of_join(rel)
            case Lookup() | Filter() | Project() | Rank():
                return
            case _:
                assert_never(rel)

    def by_column(self, name: str, rel: Rel) -> tuple[ReleasePart, ...]:
        return (self.part(Col(name, rel.type_of(name)), rel),)

    def part(self, value: Expr, rel: Rel) -> ReleasePart:
        return ReleasePart(value, self.trees.trend(value, rel) is Trend.DECREASING)

    def of_join(self, join: Join) -> Iterator[tuple[ReleasePart, ...]]:
        bound = self.trees.temporal_bound(join)
        if bound is None:
            filled = {name for name, _ in join.fills}
            names = [n for n in self.trees.orders(join) if n not in filled]
            yield from (self.by_column(name, join) for name in names)
        elif bound.band is None:
            yield from self.by_equality(join, bound)
        else:
            yield from self.by_band(join, bound)

    def by_equality(self, join: Join, bound: JoinBound) -> Iterator[tuple[ReleasePart, ...]]:
        """Release by the equated values, from a side that always has them."""
        a, b = bound.left, bound.right
        down = self.trees.trend(a, join.left) is Trend.DECREASING
        if is_true_always(join, join.left, a, b):
            yield (ReleasePart(a, down),)
        if join.kind != "semi" and is_true_always(join, join.right, b, a):
            yield (ReleasePart(b, down),)
        if join.kind == "full" and not columns_of(a) <= {name for name, _ in join.fills}:
            yield (ReleasePart(common(a, b), down),)

    def by_band(self, join: Join, bound: JoinBound) -> Iterator[tuple[ReleasePart, ...]]:
        """Rows with a left side by its time, rows that have none by that of the right side."""
        x, y = bound.left, bound.right
        if not join.may_miss(join.left):
            yield (ReleasePart(x),)
        elif not join.may_miss(join.right):
            yield (ReleasePart(y),)
        else:
            for mine, other in ((x, y), (y, x)):
                if not join.is_filled(mine):
                    absent = call("is_null", mine)
                    there = ReleasePart(mine, only=call("not", absent))
                    yield there, ReleasePart(other, only=absent)


def passed_through(join: Join) -> Rel | None:
    """The stream that a table is looked up for, when every row of it is on its own."""
    side = stream_side(join)
    return None if side is None or is_timeless(side) or join.may_miss(side) else side


def columns_below(rel: Project, names: frozenset[str]) -> frozenset[str]:
    """The columns below that are taken under one of the names, as they are, scaled or shifted: rows
    that are equal in the one are equal in the other.
    """
    found = (one_to_one(expr) for name, expr in rel.items if name in names)
    return frozenset(column.name for column in found if column is not None)


def one_to_one(expr: Expr) -> Col | None:
    """The column that an expression has another value for each value of: the beginning of a window
    is its number times its length.
    """
    match expr:
        case Col():
            return expr
        case Call(Scalar(role=role), (operand, Lit(value))) if expr.type.is_integer:
            match role:
                case Addition():
                    return one_to_one(operand)
                case Multiplication() if value != 0:
                    return one_to_one(operand)
                case FloorDivision() if value == 1:
                    return one_to_one(operand)
    return None


def release_columns(rel: Rel, trees: Trees) -> list[str]:
    """The ordered columns of a relation, the one it is best released by first: the end of its
    windows, for tuples their finest clock, for groups the key that closes them.
    """

    def rank(name: str) -> int:
        return 0 if is_window_end(name, rel) else 1 if name == TS else 2

    # Sorting is stable: among equals the first one counts.
    return sorted((n for n in rel.names if n in trees.orders(rel)), key=rank)


def is_window_end(name: str, rel: Rel) -> bool:
    """Whether a column is the end of a window, under whatever name."""
    if isinstance(rel, Aggregate | Running):
        key = dict(rel.keys)[name]
        return isinstance(key, Col) and key.name.rpartition(".")[2] == WEND
    return name == WEND


def common(a: Expr, b: Expr) -> Expr:
    """The value of the side that is there."""
    type = unify(a.type, b.type)
    if type is None or (a.type.is_integer and b.type.is_integer):
        return call("coalesce", a, b)
    return call("coalesce", *(e if e.type is type else Cast(e, type) for e in (a, b)))
