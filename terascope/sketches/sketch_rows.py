"""Sketches of many states, and the tables they are made of: parts of kernels.

In: the arrays of a column of states (terascope.sketches.hitter_high), seen as flat ones: a view of
a row for each tuple would take longer than all else. Out: rows for new sketches, pairs added to
tables and sketches, candidates, packed sketches added to sketches.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import inlined
from terascope.sketches.count_min import add_to_sketch, estimate_key
from terascope.sketches.hitter_ids import Keys, Prefixes, Words
from terascope.sketches.hitter_layout import (
    LONG_HEAD,
    WEIGHT_MAX,
    high_half,
    low_half,
    sketch_words,
)
from terascope.sketches.pair_blocks import NO_PLACE, SIZES, Metas, release, size_of
from terascope.sketches.pair_tables import add_pair, plus, slots_in_table

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
        begin_candidates(keys, weights, sketches, candidates, sketch, sizes[3])
        release(arena, places, meta >> 24, size_of(meta) + 1)
    metas[number] = ~sketch
    return sketch


@inlined
def begin_candidates(
    keys: Keys, weights: Keys, sketches: Any, candidates: Any, sketch: Any, most: Any
) -> None:
    """The heaviest identifiers of a table are the candidates of the sketch that it becomes. Their
    weights are known.
    """
    order = np.argsort(-weights)
    facts, first = sketch * FACTS, sketch * 2 * most
    count = min(most, len(keys))
    for k in range(count):
        candidates[first + k] = keys[order[k]]
        candidates[first + most + k] = weights[order[k]]
    sketches[facts + 2] = count
    sketches[facts + 3] = weights[order[count - 1]] if count == most and count > 0 else 0


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
