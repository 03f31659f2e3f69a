"""How expressions move with time, from the declared order of their columns (dissertation 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from terascope.functions.base import UNORDERED, Slope, Trend
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param
from terascope.plan.rel import ClockUnit


@dataclass(frozen=True)
class Ordered:
    """The known facts of an ordered column."""

    slope: Slope
    clock: ClockUnit | None = None
    arrival: bool = False
    """Whether it is derived from arrival times: other clocks do not bound it, nor it them."""
    emitted: bool = True
    """Rows are emitted in its order. If not, they still are complete in its order."""

    def __str__(self) -> str:
        text = self.slope.trend.value
        if self.slope.strict:
            text = f"strictly {text}"
        if self.slope.band:
            text += f" within {self.slope.band}"
        return text + (f", clock({self.clock})" if self.clock else "")


Orders: TypeAlias = Mapping[str, Ordered]
"""Ordered columns of a relation; a column that is not in it is unordered."""


def expression_slope(expr: Expr, orders: Orders) -> Slope:
    """The slope of an expression, from those of its columns."""
    match expr:
        case Col(name):
            return orders[name].slope if name in orders else UNORDERED
        case Lit(value):
            return Slope(Trend.CONSTANT, value=value)
        case Param():
            return Slope(Trend.CONSTANT)
        case Cast(operand, type):
            slope = expression_slope(operand, orders)
            keeps = type.is_numeric and operand.type.is_numeric
            return replace(slope, strict=False, value=None) if keeps else UNORDERED
        case Case():
            return UNORDERED
        case Call(function, args):
            return function.slope([expression_slope(a, orders) for a in args])
        case _:
            assert_never(expr)
