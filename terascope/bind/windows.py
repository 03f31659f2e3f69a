"""Windows: RANGE/SLIDE, SLICES and EVERY, measured on a clock field.

In: a relation and the window written behind it. Out: a `Window` over it, with durations in ticks of
that field.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from terascope.analysis.order import FINENESS, Orders, column_orders
from terascope.bind.context import BindContext
from terascope.diagnostic import each, mistake
from terascope.plan.rel import (
    WEND,
    WSTART,
    ClockUnit,
    Rel,
    Slices,
    Sliding,
    Window,
    WindowSpec,
)
from terascope.syntax import ast

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
    """The relation cut into windows.

    Raises:
        Mistake: the window cannot be measured on the relation.
    """
    orders = column_orders(rel, context.stream_orders)
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


def every(duration: ast.Duration) -> ast.RangeWindow:
    """`EVERY x` is `[RANGE x SLIDE x]`."""
    return ast.RangeWindow(duration, duration, span=duration.span)


def clock_field(rel: Rel, orders: Orders, window: ast.Window) -> str:
    """The field durations are measured on: the one named, or the first clock of the stream."""
    clocks = [
        f.name
        for f in rel.visible
        if f.name in orders and orders[f.name].clock and f.type.is_integer
    ]
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
    if clocks:
        return clocks[0]
    raise mistake(
        "no-clock",
        "the stream has no integer clock field to measure the window on",
        window.span,
        help="name an ordered field with ON, or declare one in the PROTOCOL: "
        "time UINT increasing clock(s)",
    )


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
