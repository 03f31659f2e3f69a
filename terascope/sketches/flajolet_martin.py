"""The sketch of Flajolet and Martin (PCSA, 1985), as columns of states: for the record.

In: values. Out: for each state 64 sets of ranks, as bits of words. The lowest bits of a hash choose
the set, and the number of zeros behind them is the rank. The mean of the smallest ranks that are
missing in the sets says how many different values there were, within 10% or so. HyperLogLog needs
less memory for the same error.

A packed state has, behind the header, the length (32 bits) and the number of tuples (64 bits), a
word that is 1 for registers, and then the hashes of a small set, or the 64 registers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import Numbers, Packed, StateKind, packed_of
from terascope.sketches.murmur import Hashes
from terascope.sketches.packed_form import Data, Offsets, header_of, put_word, word_at
from terascope.sketches.registers import DENSE, RegisterSketches
from terascope.sketches.theta import FAMILY, FLAJOLET_MARTIN, SKETCH
from terascope.sketches.value_forms import write_header, write_words
from terascope.sketches.word_lists import FIRST, Words
from terascope.sketches.word_sets import BOUND

BITMAPS: Final = 64
MOST_HASHES: Final = 64
START: Final = SKETCH + 8
PHI: Final = 0.77351
"""The constant of Flajolet and Martin."""


class BitmapSketches(RegisterSketches):
    most = MOST_HASHES
    width = BITMAPS
    dtype = np.int64

    def words(self, low: Hashes, high: Hashes) -> Words:
        """63 bits of a hash, none of them 0."""
        positive: Words = (low >> np.uint64(1) | np.uint64(1 << 62)).view(np.int64)
        return positive

    def fold(self, numbers: Numbers, words: Words) -> None:
        fold_hashes(numbers, words, self._sets.rows, self._sets.blocks)

    def measure(self, starts: Offsets, data: Data, counts: Words) -> int:
        return int(measure_bitmaps(starts, data, counts))

    def read_sets(self, starts: Offsets, counts: Words, data: Data, found: Words) -> None:
        read_hashes(starts, counts, data, found)

    def read_block(self, state: Data) -> NDArray[Any]:
        return np.frombuffer(state[START:].tobytes(), np.int64)

    def join(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        joined: NDArray[Any] = left | right
        return joined

    def write(self, offsets: Offsets, words: Words, blocks: Words, tuples: Words) -> Packed:
        counts = np.where(blocks >= 0, BITMAPS, np.diff(offsets))
        ends = np.zeros(len(offsets), np.int64)
        np.cumsum(START + 8 * counts, out=ends[1:])
        data = np.zeros(ends[-1], np.uint8)
        write_header(data, ends[:-1], header_of(FAMILY, FLAJOLET_MARTIN))
        write_words(np.diff(ends), ends[:-1] + 4, data)
        write_words(tuples, ends[:-1] + 8, data)
        write_bitmaps(offsets, words, blocks, self._sets.blocks, ends, data)
        return packed_of(ends, data)


FLAJOLET_MARTIN_KIND: Final = StateKind("fm(64)", BitmapSketches, BitmapSketches)


def bitmap_estimate(state: bytes) -> float:
    """The number of different values, of a packed state whose form was checked. The correction for
    small numbers is that of Scheuermann and Mauve (2007).
    """
    words = np.frombuffer(state[START:], np.int64)
    if state[SKETCH] == 0:
        return float(len(words))
    ranks = [(~int(word) & (int(word) + 1)).bit_length() - 1 for word in words]
    return estimate_of_ranks(sum(ranks))


def estimate_of_ranks(total: int) -> float:
    """The estimate from the sum of the smallest ranks that are missing."""
    mean = total / BITMAPS
    return float(BITMAPS / PHI * (2.0**mean - 2.0 ** (-1.75 * mean)))


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(column(np.int64), column(np.int64), column(np.int64, 2), output(np.int64, 2))
def fold_hashes(numbers: Numbers, hashes: Words, rows: Words, blocks: Words) -> None:
    for i in range(len(numbers)):
        row = np.uint64(numbers[i])
        if rows[row, BOUND] == DENSE:
            rest, rank = hashes[i] >> 6, 0
            while rest & 1 == 0:
                rest >>= 1
                rank += 1
            blocks[np.uint64(rows[row, FIRST]), np.uint64(hashes[i] & 63)] |= 1 << rank


@compiled_for(column(np.int64), column(np.uint8), output(np.int64))
def measure_bitmaps(starts: Offsets, data: Data, counts: Words) -> int:
    """The number of hashes of each packed state; -1: it has registers. Returns the first that is
    damaged, or -1.
    """
    for i in range(len(counts)):
        at, size = starts[i], starts[i + 1] - starts[i]
        if data[at + 3] != FLAJOLET_MARTIN or size < START or size % 8 != 0:
            return i
        if word_at(data, at + 4, 4) != np.uint64(size):
            return i
        counts[i] = (size - START) // 8
        if data[at + SKETCH] == 1:
            if counts[i] != BITMAPS:
                return i
            counts[i] = -1
        for k in range(counts[i]):
            if word_at(data, at + START + 8 * k, 8) >> np.uint64(62) != np.uint64(1):
                return i
    return -1


@compiled_for(column(np.int64), column(np.int64), column(np.uint8), output(np.int64))
def read_hashes(starts: Offsets, counts: Words, data: Data, found: Words) -> None:
    to = 0
    for i in range(len(starts)):
        for k in range(counts[i]):
            found[to] = np.int64(word_at(data, starts[i] + START + 8 * k, 8))
            to += 1


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64, 2), column(np.int64),
    output(np.uint8),
)  # fmt: skip
def write_bitmaps(
    offsets: Offsets, hashes: Words, blocks: Words, registers: Words, ends: Offsets, data: Data
) -> None:
    for i in range(len(blocks)):
        at = ends[i] + START
        if blocks[i] >= 0:
            data[ends[i] + SKETCH] = 1
            for k in range(BITMAPS):
                put_word(data, at + 8 * k, 8, np.uint64(registers[blocks[i], k]))
        else:
            for k in range(offsets[i], offsets[i + 1]):
                put_word(data, at + 8 * (k - offsets[i]), 8, np.uint64(hashes[k]))
