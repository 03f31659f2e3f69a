"""Values of whole columns of lists and sets of values.

In: a column of packed lists or sets (terascope.sketches.values). Out: of lists of numbers the one
at a place in their order; of sets the number of tuples and of different values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import REAL, column, compiled_for, inlined, output
from terascope.sketches.packed_form import VERSION, word_at
from terascope.sketches.packed_lists import FIXED, FORMS, count_in
from terascope.sketches.selection import room_for_parts, selected
from terascope.sketches.state_values import FOUND, NOTHING, REST, closed, longest, opened
from terascope.sketches.value_forms import ValueForm
from terascope.sketches.values import COUNTED
from terascope.sketches.word_lists import Words

WORD_FORMS: Final = 3
"""The forms below this one are words."""
OF_FLOATS: Final = int(ValueForm.FLOAT)
NAN: Final = 0x7FF8000000000000
OTHER_BITS: Final = 0x7FFFFFFFFFFFFFFF


def order_column(
    packed: pa.Array, share: float, read: Callable[[bytes], int | float | None]
) -> pa.Array | None:
    """The value of rank ceil(share * n), at least 1, of each list of numbers; NULL for no values.
    None: there are lists of integers and lists of FLOATs. `read` gives the value of one list.
    """
    offsets, data, marks = opened(packed)
    words = np.zeros(len(marks), np.int64)
    seen = np.zeros(2, np.int64)
    raw = np.empty(longest(offsets) + 1, np.int64)
    select_values(offsets, data, share, raw, room_for_parts(), marks, words, seen)
    if seen.all():
        return None
    return closed(packed, words.view(np.float64) if seen[1] else words, marks, read)


def size_columns(packed: pa.Array) -> tuple[Words, Words] | None:
    """The number of tuples, and of different values, of each set; 0 and 0 where it is NULL. None:
    one of the sets is damaged.
    """
    offsets, data, marks = opened(packed)
    sizes = np.zeros((2, len(marks)), np.int64)
    count_sets(offsets, data, marks, sizes)
    return None if (marks == REST).any() else (sizes[0], sizes[1])


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def read_run(data: Any, at: Any, low: Any, count: Any, width: Any, out: Any) -> None:
    """Read values less the smallest one. A known width lets the compiler read a value at once."""
    for k in range(count):
        out[k] = np.int64(word_at(data, at + k * width, width) + low)


@inlined
def read_numbers(data: Any, at: Any, count: Any, out: Any) -> None:
    """Read the numbers of a packed list."""
    width, low = data[at + 4], word_at(data, at + 8, 8)
    at += FIXED
    if width == 1:
        read_run(data, at, low, count, 1, out)
    elif width == 2:
        read_run(data, at, low, count, 2, out)
    elif width == 4:
        read_run(data, at, low, count, 4, out)
    else:
        read_run(data, at, low, count, 8, out)


@inlined
def turn_floats(words: Any, count: Any) -> None:
    """The bits of FLOATs as integers of the same order; -0.0 is 0.0, and NaN is the largest."""
    for k in range(count):
        size = words[k] & OTHER_BITS
        if size > 0x7FF0000000000000:
            words[k] = NAN
        elif size == 0:
            words[k] = 0
        elif words[k] < 0:
            words[k] ^= OTHER_BITS


@compiled_for(
    column(np.int64), column(np.uint8), REAL, output(np.int64), output(np.int64),
    output(np.uint8), output(np.int64), output(np.int64),
)  # fmt: skip
def select_values(
    offsets: Any, data: Any, share: Any, raw: Any, counts: Any, marks: Any, words: Any, seen: Any
) -> None:
    """`seen` says whether there are lists of integers, and of FLOATs, whose bits are found."""
    for i in range(len(marks)):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        if marks[i] != REST or not is_list(data, at, size, 86, 0):  # V
            continue
        form = np.int64(data[at + 3])
        if form >= WORD_FORMS:
            continue
        count = count_in(data, at, size, True, 0)
        if count < 0:
            continue
        if count == 0:
            marks[i] = NOTHING
            continue
        marks[i] = FOUND
        is_float = np.int64(form == OF_FLOATS)
        seen[is_float] = 1
        read_numbers(data, at, count, raw)
        if is_float:
            turn_floats(raw, count)
        rank = max(np.int64(1), np.int64(math.ceil(share * count)))
        found = selected(raw, count, rank - 1, counts)
        words[i] = found ^ OTHER_BITS if is_float and found < 0 else found


@inlined
def is_list(data: Any, at: Any, size: Any, letter: Any, extra: Any) -> Any:
    """Whether some bytes begin as a list of a family does."""
    if size < FIXED + extra or data[at] != 84 or data[at + 1] != letter:
        return False
    return data[at + 2] == VERSION and data[at + 3] < FORMS


@compiled_for(column(np.int64), column(np.uint8), output(np.uint8), output(np.int64, 2))
def count_sets(offsets: Any, data: Any, marks: Any, sizes: NDArray[np.int64]) -> None:
    for i in range(len(marks)):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        if marks[i] != REST or not is_list(data, at, size, 85, COUNTED):  # U
            continue
        count = count_in(data, at, size, data[at + 3] < WORD_FORMS, COUNTED)
        tuples = np.int64(word_at(data, at + 16, 8))
        if count >= 0 and tuples >= 0:
            marks[i] = FOUND
            sizes[0, i], sizes[1, i] = tuples, count
