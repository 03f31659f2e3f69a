"""What an operator may look at besides its input.

In: the sources and the streams computed so far. Out: `Context`, handed down the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from terascope.functions.base import Value
from terascope.functions.overflow import Overflow
from terascope.plan.evaluate import Evaluator, Parameters, compile_expr, constant_value
from terascope.plan.expr import Col, Expr, Lit, Param
from terascope.plan.horizon import Horizons
from terascope.plan.plan import Plan
from terascope.plan.rel import Rel, Scan
from terascope.plan.show import written
from terascope.reference.rows import Row, Rows


class Sources(Protocol):
    """Where the tuples of scans come from."""

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

        def told(row: Sequence[Value]) -> Value:
            try:
                return evaluate(row)
            except Overflow as mistake:
                raise Overflow(written(expr), mistake.query) from None

        return told

    def constants(self, parameters: tuple[Lit | Param, ...]) -> list[Value]:
        return [constant_value(p, self.values) for p in parameters]

    def horizon(self, expr: Expr, rel: Rel) -> Value:
        """How far an expression over `rel` has moved; None when it is not known."""
        return self.horizons.of(expr, rel)
