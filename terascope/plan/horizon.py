"""The horizon of time: the largest value of an ordered expression over all tuples of the sources,
including tuples that no query takes.

In: an expression over a relation, and the reports of reading the sources. Out: its horizon, or None
when it is unknown. Only for expressions that increase with time, so that evaluating one on the
horizons of its columns is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from terascope.functions.base import Value
from terascope.plan.evaluate import Parameters, compile_expr
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


@dataclass(frozen=True)
class Horizons:
    """The known horizons: by scan, and through the streams computed before."""

    scan: Callable[[Scan], Mapping[str, int]]
    """For columns of the scan: the largest value over all tuples of its interfaces."""
    streams: Mapping[str, Rel]
    parameters: Parameters

    def of(self, expr: Expr, rel: Rel) -> Value:
        """The horizon of an expression over `rel`: its value where all its columns are furthest."""
        names = tuple(sorted(columns_of(expr)))
        values = tuple(self.of_column(name, rel) for name in names)
        if not values or None in values:
            return None
        return compile_expr(expr, names, self.parameters)(values)

    def of_column(self, name: str, rel: Rel) -> Value:
        match rel:
            case Scan():
                return self.scan(rel).get(name)
            case Read():
                return self.of_column(name, self.streams[rel.stream])
            case Lookup():
                return None
            case Filter() | Rank():
                return self.of_column(name, rel.source)
            case Window():
                # wstart and wend are of this node's making, they are no column below.
                known = name in rel.source.names and name not in (WSTART, WEND)
                return self.of_column(name, rel.source) if known else None
            case Project():
                return self.of(dict(rel.items)[name], rel.source)
            case Aggregate() | Running():
                keys = dict(rel.keys)
                return self.of(keys[name], rel.source) if name in keys else None
            case Join():
                # Of the side it comes from, or, where it is filled, of the side that fills it.
                of_left = name in rel.left.names
                own, other = (rel.left, rel.right) if of_left else (rel.right, rel.left)
                fills = (self.of(expr, other) for filled, expr in rel.fills if filled == name)
                return furthest([self.of_column(name, own), *fills])
            case Merge():
                place = rel.names.index(name)
                return furthest(self.of_column(s.names[place], s) for s in rel.sources)
            case _:
                assert_never(rel)


def furthest(values: Iterable[Value]) -> Value:
    return max((v for v in values if v is not None), default=None)
