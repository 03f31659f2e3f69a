"""The named streams of a plan, with what every analysis asks of them again and again.

In: operator trees by name. Out: the ordered columns of any relation over them, and how any
expression over one moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from terascope.analysis.bounded import SlopeOf
from terascope.analysis.order import Orders, column_orders, expression_slope
from terascope.functions.base import Slope, Trend
from terascope.plan.evaluate import Parameters
from terascope.plan.expr import Expr
from terascope.plan.plan import Plan
from terascope.plan.rel import Rel


@dataclass(frozen=True)
class Trees:
    streams: Mapping[str, Rel]
    """Leaves first, as in a Plan."""
    parameters: Parameters = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Plan) -> Trees:
        return cls({stream.name: stream.rel for stream in plan}, plan.values)

    @cached_property
    def _stream_orders(self) -> Mapping[str, Orders]:
        known: dict[str, Orders] = {}
        for name, rel in self.streams.items():
            known[name] = column_orders(rel, known)
        return known

    def orders(self, rel: Rel) -> Orders:
        """The ordered columns of a relation."""
        return column_orders(rel, self._stream_orders)

    def slope(self, expr: Expr, rel: Rel) -> Slope:
        """How an expression over `rel` moves."""
        return expression_slope(expr, self.orders(rel))

    def trend(self, expr: Expr, rel: Rel) -> Trend:
        """In which direction an expression over `rel` moves."""
        return self.slope(expr, rel).trend

    def slope_over(self, rel: Rel) -> SlopeOf:
        """`slope` for one relation: what the analyses of joins and groups take."""
        orders = self.orders(rel)
        return lambda expr: expression_slope(expr, orders)
