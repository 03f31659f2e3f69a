"""Distinct counts of whole columns of states.

In: a column of packed states (terascope.sketches.distinct). Out: how many tuples and how many
different values each has seen, the latter rounded to an integer.

Kernels read all of them but the registers of a HyperLogLog, which DataSketches reads one by one
after they were checked. Its estimate for a set of n coupons is n + n^2 / 2^27 or so, which is n
when rounded.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, inlined, output
from terascope.sketches.flajolet_martin import BITMAPS, START, estimate_of_ranks
from terascope.sketches.hll import (
    COMPACT,
    DENSE_SIZE,
    EMPTY,
    HLL_MODE,
    LG_REGISTERS,
    LIST_MODE,
    LIST_START,
    LONGEST_LIST,
    MOST_COUPONS,
    SET_MODE,
    SET_START,
    hll_estimate,
)
from terascope.sketches.packed_form import VERSION, word_at
from terascope.sketches.state_values import FOUND, REST, opened
from terascope.sketches.theta import (
    EMPTY_BIT,
    EMPTY_FLAGS,
    FLAJOLET_MARTIN,
    HLL,
    ORDERED_FLAGS,
    SEED_HASH,
    SKETCH,
    THETA,
)
from terascope.sketches.word_lists import Words

ALL_HASHES: Final = 2.0**63
"""The bound of a Theta sketch that has given no hash up."""
ALL_REGISTERS: Final = 1 << 60
"""Stands for the number of coupons of a state that has registers."""
REGISTERS: Final = 3
"""The mark of such a state, after `NOTHING`, `FOUND` and `REST`."""


def distinct_columns(packed: pa.Array) -> tuple[Words, Words] | None:
    """The number of tuples, and about that of different values, of each state; 0 and 0 where it is
    NULL. None: one of the states is damaged, or was not written by this program.
    """
    offsets, data, marks = opened(packed)
    sizes = np.zeros((2, len(marks)), np.int64)
    estimates = np.zeros(len(marks), np.float64)
    estimate_sets(offsets, data, by_ranks(), marks, sizes[0], estimates)
    if (marks == REST).any():
        return None
    for place in np.flatnonzero(marks == REGISTERS).tolist():
        estimates[place] = hll_estimate(data[offsets[place] : offsets[place + 1]].tobytes())
    if not (np.abs(estimates) < ALL_HASHES).all():
        return None
    sizes[1] = np.rint(estimates)
    return sizes[0], sizes[1]


@cache
def by_ranks() -> NDArray[np.float64]:
    """The estimate of Flajolet and Martin for each sum of ranks."""
    return np.array([estimate_of_ranks(total) for total in range(64 * BITMAPS)])


def filled_states(packed: pa.Array) -> pa.Array:
    """The same column, with NULL in place of Theta sketches that have seen no value."""
    offsets, data, marks = opened(packed)
    places = np.flatnonzero((marks == REST) & (np.diff(offsets) > SKETCH + 5))
    empty = np.zeros(len(marks), np.bool_)
    empty[places] = data[offsets[places] + SKETCH + 5] & EMPTY_BIT != 0
    return pc.if_else(pa.array(empty), None, packed) if empty.any() else packed


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(
    column(np.int64), column(np.uint8), column(np.float64), output(np.uint8), output(np.int64),
    output(np.float64),
)  # fmt: skip
def estimate_sets(
    offsets: Any, data: Any, of_ranks: Any, marks: Any, tuples: Any, estimates: Any
) -> None:
    """Estimate what each state has seen; states with registers of a HyperLogLog are marked so."""
    for i in range(len(marks)):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        if marks[i] != REST or size < LIST_START or data[at] != 84 or data[at + 1] != 68:  # D
            continue
        if data[at + 2] != VERSION or word_at(data, at + 4, 4) != np.uint64(size):
            continue
        found = -1.0
        if data[at + 3] == HLL:
            found = np.float64(coupons_of(data, at, size))
        elif data[at + 3] == FLAJOLET_MARTIN:
            ranks = ranks_of(data, at, size)
            found = np.float64(hashes_of(data, at, size)) if ranks < 0 else of_ranks[ranks]
        elif data[at + 3] == THETA:
            found = theta_estimate(data, at + SKETCH, size - SKETCH)
        tuples[i] = np.int64(word_at(data, at + 8, 8))
        if found >= 0 and tuples[i] >= 0:
            marks[i] = REGISTERS if found == ALL_REGISTERS else FOUND
            estimates[i] = found


@inlined
def coupons_of(data: Any, at: Any, size: Any) -> Any:
    """The number of coupons of a set as this program writes it, or ALL_REGISTERS; -1: it is no such
    state.
    """
    sketch = at + SKETCH
    if data[sketch + 1] != 1 or data[sketch + 2] != 7 or data[sketch + 3] != LG_REGISTERS:
        return np.int64(-1)
    if data[sketch + 7] == HLL_MODE and size == DENSE_SIZE:
        return np.int64(ALL_REGISTERS)
    flags = np.int64(data[sketch + 5])
    if data[sketch + 7] == LIST_MODE:
        count = np.int64(data[sketch + 6])
        known = data[sketch] == 2 and count <= LONGEST_LIST
        known = known and flags == (COMPACT if count else COMPACT | EMPTY)
        return count if known and size == LIST_START + 4 * count else np.int64(-1)
    if data[sketch + 7] != SET_MODE or size < SET_START:
        return np.int64(-1)
    count = np.int64(word_at(data, sketch + 8, 4))
    known = data[sketch] == 3 and LONGEST_LIST < count <= MOST_COUPONS and flags == COMPACT
    return count if known and size == SET_START + 4 * count else np.int64(-1)


@inlined
def hashes_of(data: Any, at: Any, size: Any) -> Any:
    """The number of hashes of a state of Flajolet and Martin that is still a set; -1: none."""
    if size < START or size % 8 != 0 or data[at + SKETCH] != 0:
        return np.int64(-1)
    count = (size - START) // 8
    for k in range(count):
        if word_at(data, at + START + 8 * k, 8) >> np.uint64(62) != np.uint64(1):
            return np.int64(-1)
    return count


@inlined
def ranks_of(data: Any, at: Any, size: Any) -> Any:
    """The sum of the smallest ranks that are missing in the bitmaps of a state; -1: it has none."""
    if size != START + 8 * BITMAPS or data[at + SKETCH] != 1:
        return np.int64(-1)
    total = np.int64(0)
    for k in range(BITMAPS):
        word = np.int64(word_at(data, at + START + 8 * k, 8))
        if word < 0:
            return np.int64(-1)
        while word & 1:
            word >>= 1
            total += 1
    return total


@inlined
def theta_estimate(data: Any, at: Any, size: Any) -> Any:
    """The estimate of a Theta sketch as this program writes it; -1: it is none."""
    longs, flags = np.int64(data[at]), data[at + 5]
    if data[at + 1] != 3 or data[at + 2] != 3 or word_at(data, at + 6, 2) != np.uint64(SEED_HASH):
        return -1.0
    if flags == EMPTY_FLAGS:
        return 0.0 if longs == 1 and size == 8 else -1.0
    if flags != ORDERED_FLAGS or longs < 1 or longs > 3 or size < 8 * longs or size % 8 != 0:
        return -1.0
    count = size // 8 - longs
    if longs == 1:
        return 1.0 if count == 1 else -1.0
    if word_at(data, at + 8, 4) != np.uint64(count):
        return -1.0
    if longs == 2:
        return np.float64(count)
    bound = np.int64(word_at(data, at + 16, 8))
    return np.float64(count) / (np.float64(bound) / ALL_HASHES) if bound > 0 else -1.0
