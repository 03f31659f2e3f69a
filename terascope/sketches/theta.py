"""Theta sketches: sets of hashes, of which the smallest are kept, as columns of states.

In: values. Out: for each state a sketch by which the number of different values is estimated, and
which can be united, intersected and subtracted (terascope.sketches.distinct).

A state keeps the hashes of its values, each once, below a bound. While there are no more than k of
them the bound is the largest hash there is, and the state is exact. When there are more, the bound
becomes the smallest hash that is given up. The number of different values is the number of hashes
divided by the share of all hashes that lie below the bound.

The bytes of a packed state from the 16th on are a compact Theta sketch of Apache DataSketches, made
with its hash function and its seed, so that sketches of others can be merged with ours. Before them
stand the header, the length of the state (32 bits) and the number of tuples (64 bits).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import (
    Argument,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_of,
)
from terascope.sketches.murmur import ValueHashes
from terascope.sketches.packed_form import (
    Data,
    Offsets,
    checked,
    header_of,
    put_word,
    refusal,
    word_at,
)
from terascope.sketches.value_forms import read_words, write_header, write_words
from terascope.sketches.values import count_tuples
from terascope.sketches.word_lists import ROWS, Words
from terascope.sketches.word_sets import BOUND, TUPLES, WordSets

FAMILY: Final = "D"
NAME: Final = "a state of a distinct count"
HLL, FLAJOLET_MARTIN, THETA = 0, 1, 2
VARIANTS: Final = 3
SKETCH: Final = 16
"""Where the sketch of DataSketches begins in a packed state."""
NO_BOUND: Final = 2**63 - 1
K: Final = 4096
SEED_HASH: Final = 0x93CC
"""A hash of the seed, by which DataSketches knows sketches of its own."""
ORDERED_FLAGS, EMPTY_FLAGS = 0x1A, 0x1E
EMPTY_BIT: Final = 4


class SmallestHashes(WordSets):
    """Sets of the k smallest hashes."""

    def reduce_set(self, number: int) -> None:
        _, words = self.lists(np.array([number]))
        bound = self.rows[number, BOUND]
        words = words[words < bound] if bound else words
        if len(words) > self._most:
            self.rows[number, BOUND] = words[self._most]
            words = words[: self._most]
        self.put_set(number, words)


class ThetaSketches(StateColumn):
    def __init__(self, k: int) -> None:
        self._hashes = ValueHashes()
        self._sets = SmallestHashes(k)

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        low, _ = self._hashes.of(arguments[0])
        self._sets.include(numbers, (low >> np.uint64(1)).view(np.int64))
        count_tuples(numbers, TUPLES, self._sets.rows)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        starts, data = checked(packed, FAMILY, NAME, VARIANTS, SKETCH + 8)
        offsets = np.zeros(len(packed) + 1, np.int64)
        wrong = count_hashes(starts, data, offsets)
        if wrong >= 0:
            raise ValueError(
                refusal(data[starts[wrong] : starts[wrong + 1]].tobytes(), FAMILY, NAME)
            )
        self._sets.reach(numbers)
        words = np.empty(offsets[-1], np.int64)
        read_sketches(numbers, starts, data, offsets, self._sets.rows, words)
        self._sets.include(np.repeat(numbers, np.diff(offsets)), words)
        tuples = read_words(starts[:-1] + 8, data)
        np.add.at(self._sets.rows[:, TUPLES], numbers, tuples)

    def pack(self, numbers: Numbers) -> Packed:
        offsets, words = self._sets.sorted_sets(numbers)
        kept = np.empty(len(numbers), np.int64)
        ends = np.zeros(len(numbers) + 1, np.int64)
        measure_sketches(numbers, offsets, words, self._sets.rows, kept, ends)
        data = np.zeros(ends[-1], np.uint8)
        write_header(data, ends[:-1], header_of(FAMILY, THETA))
        write_sketches(numbers, offsets, words, self._sets.rows, kept, ends, data)
        write_words(self._sets.rows[numbers, TUPLES], ends[:-1] + 8, data)
        return packed_of(ends, data)

    def drop(self, numbers: Numbers) -> None:
        self._sets.drop(numbers)

    def clear(self) -> None:
        self._sets.clear()

    @property
    def memory_bytes(self) -> int:
        return self._sets.memory_bytes + self._hashes.memory_bytes


THETA_KIND: Final = StateKind("theta(4096)", partial(ThetaSketches, K), partial(ThetaSketches, K))


def wrapped(sketch: bytes, variant: int, tuples: int = 0) -> bytes:
    """A packed state around the bytes of a sketch of DataSketches."""
    size = SKETCH + len(sketch)
    start = header_of(FAMILY, variant) + size.to_bytes(4, "little")
    return start + tuples.to_bytes(8, "little") + sketch


def is_empty(state: bytes) -> bool:
    """Whether a packed Theta state has seen no value."""
    return len(state) > SKETCH + 5 and bool(state[SKETCH + 5] & EMPTY_BIT)


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(column(np.int64), column(np.uint8), output(np.int64))
def count_hashes(starts: Offsets, data: Data, offsets: Offsets) -> int:
    """Where the hashes of each sketch end; returns the first that is no Theta sketch, or -1."""
    for i in range(len(starts) - 1):
        at, size = starts[i], starts[i + 1] - starts[i]
        if data[at + 3] != THETA or word_at(data, at + 4, 4) != np.uint64(size):
            return i
        at += SKETCH
        size -= SKETCH
        longs = np.int64(data[at] & np.uint8(0x3F))
        known = data[at + 1] == 3 and data[at + 2] == 3
        if not known or longs < 1 or longs > 3 or size < 8 * longs:
            return i
        if data[at + 5] & EMPTY_BIT == 0 and word_at(data, at + 6, 2) != np.uint64(SEED_HASH):
            return i
        count = (size - 8 * longs) // 8
        if size != 8 * (longs + count):
            return i
        if longs == 1 and count > 1:
            return i
        if longs > 1 and word_at(data, at + 8, 4) != np.uint64(count):
            return i
        offsets[i + 1] = offsets[i] + count
    return -1


@compiled_for(
    column(np.int64), column(np.int64), column(np.uint8), column(np.int64), ROWS,
    output(np.int64),
)  # fmt: skip
def read_sketches(
    numbers: Numbers, starts: Offsets, data: Data, offsets: Offsets, rows: Words, words: Words
) -> None:
    """The hashes of all sketches; the bounds of the states become those of the sketches, where
    these are smaller.
    """
    for i in range(len(numbers)):
        at = starts[i] + SKETCH
        longs = np.int64(data[at] & np.uint8(0x3F))
        if longs == 3:
            bound = np.int64(word_at(data, at + 16, 8))
            held = rows[numbers[i], BOUND]
            if bound > 0 and (held == 0 or bound < held):
                rows[numbers[i], BOUND] = bound
        at += 8 * longs
        for k in range(offsets[i], offsets[i + 1]):
            words[k] = np.int64(word_at(data, at, 8) & np.uint64(NO_BOUND))
            at += 8


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64, 2), output(np.int64),
    output(np.int64),
)  # fmt: skip
def measure_sketches(
    numbers: Numbers, offsets: Offsets, words: Words, rows: Words, kept: Words, ends: Offsets
) -> None:
    """The number of hashes below the bound, and where each packed state ends."""
    for i in range(len(numbers)):
        bound = rows[numbers[i], BOUND]
        count = offsets[i + 1] - offsets[i]
        if bound != 0:
            while count > 0 and words[offsets[i] + count - 1] >= bound:
                count -= 1
        kept[i] = count
        longs = 3 if bound != 0 else 2 if count > 1 else 1
        ends[i + 1] = ends[i] + SKETCH + 8 * (longs + count)


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64, 2), column(np.int64),
    column(np.int64), output(np.uint8),
)  # fmt: skip
def write_sketches(
    numbers: Numbers, offsets: Offsets, words: Words, rows: Words, kept: Words, ends: Offsets,
    data: Data,
) -> None:  # fmt: skip
    for i in range(len(numbers)):
        at, bound, count = ends[i], rows[numbers[i], BOUND], kept[i]
        put_word(data, at + 4, 4, np.uint64(ends[i + 1] - at))
        at += SKETCH
        longs = 3 if bound != 0 else 2 if count > 1 else 1
        data[at] = longs
        data[at + 1] = 3
        data[at + 2] = 3
        data[at + 5] = EMPTY_FLAGS if count == 0 and bound == 0 else ORDERED_FLAGS
        put_word(data, at + 6, 2, np.uint64(SEED_HASH))
        if longs > 1:
            put_word(data, at + 8, 4, np.uint64(count))
        if longs > 2:
            put_word(data, at + 16, 8, np.uint64(bound))
        at += 8 * longs
        for k in range(count):
            put_word(data, at + 8 * k, 8, np.uint64(words[offsets[i] + k]))
