"""Kernels of states of heavy hitters that are merged (terascope.sketches.hitter_high).

In: the arrays of a column of states, and tuples or packed states that were checked. Out: the arrays
changed. `add_tuples` and `merge_states` stop before a tuple or packed state for which there may be
no room, and return its place. A `store` is the tuple of arrays that hold sketches: counters, wide
counters, sums, candidates, and rows in use.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Numbers
from terascope.sketches.count_min import add_to_sketch, estimate_key
from terascope.sketches.frequent_items import purge
from terascope.sketches.hitter_ids import NAMED, Bytes, Keys, Prefixes, Words
from terascope.sketches.hitter_layout import (
    FREQUENT,
    LIST,
    LIST_HEAD,
    LONG_HEAD,
    NARROW_MAX,
    SKETCH,
    TOP_CELLS,
    WEIGHT_BITS,
    WEIGHT_MAX,
    halves,
    head_word,
    high_half,
    low_half,
    name_words,
    put_name,
    variant_of,
)
from terascope.sketches.hitter_low import SIZES, Metas, release, size_of
from terascope.sketches.pair_tables import NO_PLACE, add_pair, plus, slots_in_table

SKETCHES: Final = 0
WIDES: Final = 1
FREE_SKETCHES: Final = 2
FREE_WIDES: Final = 3
"""Places of the array of rows in use."""

STATES = (
    output(np.int64), output(np.uint64), output(np.int64), output(np.int64, 2),
    output(np.uint32, 2), output(np.uint64, 2), output(np.int64, 2), output(np.int64, 3),
    output(np.int64), column(np.int64), column(np.int64, 2), INTEGER, INTEGER,
)  # fmt: skip
"""metas, arena, places, extras, counters, wides, sketches, candidates, used, sizes, prefixes,
exact, room."""


@inlined
def has_room(arena: Words, places: Keys, store: Any, room: Any, purged: bool) -> bool:
    """Whether one state may grow as far as it can."""
    if places[SIZES] + room > len(arena):
        return False
    used = store[4]
    rows = used[FREE_SKETCHES] != 0 or used[SKETCHES] < len(store[2])
    return purged or (rows and (used[FREE_WIDES] != 0 or used[WIDES] < len(store[1])))


@inlined
def new_row(used: Keys, links: Any, last: Any, rows: Any, free: Any) -> Any:
    """A row that is free, or the first one never used. A free row links to the next one."""
    row = used[free] - 1
    if row >= 0:
        used[free] = np.int64(links[row, last])
        return row
    row = used[rows]
    used[rows] = row + 1
    return row


@inlined
def new_sketch(store: Any) -> Any:
    counters, _, sketches, _, used = store
    row = new_row(used, sketches, 0, SKETCHES, FREE_SKETCHES)
    counters[row, :] = 0
    sketches[row, :] = 0
    return row


@inlined
def widen(store: Any, sketch: Any) -> None:
    """Copy the counters of a sketch to 64 bits."""
    counters, wides, sketches, _, used = store
    row = new_row(used, wides, 0, WIDES, FREE_WIDES)
    for k in range(counters.shape[1]):
        wides[row, k] = counters[sketch, k]
    sketches[sketch, 1] = row + 1


@inlined
def offer(store: Any, sketch: Any, key: Any, estimate: Any, sizes: Keys) -> None:
    """Make an identifier a candidate, or note its new estimate."""
    sketches, candidates = store[2], store[3]
    most = sizes[3]
    row = np.uint64(sketch)
    count, least = sketches[row, np.uint64(2)], sketches[row, np.uint64(3)]
    if count == most:
        mean = sketches[row, np.uint64(0)] >> sizes[0]
        if estimate <= least or estimate <= 2 * mean:
            return
    zero, one = np.uint64(0), np.uint64(1)
    for k in range(np.uint64(count)):
        if candidates[row, zero, k] == key:
            before = k >> one  # heavy ones move to the front, where they are found soon
            candidates[row, zero, k] = candidates[row, zero, before]
            candidates[row, one, k] = candidates[row, one, before]
            candidates[row, zero, before] = key
            candidates[row, one, before] = estimate
            return
    at = np.uint64(count)
    if count == most:
        lowest, second = np.int64(WEIGHT_MAX), np.int64(WEIGHT_MAX)
        for k in range(np.uint64(count)):
            held = candidates[row, one, k]
            if held < lowest:
                lowest, second, at = held, lowest, k
            elif held < second:
                second = held
        sketches[row, np.uint64(3)] = min(second, estimate)
        if estimate <= lowest:
            sketches[row, np.uint64(3)] = lowest
            return
    else:
        sketches[row, np.uint64(2)] = count + 1
    candidates[row, zero, at] = key
    candidates[row, one, at] = estimate


@inlined
def add_weight(
    store: Any, sketch: Any, key: Any, weight: Any, sizes: Keys, prefixes: Prefixes
) -> None:
    """Add a weight to a sketch; the sum of all weights stays within 63 bits."""
    counters, wides, sketches, _, _ = store
    row = np.uint64(sketch)
    before = sketches[row, np.uint64(0)]
    weight = min(weight, WEIGHT_MAX - before)
    sketches[row, np.uint64(0)] = before + weight
    if before + weight > 0xFFFFFFFF and sketches[row, np.uint64(1)] == 0:
        widen(store, sketch)
    wide = sketches[row, np.uint64(1)]
    if wide == 0:
        estimate = add_to_sketch(counters, sketch, key, np.uint32(weight), sizes, prefixes)
    else:
        estimate = add_to_sketch(wides, wide - 1, key, np.uint64(weight), sizes, prefixes)
    if sizes[3] > 0:
        offer(store, sketch, key, estimate, sizes)


@inlined
def make_sketch(
    number: Any,
    metas: Metas,
    arena: Words,
    places: Keys,
    store: Any,
    sizes: Keys,
    prefixes: Prefixes,
) -> Any:
    """The sketch of a state, made of its table when it has none yet."""
    meta = metas[number]
    if meta < 0:
        return ~meta
    sketch = new_sketch(store)
    if meta > 0:
        base = meta >> 24
        for k in range(slots_in_table(meta)):
            weight = np.int64(arena[base + 2 * k + 1])
            if weight != 0:
                add_weight(store, sketch, np.int64(arena[base + 2 * k]), weight, sizes, prefixes)
        release(arena, places, base, size_of(meta) + 1)
    metas[number] = ~sketch
    return sketch


@inlined
def add(
    number: Any,
    key: Any,
    weight: Any,
    metas: Metas,
    arena: Words,
    places: Keys,
    extras: NDArray[np.int64],
    store: Any,
    sizes: Keys,
    prefixes: Prefixes,
    exact: Any,
) -> None:
    """Add a weight to an identifier of a state."""
    if metas[number] >= 0:
        if exact > 0:
            if add_pair(metas, arena, places, number, key, weight, exact) != NO_PLACE:
                return
            if len(extras) > 0:
                extras[number, 0] = plus(extras[number, 0], purge(metas, arena, number))
                add_pair(metas, arena, places, number, key, weight, exact)
                return
        make_sketch(number, metas, arena, places, store, sizes, prefixes)
    add_weight(store, ~metas[number], key, weight, sizes, prefixes)


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
    """Add tuples from `start` on; those without a positive weight are passed over."""
    store = (counters, wides, sketches, candidates, used)
    for i in range(start, len(numbers)):
        number, weight = numbers[i], weights[i]
        if weight <= 0:
            continue
        if not has_room(arena, places, store, room, len(extras) > 0):
            return i
        if len(extras) > 0:
            extras[number, 1] = plus(extras[number, 1], weight)
        add(number, keys[i], weight, metas, arena, places, extras, store, sizes, prefixes, exact)
    return len(numbers)


@inlined
def add_sketch(
    sketch: Any, words: Words, first: Any, names: Keys, store: Any, sizes: Keys, prefixes: Prefixes
) -> None:
    """Add a packed sketch to a sketch, counter by counter, and offer it the candidates."""
    counters, wides, sketches, candidates, _ = store
    before = sketches[sketch, 0]
    total = plus(before, np.int64(words[first + 2]) & WEIGHT_MAX)
    packed_wide = words[first + 1] & np.uint64(1)
    if sketches[sketch, 1] == 0 and (total > 0xFFFFFFFF or packed_wide):
        widen(store, sketch)
    sketches[sketch, 0] = total
    at = first + LONG_HEAD
    cells = counters.shape[1]
    wide = sketches[sketch, 1] - 1
    if packed_wide:
        for k in range(cells):
            wides[wide, k] = plus(np.int64(wides[wide, k]), np.int64(words[at + k]) & WEIGHT_MAX)
        at += cells
    else:
        for k in range(np.uint64(cells // 2)):
            word = words[np.uint64(at) + k]
            low, high = word & np.uint64(0xFFFFFFFF), word >> np.uint64(32)
            if wide < 0:
                counters[sketch, k << np.uint64(1)] += np.uint32(low)
                counters[sketch, (k << np.uint64(1)) + np.uint64(1)] += np.uint32(high)
            else:
                wides[wide, k << np.uint64(1)] += low
                wides[wide, (k << np.uint64(1)) + np.uint64(1)] += high
        at += cells // 2
    own = sketches[sketch, 2]
    least = np.int64(WEIGHT_MAX)
    for k in range(own):
        key = candidates[sketch, 0, k]
        candidates[sketch, 1, k] = estimate_row(store, sketch, key, sizes, prefixes)
        least = min(least, candidates[sketch, 1, k])
    sketches[sketch, 3] = least if own == sizes[3] else 0
    if sizes[3] > 0:
        for k in range(high_half(words[first])):
            key = low_half(words[at + k])
            offer(store, sketch, key, estimate_row(store, sketch, key, sizes, prefixes), sizes)
        for key in names:
            offer(store, sketch, key, estimate_row(store, sketch, key, sizes, prefixes), sizes)


@inlined
def estimate_row(store: Any, sketch: Any, key: Any, sizes: Keys, prefixes: Prefixes) -> Any:
    wide = store[2][sketch, 1]
    if wide == 0:
        return estimate_key(store[0][sketch], key, sizes, prefixes)
    return estimate_key(store[1][wide - 1], key, sizes, prefixes)


@compiled_for(
    column(np.int64), column(np.int64), column(np.uint64), column(np.int64), column(np.int64),
    INTEGER, *STATES,
)  # fmt: skip
def merge_states(
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
    """Merge packed states from `start` on."""
    store = (counters, wides, sketches, candidates, used)
    for i in range(start, len(numbers)):
        if not has_room(arena, places, store, room, len(extras) > 0):
            return i
        number, first = numbers[i], starts[i]
        variant = variant_of(words[first])
        if variant == SKETCH:
            sketch = make_sketch(number, metas, arena, places, store, sizes, prefixes)
            held = names[first_name[i] : first_name[i + 1]]
            add_sketch(sketch, words, first, held, store, sizes, prefixes)
            continue
        total = np.int64(0)
        at = np.uint64(first + (LIST_HEAD if variant == LIST else LONG_HEAD))
        for _ in range(high_half(words[first])):
            word = words[at]
            at += np.uint64(1)
            key = np.int64(word >> np.uint64(WEIGHT_BITS)) & 0xFFFFFFFF
            weight = np.int64(word & np.uint64(NARROW_MAX))
            if weight > 0:
                add(
                    number, key, weight, metas, arena, places, extras, store, sizes, prefixes,
                    exact,
                )  # fmt: skip
                total = plus(total, weight)
        for _ in range(low_half(words[first + 1])):
            key = low_half(words[at])
            weight = np.int64(words[at + np.uint64(1)]) & WEIGHT_MAX
            at += np.uint64(2)
            if weight > 0:
                add(
                    number, key, weight, metas, arena, places, extras, store, sizes, prefixes,
                    exact,
                )  # fmt: skip
                total = plus(total, weight)
        for k in range(first_name[i], first_name[i + 1]):
            weight = np.int64(words[at]) & WEIGHT_MAX
            at += np.uint64(2) + (words[at + np.uint64(1)] + np.uint64(7)) // np.uint64(8)
            if weight > 0:
                add(
                    number, names[k], weight, metas, arena, places, extras, store, sizes,
                    prefixes, exact,
                )  # fmt: skip
                total = plus(total, weight)
        if len(extras) > 0:
            if variant == FREQUENT:
                extras[number, 0] = plus(extras[number, 0], np.int64(words[first + 2]) & WEIGHT_MAX)
                total = np.int64(words[first + 3]) & WEIGHT_MAX
            extras[number, 1] = plus(extras[number, 1], total)
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
    to = 0
    for meta in metas:
        base = meta >> 24
        for k in range(slots_in_table(meta)):
            weight = np.int64(arena[base + 2 * k + 1])
            if weight != 0:
                keys[to] = np.int64(arena[base + 2 * k])
                weights[to] = weight
                to += 1


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
            size += 1 if key < NAMED else name_words(ends, key)
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
                at += one
                plain += 1
        for k in range(count):
            key = candidates[row, np.uint64(0), np.uint64(k)]
            if key >= NAMED:
                at = np.uint64(put_name(words, np.int64(at), ends, content, key, 0))
                named += 1
        words[first] = head_word(SKETCH, kind, plain)
        words[first + one] = halves(np.int64(wide != 0), named)
        words[first + np.uint64(2)] = np.uint64(sketches[row, np.uint64(0)])
        words[first + np.uint64(3)] = halves(1 << sizes[0], sizes[1] | sizes[2] << 16)
        words[first + np.uint64(4)] = np.uint64(sizes[3])
