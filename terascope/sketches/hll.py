"""HyperLogLog sketches (HLL) of Apache DataSketches, as columns of states.

In: values. Out: for each state a sketch of 4096 registers of a byte.

What a register depends on is a *coupon* of 32 bits: 26 bits of a hash, whose lowest choose the
register, and the number of zeros at the beginning of another hash plus 1, of which a register keeps
the largest. A state begins as a set of coupons.

The bytes of a packed state from the 16th on are a sketch HLL_8, in the mode LIST or SET while it is
a set, made with the hash function and the seed of DataSketches. So Spark's hll_sketch_estimate and
hll_union take them, and sketches that hll_sketch_agg made of the same values can be merged with
ours. The sketch says that its values came out of order, for then its estimate depends on the
registers alone.
"""

from __future__ import annotations

from typing import Any, Final

import datasketches
import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import Numbers, Packed, StateKind, packed_of
from terascope.sketches.murmur import Hashes
from terascope.sketches.packed_form import Data, Offsets, header_of, put_word, word_at
from terascope.sketches.registers import DENSE, RegisterSketches
from terascope.sketches.theta import FAMILY, HLL, SKETCH
from terascope.sketches.value_forms import write_header, write_words
from terascope.sketches.word_lists import FIRST, Words
from terascope.sketches.word_sets import BOUND

LG_REGISTERS: Final = 12
REGISTERS: Final = 1 << LG_REGISTERS
MOST_COUPONS: Final = 256
"""The largest set that is kept instead of registers."""
ADDRESS: Final = (1 << 26) - 1
LONGEST_LIST: Final = 7
LIST_START, SET_START, HLL_START = SKETCH + 8, SKETCH + 12, SKETCH + 40
LIST_MODE, SET_MODE, HLL_MODE = 8, 9, 10
"""The target HLL_8, and the mode in the lowest two bits."""
COMPACT, EMPTY, OUT_OF_ORDER = 8, 4, 16
DENSE_SIZE: Final = HLL_START + REGISTERS


class HllSketches(RegisterSketches):
    most = MOST_COUPONS
    width = REGISTERS
    dtype = np.uint8

    def words(self, low: Hashes, high: Hashes) -> Words:
        coupons = np.empty(len(low), np.int64)
        make_coupons(low, high, coupons)
        return coupons

    def fold(self, numbers: Numbers, words: Words) -> None:
        fold_coupons(numbers, words, self._sets.rows, self._sets.blocks)

    def measure(self, starts: Offsets, data: Data, counts: Words) -> int:
        return int(measure_hll(starts, data, counts))

    def read_sets(self, starts: Offsets, counts: Words, data: Data, found: Words) -> None:
        read_coupons(starts, counts, data, found)

    def read_block(self, state: Data) -> NDArray[Any]:
        return state[HLL_START:]

    def join(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        joined: NDArray[Any] = np.maximum(left, right)
        return joined

    def write(self, offsets: Offsets, words: Words, blocks: Words, tuples: Words) -> Packed:
        counts = np.diff(offsets)
        sparse = np.where(counts <= LONGEST_LIST, LIST_START, SET_START) + 4 * counts
        ends = np.zeros(len(offsets), np.int64)
        np.cumsum(np.where(blocks >= 0, DENSE_SIZE, sparse), out=ends[1:])
        data = np.zeros(ends[-1], np.uint8)
        write_header(data, ends[:-1], header_of(FAMILY, HLL))
        write_words(np.diff(ends), ends[:-1] + 4, data)
        write_words(tuples, ends[:-1] + 8, data)
        write_hll(offsets, words, blocks, self._sets.blocks, ends, data)
        for at, block in zip(ends[:-1][blocks >= 0], blocks[blocks >= 0], strict=True):
            self._write_sums(data[at : at + DENSE_SIZE], self._sets.blocks[block])
        return packed_of(ends, data)

    def _write_sums(self, state: Data, registers: NDArray[np.uint8]) -> None:
        """The sums of 2^-value, of values below 32 and of others, and the number of zeros."""
        values = np.ldexp(1.0, -registers.astype(np.int64))
        low, high = values[registers < 32].sum(), values[registers >= 32].sum()
        state[SKETCH + 16 : SKETCH + 32] = np.array([low, high]).view(np.uint8)
        zeros = np.count_nonzero(registers == 0)
        state[SKETCH + 32 : SKETCH + 36] = np.array([zeros], np.int32).view(np.uint8)


HLL_KIND: Final = StateKind("hll(4096)", HllSketches, HllSketches)


def hll_estimate(state: bytes) -> float:
    """The estimate of DataSketches, of a packed state whose form was checked."""
    return float(datasketches.hll_sketch.deserialize(state[SKETCH:]).get_estimate())


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(column(np.uint64), column(np.uint64), output(np.int64))
def make_coupons(low: Hashes, high: Hashes, coupons: Words) -> None:
    for i in range(len(low)):
        word, value = high[i], 1
        while word < np.uint64(1 << 63) and value < 63:
            word <<= np.uint64(1)
            value += 1
        coupons[i] = np.int64(low[i] & np.uint64(ADDRESS)) | (value << 26)


@compiled_for(column(np.int64), column(np.int64), column(np.int64, 2), output(np.uint8, 2))
def fold_coupons(numbers: Numbers, coupons: Words, rows: Words, blocks: NDArray[np.uint8]) -> None:
    for i in range(len(numbers)):
        row = np.uint64(numbers[i])
        if rows[row, BOUND] == DENSE:
            block, coupon = np.uint64(rows[row, FIRST]), coupons[i]
            register = np.uint64(coupon & (REGISTERS - 1))
            value = np.uint8(coupon >> 26)
            if value > blocks[block, register]:
                blocks[block, register] = value


@compiled_for(column(np.int64), column(np.uint8), output(np.int64))
def measure_hll(starts: Offsets, data: Data, counts: Words) -> int:
    """The number of coupons of each packed state; -1: it has registers. Returns the first that is
    no sketch HLL_8 of 4096 registers, or -1.
    """
    for i in range(len(counts)):
        at, size = starts[i], starts[i + 1] - starts[i]
        if data[at + 3] != HLL or size < LIST_START or word_at(data, at + 4, 4) != np.uint64(size):
            return i
        sketch = at + SKETCH
        known = data[sketch + 1] == 1 and data[sketch + 2] == 7
        if not known or data[sketch + 3] != LG_REGISTERS:
            return i
        mode, is_compact = data[sketch + 7], data[sketch + 5] & COMPACT != 0
        if mode == LIST_MODE:
            counts[i] = np.int64(data[sketch + 6])
            if not is_compact or size != LIST_START + 4 * counts[i]:
                return i
        elif mode == SET_MODE and size >= SET_START:
            counts[i] = np.int64(word_at(data, sketch + 8, 4))
            if not is_compact or size != SET_START + 4 * counts[i]:
                return i
        elif mode == HLL_MODE and size == DENSE_SIZE:
            counts[i] = -1
        else:
            return i
    return -1


@compiled_for(column(np.int64), column(np.int64), column(np.uint8), output(np.int64))
def read_coupons(starts: Offsets, counts: Words, data: Data, found: Words) -> None:
    to = 0
    for i in range(len(starts)):
        at = starts[i]
        at += LIST_START if data[at + SKETCH + 7] == LIST_MODE else SET_START
        for k in range(counts[i]):
            found[to] = np.int64(word_at(data, at + 4 * k, 4))
            to += 1


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.uint8, 2), column(np.int64),
    output(np.uint8),
)  # fmt: skip
def write_hll(
    offsets: Offsets, coupons: Words, blocks: Words, registers: NDArray[np.uint8], ends: Offsets,
    data: Data,
) -> None:  # fmt: skip
    for i in range(len(blocks)):
        at, count = ends[i] + SKETCH, offsets[i + 1] - offsets[i]
        data[at + 1] = 1
        data[at + 2] = 7
        data[at + 3] = LG_REGISTERS
        data[at + 5] = COMPACT
        if blocks[i] >= 0:
            data[at] = 10
            data[at + 5] |= OUT_OF_ORDER
            data[at + 7] = HLL_MODE
            data[at + 40 : at + 40 + REGISTERS] = registers[blocks[i]]
            continue
        room = 5
        while 3 << room < 4 * count:
            room += 1
        if count <= LONGEST_LIST:
            data[at] = 2
            data[at + 4] = 3
            data[at + 5] |= EMPTY if count == 0 else 0
            data[at + 6] = count
            data[at + 7] = LIST_MODE
            at += 8
        else:
            data[at] = 3
            data[at + 4] = room
            data[at + 7] = SET_MODE
            put_word(data, at + 8, 4, np.uint64(count))
            at += 12
        for k in range(count):
            put_word(data, at + 4 * k, 4, np.uint64(coupons[offsets[i] + k]))
