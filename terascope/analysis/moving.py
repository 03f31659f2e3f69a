"""Values that move with time: which of two is earlier, and where an expression reaches a value.

In: values of an ordered column, increasing or decreasing. Out: comparisons and shifts along its
own direction of time, so that no analysis has to write everything twice; and bounds on the edges of
windows from bounds on time, and back.

A value V stands for "all rows earlier than V": None is before everything, ALL after it.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final, assert_never

from terascope.functions.base import Trend, Value, ValueMistake
from terascope.functions.slices import SliceVector
from terascope.functions.values import compare
from terascope.plan.evaluate import Evaluator, Parameters, compile_expr
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import WEND, WSTART, Slices, Sliding, WindowSpec
from terascope.types import INT_MAX, Type


class EndOfTime(enum.Enum):
    """The value after every other: the stream has ended, and NULLs are complete too."""

    ALL = "all"


ALL: Final = EndOfTime.ALL


def earlier(a: Value, b: Value, trend: Trend) -> bool:
    """Whether `a` comes before `b` in a column that moves with `trend`; None is before all."""
    if a is None or b is ALL:
        return b is not None and a is not ALL
    if b is None or a is ALL:
        return False
    order = compare(a, b)
    return order < 0 if trend is Trend.INCREASING else order > 0


def earliest(values: Iterable[Value], trend: Trend) -> Value:
    """The one that comes first; ALL of none."""
    first: Value = ALL
    for value in values:
        if earlier(value, first, trend):
            first = value
    return first


def moved(value: Value, amount: int | float, trend: Trend) -> Value:
    """The sum as the edge of a set of rows: those of whole numbers are cut at the whole
    number that cuts the same set, those of FLOATs a hair earlier, because FLOATs are rounded.
    """
    if value is None or value is ALL or amount == 0:
        return value
    rising = trend is Trend.INCREASING
    if isinstance(value, float):
        return math.nextafter(value + amount, -math.inf if rising else math.inf)
    exact = value + Fraction(amount)
    return math.ceil(exact) if rising else math.floor(exact)


def is_number(value: Value) -> bool:
    """Whether a value can be a watermark: a number that has a place in the order."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not math.isnan(value)


def value_at(expr: Expr, values: Mapping[str, Value], parameters: Parameters) -> Value:
    """The expression where its columns have these values; None where it has no answer."""
    return answer(compile_expr(expr, tuple(values), parameters), tuple(values.values()))


def answer(evaluate: Evaluator, row: tuple[Value, ...]) -> Value:
    try:
        found = evaluate(row)
    except (ValueMistake, OverflowError):
        return None
    return found if is_number(found) else None


def reaches(
    expr: Expr, trend: Trend, column: Col, column_trend: Trend, value: Value, parameters: Parameters
) -> Value:
    """The earliest value of its only column at which an expression is not earlier than `value`.

    So the expression is earlier than `value` exactly where the column is earlier than the answer.
    Found by bisection, because a monotone expression need not have an inverse that can be written.
    None when it is not known.
    """
    if value is None or value is ALL or column.type not in PLACES:
        return value if value is ALL else None
    if expr == column and isinstance(value, int) == column.type.is_integer:
        return value
    last, place_value = PLACES[column.type]
    evaluate = compile_expr(expr, (column.name,), parameters)
    sign = 1 if column_trend is Trend.INCREASING else -1

    def reached(place: int) -> bool:
        found = answer(evaluate, (place_value(sign * place),))
        # What overflows can be no tuple's value; it is on the far side of those that can.
        return place > 0 if found is None else not earlier(found, value, trend)

    if answer(evaluate, (place_value(0),)) is None or reached(-last):
        return None
    low, high = -last, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return place_value(sign * high)


def float_at(place: int) -> float:
    """FLOATs counted from zero in their order: the place of a number is its bits."""
    (found,) = struct.unpack("<d", struct.pack("<Q", abs(place)))
    return math.copysign(found, place) if place else 0.0


(_INFINITY,) = struct.unpack("<q", struct.pack("<d", math.inf))

PLACES: Final[Mapping[Type, tuple[int, Callable[[int], Value]]]] = {
    Type.FLOAT: (_INFINITY, float_at),
    **dict.fromkeys((Type.INT, Type.UINT, Type.LLONG, Type.ULLONG), (INT_MAX, int)),
}
"""Types that can be searched: the last place, and the value at a place."""


def open_from(spec: WindowSpec, edge: str, first_open_end: int) -> int:
    """When all windows that end before `first_open_end` are complete: the value of `edge` (wstart
    or wend) below which every window is. It is that of the first window that is open, and moves
    when a window closes.
    """
    match spec:
        case Sliding(range_, slide):
            end = first_open_end + -first_open_end % slide
            return end if edge == WEND else end - range_
        case Slices():
            last = first_open_end - 1
            vector = SliceVector(spec.lengths)
            return vector.end(last) if edge == WEND else vector.start(last)
        case _:
            assert_never(spec)


def oldest_start(spec: WindowSpec, edge: str, value: int) -> int:
    """The smallest start of the windows whose `edge` (wstart or wend) is at least `value`: nothing
    before it is inside one.
    """
    if edge == WSTART:
        return value
    match spec:
        case Sliding(range_):
            return value - range_
        case Slices():
            return SliceVector(spec.lengths).start(value - 1)
        case _:
            assert_never(spec)
