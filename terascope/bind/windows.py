"""Windows: RANGE/SLIDE, SLICES and EVERY, measured on a clock field.

In: a relation and the window written behind it. Out: a `Window` over it, with durations in ticks of
that field.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from terascope.analysis.order import FINENESS, Orders, column_orders
from terascope.bind.context import BindContext
from terascope.diagnostic import Span
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


def bind_window(context: BindContext, rel: Rel, window: ast.Window) -> Rel | None:
    """The relation cut into windows."""
    orders = column_orders(rel, context.stream_orders)
    elements = window.on is None and {WSTART, WEND} <= set(rel.names) & set(orders)
    on = WEND if elements else clock_field(context, rel, orders, window)
    if on is None:
        return None
    unit = orders[on].clock
    if isinstance(window, ast.SliceWindow):
        lengths = [ticks(context, d, unit, on) for d in window.slices]
        kept = tuple(n for n in lengths if n is not None)
        spec: WindowSpec = Slices(kept)
        if len(kept) != len(lengths):
            return None
    else:
        if window.slide is None:
            context.error(
                "non-periodic-window",
                "a window without SLIDE gives results only when asked; "
                "a standing query needs a period",
                window.span,
                help="add a SLIDE, such as [RANGE '60 sec' SLIDE '60 sec']",
            )
            return None
        length = ticks(context, window.range, unit, on)
        slide = ticks(context, window.slide, unit, on)
        if length is None or slide is None:
            return None
        spec = Sliding(length, slide)
    return Window(rel, spec, on, elements, span=window.span)


def every(duration: ast.Duration) -> ast.RangeWindow:
    """`EVERY x` is `[RANGE x SLIDE x]`."""
    return ast.RangeWindow(duration, duration, span=duration.span)


def clock_field(context: BindContext, rel: Rel, orders: Orders, window: ast.Window) -> str | None:
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
        context.error(
            "no-clock",
            f"windows cannot be measured on '{window.on}': it is not an ordered integer column",
            window.span,
            help=f"ordered columns here are: {', '.join(known) or 'none'}",
        )
        return None
    if clocks:
        return clocks[0]
    context.error(
        "no-clock",
        "the stream has no integer clock field to measure the window on",
        window.span,
        help="name an ordered field with ON, or declare one in the PROTOCOL: "
        "time UINT increasing clock(s)",
    )
    return None


def ticks(
    context: BindContext, duration: ast.Duration, unit: ClockUnit | None, on: str
) -> int | None:
    """A duration in ticks of the clock field; a number without unit is in ticks already."""
    if duration.unit is None:
        amount = Fraction(duration.amount)
    elif unit is None:
        return complain(
            context, duration.span, f"'{on}' is no clock, so that a duration in time has no meaning"
        )
    else:
        amount = Fraction(str(duration.amount)) * SECONDS[duration.unit] * FINENESS[unit]
    if amount.denominator != 1:
        return complain(
            context,
            duration.span,
            f"the duration is not a whole number of ticks of '{on}', which is in {unit}",
            "measure on a finer clock, such as ON timestamp",
        )
    if amount <= 0:
        return complain(context, duration.span, "a duration must be more than nothing")
    return int(amount)


def complain(context: BindContext, span: Span, message: str, help: str | None = None) -> int | None:
    context.error("bad-duration", message, span, help=help)
    return None
