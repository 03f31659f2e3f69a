"""Integers of any length in kernels, and the FLOAT nearest to one, or to a quotient.

In: numbers as digits of 32 bits, the lowest first, in words of 64 bits. Out: sums and products of
them, and FLOATs that are rounded once, to the nearest, ties to even, as Python's division of
integers rounds.

A quotient is rounded from its highest 63 or 64 bits. The lowest of these is set where anything
follows, which is all that rounding to 53 bits needs to know.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from terascope.machine_code import inlined
from terascope.sketches.packed_form import Data, word_at

ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)
DIGIT: Final = np.uint64(0xFFFFFFFF)
BITS: Final = np.uint64(32)
LEAST_NORMAL: Final = -1022
"""The exponent of the smallest FLOAT that has all 53 bits."""


@inlined
def read_signed(data: Data, at: Any, digits: Any, out: Any) -> Any:
    """Read a number in two's complement, of at least one digit; `out` gets its size. Return whether
    it is negative.
    """
    for k in range(digits):
        out[k] = word_at(data, at + 4 * k, 4)
    if digits == 0 or out[digits - 1] >> np.uint64(31) == ZERO:
        return False
    carry = ONE
    for k in range(digits):
        carry += out[k] ^ DIGIT
        out[k] = carry & DIGIT
        carry >>= BITS
    return True


@inlined
def shortened(number: Any, digits: Any) -> Any:
    """The number of digits without leading zeros."""
    while digits > 0 and number[digits - 1] == ZERO:
        digits -= 1
    return digits


@inlined
def add_product(
    left: Any, left_digits: Any, right: Any, right_digits: Any, start: Any, out: Any
) -> None:
    """Add a product, from the digit `start` on; there is room for its last carry."""
    for i in range(left_digits):
        carry = ZERO
        for j in range(right_digits):
            carry += left[i] * right[j] + out[start + i + j]
            out[start + i + j] = carry & DIGIT
            carry >>= BITS
        k = start + i + right_digits
        while carry != ZERO:
            carry += out[k]
            out[k] = carry & DIGIT
            carry >>= BITS
            k += 1


@inlined
def subtract(left: Any, right: Any, digits: Any) -> Any:
    """Subtract in place; return whether the result would be negative, which is then no number."""
    borrow = ZERO
    for k in range(digits):
        difference = left[k] - right[k] - borrow
        left[k] = difference & DIGIT
        borrow = (difference >> BITS) & ONE
    return borrow != ZERO


@inlined
def bit_length(word: Any) -> Any:
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(step) != ZERO:
            word >>= np.uint64(step)
            length += step
    return length + np.int64(word)


@inlined
def bits_from(number: Any, digits: Any, place: Any) -> Any:
    """The 64 bits of a number from a place on, which may be before its first bit."""
    first, shift = place >> 5, np.uint64(place & 31)
    word = ZERO
    if 0 <= first < digits:
        word = number[first] >> shift
    if 0 <= first + 1 < digits:
        word |= number[first + 1] << (BITS - shift)
    if 0 <= first + 2 < digits and shift != ZERO:
        word |= number[first + 2] << (np.uint64(64) - shift)
    return word


@inlined
def any_below(number: Any, place: Any) -> Any:
    """Whether a bit before a place is set."""
    if place <= 0:
        return False
    for k in range(place >> 5):
        if number[k] != ZERO:
            return True
    return number[place >> 5] & ((ONE << np.uint64(place & 31)) - ONE) != ZERO


@inlined
def divided(high: Any, low: Any, divisor: Any) -> Any:
    """Quotient and remainder of 128 bits. The highest bit of the divisor is set, and it is larger
    than `high`. (Knuth, The Art of Computer Programming, 4.3.1, algorithm D with two digits.)
    """
    upper, lower = divisor >> BITS, divisor & DIGIT
    first = high // upper
    rest = high - first * upper
    while first > DIGIT or first * lower > ((rest << BITS) | (low >> BITS)):
        first -= ONE
        rest += upper
        if rest > DIGIT:
            break
    middle = ((high << BITS) | (low >> BITS)) - first * divisor
    second = middle // upper
    rest = middle - second * upper
    while second > DIGIT or second * lower > ((rest << BITS) | (low & DIGIT)):
        second -= ONE
        rest += upper
        if rest > DIGIT:
            break
    remainder = ((middle << BITS) | (low & DIGIT)) - second * divisor
    return (first << BITS) | second, remainder


@inlined
def scaled(word: Any, exponent: Any) -> Any:
    """A word, rounded to a FLOAT, times a power of two."""
    power: Any = np.int32(exponent)
    return math.ldexp(np.float64(word), power)


@inlined
def rounded_number(number: Any, digits: Any, exponent: Any) -> Any:
    """The FLOAT nearest to number * 2^exponent, which is a whole number of the smallest FLOATs; the
    number has no leading zeros.
    """
    if digits == 0:
        return 0.0
    place = 32 * (digits - 1) + bit_length(number[digits - 1]) - 64
    word = bits_from(number, digits, place) | np.uint64(any_below(number, place))
    return scaled(word, place + exponent)


@inlined
def rounded_quotient(number: Any, digits: Any, divisor: Any, exponent: Any) -> Any:
    """The FLOAT nearest to number / divisor * 2^exponent; the number has no leading zeros. NaN when
    it would be rounded twice, because it is so small that FLOATs have fewer bits.
    """
    if digits == 0:
        return 0.0
    place = 32 * (digits - 1) + bit_length(number[digits - 1]) - 127
    scale = 64 - bit_length(divisor)
    high, low = bits_from(number, digits, place + 64), bits_from(number, digits, place)
    word, remainder = divided(high, low, divisor << np.uint64(scale))
    word |= np.uint64(remainder != ZERO or any_below(number, place))
    exponent += place + scale
    if exponent + 62 < LEAST_NORMAL:
        return math.nan
    return scaled(word, exponent)
