"""FIRST and LAST of any type, and MIN and MAX of text, addresses and bytes, as columns of states.

In: values; for FIRST and LAST each with its place in the stream: a clock, if there is one, the
interface it came from and its position there, which are compared in this order. Out: for each state
the value at the smallest or largest place, or the smallest or largest value.

Places make the merge of FIRST and LAST independent of the order in which states arrive: tasks,
spill files and slices hand them over in any. Interfaces, and the values of MIN and MAX, compare as
bytes, text in UTF-8.

A packed state of FIRST and LAST is the header, the numbers of bytes of the interface and of the
value (16 bits each, the lowest ones), the clock, the position (64 bits each), the interface and the
value; one of MIN and MAX the header, the number of bytes of the value (32 bits) and the value. The
variant has the form of the value (terascope.sketches.value_forms), and bits for LAST
or MAX, for an interface that is a number, and for a state that has seen nothing, which is its
header alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import BOOLEAN, INTEGER, column, compiled_for
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    bytes_of,
    packed_of,
    packed_states,
)
from terascope.sketches.byte_pool import BytePool, rest_precedes
from terascope.sketches.packed_form import (
    HEADER,
    checked,
    checked_one,
    header_of,
    refusal,
    word_at,
)
from terascope.sketches.smallest_bytes import (
    EXTREME,
    EXTREME_NAME,
    NOTHING,
    TOP,
    VALUED,
    VARIANTS,
    SmallestBytes,
    wrong_value,
)
from terascope.sketches.value_forms import (
    FORM_BITS,
    Bytes,
    Held,
    ValueForm,
    form_of,
    packed_sizes,
    read_values,
    read_words,
    value_of,
    words_of,
    write_header,
    write_values,
    write_words,
)
from terascope.sketches.word_lists import ROWS, Words, reached
from terascope.types import Type

PLACED: Final = "P"
PLACED_NAME: Final = "a state of FIRST or LAST"

NUMBERED: Final = 16
"""The bit of the variant for an interface that is a number."""
FIXED: Final = HEADER + 20
"""The bytes of a packed place before the interface."""

CLOCK, INTERFACE, POSITION, VALUE = 0, 1, 2, 3
EMPTY: Final = -(2**63)
"""The interface of a state that has seen nothing."""


def first_kind(type_: Type) -> StateKind:
    """FIRST of a type; the arguments are the value and its place."""
    return _kind(EndOfStream, "first", type_, False)


def last_kind(type_: Type) -> StateKind:
    return _kind(EndOfStream, "last", type_, True)


def min_kind(type_: Type) -> StateKind:
    """MIN of a type whose values are runs of bytes."""
    return _kind(SmallestBytes, "min", type_, False)


def max_kind(type_: Type) -> StateKind:
    return _kind(SmallestBytes, "max", type_, True)


def _kind(
    column: type[EndOfStream] | type[SmallestBytes], name: str, type_: Type, top: bool
) -> StateKind:
    form = form_of(type_)
    made = partial(column, form, top)
    return StateKind(f"{name}({form.name.lower()})", made, made)


def extreme_value(state: bytes) -> Held | None:
    """The value of a packed state of any of the four; None when it has seen nothing."""
    placed = state[1:2] == PLACED.encode()
    family, name = (PLACED, PLACED_NAME) if placed else (EXTREME, EXTREME_NAME)
    variant = checked_one(state, family, name, VARIANTS, HEADER)
    if variant & NOTHING:
        return None
    form = variant & FORM_BITS
    damaged = (wrong_place if placed else wrong_value)(*bytes_of(packed_states([state])), form)
    if damaged >= 0 or form >= len(ValueForm):
        raise ValueError(refusal(state, family, name))
    begin = FIXED + int.from_bytes(state[4:6], "little") if placed else VALUED
    return value_of(ValueForm(form), state[begin:])


# ---- FIRST and LAST ------------------------------------------------------------------------------


class EndOfStream(StateColumn):
    """FIRST, or LAST. A row is the place of the value, and the value as a word."""

    def __init__(self, form: ValueForm, last: bool) -> None:
        self._form, self._last = form, last
        self._values, self._interfaces = BytePool(), BytePool()
        self._numbered = False
        self._rows: Words = np.zeros((0, 4), np.int64)
        self._count = 0

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        value, *place = arguments
        clocks, interface, positions = place_columns(place)
        self._numbered = not isinstance(interface, CodedValues)
        interfaces = words_of(interface, self._interfaces)
        self._take(numbers, clocks, interfaces, positions, words_of(value, self._values))

    def _take(
        self, numbers: Numbers, clocks: Words, interfaces: Words, positions: Words, values: Words
    ) -> None:
        self._reach(numbers)
        pool = self._interfaces
        take_placed(
            numbers, clocks, interfaces, positions, values, self._last, self._numbered,
            self._rows, pool.heads, pool.ends, pool.content,
        )  # fmt: skip

    def _reach(self, numbers: Numbers) -> None:
        before = self._count
        self._rows, self._count = reached(self._rows, before, numbers)
        self._rows[before : self._count, INTERFACE] = EMPTY

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, data = checked(packed, PLACED, PLACED_NAME, VARIANTS, HEADER)
        wrong = wrong_place(offsets, data, self._form)
        if wrong >= 0:
            state = data[offsets[wrong] : offsets[wrong + 1]].tobytes()
            raise ValueError(refusal(state, PLACED, PLACED_NAME))
        self._reach(numbers)
        variants = data[offsets[:-1] + 3]
        for numbered in (0, NUMBERED):  # one of them only, unless sources of two kinds are merged
            seen = np.flatnonzero(variants & (NUMBERED | NOTHING) == numbered)
            if not len(seen):
                continue
            self._numbered = bool(numbered)
            begins = offsets[seen]
            lengths = read_words(begins + HEADER, data) & 0xFFFF
            interface, value, ends = begins + FIXED, begins + FIXED + lengths, offsets[seen + 1]
            self._take(
                numbers[seen],
                read_words(begins + 8, data),
                read_values(interface, value, data, self._interfaces, self._numbered),
                read_words(begins + 16, data),
                read_values(value, ends, data, self._values, self._form.is_word),
            )

    def pack(self, numbers: Numbers) -> Packed:
        self._reach(numbers)
        rows = self._rows[numbers]
        seen = np.flatnonzero(rows[:, INTERFACE] != EMPTY)
        rows = rows[seen]
        interfaces = packed_sizes(rows[:, INTERFACE], self._interfaces, self._numbered)
        sizes = np.full(len(numbers), HEADER, np.int64)
        values = packed_sizes(rows[:, VALUE], self._values, self._form.is_word)
        sizes[seen] = FIXED + interfaces + values
        offsets = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        variant = self._form | (TOP if self._last else 0) | (NUMBERED if self._numbered else 0)
        write_header(data, offsets[:-1], header_of(PLACED, variant | NOTHING))
        begins = offsets[seen]
        data[begins + 3] = variant
        # The upper half of this word is overwritten by the clock.
        write_words(interfaces | (values & 0xFFFF) << 16, begins + HEADER, data)
        write_words(rows[:, CLOCK], begins + 8, data)
        write_words(rows[:, POSITION], begins + 16, data)
        middle = begins + FIXED
        write_values(
            np.ascontiguousarray(rows[:, INTERFACE]), middle, data, self._interfaces, self._numbered
        )
        is_word = self._form.is_word
        words = np.ascontiguousarray(rows[:, VALUE])
        write_values(words, middle + interfaces, data, self._values, is_word)
        return packed_of(offsets, data)

    def drop(self, numbers: Numbers) -> None:
        self._reach(numbers)
        self._rows[numbers, INTERFACE] = EMPTY

    def clear(self) -> None:
        self._rows = np.zeros((0, 4), np.int64)
        self._count = 0
        self._values.clear()
        self._interfaces.clear()

    @property
    def memory_bytes(self) -> int:
        return self._rows.nbytes + self._values.memory_bytes + self._interfaces.memory_bytes


def place_columns(place: Sequence[Argument]) -> tuple[Words, Argument, Words]:
    """Clock, interface and position; a source without a clock has the last two only, and the clocks
    are an empty vector then.
    """
    *clock, interface, position = place
    clocks = ordered_words(clock[0]) if clock else np.zeros(0, np.int64)
    return clocks, interface, ordered_words(position)


def ordered_words(column: Argument) -> Words:
    """Integers, or FLOATs as integers of the same order."""
    assert not isinstance(column, CodedValues)
    if column.dtype != np.float64:
        return np.ascontiguousarray(column, np.int64)
    bits = (column + 0.0).view(np.int64)
    words: Words = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return words


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64), column(np.int64),
    BOOLEAN, BOOLEAN, ROWS, column(np.uint64), column(np.int64), column(np.uint8),
)  # fmt: skip
def take_placed(
    numbers: Numbers, clocks: Words, interfaces: Words, positions: Words, values: Words,
    last: bool, numbered: bool, rows: Words,
    heads: NDArray[np.uint64], ends: Words, content: Bytes,
) -> None:  # fmt: skip
    """Keep the value whose place is smaller, or larger for LAST, than that of its state. There may
    be no clocks.
    """
    clocked = len(clocks) > 0
    for i in range(len(numbers)):
        row = np.uint64(numbers[i])
        clock = clocks[i] if clocked else np.int64(0)
        interface, position = interfaces[i], positions[i]
        held = rows[row, INTERFACE]
        if held != EMPTY:
            if clock != rows[row, CLOCK]:
                before = clock < rows[row, CLOCK]
            elif interface == held:
                before = position < rows[row, POSITION]
            elif numbered:
                before = interface < held
            elif heads[interface] != heads[held]:
                before = heads[interface] < heads[held]
            else:
                before = rest_precedes(ends, content, interface, held)
            if before == last:
                continue
        rows[row, CLOCK] = clock
        rows[row, INTERFACE] = interface
        rows[row, POSITION] = position
        rows[row, VALUE] = values[i]


@compiled_for(column(np.int64), column(np.uint8), INTEGER)
def wrong_place(offsets: Words, data: Bytes, form: int) -> int:
    """The first packed state whose parts do not fill it, or whose value is of another form; -1 when
    there is none.
    """
    for i in range(len(offsets) - 1):
        begin, size = offsets[i], offsets[i + 1] - offsets[i]
        variant = np.int64(data[begin + 3])
        if variant & FORM_BITS != form:
            return i
        if variant & NOTHING != 0:
            continue
        if size < FIXED:
            return i
        interface = np.int64(word_at(data, begin + 4, 2))
        value = size - FIXED - interface
        if value < 0 or np.uint64(value & 0xFFFF) != word_at(data, begin + 6, 2):
            return i
        if form < 3 and value != 8:
            return i
        if variant & NUMBERED != 0 and interface != 8:
            return i
    return -1
