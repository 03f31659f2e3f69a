"""How operators move ordered values (dissertation 3.1, GS-Lite's temporal algebra).

In: the slopes of the operands. Out: the slope of the result: trend, band and strictness. A banded
value may fall behind an earlier one by at most its band, so sums add bands, products scale them and
rounding divisions round them up. What is not proven here is unordered.

Bands of FLOAT results hold up to the rounding of FLOAT itself; strictness is given up as soon as a
FLOAT constant is involved, because rounding may make two values equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from terascope.functions.base import UNORDERED, Slope, Trend, Value, ValueMistake, unordered

SlopeRule: TypeAlias = Callable[[Sequence[Slope]], Slope]


def folding(evaluate: Callable[..., Value], moving: SlopeRule = unordered) -> SlopeRule:
    """Constants make a constant, whose value is known when theirs are; else the rule decides."""

    def rule(args: Sequence[Slope]) -> Slope:
        if any(a.trend is not Trend.CONSTANT for a in args):
            return moving(args)
        values = [a.value for a in args]
        if any(v is None for v in values):
            return Slope(Trend.CONSTANT)
        try:
            return Slope(Trend.CONSTANT, value=evaluate(*values))
        except ValueMistake:
            return Slope(Trend.CONSTANT)

    return rule


def turned(slope: Slope) -> Slope:
    """The slope of -x."""
    match slope.trend:
        case Trend.INCREASING:
            return replace(slope, trend=Trend.DECREASING)
        case Trend.DECREASING:
            return replace(slope, trend=Trend.INCREASING)
        case Trend.CONSTANT:
            return replace(slope, value=None if slope.value is None else -slope.value)
        case _:
            return UNORDERED


def negated(args: Sequence[Slope]) -> Slope:
    """The slope of -x and of ~x = -x - 1."""
    (operand,) = args
    return turned(operand)


def added(args: Sequence[Slope]) -> Slope:
    left, right = args
    if left.trend is Trend.CONSTANT and right.is_ordered:
        left, right = right, left
    if not left.is_ordered:
        return UNORDERED
    if right.trend is Trend.CONSTANT:
        # a parameter's value is not known here; rounding away strictness is a FLOAT's doing only
        return replace(left, strict=left.strict and not isinstance(right.value, float))
    if right.trend is not left.trend:
        return UNORDERED
    band = left.band + right.band
    return Slope(left.trend, band, strict=band == 0 and (left.strict or right.strict))


def subtracted(args: Sequence[Slope]) -> Slope:
    left, right = args
    return added((left, turned(right)))


def multiplied(args: Sequence[Slope]) -> Slope:
    left, right = args
    if left.trend is Trend.CONSTANT:
        left, right = right, left
    factor = _number(right)
    if not left.is_ordered or factor is None:
        return UNORDERED
    return _scaled(left, factor)


def divided_as_float(args: Sequence[Slope]) -> Slope:
    left, right = args
    divisor = _number(right)
    if not left.is_ordered or not divisor:
        return UNORDERED
    band = left.band / abs(divisor)
    result = Slope(left.trend, math.nextafter(band, math.inf) if band else 0)
    return result if divisor > 0 else turned(result)


def divided(args: Sequence[Slope]) -> Slope:
    """Floor division: floor(x / c) falls behind by at most ceil(band / c)."""
    left, right = args
    divisor = _integer(right)
    if not left.is_ordered or not divisor:
        return UNORDERED
    return _floored(left, divisor)


def shifted_right(args: Sequence[Slope]) -> Slope:
    """The arithmetic shift is floor division by a power of two."""
    left, right = args
    places = _integer(right)
    if not left.is_ordered or places is None or not 0 <= places <= 63:
        return UNORDERED
    return _floored(left, 1 << places)


def shifted_left(args: Sequence[Slope]) -> Slope:
    left, right = args
    places = _integer(right)
    if not left.is_ordered or places is None or not 0 <= places <= 63:
        return UNORDERED
    return _scaled(left, 1 << places)


def masked(args: Sequence[Slope]) -> Slope:
    """A mask of all bits but the k lowest, -(2**k), rounds down to a multiple of 2**k, whatever the
    sign; a positive mask such as 0xFFFFFFF0 drops the higher bits and wraps round.
    """
    moving, mask = _moving_first(args)
    bits = _integer(mask)
    if not moving.is_ordered or bits is None or bits >= 0 or -bits & (-bits - 1):
        return UNORDERED
    return _scaled(_floored(moving, -bits), -bits)


def filled(args: Sequence[Slope]) -> Slope:
    """Setting the k lowest bits, x | 2**k - 1, is rounding down and adding a constant."""
    moving, mask = _moving_first(args)
    bits = _integer(mask)
    if not moving.is_ordered or bits is None or bits < 0 or bits & (bits + 1):
        return UNORDERED
    return _scaled(_floored(moving, bits + 1), bits + 1)


def rounded(args: Sequence[Slope]) -> Slope:
    """Rounding a FLOAT to a whole number, in any direction."""
    (operand,) = args
    if not operand.is_ordered:
        return UNORDERED
    return Slope(operand.trend, math.ceil(operand.band))


def _scaled(slope: Slope, factor: int | float) -> Slope:
    if factor == 0:
        return Slope(Trend.CONSTANT, value=factor)
    strict = slope.strict and isinstance(factor, int)
    result = replace(slope, band=slope.band * abs(factor), strict=strict)
    return result if factor > 0 else turned(result)


def _floored(slope: Slope, divisor: int) -> Slope:
    size = abs(divisor)
    # whole bands are divided as integers: a nanosecond band does not fit a FLOAT
    band = -(-slope.band // size) if isinstance(slope.band, int) else math.ceil(slope.band / size)
    result = Slope(slope.trend, band, strict=slope.strict and size == 1)
    return result if divisor > 0 else turned(result)


def _moving_first(args: Sequence[Slope]) -> tuple[Slope, Slope]:
    left, right = args
    return (right, left) if left.trend is Trend.CONSTANT else (left, right)


def _number(slope: Slope) -> int | float | None:
    """The value of a known finite constant."""
    value = slope.value
    if slope.trend is not Trend.CONSTANT or isinstance(value, bool):
        return None
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _integer(slope: Slope) -> int | None:
    value = _number(slope)
    return value if isinstance(value, int) else None
