"""Rows: what a stream is in the reference interpreter, how its values are told apart and put in
order, and what an operator reads beside its input.

In: tuples of held values (terascope.types), the sources, and the streams computed so far. Out:
`Rows`, keys that say which values are the same one, sort keys that place NULLs, and `Evaluation`,
which operators hand down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from terascope.functions.base import Value
from terascope.functions.overflow import Overflow
from terascope.functions.values import order_key
from terascope.plan.evaluate import Evaluator, Parameters, compile_expr
from terascope.plan.expr import Col, Expr, Lit, Param
from terascope.plan.horizon import Horizons
from terascope.plan.plan import Plan
from terascope.plan.rel import Field, Rel, Scan
from terascope.plan.show import written

Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True)
class Rows:
    """The tuples of one stream. Their order means nothing unless they were sorted."""

    fields: tuple[Field, ...]
    tuples: list[Row]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def __len__(self) -> int:
        return len(self.tuples)

    def visible(self) -> Rows:
        """The same rows without hidden columns."""
        places = [i for i, f in enumerate(self.fields) if not f.hidden]
        return Rows(
            tuple(self.fields[i] for i in places),
            [tuple(row[i] for i in places) for row in self.tuples],
        )


def same(value: Value) -> Value:
    """The value itself, but always the same NaN: then Python, too, puts all NaNs in one group. It
    does so with -0.0 and 0.0; the group is that of 0.0, whichever comes first.
    """
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0


def same_row(values: Iterable[Value]) -> Row:
    return tuple(same(v) for v in values)


def sort_key(value: Value) -> tuple[Any, ...]:
    """Ascending order of the values of a column: NULL is above everything."""
    return (1,) if value is None else (0, order_key(value))


# ---- what an operator reads beside its input -----------------------------------------------------


class Sources(Protocol):
    """The source of the tuples of scans."""

    def rows(self, scan: Scan) -> list[Row]:
        """The tuples, in the order of `scan.fields`, hidden columns included."""
        ...

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        """For columns of the scan: the largest value over all tuples of its interfaces, those of
        other protocols included. A column that is not in it has no known horizon.
        """
        ...


@dataclass(frozen=True)
class Evaluation:
    scan: Callable[[Scan], list[Row]]
    """Gives the tuples of a scan."""
    streams: Mapping[str, Rows]
    """The streams that stand before this one."""
    horizons: Horizons
    values: Parameters
    """The values of parameters."""

    @classmethod
    def of(cls, plan: Plan, sources: Sources, streams: Mapping[str, Rows]) -> Evaluation:
        trees = {stream.name: stream.rel for stream in plan}
        horizons = Horizons(sources.horizon, trees, plan.values)
        return cls(sources.rows, streams, horizons, plan.values)

    def compile(self, expr: Expr, names: tuple[str, ...]) -> Evaluator:
        """A function that evaluates `expr` over tuples whose columns are `names`."""
        evaluate = compile_expr(expr, names, self.values)
        if isinstance(expr, Col | Lit | Param):
            return evaluate

        def named(row: Sequence[Value]) -> Value:
            try:
                return evaluate(row)
            except Overflow as mistake:
                raise Overflow(written(expr), mistake.query) from None

        return named

    def horizon(self, expr: Expr, rel: Rel) -> Value:
        """The horizon of an expression over `rel`; None when it is not known."""
        return self.horizons.of(expr, rel)
