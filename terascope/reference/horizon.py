"""How far time has moved: the largest value an ordered expression takes over all tuples of the
sources, those that no query keeps included.

In: an expression over a relation. Out: its horizon, or None when none is known. Only asked for
expressions that increase with time, so evaluating one on the horizons of its columns is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from terascope.functions.base import Value
from terascope.plan.expr import Expr, columns_of
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
from terascope.reference.context import Context


def horizon_of(expr: Expr, rel: Rel, context: Context) -> Value:
    """The horizon of an expression over `rel`: its value where all its columns are furthest."""
    names = tuple(sorted(columns_of(expr)))
    values = tuple(column_horizon(name, rel, context) for name in names)
    if not values or None in values:
        return None
    return context.compile(expr, names)(values)


def column_horizon(name: str, rel: Rel, context: Context) -> Value:
    match rel:
        case Scan():
            return context.sources.horizon(rel).get(name)
        case Read():
            return column_horizon(name, context.plan[rel.stream].rel, context)
        case Lookup():
            return None
        case Filter() | Rank():
            return column_horizon(name, rel.source, context)
        case Window():
            # wstart and wend are of this node's making, they are no column below.
            known = name in rel.source.names and name not in (WSTART, WEND)
            return column_horizon(name, rel.source, context) if known else None
        case Project():
            return horizon_of(dict(rel.items)[name], rel.source, context)
        case Aggregate() | Running():
            keys = dict(rel.keys)
            return horizon_of(keys[name], rel.source, context) if name in keys else None
        case Join():
            return join_horizon(name, rel, context)
        case Merge():
            place = rel.names.index(name)
            return furthest(column_horizon(s.names[place], s, context) for s in rel.sources)
        case _:
            assert_never(rel)


def join_horizon(name: str, rel: Join, context: Context) -> Value:
    """That of the side the column comes from, or, where it is filled, of the side that fills it."""
    own, other = (rel.left, rel.right) if name in rel.left.names else (rel.right, rel.left)
    fills = [horizon_of(expr, other, context) for filled, expr in rel.fills if filled == name]
    return furthest([column_horizon(name, own, context), *fills])


def furthest(values: Iterable[Value]) -> Value:
    return max((v for v in values if v is not None), default=None)
