"""Windows of digits: how a state adds FLOATs and their squares exactly.

In: the rows of the states, the digits of all windows in one array, FLOATs as their 64 bits. Out:
parts of kernels that add a value to the window of a state, and give it a larger one when it must
have one. terascope.sketches.float_moments says what windows and digits are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import inlined
from terascope.sketches.word_lists import Words

COUNT, FLAGS, START, SHAPE = 0, 1, 2, 3
"""A row. START is the place of the windows, or the bits of the only value; FLAGS has the number of
additions since carries were made, from bit 8 on; SHAPE the first digit and, from bit 16 on, the
number of digits, 0 when there is no window."""
HAS_NAN, HAS_INF, HAS_MINUS_INF = 1, 2, 4
FLAG_BITS: Final = 7
ALONE: Final = 8
"""The bit of FLAGS for a state of one value, which stands in START."""
ADDITION: Final = 256
MOST_ADDITIONS: Final = 1 << 28
FEWEST_DIGITS: Final = 4
DIGIT: Final = 0xFFFFFFFF


@inlined
def block_words(digits: int, squares: bool) -> int:
    return 3 * digits if squares else digits


@inlined
def digits_class(digits: int) -> int:
    """The chain of free blocks of this size: 1 for four digits, 2 for eight, and so on."""
    chain, size = 1, FEWEST_DIGITS
    while size < digits:
        size *= 2
        chain += 1
    return chain


@inlined
def give_block(all_digits: Words, free: Words, digits: int, start: int) -> None:
    chain = digits_class(digits)
    all_digits[start] = free[chain]
    free[chain] = start + 1


@inlined
def widen(
    rows: Words, all_digits: Words, free: Words, row: np.uint64, low: Any, high: Any, squares: bool
) -> bool:
    """Give a state a window that has the digits from `low` to `high` and all it had. False, and
    nothing is changed, when there is no room.
    """
    shape = rows[row, SHAPE]
    base, held = shape & 0xFFFF, shape >> 16
    if held > 0:
        low, high = min(low, base), max(high, base + held - 1)
    digits = FEWEST_DIGITS
    while digits < high - low + 1:
        digits *= 2
    first = max(0, low - (digits - (high - low + 1)) // 2)
    chain, words = digits_class(digits), block_words(digits, squares)
    start = free[chain] - 1
    if start >= 0:
        free[chain] = all_digits[start]
    else:
        start = free[0]
        if start + words > len(all_digits):
            return False
        free[0] = start + words
    for k in range(words):
        all_digits[start + k] = 0
    if held > 0:
        old = rows[row, START]
        for k in range(held):
            all_digits[start + base - first + k] = all_digits[old + k]
        if squares:
            for k in range(2 * held):
                at = start + digits + 2 * (base - first) + k
                all_digits[at] = all_digits[old + held + k]
        give_block(all_digits, free, held, old)
    rows[row, START] = start
    rows[row, SHAPE] = first | digits << 16
    return True


@inlined
def carry(digits: Words, start: int, count: int) -> None:
    """Make all digits but the highest numbers of 32 bits."""
    for k in range(count - 1):
        over = digits[start + k] >> 32
        digits[start + k] -= over << 32
        digits[start + k + 1] += over


@inlined
def count_addition(rows: Words, all_digits: Words, row: np.uint64, squares: bool) -> None:
    rows[row, FLAGS] += ADDITION
    if rows[row, FLAGS] >= ADDITION * MOST_ADDITIONS:
        rows[row, FLAGS] &= FLAG_BITS | ALONE
        start, digits = rows[row, START], rows[row, SHAPE] >> 16
        carry(all_digits, start, digits)
        if squares:
            carry(all_digits, start + digits, 2 * digits)


@inlined
def add_finite(
    rows: Words, digits: Words, row: np.uint64, bits: Any, exponent: Any, squares: bool
) -> None:
    """Add a finite value whose digits are in the window."""
    size = bits & ((1 << 52) - 1)
    shift: Any = np.int64(0)
    if exponent > 0:
        size |= 1 << 52
        shift = exponent - 1
    shape, start = rows[row, SHAPE], rows[row, START]
    base, count = shape & 0xFFFF, shape >> 16
    at = np.uint64(start + (shift >> 5) - base)
    move = np.uint64(shift & 31)
    a, b = np.uint64(size & DIGIT), np.uint64(size >> 32)
    low = a << move
    middle = (low >> np.uint64(32)) + (b << move)
    sign = np.int64(1) | (bits >> 63)
    one = np.uint64(1)
    digits[at] += sign * np.int64(low & np.uint64(DIGIT))
    digits[at + one] += sign * np.int64(middle & np.uint64(DIGIT))
    digits[at + one + one] += sign * np.int64(middle >> np.uint64(32))
    if not squares:
        return
    shift *= 2
    at = np.uint64(start + count + (shift >> 5) - 2 * base)
    move = np.uint64(shift & 31)
    low = a * a
    middle = (low >> np.uint64(32)) + np.uint64(2) * a * b
    top = (middle >> np.uint64(32)) + b * b
    over = np.uint64(0)
    for k in range(4):
        if k == 0:
            part = low & np.uint64(DIGIT)
        elif k == 1:
            part = middle & np.uint64(DIGIT)
        elif k == 2:
            part = top & np.uint64(DIGIT)
        else:
            part = top >> np.uint64(32)
        part <<= move
        digits[at] += np.int64((part & np.uint64(DIGIT)) + over)
        over = part >> np.uint64(32)
        at += one
    digits[at] += np.int64(over)


@inlined
def special_flag(bits: Any) -> int:
    if bits & ((1 << 52) - 1) != 0:
        return HAS_NAN
    return HAS_MINUS_INF if bits < 0 else HAS_INF


@inlined
def has_room(rows: Words, row: np.uint64, exponent: Any) -> bool:
    """Whether the window has the digits of a value of this exponent, and one above."""
    low = max(exponent - 1, 0) >> 5
    shape = rows[row, SHAPE]
    base = shape & 0xFFFF
    return bool(low >= base and low + 3 < base + (shape >> 16))


@inlined
def place(
    rows: Words, digits: Words, free: Words, row: np.uint64, bits: Any, squares: bool
) -> bool:
    """Add any value to the digits of a state. False when there is no room."""
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        rows[row, FLAGS] |= special_flag(bits)
    elif bits & 0x7FFFFFFFFFFFFFFF != 0:
        low = max(exponent - 1, 0) >> 5
        if not has_room(rows, row, exponent) and not widen(
            rows, digits, free, row, low, low + 3, squares
        ):
            return False
        add_finite(rows, digits, row, bits, exponent, squares)
        count_addition(rows, digits, row, squares)
    return True


@inlined
def settle(rows: Words, digits: Words, free: Words, row: np.uint64, squares: bool) -> bool:
    """Put a value that stands alone into a window. False when there is no room."""
    if rows[row, FLAGS] & ALONE != 0:
        if not place(rows, digits, free, row, rows[row, START], squares):
            return False
        rows[row, FLAGS] &= ~ALONE
    return True


@inlined
def add_slowly(
    rows: Words, digits: Words, free: Words, row: np.uint64, bits: Any, squares: bool
) -> bool:
    """Add a value to a state that may have no window for it. False when there is no room."""
    if rows[row, COUNT] == 0 and (bits >> 52) & 0x7FF != 0x7FF:
        rows[row, START] = bits
        rows[row, FLAGS] = ALONE
    else:
        if not settle(rows, digits, free, row, squares):
            return False
        if not place(rows, digits, free, row, bits, squares):
            return False
    rows[row, COUNT] += 1
    return True
