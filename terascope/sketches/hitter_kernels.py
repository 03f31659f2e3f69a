"""Kernels of states of heavy hitters that are merged (terascope.sketches.hitter_high).

In: the arrays of a column of states, and tuples or packed states that were checked. Out: the arrays
changed. `add_tuples` and `merge_sketches` stop before a tuple or packed state for which there may
be no room, and return its place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.sketches.base import Numbers
from terascope.sketches.frequent_items import purge
from terascope.sketches.hitter_ids import NAMED, Bytes, Keys, Prefixes, Words
from terascope.sketches.hitter_layout import (
    LONG_HEAD,
    SKETCH,
    TOP_CELLS,
    halves,
    head_word,
    name_words,
    put_name,
    variant_of,
)
from terascope.sketches.pair_blocks import Metas, release, size_of
from terascope.sketches.pair_tables import plus
from terascope.sketches.sketch_rows import (
    FREE_SKETCHES,
    FREE_WIDES,
    add_sketch,
    add_to_row,
    add_to_table,
    copy_table,
    has_room,
    make_sketch,
)

STATES = (
    output(np.int64), output(np.uint64), output(np.int64), output(np.int64, 2),
    output(np.uint32, 2), output(np.uint64, 2), output(np.int64, 2), output(np.int64, 3),
    output(np.int64), column(np.int64), column(np.int64, 2), INTEGER, INTEGER,
)  # fmt: skip
"""metas, arena, places, extras, counters, wides, sketches, candidates, used, sizes, prefixes,
exact, room."""


@compiled_for(column(np.int64), column(np.int64), column(np.int64), INTEGER, *STATES)
def add_tuples(
    numbers: Numbers,
    keys: Keys,
    weights: Keys,
    start: int,
    metas: Metas,
    arena: Words,
    places: Keys,
    extras: NDArray[np.int64],
    counters: NDArray[np.uint32],
    wides: Words,
    sketches: NDArray[np.int64],
    candidates: Keys,
    used: Keys,
    sizes: Keys,
    prefixes: Prefixes,
    exact: int,
    room: int,
) -> int:
    """Add tuples of positive weight from `start` on, those of one state that follow each other at a
    time: to call a part of the kernel with so many arrays takes longer than a tuple.
    """
    flat_counters, flat_wides = counters.reshape(-1), wides.reshape(-1)
    flat_sketches, flat_candidates = sketches.reshape(-1), candidates.reshape(-1)
    i, purged = start, len(extras) > 0
    while i < len(numbers):
        if not has_room(arena, places, flat_sketches, flat_wides, used, room, sizes[4], purged):
            return i
        number = numbers[i]
        end = i + 1
        while end < len(numbers) and numbers[end] == number:
            end += 1
        if purged:
            for k in range(i, end):
                extras[number, 1] = plus(extras[number, 1], weights[k])
        if metas[number] >= 0 and exact > 0:
            i = add_to_table(keys, weights, i, end, number, metas, arena, places, exact)
            while purged and i < end:
                extras[number, 0] = plus(extras[number, 0], purge(metas, arena, number))
                i = add_to_table(keys, weights, i, end, number, metas, arena, places, exact)
        if i < end:
            sketch = make_sketch(
                number, metas, arena, places, flat_counters, flat_wides, flat_sketches,
                flat_candidates, used, sizes, prefixes,
            )  # fmt: skip
            add_to_row(
                keys, weights, i, end, sketch, flat_counters, flat_wides, flat_sketches,
                flat_candidates, used, sizes, prefixes,
            )  # fmt: skip
        i = end
    return len(numbers)


@compiled_for(
    column(np.int64), column(np.int64), column(np.uint64), column(np.int64), column(np.int64),
    INTEGER, *STATES,
)  # fmt: skip
def merge_sketches(
    numbers: Numbers,
    starts: Keys,
    words: Words,
    names: Keys,
    first_name: Keys,
    start: int,
    metas: Metas,
    arena: Words,
    places: Keys,
    extras: NDArray[np.int64],
    counters: NDArray[np.uint32],
    wides: Words,
    sketches: NDArray[np.int64],
    candidates: Keys,
    used: Keys,
    sizes: Keys,
    prefixes: Prefixes,
    exact: int,
    room: int,
) -> int:
    """Merge the sketches among packed states from `start` on."""
    flat_counters, flat_wides = counters.reshape(-1), wides.reshape(-1)
    flat_sketches, flat_candidates = sketches.reshape(-1), candidates.reshape(-1)
    for i in range(start, len(numbers)):
        if variant_of(words[starts[i]]) != SKETCH:
            continue
        if not has_room(arena, places, flat_sketches, flat_wides, used, room, sizes[4], False):
            return i
        sketch = make_sketch(
            numbers[i], metas, arena, places, flat_counters, flat_wides, flat_sketches,
            flat_candidates, used, sizes, prefixes,
        )  # fmt: skip
        held = names[first_name[i] : first_name[i + 1]]
        add_sketch(
            sketch, words, starts[i], held, flat_counters, flat_wides, flat_sketches,
            flat_candidates, used, sizes, prefixes,
        )  # fmt: skip
    return len(numbers)


@compiled_for(
    column(np.int64), output(np.int64), output(np.uint64), output(np.int64),
    output(np.int64, 2), output(np.uint64, 2), output(np.int64),
)  # fmt: skip
def drop_states(
    numbers: Numbers,
    metas: Metas,
    arena: Words,
    places: Keys,
    sketches: NDArray[np.int64],
    wides: Words,
    used: Keys,
) -> None:
    """Free the tables and sketches of some states."""
    for number in numbers:
        meta = metas[number]
        if meta > 0:
            release(arena, places, meta >> 24, size_of(meta) + 1)
        elif meta < 0:
            row = ~meta
            wide = sketches[row, 1]
            if wide != 0:
                wides[wide - 1, 0] = np.uint64(used[FREE_WIDES])
                used[FREE_WIDES] = wide
            sketches[row, 0] = used[FREE_SKETCHES]
            used[FREE_SKETCHES] = row + 1
        metas[number] = 0


@compiled_for(column(np.int64), column(np.uint64), output(np.int64), output(np.int64))
def gather_tables(metas: Metas, arena: Words, keys: Keys, weights: Keys) -> None:
    """The pairs of tables, one table after the other."""
    to = np.int64(0)
    for meta in metas:
        to = copy_table(arena, meta, keys, weights, to)


@compiled_for(
    column(np.int64), column(np.int64, 2), column(np.int64, 3), column(np.int64),
    column(np.int64), output(np.int64),
)  # fmt: skip
def measure_sketches(
    rows: Keys,
    sketches: NDArray[np.int64],
    candidates: Keys,
    sizes: Keys,
    ends: Keys,
    offsets: Keys,
) -> None:
    cells = TOP_CELLS + (sizes[1] * sizes[2] << sizes[0])
    for i in range(len(rows)):
        row = rows[i]
        size = LONG_HEAD + (cells if sketches[row, 1] != 0 else cells // 2)
        for k in range(sketches[row, 2]):
            key = candidates[row, 0, k]
            size += 2 if key < NAMED else name_words(ends, key)
        offsets[i + 1] = offsets[i] + size


@compiled_for(
    column(np.int64), column(np.uint32, 2), column(np.uint64, 2), column(np.int64, 2),
    column(np.int64, 3), column(np.int64), column(np.int64), column(np.uint8), INTEGER,
    column(np.int64), output(np.uint64),
)  # fmt: skip
def write_sketches(
    rows: Keys,
    counters: NDArray[np.uint32],
    wides: Words,
    sketches: NDArray[np.int64],
    candidates: Keys,
    sizes: Keys,
    ends: Keys,
    content: Bytes,
    kind: int,
    offsets: Keys,
    words: Words,
) -> None:
    """Write sketches; the words are 0."""
    cells = np.uint64(TOP_CELLS + (sizes[1] * sizes[2] << sizes[0]))
    one = np.uint64(1)
    for i in range(len(rows)):
        row, first = np.uint64(rows[i]), np.uint64(offsets[i])
        at = first + np.uint64(LONG_HEAD)
        wide = sketches[row, one]
        if wide != 0:
            for k in range(cells):
                words[at + k] = wides[np.uint64(wide - 1), k]
            at += cells
        else:
            for k in range(cells >> one):
                low, high = counters[row, k << one], counters[row, (k << one) + one]
                words[at + k] = np.uint64(low) | np.uint64(high) << np.uint64(32)
            at += cells >> one
        plain, named = 0, 0
        count = sketches[row, np.uint64(2)]
        for k in range(count):
            key = candidates[row, np.uint64(0), np.uint64(k)]
            if key < NAMED:
                words[at] = np.uint64(key)
                words[at + one] = np.uint64(candidates[row, one, np.uint64(k)])
                at += np.uint64(2)
                plain += 1
        for k in range(count):
            key = candidates[row, np.uint64(0), np.uint64(k)]
            if key >= NAMED:
                bound = candidates[row, one, np.uint64(k)]
                at = np.uint64(put_name(words, np.int64(at), ends, content, key, bound))
                named += 1
        words[first] = head_word(SKETCH, kind, plain)
        words[first + one] = halves(np.int64(wide != 0), named)
        words[first + np.uint64(2)] = np.uint64(sketches[row, np.uint64(0)])
        words[first + np.uint64(3)] = halves(1 << sizes[0], sizes[1] | sizes[2] << 16)
        words[first + np.uint64(4)] = np.uint64(sizes[3])
