"""Joins and time: by which expressions rows of a join are told to be complete.

In: a join and how expressions over its sides move. Out: which side can be missing, whether a
column says the truth about time in rows whose side is missing, and the condition that relates a
column to the other side.
"""

from __future__ import annotations

from collections.abc import Iterator

from terascope.analysis.bounded import SlopeOf, is_timeless, linear
from terascope.plan.expr import Col, Expr, columns_of, substitute, transform
from terascope.plan.rel import Join, Rel


def stream_side(join: Join) -> Rel | None:
    """The side that has time when the other is a table; None when both have."""
    if is_timeless(join.right):
        return join.left
    return join.right if is_timeless(join.left) else None


def may_miss(join: Join, side: Rel) -> bool:
    """Whether there are rows in which that side is missing."""
    return join.kind in (("right", "full") if side is join.left else ("left", "full"))


def side_of(join: Join, name: str) -> Rel:
    return join.left if name in join.left.names else join.right


def is_filled(join: Join, expr: Expr) -> bool:
    """Whether a column of the expression takes another value than NULL when its side is missing."""
    return bool(columns_of(expr) & {name for name, _ in join.fills})


def is_true_always(join: Join, side: Rel, mine: Expr, other: Expr) -> bool:
    """Whether `mine`, over one side, equals `other` also in rows in which that side is missing."""
    if not may_miss(join, side):
        return True
    fills = dict(join.fills)
    if not columns_of(mine) <= fills.keys():
        return False
    # Whatever `other` computes, it is one number here; the filled columns are made of it.
    number = Col("#other", other.type)
    made = transform(substitute(mine, fills), lambda e: number if e == other else e)
    return linear(made) == linear(number)


def temporal_equalities(
    join: Join, left: SlopeOf, right: SlopeOf
) -> Iterator[tuple[Rel, Expr, Rel, Expr]]:
    """Every equality of ordered expressions, seen from each side: (side, mine, other side, other's)
    as relation and expression over it.
    """
    for a, b in join.equalities:
        slope_a, slope_b = left(a), right(b)
        if slope_a.is_ordered and slope_a.trend is slope_b.trend:
            yield join.left, a, join.right, b
            yield join.right, b, join.left, a


def only_column(expr: Expr, rel: Rel) -> Col | None:
    """The column of an expression that names just one."""
    names = columns_of(expr)
    if len(names) != 1:
        return None
    (name,) = names
    return Col(name, rel.type_of(name))
