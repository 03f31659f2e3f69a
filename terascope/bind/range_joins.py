"""A window without SLIDE on an input of a join: `x [RANGE 10] JOIN y` (after CQL).

In: two inputs, one or both with such a window. Out: the conditions that it means. At every moment t
a window of r ticks holds the elements of its input with times in (t - r, t], and an input without a
window holds those of t alone. A pair is in the join when there is a moment at which both are held:
then the later element is less than r ticks after the earlier one, where r is the earlier one's
window.
"""

from __future__ import annotations

from dataclasses import dataclass

from terascope.analysis.bounded import is_timeless
from terascope.analysis.order import Orders, column_orders
from terascope.bind.context import BindContext
from terascope.bind.windows import clock_field, ticks
from terascope.diagnostic import Span, each, mistake
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.rel import ClockUnit, Rel
from terascope.syntax import ast
from terascope.types import Type


@dataclass(frozen=True)
class Held:
    """An input of a join: its window, if it has one without SLIDE."""

    rel: Rel
    qualifier: str
    window: ast.RangeWindow | None
    span: Span


@dataclass(frozen=True)
class TimedInput:
    """The time of an input, as a column of the join, and the length of its window in ticks."""

    column: Col
    length: int | None


def range_conditions(context: BindContext, left: Held, right: Held) -> list[Expr]:
    """The conditions that windows put on a pair of inputs.

    Raises:
        Mistake: a window has no meaning for the pair.
    """
    windowed = left if left.window is not None else right
    if windowed.window is None:
        return []
    if is_timeless(left.rel) or is_timeless(right.rel):
        raise mistake(
            "non-periodic-window",
            "a watch list has no time, so that a window without SLIDE says nothing about it",
            windowed.window.span,
            help="leave the window out: every row is looked up when it comes",
        )
    orders = column_orders(windowed.rel, context.stream_orders)
    on = clock_field(windowed.rel, orders, windowed.window)
    unit = orders[on].clock
    a, b = each(lambda held: timed(context, held, unit, on), (left, right))
    return [not_after(b, a), not_after(a, b)]


def timed(context: BindContext, held: Held, unit: ClockUnit | None, on: str) -> TimedInput:
    """The time of an input in a unit, and its window."""
    orders = column_orders(held.rel, context.stream_orders)
    name = held.window.on if held.window is not None and held.window.on else None
    if name is None:
        name = same_clock(held.rel, orders, unit, on)
    if name is None or name not in orders or orders[name].clock != unit:
        raise mistake(
            "no-clock",
            f"'{held.qualifier}' has no ordered column in the unit of '{on}', "
            "which the window of the other input is measured on",
            held.span,
            help="measure the window on a clock that both inputs have, with ON",
        )
    length = None if held.window is None else ticks(held.window.range, unit, name)
    return TimedInput(Col(f"{held.qualifier}.{name}", held.rel.type_of(name)), length)


def same_clock(rel: Rel, orders: Orders, unit: ClockUnit | None, on: str) -> str | None:
    """The column of that name and unit, or the first one of that unit."""
    known = [
        f.name
        for f in rel.visible
        if f.name in orders and orders[f.name].clock == unit and f.type.is_integer
    ]
    return on if on in known else next(iter(known), None)


def not_after(later: TimedInput, earlier: TimedInput) -> Expr:
    """`later - earlier` is less than the earlier one's window, or nothing without one."""
    distance = call("-", later.column, earlier.column)
    length = Lit(earlier.length or 0, Type.UINT)
    return call("<=" if earlier.length is None else "<", distance, length)
