"""MIN and MAX of text, addresses and bytes, as columns of states.

In: values that are runs of bytes. Out: for each state the smallest, or the largest, as
terascope.sketches.extremes says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import BOOLEAN, INTEGER, column, compiled_for, output
from terascope.sketches.base import Argument, Numbers, Packed, StateColumn, packed_of
from terascope.sketches.byte_pool import BytePool, rest_precedes
from terascope.sketches.packed_form import HEADER, checked, header_of, refusal, word_at
from terascope.sketches.value_forms import (
    FORM_BITS,
    Bytes,
    ValueForm,
    words_of,
    write_header,
    write_values,
)
from terascope.sketches.word_lists import Words, reached

EXTREME: Final = "E"
EXTREME_NAME: Final = "a state of MIN or MAX"
TOP: Final = 8
"""The bit of the variant for LAST and MAX."""
NOTHING: Final = 32
"""The bit of the variant for a state that has seen nothing."""
VARIANTS: Final = 64
VALUED: Final = HEADER + 4
"""The bytes of a packed state of MIN or MAX before the value."""


class SmallestBytes(StateColumn):
    """MIN, or MAX, of values that are runs of bytes. A state is the number of a value plus 1."""

    def __init__(self, form: ValueForm, largest: bool) -> None:
        assert not form.is_word
        self._form, self._largest = form, largest
        self._values = BytePool()
        self._best: Words = np.zeros(0, np.int64)
        self._count = 0

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        self._take(numbers, words_of(arguments[0], self._values))

    def _take(self, numbers: Numbers, values: Words) -> None:
        self._reach(numbers)
        pool, best = self._values, self._best
        take_smallest(numbers, values, self._largest, best, pool.heads, pool.ends, pool.content)

    def _reach(self, numbers: Numbers) -> None:
        self._best, self._count = reached(self._best, self._count, numbers)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, data = checked(packed, EXTREME, EXTREME_NAME, VARIANTS, HEADER)
        wrong = wrong_value(offsets, data, self._form)
        if wrong >= 0:
            state = data[offsets[wrong] : offsets[wrong + 1]].tobytes()
            raise ValueError(refusal(state, EXTREME, EXTREME_NAME))
        self._reach(numbers)
        seen = np.flatnonzero(data[offsets[:-1] + 3] & NOTHING == 0)
        found = self._values.of_runs(offsets[seen] + VALUED, offsets[seen + 1], data)
        self._take(numbers[seen], found)

    def pack(self, numbers: Numbers) -> Packed:
        self._reach(numbers)
        best = self._best[numbers] - 1
        seen = np.flatnonzero(best >= 0)
        best = best[seen]
        sizes = np.full(len(numbers), HEADER, np.int64)
        lengths = self._values.lengths(best)
        sizes[seen] = VALUED + lengths
        offsets = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        variant = self._form | (TOP if self._largest else 0)
        write_header(data, offsets[:-1], header_of(EXTREME, variant | NOTHING))
        data[offsets[seen] + 3] = variant
        for k in range(4):
            data[offsets[seen] + HEADER + k] = lengths >> (8 * k) & 0xFF
        write_values(best, offsets[seen] + VALUED, data, self._values, False)
        return packed_of(offsets, data)

    def drop(self, numbers: Numbers) -> None:
        self._reach(numbers)
        self._best[numbers] = 0

    def clear(self) -> None:
        self._best = np.zeros(0, np.int64)
        self._count = 0
        self._values.clear()

    @property
    def memory_bytes(self) -> int:
        return self._best.nbytes + self._values.memory_bytes


@compiled_for(
    column(np.int64), column(np.int64), BOOLEAN, output(np.int64),
    column(np.uint64), column(np.int64), column(np.uint8),
)  # fmt: skip
def take_smallest(
    numbers: Numbers, values: Words, largest: bool, best: Words,
    heads: NDArray[np.uint64], ends: Words, content: Bytes,
) -> None:  # fmt: skip
    for i in range(len(numbers)):
        row, value = np.uint64(numbers[i]), values[i]
        held = best[row] - 1
        if held == value:
            continue
        if held >= 0:
            if heads[value] != heads[held]:
                before = heads[value] < heads[held]
            else:
                before = rest_precedes(ends, content, value, held)
            if before == largest:
                continue
        best[row] = value + 1


@compiled_for(column(np.int64), column(np.uint8), INTEGER)
def wrong_value(offsets: Words, data: Bytes, form: int) -> int:
    """The same as `wrong_place`, for MIN and MAX."""
    for i in range(len(offsets) - 1):
        begin, size = offsets[i], offsets[i + 1] - offsets[i]
        variant = np.int64(data[begin + 3])
        if variant & FORM_BITS != form:
            return i
        if variant & NOTHING != 0:
            continue
        if size < VALUED or word_at(data, begin + 4, 4) != np.uint64(size - VALUED):
            return i
    return -1
