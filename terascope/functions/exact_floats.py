"""Sums of FLOATs that do not depend on the order: exact until the last step, then rounded once.

In: FLOATs, in any order and grouping. Out: the FLOAT nearest to their true sum (what math.fsum
gives), so that splits, batches, spills and restarts cannot be seen in an answer.

A FLOAT is an integer times a power of two, so that sums of integers are enough. There are two forms
of a sum:

- In Python a sum is one integer, counted in units of 2^-1074, the smallest FLOAT, and flags for NaN
  and the infinities (`ExactSum`).
- Next to the sources a sum is six 64-bit integers that tables, merges and windows already know how
  to add: five *digits* of 30 bits, and the *range* they belong to. Range 0 has the bits from 2^-96
  to 2^54, in which ordinary values lie: below 3.6e16, with all of their 53 bits down to 1e-13, and
  smaller ones that have fewer bits. A digit has room for the digits of 2^33 values. Other values
  belong to one of the ranges 1 to 23, which cover all finite FLOATs; NaN and the infinities are
  counted in a range of their own. Only digits of the same range are added. A group that has values
  of several ranges has a row for each, until it is finished.

An exact sum that is zero is +0.0. NaN, or both infinities, give NaN. A sum is infinite only when
the true sum is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

ExactSum: TypeAlias = tuple[int, int]
"""The finite values in units of 2^-1074, and what else was there: HAS_NAN, HAS_INF, HAS_MINUS_INF.
"""
NOTHING: Final[ExactSum] = (0, 0)
HAS_NAN, HAS_INF, HAS_MINUS_INF = 1, 2, 4
UNIT_EXPONENT: Final = -1074

DIGITS: Final = 5
DIGIT_BITS: Final = 30
DIGIT_MASK: Final = (1 << DIGIT_BITS) - 1
ORDINARY: Final = 0
LOWEST: Final = -96
"""The exponent of the lowest bit of the ordinary range."""
LIMIT: Final = 2.0**55
"""Ordinary values are smaller."""
WEIGHTS: Final = tuple(2.0 ** (LOWEST + DIGIT_BITS * k) for k in range(DIGITS))
RANGE_BITS: Final = 90
"""A further range begins at every 90th bit: 53 bits that begin in it need 142."""
SPECIAL: Final = 24
"""The range of NaN and the infinities: its first three digits count them."""
ROUNDED: Final = 25
"""The range of a sum that is finished: the first digit has the bits of the FLOAT."""


# ---- in Python -----------------------------------------------------------------------------------


def exact(value: float) -> ExactSum:
    """One value as a sum."""
    if math.isnan(value):
        return 0, HAS_NAN
    if math.isinf(value):
        return 0, HAS_INF if value > 0 else HAS_MINUS_INF
    numerator, denominator = value.as_integer_ratio()
    return numerator << (1 - UNIT_EXPONENT - denominator.bit_length()), 0


def added(left: ExactSum, right: ExactSum) -> ExactSum:
    return left[0] + right[0], left[1] | right[1]


def ratio(numerator: int, denominator: int) -> float:
    """The FLOAT nearest to a quotient of integers, infinite when it is too large for one."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf


def rounded(total: ExactSum) -> float:
    """The FLOAT nearest to a sum."""
    units, flags = total
    if not flags:
        return ratio(units, 1 << -UNIT_EXPONENT)
    return {HAS_INF: math.inf, HAS_MINUS_INF: -math.inf}.get(flags, math.nan)


# ---- as digits -----------------------------------------------------------------------------------


def from_digits(range_: int, digits: Sequence[int]) -> ExactSum:
    """The sum that some digits of a range stand for; a rounded one is no longer exact."""
    if range_ == SPECIAL:
        nan, up, down = (count != 0 for count in digits[:3])
        return 0, HAS_NAN * nan | HAS_INF * up | HAS_MINUS_INF * down
    total = sum(digit << (DIGIT_BITS * k) for k, digit in enumerate(digits))
    lowest = LOWEST if range_ == ORDINARY else UNIT_EXPONENT + RANGE_BITS * (range_ - 1)
    return total << (lowest - UNIT_EXPONENT), 0


def to_digits(value: float) -> tuple[int, tuple[int, ...]]:
    """The range of a value, and its digits, which have its sign."""
    if math.isnan(value) or math.isinf(value):
        counted = (math.isnan(value), value == math.inf, value == -math.inf)
        return SPECIAL, (*map(int, counted), 0, 0)
    units, _ = exact(value)
    size = abs(units)
    below = size & ((1 << (LOWEST - UNIT_EXPONENT)) - 1)
    if abs(value) < LIMIT and not below:
        return ORDINARY, _cut(size >> (LOWEST - UNIT_EXPONENT), units < 0)
    lowest_bit = max(0, size.bit_length() - 53)
    range_ = lowest_bit // RANGE_BITS + 1
    return range_, _cut(size >> (RANGE_BITS * (range_ - 1)), units < 0)


def _cut(size: int, negative: bool) -> tuple[int, ...]:
    digits = [size >> (DIGIT_BITS * k) & DIGIT_MASK for k in range(DIGITS - 1)]
    digits.append(size >> (DIGIT_BITS * (DIGITS - 1)))
    return tuple(-digit if negative else digit for digit in digits)
