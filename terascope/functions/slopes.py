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
from typing import Any, Final, TypeAlias

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
    return turned(args[0])


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


def by_constant(
    made: Callable[[Slope, Any], Slope | None], *, whole: bool = True, first: bool = False
) -> SlopeRule:
    """The rule of an ordered operand and a known constant, a `whole` number or any finite one; with
    `first`, the constant may stand before the operand. What is None or not such is unordered.
    """

    def rule(args: Sequence[Slope]) -> Slope:
        moving, constant = args
        if first and moving.trend is Trend.CONSTANT:
            moving, constant = constant, moving
        value = constant.value
        fits = isinstance(value, int) or (
            not whole and isinstance(value, float) and math.isfinite(value)
        )
        if not moving.is_ordered or constant.trend is not Trend.CONSTANT or not fits:
            return UNORDERED
        return UNORDERED if isinstance(value, bool) else made(moving, value) or UNORDERED

    return rule


def _divided_as_float(slope: Slope, divisor: int | float) -> Slope | None:
    if not divisor:
        return None
    band = slope.band / abs(divisor)
    result = Slope(slope.trend, math.nextafter(band, math.inf) if band else 0)
    return result if divisor > 0 else turned(result)


def _masked(slope: Slope, bits: int) -> Slope | None:
    """A mask of all bits but the k lowest, -(2**k), rounds down to a multiple of 2**k, whatever the
    sign; a positive mask such as 0xFFFFFFF0 drops the higher bits and wraps round.
    """
    rounds_down = bits < 0 and not -bits & (-bits - 1)
    return _scaled(_floored(slope, -bits), -bits) if rounds_down else None


def _filled(slope: Slope, bits: int) -> Slope | None:
    """Setting the k lowest bits, x | 2**k - 1, is rounding down and adding a constant."""
    lowest = bits >= 0 and not bits & (bits + 1)
    return _scaled(_floored(slope, bits + 1), bits + 1) if lowest else None


def rounded(args: Sequence[Slope]) -> Slope:
    """Rounding a FLOAT to a whole number, in any direction."""
    (operand,) = args
    return Slope(operand.trend, math.ceil(operand.band)) if operand.is_ordered else UNORDERED


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


def shifted(scale: Callable[[Slope, int], Slope]) -> SlopeRule:
    """The arithmetic shift is multiplication or floor division by a power of two."""
    return by_constant(lambda slope, n: scale(slope, 1 << n) if 0 <= n <= 63 else None)


multiplied: Final = by_constant(_scaled, whole=False, first=True)
divided_as_float: Final = by_constant(_divided_as_float, whole=False)
divided: Final = by_constant(lambda slope, divisor: _floored(slope, divisor) if divisor else None)
"""Floor division: floor(x / c) falls behind by at most ceil(band / c)."""
shifted_right: Final = shifted(_floored)
shifted_left: Final = shifted(_scaled)
masked: Final = by_constant(_masked, first=True)
filled: Final = by_constant(_filled, first=True)
