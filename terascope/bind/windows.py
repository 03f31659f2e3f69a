"""Windows: RANGE/SLIDE, SLICES and EVERY, measured on a clock field.

In: a relation and the window written behind it. Out: a `Window` over it, with durations in ticks of
that field. A window without SLIDE stands on an input of a join, `x [RANGE 10] JOIN y` (after CQL),
and becomes conditions of the join: at every moment t a window of r ticks holds the elements of its
input with times in (t - r, t], and an input without a window holds those of t alone. A pair is in
the join when there is a moment at which both are held: then the later element is less than r ticks
after the earlier one, where r is the earlier one's window.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from terascope.analysis.bounded import is_timeless
from terascope.analysis.order import FINENESS
from terascope.analysis.slopes import Orders
from terascope.bind.context import BindContext
from terascope.bind.scope import FromLeaf
from terascope.diagnostic import each, mistake
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.rel import WEND, WSTART, ClockUnit, Rel, Slices, Sliding, Window, WindowSpec
from terascope.syntax import ast
from terascope.types import Type

SECONDS: Mapping[str, Fraction] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}


def bind_window(context: BindContext, rel: Rel, window: ast.Window) -> Rel:
    """The relation cut into windows."""
    orders = context.orders(rel)
    elements = window.on is None and {WSTART, WEND} <= set(rel.names) & set(orders)
    on = WEND if elements else clock_field(rel, orders, window)
    spec = window_spec(window, orders[on].clock, on)
    return Window(rel, spec, on, elements, span=window.span)


def window_spec(window: ast.Window, unit: ClockUnit | None, on: str) -> WindowSpec:
    if isinstance(window, ast.SliceWindow):
        return Slices(each(lambda slice: ticks(slice, unit, on), window.slices))
    if window.slide is None:
        raise mistake(
            "non-periodic-window",
            "a window without SLIDE gives results only when asked; a standing query needs a period",
            window.span,
            help="add a SLIDE, such as [RANGE '60 sec' SLIDE '60 sec']",
        )
    return Sliding(*each(lambda length: ticks(length, unit, on), (window.range, window.slide)))


def clock_field(rel: Rel, orders: Orders, window: ast.Window) -> str:
    """The field durations are measured on: the one named, or the first clock of the stream."""
    if window.on is not None:
        if window.on in orders and rel.type_of(window.on).is_integer:
            return window.on
        known = [n for n in orders if not n.startswith("#")]
        raise mistake(
            "no-clock",
            f"windows cannot be measured on '{window.on}': it is not an ordered integer column",
            window.span,
            help=f"ordered columns here are: {', '.join(known) or 'none'}",
        )
    for column in rel.visible:
        if column.name in orders and orders[column.name].clock and column.type.is_integer:
            return column.name
    message = "the stream has no integer clock field to measure the window on"
    help = (
        "name an ordered field with ON, or declare one in the PROTOCOL: "
        "time UINT increasing clock(s)"
    )
    raise mistake("no-clock", message, window.span, help=help)


def ticks(duration: ast.Duration, unit: ClockUnit | None, on: str) -> int:
    """A duration in ticks of the clock field; a number without unit is in ticks already."""
    if duration.unit is None:
        amount = Fraction(duration.amount)
    elif unit is None:
        text = f"'{on}' is no clock, so that a duration in time has no meaning"
        raise mistake("bad-duration", text, duration.span)
    else:
        amount = Fraction(str(duration.amount)) * SECONDS[duration.unit] * FINENESS[unit]
    if amount.denominator != 1:
        text = f"the duration is not a whole number of ticks of '{on}', which is in {unit}"
        help = "measure on a finer clock, such as ON timestamp"
        raise mistake("bad-duration", text, duration.span, help)
    if amount <= 0:
        raise mistake("bad-duration", "a duration must be more than nothing", duration.span)
    return int(amount)


# ---- windows without SLIDE, on the inputs of a join ----------------------------------------------


def range_conditions(context: BindContext, left: FromLeaf, right: FromLeaf) -> list[Expr]:
    """The conditions that windows put on a pair of inputs."""
    windowed = left if left.held is not None else right
    if windowed.held is None:
        return []
    if is_timeless(left.rel) or is_timeless(right.rel):
        message = "a watch list has no time, so that a window without SLIDE says nothing about it"
        help = "leave the window out: every row is looked up when it comes"
        raise mistake("non-periodic-window", message, windowed.held.span, help=help)
    orders = context.orders(windowed.rel)
    on = clock_field(windowed.rel, orders, windowed.held)
    unit = orders[on].clock
    (a, length_a), (b, length_b) = each(lambda leaf: timed(context, leaf, unit, on), (left, right))
    return [not_after(b, a, length_a), not_after(a, b, length_b)]


def timed(
    context: BindContext, leaf: FromLeaf, unit: ClockUnit | None, on: str
) -> tuple[Col, int | None]:
    """The time of an input in a unit, as a column of the join, and its window in ticks."""
    orders = context.orders(leaf.rel)
    name = (leaf.held and leaf.held.on) or same_clock(leaf.rel, orders, unit, on)
    if name is None or name not in orders or orders[name].clock != unit:
        message = (
            f"'{leaf.qualifier}' has no ordered column in the unit of '{on}', "
            "which the window of the other input is measured on"
        )
        help = "measure the window on a clock that both inputs have, with ON"
        raise mistake("no-clock", message, leaf.span, help=help)
    length = None if leaf.held is None else ticks(leaf.held.range, unit, name)
    return Col(f"{leaf.qualifier}.{name}", leaf.rel.type_of(name)), length


def same_clock(rel: Rel, orders: Orders, unit: ClockUnit | None, on: str) -> str | None:
    """The column of that name and unit, or the first one of that unit."""
    known = [
        f.name
        for f in rel.visible
        if f.name in orders and orders[f.name].clock == unit and f.type.is_integer
    ]
    return on if on in known else next(iter(known), None)


def not_after(later: Col, earlier: Col, length: int | None) -> Expr:
    """`later - earlier` is less than the earlier one's window, or nothing without one."""
    distance = call("-", later, earlier)
    return call("<=" if length is None else "<", distance, Lit(length or 0, Type.UINT))
