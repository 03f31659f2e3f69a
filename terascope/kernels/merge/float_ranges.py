"""Sums of FLOATs in tables: values beyond the ordinary range, and groups that have several ranges.

In: vectors of FLOATs, or rows of groups. Out: for vectors, the range of each value and the digits
of those that are not ordinary (terascope.functions.exact_floats); for groups, one row each.

A slot of kind `range` says what range the five digits right behind it belong to. Tables hold
digits of the ordinary range only. A tuple with any other value does not enter a table: it leaves at
once as a partial group of its own. Merges combine rows of the same key and ranges. So a group may
have several rows; when it is finished its sums are rounded, and its rows become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from terascope.functions.exact_floats import (
    DIGIT_BITS,
    DIGIT_MASK,
    DIGITS,
    LOWEST,
    NOTHING,
    RANGE_BITS,
    ROUNDED,
    SPECIAL,
    UNIT_EXPONENT,
    added,
    from_digits,
    rounded,
)
from terascope.functions.overflow import SUM, Overflow
from terascope.kernels.columns.arrays import Codes, Floats, Ints, Rows
from terascope.kernels.merge.groups import Block, by_key
from terascope.kernels.merge.merge_table import merge_groups
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import column, compiled_for, inlined, output

BIAS = 1023
FIRST_ORDINARY = BIAS + LOWEST + 52
"""The exponent field from which on all bits of a FLOAT are in the ordinary range."""
END_ORDINARY = BIAS + 55
LOWEST_PLACE = LOWEST - UNIT_EXPONENT
DIGIT_WEIGHT = 2.0**DIGIT_BITS
TOP_WEIGHT = 2.0 ** (LOWEST + (DIGITS - 1) * DIGIT_BITS)
LEAST_HEAD = 1 << 23


# ---- vectors -------------------------------------------------------------------------------------


def ranges_of(values: NDArray[np.generic]) -> Ints | None:
    """The range of each value; None when all are ordinary. Integers are ranges already."""
    if values.dtype != np.float64:
        ints: Ints = values.astype(np.int64, copy=False)
        return ints if ints.any() else None
    bits = np.ascontiguousarray(values).view(np.int64)
    if is_ordinary(bits):
        return None
    ranges = np.empty(len(bits), np.int64)
    return ranges if find_ranges(bits, ranges) else None


@compiled_for(column(np.int64))
def is_ordinary(bits: Ints) -> bool:
    """Whether the exponents alone say that all values are ordinary."""
    others = 0
    for b in bits:
        exponent = (b >> 52) & 0x7FF
        inside = (exponent >= FIRST_ORDINARY) & (exponent < END_ORDINARY)
        others += (not inside) & (b << 1 != 0)
    return others == 0


@compiled_for(column(np.int64), output(np.int64))
def find_ranges(bits: Ints, ranges: Ints) -> int:
    """Find the range of each value; return the number of values that are not ordinary."""
    others = 0
    for i in range(len(bits)):
        exponent = (bits[i] >> 52) & 0x7FF
        mantissa = bits[i] & ((np.int64(1) << 52) - 1)
        found = np.int64(0)
        if exponent == 0x7FF:
            found = np.int64(SPECIAL)
        elif exponent != 0 or mantissa != 0:
            place = max(exponent - 1, np.int64(0))
            if exponent != 0:
                mantissa |= np.int64(1) << 52
            below = LOWEST_PLACE - place
            fits = below <= 0
            if 0 < below <= 52:
                fits = mantissa & ((np.int64(1) << below) - 1) == 0
            if not fits or exponent >= END_ORDINARY:
                found = place // RANGE_BITS + 1
        ranges[i] = found
        others += found != 0
    return others


def digits_of(values: Floats, ranges: Ints) -> Ints:
    """int64[DIGITS, n]: the digits of values; those of ordinary values are not made."""
    digits = np.zeros((DIGITS, len(values)), np.int64)
    find_digits(np.ascontiguousarray(values).view(np.int64), ranges, digits)
    return digits


@compiled_for(column(np.int64), column(np.int64), output(np.int64, 2))
def find_digits(bits: Ints, ranges: Ints, digits: Ints) -> None:
    for i in range(len(bits)):
        exponent = (bits[i] >> 52) & 0x7FF
        mantissa = bits[i] & ((np.int64(1) << 52) - 1)
        if ranges[i] == SPECIAL:
            which = 0
            if mantissa == 0:
                which = 1 if bits[i] >= 0 else 2
            digits[which, i] = 1
        elif ranges[i] != 0:
            place = max(exponent - 1, np.int64(0))
            if exponent != 0:
                mantissa |= np.int64(1) << 52
            shift = place - (ranges[i] - 1) * RANGE_BITS
            for k in range(DIGITS):
                down = k * DIGIT_BITS - shift
                digit = np.int64(0)
                if 0 <= down < 64:
                    digit = mantissa >> down
                elif -DIGIT_BITS < down < 0:
                    digit = mantissa << -down
                digit &= DIGIT_MASK
                digits[k, i] = digit if bits[i] >= 0 else -digit


# ---- the value of digits -------------------------------------------------------------------------


def totals(ranges: Ints, digits: Sequence[Ints]) -> Floats:
    """The FLOAT nearest to each sum of digits."""
    words = [np.ascontiguousarray(d, np.int64) for d in (ranges, *digits)]
    found = np.zeros(len(ranges), np.float64)
    if round_ordinary(found, *words):
        done = words[0] == ROUNDED
        found[done] = words[1][done].view(np.float64)
        for i in np.flatnonzero((words[0] != 0) & ~done):
            range_, *own = (int(w[i]) for w in words)
            found[i] = rounded(from_digits(range_, own))
    return found


@compiled_for(output(np.float64), *(column(np.int64),) * (1 + DIGITS))
def round_ordinary(
    out: Floats, ranges: Ints, d0: Ints, d1: Ints, d2: Ints, d3: Ints, d4: Ints
) -> int:
    """The nearest FLOATs of ordinary sums; how many sums are of other ranges.

    With carries done, the leading digits make a head of 24 to 53 bits, which is exact as a FLOAT.
    The next digit is added to it, with a half for all that follow: one addition rounds the sum.
    """
    others = 0
    mask = np.int64(DIGIT_MASK)
    for i in range(len(ranges)):
        if ranges[i] != 0:
            others += 1
            continue
        weight = TOP_WEIGHT
        a0, a1, a2, a3, a4 = carried(d0[i], d1[i], d2[i], d3[i], d4[i])
        if a4 < 0:
            weight = -TOP_WEIGHT
            a0, a1, a2, a3, a4 = carried(-d0[i], -d1[i], -d2[i], -d3[i], -d4[i])
        head, following, rest = a4 >> DIGIT_BITS, np.int64(-1), np.int64(0)
        for digit in (a4 & mask, a3 & mask, a2 & mask, a1 & mask, a0 & mask):
            if head < LEAST_HEAD:
                head = (head << DIGIT_BITS) | digit
                weight *= 1 / DIGIT_WEIGHT
            elif following < 0:
                following = digit
            else:
                rest |= digit
        half = 0.5 if rest != 0 else 0.0
        out[i] = (head * DIGIT_WEIGHT + (max(following, np.int64(0)) + half)) * weight
    return others


@inlined
def carried(a0: Any, a1: Any, a2: Any, a3: Any, a4: Any) -> Any:
    """The digits after each was carried to the next; only their lowest bits count then."""
    a1 += a0 >> DIGIT_BITS
    a2 += a1 >> DIGIT_BITS
    a3 += a2 >> DIGIT_BITS
    a4 += a3 >> DIGIT_BITS
    return a0, a1, a2, a3, a4


# ---- groups that have several ranges -------------------------------------------------------------


def has_ranges(rows: Rows, shape: Shape) -> bool:
    """Whether some row has digits of another range than the ordinary one."""
    return any(bool(rows[:, shape.slot(j)].any()) for j in shape.ranges)


def one_row_each(rows: Rows, shape: Shape) -> Rows:
    """Groups whose rows have different ranges, finished: every group once, its sums rounded.

    Raises:
        ValueMistake: an integer sum is too large.
    """
    rows = rows.copy()
    order, edges = by_key(rows, shape.first_word, shape.first_slot)
    for begin, end in pairwise(edges.tolist()):
        if end - begin > 1:
            for j in shape.ranges:
                round_together(rows, order[begin:end], shape, j)
    merged = merge_groups(shape, [rows])
    if merged is None:
        raise Overflow(SUM)
    return merged


def round_together(rows: Rows, places: Codes, shape: Shape, slot: int) -> None:
    """The first row of a group gets the rounded sum of all its rows, the others nothing."""
    at = shape.slot(slot)
    seen = rows[places, 0] >> (1 + slot) & 1
    total = NOTHING
    for row in places[seen != 0]:
        range_, *digits = rows[row, at : at + 1 + DIGITS].tolist()
        total = added(total, from_digits(range_, digits))
    rows[places, at : at + 1 + DIGITS] = 0
    if seen.any():
        rows[places, at] = ROUNDED
        rows[places[0], at + 1] = np.float64(rounded(total)).view(np.int64)


def finished_blocks(blocks: Iterable[Block], shape: Shape, several: bool) -> Iterator[Block]:
    """Blocks in which every group stands once. `several`: some may have rows of several ranges."""
    if not several:
        yield from blocks
        return
    whole = Block.together([Block.of(None, np.empty((0, shape.stride), np.int64)), *blocks])
    whole = whole.in_order()
    for epoch, end, count in zip(whole.epochs, whole.ends, whole.counts, strict=True):
        yield Block.of(int(epoch), one_row_each(whole.rows[end - count : end], shape))
