"""Values of ordered expressions as moments of time, where a clock stands behind them.

In: an ordered expression over a relation, and a value of it. Out: the moment, in nanoseconds since
1970, at which the clock of the source reaches that value; None when there is no clock.
For `time/60` and the value 28333333 that is the beginning of this minute.
"""

from __future__ import annotations

from typing import assert_never

from terascope.analysis.bounded import side_of
from terascope.analysis.moving import ALL, reaches
from terascope.analysis.order import FINENESS, Trees
from terascope.functions.base import Value
from terascope.plan.expr import Col, Expr, columns_of
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
)


def moment_ns(expr: Expr, value: Value, rel: Rel, trees: Trees) -> int | None:
    """The moment at which an expression over `rel` reaches a value."""
    if value is None or value is ALL:
        return None
    if isinstance(expr, Col):
        return column_moment(expr.name, value, rel, trees)
    names = columns_of(expr)
    orders = trees.orders(rel)
    if len(names) != 1 or not names <= orders.keys():
        return None
    (name,) = names
    column = Col(name, rel.type_of(name))
    reached = reaches(
        expr, trees.trend(expr, rel), column, orders[name].slope.trend, value, trees.parameters
    )
    return None if reached is None else column_moment(name, reached, rel, trees)


def column_moment(name: str, value: Value, rel: Rel, trees: Trees) -> int | None:
    """The moment of a value of a column, which is followed down to its source."""
    match rel:
        case Scan():
            field = next(c for c in rel.columns if c.name == name)
            if field.clock is None or not isinstance(value, int | float):
                return None
            return round(value * (10**9 // FINENESS[field.clock]))
        case Read():
            return column_moment(name, value, trees.streams[rel.stream], trees)
        case Filter() | Rank():
            return column_moment(name, value, rel.source, trees)
        case Project():
            return moment_ns(dict(rel.items)[name], value, rel.source, trees)
        case Aggregate() | Running():
            keys = dict(rel.keys)
            return moment_ns(keys[name], value, rel.source, trees) if name in keys else None
        case Window():
            if name not in (WSTART, WEND):
                return column_moment(name, value, rel.source, trees)
            # The edges of a window are values of the column that it is measured on.
            return column_moment(name if rel.elements else rel.on, value, rel.source, trees)
        case Join():
            return column_moment(name, value, side_of(rel, name), trees)
        case Merge():
            source = rel.sources[0]
            return column_moment(source.names[rel.names.index(name)], value, source, trees)
        case Lookup():
            return None
        case _:
            assert_never(rel)
