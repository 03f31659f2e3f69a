"""Kernels of states of heavy hitters that are merged (terascope.sketches.hitter_high).

In: the arrays of a column of states, and tuples or packed states that were checked. Out: the arrays
changed. `add_tuples` and `merge_sketches` stop before a tuple or packed state for which there may
be no room, and return its place. Their parts see all arrays as flat ones: a view of a row for each
tuple would take longer than all else.
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
    LONG_HEAD,
    SKETCH,
    TOP_CELLS,
    WEIGHT_MAX,
    halves,
    head_word,
    high_half,
    low_half,
    name_words,
    put_name,
    sketch_words,
    variant_of,
)
from terascope.sketches.hitter_low import SIZES, Metas, release, size_of
from terascope.sketches.pair_tables import NO_PLACE, add_pair, plus, slots_in_table

SKETCHES: Final = 0
WIDES: Final = 1
FREE_SKETCHES: Final = 2
FREE_WIDES: Final = 3
"""Places of the array of rows in use."""
FACTS: Final = 4
"""Numbers that are kept of a sketch beside its counters (HitterStates.sketches)."""
ONE: Final = np.uint64(1)
TWO: Final = np.uint64(2)
THREE: Final = np.uint64(3)

STATES = (
    output(np.int64), output(np.uint64), output(np.int64), output(np.int64, 2),
    output(np.uint32, 2), output(np.uint64, 2), output(np.int64, 2), output(np.int64, 3),
    output(np.int64), column(np.int64), column(np.int64, 2), INTEGER, INTEGER,
)  # fmt: skip
"""metas, arena, places, extras, counters, wides, sketches, candidates, used, sizes, prefixes,
exact, room."""


@inlined
def has_room(
    arena: Words,
    places: Keys,
    sketches: Any,
    wides: Any,
    used: Keys,
    room: Any,
    cells: Any,
    purged: bool,
) -> bool:
    """Whether one state may grow as far as it can."""
    if places[SIZES] + room > len(arena):
        return False
    rows = used[FREE_SKETCHES] != 0 or used[SKETCHES] * FACTS < len(sketches)
    wide = used[FREE_WIDES] != 0 or used[WIDES] * cells < len(wides)
    return bool(purged or (rows and wide))


@inlined
def new_row(used: Keys, links: Any, size: Any, rows: Any, free: Any) -> Any:
    """A row that is free, or the first one never used. A free row links to the next one."""
    row = used[free] - 1
    if row >= 0:
        used[free] = np.int64(links[row * size])
        return row
    row = used[rows]
    used[rows] = row + 1
    return row


@inlined
def new_sketch(counters: Any, sketches: Any, used: Keys, cells: Any) -> Any:
    row = new_row(used, sketches, FACTS, SKETCHES, FREE_SKETCHES)
    counters[row * cells : (row + 1) * cells] = 0
    sketches[row * FACTS : (row + 1) * FACTS] = 0
    return row


@inlined
def widen(counters: Any, wides: Any, sketches: Any, used: Keys, sketch: Any, cells: Any) -> None:
    """Copy the counters of a sketch to 64 bits."""
    row = new_row(used, wides, cells, WIDES, FREE_WIDES)
    for k in range(cells):
        wides[row * cells + k] = counters[sketch * cells + k]
    sketches[sketch * FACTS + 1] = row + 1


@inlined
def find_candidate(candidates: Any, keys: Any, count: Any, key: Any) -> Any:
    """The place of a candidate, `count` when there is none. The first eight are the heavy ones; the
    others are compared all at once before one is looked for.
    """
    first = min(count, np.uint64(8))
    for k in range(first):
        if candidates[keys + k] == key:
            return np.uint64(k)
    among = False
    for k in range(first, count):
        among |= candidates[keys + k] == key
    if among:
        for k in range(first, count):
            if candidates[keys + k] == key:
                return np.uint64(k)
    return count


@inlined
def offer(
    sketches: Any,
    candidates: Any,
    sketch: Any,
    key: Any,
    weight: Any,
    estimate: Any,
    sizes: Any,
) -> None:
    """Make an identifier a candidate, or add a weight to its bound. The bound of a candidate begins
    with its estimate and then grows by its own weights only, where the estimate grows by those of
    others, too: an early candidate has a bound that is almost exact.
    """
    most = np.uint64(sizes[3])
    facts = np.uint64(sketch) * np.uint64(FACTS)
    count, least = np.uint64(sketches[facts + TWO]), sketches[facts + THREE]
    if count == most and estimate <= least:
        return
    keys = np.uint64(sketch) * TWO * most
    bounds = keys + most
    at = find_candidate(candidates, keys, count, key)
    if at < count:
        bound = min(plus(candidates[bounds + at], weight), estimate)
        before = at >> ONE  # heavy ones move to the front, where they are found soon
        candidates[keys + at] = candidates[keys + before]
        candidates[bounds + at] = candidates[bounds + before]
        candidates[keys + before] = key
        candidates[bounds + before] = bound
        return
    if count == most:
        if estimate <= 2 * (sketches[facts] >> sizes[0]):
            return
        lowest, second = np.int64(WEIGHT_MAX), np.int64(WEIGHT_MAX)
        for k in range(count):
            held = candidates[bounds + k]
            if held < lowest:
                lowest, second, at = held, lowest, np.uint64(k)
            elif held < second:
                second = held
        if estimate <= lowest:
            sketches[facts + THREE] = lowest
            return
        sketches[facts + THREE] = min(second, estimate)
    else:
        sketches[facts + TWO] = np.int64(count + ONE)
    candidates[keys + at] = key
    candidates[bounds + at] = estimate


@inlined
def add_run(
    keys: Keys,
    weights: Keys,
    start: Any,
    end: Any,
    cells: Any,
    base: Any,
    sketches: Any,
    candidates: Any,
    sketch: Any,
    before: Any,
    sizes: Keys,
    prefixes: Prefixes,
) -> None:
    """Add pairs to the counters of one sketch, which begin at `base`. Before them all weights added
    up to `before`; the sum stays within 63 bits.
    """
    left = WEIGHT_MAX - before
    for k in range(np.uint64(start), np.uint64(end)):
        weight = min(weights[k], left)
        left -= weight
        estimate = add_to_sketch(cells, base, keys[k], weight, sizes, prefixes)
        if sizes[3] > 0:
            offer(sketches, candidates, sketch, keys[k], weight, estimate, sizes)


@inlined
def add_to_row(
    keys: Keys,
    weights: Keys,
    start: Any,
    end: Any,
    sketch: Any,
    counters: Any,
    wides: Any,
    sketches: Any,
    candidates: Any,
    used: Keys,
    sizes: Keys,
    prefixes: Prefixes,
) -> None:
    """Add pairs to a sketch. Its counters are widened before they could overflow: none is larger
    than the sum of all weights.
    """
    facts, cells = sketch * FACTS, sizes[4]
    before = sketches[facts]
    total = before
    for k in range(start, end):
        total = plus(total, weights[k])
    sketches[facts] = total
    if total > 0xFFFFFFFF and sketches[facts + 1] == 0:
        widen(counters, wides, sketches, used, sketch, cells)
    wide = sketches[facts + 1]
    if wide == 0:
        base = np.uint64(sketch * cells)
        add_run(
            keys, weights, start, end, counters, base, sketches, candidates, sketch, before,
            sizes, prefixes,
        )  # fmt: skip
    else:
        base = np.uint64((wide - 1) * cells)
        add_run(
            keys, weights, start, end, wides, base, sketches, candidates, sketch, before,
            sizes, prefixes,
        )  # fmt: skip


@inlined
def make_sketch(
    number: Any,
    metas: Metas,
    arena: Words,
    places: Keys,
    counters: Any,
    wides: Any,
    sketches: Any,
    candidates: Any,
    used: Keys,
    sizes: Keys,
    prefixes: Prefixes,
) -> Any:
    """The sketch of a state, made of its table when it has none yet."""
    meta = metas[number]
    if meta < 0:
        return ~meta
    sketch = new_sketch(counters, sketches, used, sizes[4])
    if meta > 0:
        count = meta & 0xFFFF
        keys, weights = np.empty(count, np.int64), np.empty(count, np.int64)
        copy_table(arena, meta, keys, weights, 0)
        add_to_row(
            keys, weights, 0, count, sketch, counters, wides, sketches, candidates, used, sizes,
            prefixes,
        )  # fmt: skip
        release(arena, places, meta >> 24, size_of(meta) + 1)
    metas[number] = ~sketch
    return sketch


@inlined
def copy_table(arena: Words, meta: Any, keys: Keys, weights: Keys, start: Any) -> Any:
    """Write the pairs of a table from a place on; the place behind them."""
    to, base = np.uint64(start), np.uint64(meta >> 24)
    for k in range(np.uint64(slots_in_table(meta))):
        weight = np.int64(arena[base + TWO * k + ONE])
        if weight != 0:
            keys[to] = np.int64(arena[base + TWO * k])
            weights[to] = weight
            to += ONE
    return np.int64(to)


@inlined
def add_to_table(
    keys: Keys,
    weights: Keys,
    start: Any,
    end: Any,
    number: Any,
    metas: Metas,
    arena: Words,
    places: Keys,
    exact: Any,
) -> Any:
    """Add pairs to a table until one has no place; its place among the pairs."""
    for k in range(np.uint64(start), np.uint64(end)):
        if add_pair(metas, arena, places, number, keys[k], weights[k], exact) == NO_PLACE:
            return np.int64(k)
    return end


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


@inlined
def unpack_candidates(words: Words, first: Any, names: Keys, other: Any, bounds: Any) -> Any:
    """Read the candidates of a packed sketch and their bounds; the number of them."""
    plain = high_half(words[first])
    at = first + LONG_HEAD + sketch_words(words, first)
    for k in range(plain):
        other[k] = low_half(words[at])
        bounds[k] = np.int64(words[at + 1]) & WEIGHT_MAX
        at += 2
    for k in range(len(names)):
        other[plain + k] = names[k]
        bounds[plain + k] = np.int64(words[at]) & WEIGHT_MAX
        at += 2 + (np.int64(words[at + 1]) + 7) // 8
    return plain + len(names)


@inlined
def unpack_counters(words: Words, first: Any, cells: Any) -> Any:
    """The counters of a packed sketch, with 64 bits each."""
    counters = np.empty(cells, np.uint64)
    at = np.uint64(first + LONG_HEAD)
    if words[first + 1] & ONE:
        for k in range(np.uint64(cells)):
            counters[k] = words[at + k] & np.uint64(WEIGHT_MAX)
    else:
        for k in range(np.uint64(cells // 2)):
            counters[TWO * k] = words[at + k] & np.uint64(0xFFFFFFFF)
            counters[TWO * k + ONE] = words[at + k] >> np.uint64(32)
    return counters


@inlined
def add_sketch(
    sketch: Any,
    words: Words,
    first: Any,
    names: Keys,
    counters: Any,
    wides: Any,
    sketches: Any,
    candidates: Any,
    used: Keys,
    sizes: Keys,
    prefixes: Prefixes,
) -> None:
    """Add a packed sketch to a sketch, counter by counter. The bound of a candidate is the sum of
    its bounds in both, where the estimate stands for the bound in a sketch that does not list it.
    """
    facts, cells, most = sketch * FACTS, sizes[4], sizes[3]
    total = plus(sketches[facts], np.int64(words[first + 2]) & WEIGHT_MAX)
    if sketches[facts + 1] == 0 and (total > 0xFFFFFFFF or words[first + 1] & ONE):
        widen(counters, wides, sketches, used, sketch, cells)
    sketches[facts] = total
    wide = sketches[facts + 1]
    base = np.uint64((sketch if wide == 0 else wide - 1) * cells)
    added = unpack_counters(words, first, cells)
    room = high_half(words[first]) + len(names)
    other, bounds = np.empty(room, np.int64), np.empty(room, np.int64)
    count = unpack_candidates(words, first, names, other, bounds)
    own, keys = sketches[facts + 2], sketch * 2 * most
    for k in range(count):
        at = find_candidate(candidates, np.uint64(keys), np.uint64(own), other[k])
        if at < own:
            place = keys + most + np.int64(at)
            candidates[place] = plus(candidates[place], bounds[k])
            bounds[k] = -1
        else:
            held = estimate_in(counters, wides, wide, base, other[k], sizes, prefixes)
            bounds[k] = plus(bounds[k], held)
    for k in range(own):
        key = candidates[keys + k]
        if find_candidate(other, np.uint64(0), np.uint64(count), key) == count:
            held = estimate_key(added, np.uint64(0), key, sizes, prefixes)
            candidates[keys + most + k] = plus(candidates[keys + most + k], held)
    for k in range(np.uint64(cells)):
        if wide == 0:
            counters[base + k] = np.uint64(counters[base + k]) + added[k]
        else:
            wides[base + k] = min(wides[base + k] + added[k], np.uint64(WEIGHT_MAX))
    sketches[facts + 3] = 0
    for k in range(count):
        if bounds[k] >= 0 and most > 0:
            held = estimate_in(counters, wides, wide, base, other[k], sizes, prefixes)
            offer(sketches, candidates, sketch, other[k], 0, min(held, bounds[k]), sizes)


@inlined
def estimate_in(
    counters: Any, wides: Any, wide: Any, base: Any, key: Any, sizes: Keys, prefixes: Prefixes
) -> Any:
    if wide == 0:
        return estimate_key(counters, base, key, sizes, prefixes)
    return estimate_key(wides, base, key, sizes, prefixes)


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
