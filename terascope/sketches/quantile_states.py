"""One quantile state: values taken in, a packed state merged in.

In: the arrays of a column (terascope.sketches.quantile_regions). Out: parts of kernels.

A state is sorted entries, then values in the order of arrival, in one region. When the region is
full its values are sorted and merged into the entries (terascope.sketches.quantile_entries), so the
cost of a merge is shared by many values. Equal values become one entry, so a group of a few
different values stays small and exact. While values alone take less memory than entries they stay
values. A summary is compressed when it has more than `keep` entries.

The work on a state needs room: `raw` for values, `left`, `right` and `made` for the entries of two
summaries and of their merge, and `counts` to count values.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import (
    inlined,
)
from terascope.sketches.quantile_bytes import (
    BUFFER,
    EXACT,
    SUMMARY,
    content_of,
    get_buffer,
    get_entries,
    get_eps,
)
from terascope.sketches.quantile_entries import (
    ENTRY,
    counted,
    entry_words,
    joined,
    load_entries,
    shrink,
    store_entries,
    total,
)
from terascope.sketches.quantile_regions import (
    DAMAGED,
    DONE,
    NEEDS_ARENA,
    NEEDS_WORK,
    SIZE,
    WIDE,
    free_region,
    move_values,
    region_words,
    size_for,
    take_region,
)

FULL: Final = 6
"""The summary does not fit the scratchpad: it must leave."""
SMALL: Final = 32
"""So few values are not sorted when they come to a larger region."""
ROOM: Final = 8
"""The least room for values behind the entries of a summary."""


@inlined
def shape_of(meta: Any, at: Any, most: Any) -> Any:
    """Of a state: the size number and the start of its region, its entries, the words of each, and
    its other values.
    """
    info = meta[at + 2]
    size = info & SIZE
    if size == 0:
        return size, np.int64(0), np.int64(0), np.int64(2), np.int64(0)
    start = meta[at + 1] - region_words(size, most)
    entries = info >> 8
    words = np.int64(ENTRY if info & WIDE else 2)
    return size, start, entries, words, meta[at] - start - entries * words


@inlined
def summarise(
    meta: Any, arena: Any, raw: Any, left: Any, right: Any, made: Any, counts: Any, at: Any,
    extra: Any, most: Any, eps: Any, keep: Any,
) -> Any:  # fmt: skip
    """Make the entries of a state and of `extra` further values, which begin `raw`; return how many
    there are in `made`, and how many values were not in entries before.
    """
    _, start, entries, words, pending = shape_of(meta, at, most)
    behind = start + entries * words
    for i in range(pending):
        raw[extra + i] = arena[behind + i]
    count = extra + pending
    new = counted(raw, count, right, counts)
    load_entries(arena, start, entries, words, left)
    return shrink(made, joined(left, entries, right, new, made), eps, keep), count


@inlined
def store_values(meta: Any, arena: Any, raw: Any, at: Any, count: Any, most: Any) -> Any:
    """Let a state be `count` values of `raw`, with room for one more. DONE or NEEDS_ARENA."""
    size = size_for(count + 1, most)
    old_size, start, _, _, _ = shape_of(meta, at, most)
    if size != old_size:
        new = take_region(arena, size, most)
        if new == 0:
            return NEEDS_ARENA
        if old_size:
            free_region(arena, old_size, start)
        start = new
    for i in range(count):
        arena[start + i] = raw[i]
    meta[at] = start + count
    meta[at + 1] = start + region_words(size, most)
    meta[at + 2] = size
    return DONE


@inlined
def store_summary(meta: Any, arena: Any, made: Any, at: Any, count: Any, most: Any) -> Any:
    """Let a state be the entries of `made`, with room for half as many values again. Return DONE,
    NEEDS_ARENA, or FULL when less than an eighth of the scratchpad would be left.
    """
    words = entry_words(made, count)
    needed = words * count
    wanted = needed + max(needed // 2, ROOM)
    old_size, start, _, _, _ = shape_of(meta, at, most)
    size = size_for(wanted, most)
    if wanted > most and most < needed + max(ROOM, most >> 3):
        return FULL
    if old_size < size or old_size > size + 1:
        new = take_region(arena, size, most)
        if new == 0:
            return NEEDS_ARENA
        if old_size:
            free_region(arena, old_size, start)
        start = new
    else:
        size = old_size
    store_entries(made, count, words, arena, start)
    meta[at] = start + needed
    meta[at + 1] = start + region_words(size, most)
    meta[at + 2] = size | (WIDE if words == ENTRY else 0) | (count << 8)
    return DONE


@inlined
def settle(
    meta: Any, arena: Any, raw: Any, left: Any, right: Any, made: Any, counts: Any, at: Any,
    extra: Any, most: Any, eps: Any, keep: Any,
) -> Any:  # fmt: skip
    """Take `extra` values of `raw` into a state, and leave room for one more. Return (status,
    number): DONE; NEEDS_WORK, and how much; NEEDS_ARENA; or FULL: all is in so many entries of
    `made`, which are not stored.
    """
    size, _, entries, _, pending = shape_of(meta, at, most)
    if entries + pending + extra > len(raw):
        return NEEDS_WORK, entries + pending + extra
    if entries == 0 and extra == 0 and pending <= SMALL and pending < most:
        moved = move_values(meta, arena, at, size + 1, most)
        return (DONE if moved else NEEDS_ARENA), np.int64(0)
    found, count = summarise(
        meta, arena, raw, left, right, made, counts, at, extra, most, eps, keep
    )
    return store_smaller(meta, arena, raw, made, at, found, count, most, keep)


@inlined
def store_smaller(
    meta: Any, arena: Any, raw: Any, made: Any, at: Any, found: Any, count: Any, most: Any,
    keep: Any,
) -> Any:  # fmt: skip
    """Let a state be what `summarise` made: entries, or values while these take less memory."""
    entries = meta[at + 2] >> 8
    if entries == 0 and 2 * found > count and count < min(2 * keep, most):
        return store_values(meta, arena, raw, at, count, most), np.int64(0)
    return store_summary(meta, arena, made, at, found, most), found


@inlined
def empty_state(meta: Any, at: Any, most: Any) -> None:
    """Empty a state; it keeps its region."""
    size, start, _, _, _ = shape_of(meta, at, most)
    meta[at] = start
    meta[at + 2] = size
    meta[at + 3] = 0


# ---- packed states -------------------------------------------------------------------------------


@inlined
def spread_out(right: Any, count: Any, raw: Any) -> Any:
    """The values of exact entries one by one; return how many."""
    made = np.int64(0)
    for i in range(count):
        for _ in range(right[i * ENTRY + 1]):
            raw[made] = right[i * ENTRY]
            made += 1
    return made


@inlined
def merge_one(
    meta: Any, epses: Any, arena: Any, raw: Any, left: Any, right: Any, made: Any, counts: Any,
    eps_word: Any, eps_bytes: Any, at: Any, data: Any, start: Any, end: Any, most: Any, eps: Any,
    keep: Any,
) -> Any:  # fmt: skip
    """Merge a packed state into a state. Status as `settle`, or DAMAGED."""
    content = content_of(data, start, end)
    its_eps = get_eps(data, start, eps_word, eps_bytes) if content >= 0 else 0.0
    if not 0.0 < its_eps <= 0.5:
        return DAMAGED, np.int64(0)
    own_eps = max(eps, epses[at + 3])
    _, first, entries, words, pending = shape_of(meta, at, most)
    if entries + pending + end - start > len(raw):
        return NEEDS_WORK, entries + pending + end - start
    few, new = np.int64(-1), np.int64(0)  # values, entries
    if content == BUFFER:
        few = get_buffer(data, start, end, raw)
    else:
        new = get_entries(data, start, end, right)
        if new < 0:
            return DAMAGED, np.int64(0)
        if content == EXACT and total(right, new) <= SMALL:
            few = spread_out(right, new, raw)
    if few >= 0 and meta[at] + few <= meta[at + 1]:
        for i in range(few):
            arena[meta[at] + i] = raw[i]
        meta[at] += few
        return DONE, np.int64(0)
    if few >= 0 and entries == 0 and few + pending <= SMALL:
        for i in range(pending):
            raw[few + i] = arena[first + i]
        return store_values(meta, arena, raw, at, few + pending, most), np.int64(0)
    if pending > 0 or few >= 0:
        entries, count = summarise(
            meta, arena, raw, left, right, made, counts, at, max(few, 0), most, own_eps, keep
        )
        if few >= 0:
            return store_smaller(meta, arena, raw, made, at, entries, count, most, keep)
        for i in range(ENTRY * entries):
            left[i] = made[i]
        get_entries(data, start, end, right)  # again: the array was used
    else:
        load_entries(arena, first, entries, words, left)
    if content == SUMMARY:
        new = shrink(right, new, its_eps, keep)
        own_eps = max(own_eps, its_eps)
    found = shrink(made, joined(left, entries, right, new, made), own_eps, keep)
    status = store_summary(meta, arena, made, at, found, most)
    if status != NEEDS_ARENA and own_eps > eps:
        epses[at + 3] = own_eps
    return status, found
