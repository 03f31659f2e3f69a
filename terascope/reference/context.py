"""What an operator may look at besides its input.

In: the sources and the streams computed so far. Out: `Context`, handed down the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from terascope.plan.expr import Expr
from terascope.plan.plan import Plan
from terascope.plan.rel import Scan
from terascope.reference.expressions import Evaluator, Parameters, compile_expr
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
class Context:
    plan: Plan
    sources: Sources
    streams: Mapping[str, Rows]
    """The streams that stand before this one."""

    @property
    def parameters(self) -> Parameters:
        return self.plan.values

    def compile(self, expr: Expr, names: tuple[str, ...]) -> Evaluator:
        return compile_expr(expr, names, self.parameters)
