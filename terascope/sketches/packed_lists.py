"""Lists of values as packed states: one block of values for each.

In: lists of words, one behind the other, and the form of the values. Out: packed states, and the
other way round.

Integers are written less the smallest of the list, in as few bytes as the largest then needs (1, 2,
4 or 8); FLOATs in 8. Behind the header stand that width, the lowest 24 bits of the number of
values, by which a list that is cut short is found out, and the smallest value. Of text and bytes,
there stand the number of values instead of the smallest, the length of each in 32 bits, and then
the bytes of all.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import BOOLEAN, INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Packed
from terascope.sketches.byte_pool import BytePool, copy_values
from terascope.sketches.packed_form import (
    HEADER,
    Data,
    Offsets,
    checked,
    checked_one,
    header_of,
    put_word,
    refusal,
    word_at,
)
from terascope.sketches.value_forms import Held, ValueForm, write_header
from terascope.sketches.word_lists import Words

FIXED: Final = HEADER + 12
FORMS: Final = len(ValueForm)


def pack_lists(
    offsets: Offsets, words: Words, form: ValueForm, pool: BytePool, family: str, extra: int = 0
) -> tuple[Offsets, Data]:
    """Offsets and bytes of packed lists. `extra` bytes, which are zero, stand before the values."""
    ends = np.zeros(len(offsets), np.int64)
    if form.is_word:
        widths = np.zeros(len(offsets) - 1, np.int64)
        least = np.zeros(len(offsets) - 1, np.int64)
        measure(offsets, words, form is ValueForm.FLOAT, widths, least)
        np.cumsum(FIXED + extra + widths * np.diff(offsets), out=ends[1:])
        data = np.zeros(ends[-1], np.uint8)
        write_header(data, ends[:-1], header_of(family, form))
        write_lists(offsets, words, widths, least, ends, extra, data)
        return ends, data
    lengths = pool.lengths(words)
    before = np.concatenate(([0], np.cumsum(lengths)))
    counts = np.diff(offsets)
    np.cumsum(FIXED + extra + 4 * counts + np.diff(before[offsets]), out=ends[1:])
    data = np.zeros(ends[-1], np.uint8)
    write_header(data, ends[:-1], header_of(family, form))
    places = np.empty(len(words), np.int64)
    write_lengths(offsets, lengths, ends, extra, places, data)
    copy_values(words, pool.ends, pool.content, places, data)
    return ends, data


def unpack_lists(
    packed: Packed, form: ValueForm, pool: BytePool, family: str, name: str, extra: int = 0
) -> tuple[Offsets, Words]:
    """Offsets and words of the lists of packed states.

    Raises:
        ValueError: one of them is no such list.
    """
    starts, data = checked(packed, family, name, FORMS, FIXED + extra)
    offsets = np.zeros(len(packed) + 1, np.int64)
    wrong = count_values(starts, data, form, form.is_word, extra, offsets)
    if wrong >= 0:
        raise ValueError(refusal(data[starts[wrong] : starts[wrong + 1]].tobytes(), family, name))
    words = np.empty(offsets[-1], np.int64)
    if form.is_word:
        read_lists(starts, data, extra, offsets, words)
        return offsets, words
    begins, ends = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    locate_values(starts, data, extra, offsets, begins, ends)
    return offsets, pool.of_runs(begins, ends, data)


def number_array(state: bytes, family: str, name: str, extra: int = 0) -> NDArray[np.generic]:
    """The numbers of one packed list: int64, or float64."""
    form = ValueForm(checked_one(state, family, name, FORMS, FIXED + extra))
    if not form.is_word:
        raise ValueError(f"{name} has values that are no numbers")
    _, words = unpack_lists(
        pa.array([state], pa.large_binary()), form, NO_POOL, family, name, extra
    )
    return words.view(np.float64) if form is ValueForm.FLOAT else words


def value_list(state: bytes, family: str, name: str, extra: int = 0) -> list[Held]:
    """The values of one packed list."""
    form = ValueForm(checked_one(state, family, name, FORMS, FIXED + extra))
    if form.is_word:
        numbers: list[Held] = number_array(state, family, name, extra).tolist()
        return [bool(n) for n in numbers] if form is ValueForm.BOOL else numbers
    pool = BytePool()
    _, ids = unpack_lists(pa.array([state], pa.large_binary()), form, pool, family, name, extra)
    found = [pool.value(k) for k in ids.tolist()]
    return [value.decode("utf-8") for value in found] if form is ValueForm.TEXT else list(found)


NO_POOL: Final = BytePool()
"""Numbers need none."""


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(column(np.int64), column(np.int64), BOOLEAN, output(np.int64), output(np.int64))
def measure(offsets: Offsets, words: Words, floats: bool, widths: Words, least: Words) -> None:
    """The smallest number of each list, and the number of bytes that the others need."""
    for i in range(len(widths)):
        begin, end = offsets[i], offsets[i + 1]
        if floats or begin == end:
            widths[i] = 8
            continue
        low = high = words[begin]
        for k in range(begin + 1, end):
            low, high = min(low, words[k]), max(high, words[k])
        span = np.uint64(high) - np.uint64(low)
        width = 1
        while width < 8 and span >> np.uint64(8 * width) != np.uint64(0):
            width *= 2
        widths[i], least[i] = width, low


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64), column(np.int64),
    INTEGER, output(np.uint8),
)  # fmt: skip
def write_lists(
    offsets: Offsets, words: Words, widths: Words, least: Words, ends: Offsets, extra: int,
    data: Data,
) -> None:  # fmt: skip
    for i in range(len(widths)):
        at, width, low = ends[i], widths[i], np.uint64(least[i])
        data[at + 4] = width
        put_word(data, at + 5, 3, np.uint64(offsets[i + 1] - offsets[i]))
        put_word(data, at + 8, 8, low)
        at += FIXED + extra
        for k in range(offsets[i], offsets[i + 1]):
            put_word(data, at, width, np.uint64(words[k]) - low)
            at += width


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), INTEGER, output(np.int64),
    output(np.uint8),
)  # fmt: skip
def write_lengths(
    offsets: Offsets, lengths: Words, ends: Offsets, extra: int, places: Words, data: Data
) -> None:
    """Write the lengths of values, and say where the values themselves belong."""
    for i in range(len(offsets) - 1):
        count = offsets[i + 1] - offsets[i]
        put_word(data, ends[i] + 8, 8, np.uint64(count))
        at = ends[i] + FIXED + extra
        to = at + 4 * count
        for k in range(offsets[i], offsets[i + 1]):
            put_word(data, at, 4, np.uint64(lengths[k]))
            places[k] = to
            at += 4
            to += lengths[k]


@inlined
def count_in(data: Data, at: int, size: Any, is_word: bool, extra: int) -> Any:
    """The number of values of a packed list; negative when its parts do not fill it."""
    size -= FIXED + extra
    if is_word:
        width = np.int64(data[at + 4])
        if width != 1 and width != 2 and width != 4 and width != 8:
            return np.int64(-1)
        count = size // width
        whole = size == count * width and word_at(data, at + 5, 3) == np.uint64(count & 0xFFFFFF)
        return count if whole else np.int64(-1)
    count = np.int64(word_at(data, at + 8, 8))
    if count < 0 or count > size // 4:
        return np.int64(-1)
    size -= 4 * count
    for k in range(count):
        size -= np.int64(word_at(data, at + FIXED + extra + 4 * k, 4))
    return count if size == 0 else np.int64(-1)


@compiled_for(column(np.int64), column(np.uint8), INTEGER, BOOLEAN, INTEGER, output(np.int64))
def count_values(
    starts: Offsets, data: Data, form: int, is_word: bool, extra: int, offsets: Offsets
) -> int:
    """Where the values of each list end; returns the first list that is damaged, or -1."""
    for i in range(len(starts) - 1):
        at = starts[i]
        if data[at + 3] != form:
            return i
        count = count_in(data, at, starts[i + 1] - at, is_word, extra)
        if count < 0:
            return i
        offsets[i + 1] = offsets[i] + count
    return -1


@compiled_for(column(np.int64), column(np.uint8), INTEGER, column(np.int64), output(np.int64))
def read_lists(starts: Offsets, data: Data, extra: int, offsets: Offsets, words: Words) -> None:
    for i in range(len(starts) - 1):
        width, low = np.int64(data[starts[i] + 4]), word_at(data, starts[i] + 8, 8)
        at = starts[i] + FIXED + extra
        for k in range(offsets[i], offsets[i + 1]):
            words[k] = np.int64(word_at(data, at, width) + low)
            at += width


@compiled_for(
    column(np.int64), column(np.uint8), INTEGER, column(np.int64), output(np.int64),
    output(np.int64),
)  # fmt: skip
def locate_values(
    starts: Offsets, data: Data, extra: int, offsets: Offsets, begins: Words, ends: Words
) -> None:
    for i in range(len(starts) - 1):
        at = starts[i] + FIXED + extra
        to = at + 4 * (offsets[i + 1] - offsets[i])
        for k in range(offsets[i], offsets[i + 1]):
            begins[k] = to
            to += np.int64(word_at(data, at, 4))
            ends[k] = to
            at += 4
