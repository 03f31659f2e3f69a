"""Moving wide rows: from the columns of a payload into rows, and out again epoch by epoch.

In: arrays of a payload, or wide rows (terascope.kernels.merge.merge_source). Out: the other one.
None of these kernels depends on the shape of an aggregation; they are compiled once for all.
"""

from __future__ import annotations

import numpy as np

from terascope.hashing import mix
from terascope.kernels.columns.dictionary import Codes, Ints
from terascope.machine_code import BOOLEAN, INTEGER, column, compiled_for, output

ROWS = output(np.int64, 2)
STRIP = 1 << 12
"""Rows filled column by column at a time: as many as stay in the cache."""


@compiled_for(ROWS, INTEGER, BOOLEAN, column(np.int32), column(np.int32))
def put_code(strip: Ints, word: int, upper: bool, indices: Codes, meaning: Codes) -> None:
    """A key: its index in the payload as the code it has here, in a half of a word."""
    if upper:
        for i in range(len(indices)):
            strip[i, word] = np.int64(meaning[indices[i]]) << 32
    else:
        for i in range(len(indices)):
            strip[i, word] |= np.int64(meaning[indices[i]])


@compiled_for(ROWS, INTEGER, column(np.int64))
def put_words(strip: Ints, place: int, words: Ints) -> None:
    for i in range(len(words)):
        strip[i, place] = words[i]


@compiled_for(ROWS, INTEGER, column(np.int64))
def put_signs(strip: Ints, place: int, words: Ints) -> None:
    """The high words of 64-bit numbers."""
    for i in range(len(words)):
        strip[i, place] = words[i] >> 63


@compiled_for(ROWS, INTEGER, INTEGER, INTEGER, ROWS, output(np.int64), INTEGER)
def append_to_parts(
    strip: Ints, start: int, count: int, words: int, rows: Ints, fills: Ints, capacity: int
) -> tuple[int, int]:
    """Rows of a strip to the parts their keys belong to, until one finds its part full: its number,
    and the part.
    """
    stride = strip.shape[1]
    last = len(fills) - 1
    for i in range(start, count):
        h = np.uint64(0)
        for k in range(words):
            h = mix(h ^ np.uint64(strip[i, 1 + k]))
        part = np.int64(h) & last
        fill = fills[part]
        if fill == capacity:
            return i, int(part)
        at = part * capacity + fill
        for k in range(stride):
            rows[at, k] = strip[i, k]
        fills[part] = fill + 1
    return count, -1


@compiled_for(ROWS, column(np.int64), INTEGER, ROWS, INTEGER)
def enlarge(rows: Ints, fills: Ints, capacity: int, target: Ints, larger: int) -> None:
    """The parts of `rows`, each with more room."""
    stride = rows.shape[1]
    for part in range(len(fills)):
        for i in range(fills[part]):
            for k in range(stride):
                target[part * larger + i, k] = rows[part * capacity + i, k]


@compiled_for(
    ROWS,
    column(np.int64),
    INTEGER,
    INTEGER,
    BOOLEAN,
    column(np.int32),
    output(np.int64),
    output(np.int64),
)
def order_by_epoch(
    rows: Ints,
    fills: Ints,
    capacity: int,
    word: int,
    upper: bool,
    ranks: Codes,
    edges: Ints,
    order: Ints,
) -> None:
    """Row numbers, epoch by epoch. `ranks` is the place of each epoch code, `edges` where each
    epoch begins: filled here.
    """
    shift = 32 if upper else 0
    for part in range(len(fills)):
        for i in range(part * capacity, part * capacity + fills[part]):
            edges[ranks[(rows[i, word] >> shift) & 0xFFFFFFFF] + 1] += 1
    for rank in range(1, len(edges)):
        edges[rank] += edges[rank - 1]
    cursors = edges.copy()
    for part in range(len(fills)):
        for i in range(part * capacity, part * capacity + fills[part]):
            rank = ranks[(rows[i, word] >> shift) & 0xFFFFFFFF]
            order[cursors[rank]] = i
            cursors[rank] += 1


@compiled_for(ROWS, column(np.int64), INTEGER, BOOLEAN, INTEGER, ROWS)
def take_rows(
    rows: Ints, order: Ints, words: int, odd: bool, first_slot: int, target: Ints
) -> None:
    """Rows without the code of their epoch: state, `words` key words, slots as many as fit.

    With an odd number of keys the epoch's code is the lower half of the last word.
    """
    slots = target.shape[1] - 1 - words
    for i in range(len(order)):
        at = order[i]
        target[i, 0] = rows[at, 0]
        for k in range(words):
            target[i, 1 + k] = rows[at, 1 + k]
        if odd:
            target[i, words] &= ~np.int64(0xFFFFFFFF)
        for j in range(slots):
            target[i, 1 + words + j] = rows[at, first_slot + j]


@compiled_for(ROWS, column(np.int64), INTEGER, INTEGER)
def fits(rows: Ints, order: Ints, low: int, high: int) -> bool:
    """Whether a 128-bit sum of each row is the 64-bit number in its low word."""
    wrong = 0
    for at in order:
        wrong += rows[at, high] != rows[at, low] >> 63
    return wrong == 0
