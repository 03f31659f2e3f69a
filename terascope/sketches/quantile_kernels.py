"""Kernels over many quantile states: values and packed states in, packed states out.

In: the arrays of a column (terascope.sketches.quantile_regions). Out: kernels that a column calls
until all of its tuples are taken; one that lacks room returns how far it came, and why.

A state is sorted entries, then values in the order of arrival, in one region. When the region is
full its values are sorted and merged into the entries (terascope.sketches.quantile_entries), so the
cost of a merge is shared by many values. Equal values become one entry, so a group of a few
different values stays small and exact. While values alone take less memory than entries they stay
values. A summary with at most `keep` entries is not compressed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from terascope.machine_code import INTEGER, REAL, arrays_of, column, compiled_for, inlined, output
from terascope.sketches.quantile_bytes import (
    BUFFER,
    FLOATS,
    HEADER,
    SUMMARY,
    buffer_bound,
    content_of,
    entries_bound,
    get_buffer,
    get_entries,
    get_eps,
    put_buffer,
    put_entries,
)
from terascope.sketches.quantile_entries import (
    ENTRY,
    bound_of,
    counted,
    entry_words,
    is_exact,
    joined,
    load_entries,
    store_entries,
    total,
)
from terascope.sketches.quantile_regions import (
    DAMAGED,
    DONE,
    INEXACT,
    META,
    MIXED,
    NEEDS_ARENA,
    NEEDS_OUTBOX,
    NEEDS_WORK,
    SIZE,
    WIDE,
    free_region,
    move_raw,
    region_words,
    size_for,
    take_region,
)

FULL: Final = 6
"""The summary does not fit the scratchpad: it must leave."""
SMALL: Final = 8
"""So few values are not sorted when they come to a larger region."""


class Memory(NamedTuple):
    """The arrays of terascope.sketches.quantile_regions; `epses` is `meta` as FLOATs."""

    meta: Any
    epses: Any
    arena: Any
    free: Any


class Work(NamedTuple):
    """Room for the work on one state: values, and entries of two summaries and of their merge."""

    raw: Any
    left: Any
    right: Any
    made: Any
    counts: Any
    marks: Any
    eps: Any
    eps_bytes: Any
    """The same memory as `eps`, which has one number."""


class Outbox(NamedTuple):
    """Packed states one behind the other, where each ends and whose it is; how many there are."""

    data: Any
    ends: Any
    owners: Any
    count: Any


_INTS: Final = output(np.int64)
_BYTES: Final = output(np.uint8)
MEMORY: Final = arrays_of(Memory, _INTS, output(np.float64), _INTS, _INTS)
WORK: Final = arrays_of(
    Work, _INTS, _INTS, _INTS, _INTS, output(np.int32), output(np.uint64), output(np.float64), _BYTES
)
OUTBOX: Final = arrays_of(Outbox, _BYTES, _INTS, _INTS, _INTS)


# ---- one state -----------------------------------------------------------------------------------


@inlined
def has_room(box: Any, size: Any) -> Any:
    """Whether one more state of so many bytes fits."""
    count = box.count[0]
    used = box.ends[count - 1] if count else 0
    return count < len(box.ends) and used + size <= len(box.data)


@inlined
def box_start(box: Any) -> Any:
    count = box.count[0]
    return box.ends[count - 1] if count else np.int64(0)


@inlined
def box_add(box: Any, owner: Any, end: Any) -> None:
    count = box.count[0]
    box.ends[count] = end
    box.owners[count] = owner
    box.count[0] = count + 1


@inlined
def shape_of(memory: Any, at: Any, most: Any) -> Any:
    """Of a state: the size number and the start of its region, its entries, the words of each, and
    its other values.
    """
    info = memory.meta[at + 2]
    size = info & SIZE
    if size == 0:
        return size, np.int64(0), np.int64(0), np.int64(2), np.int64(0)
    start = memory.meta[at + 1] - region_words(size, most)
    entries = info >> 8
    words = np.int64(ENTRY if info & WIDE else 2)
    return size, start, entries, words, memory.meta[at] - start - entries * words


@inlined
def summarise(memory: Any, work: Any, at: Any, extra: Any, most: Any, eps: Any, keep: Any) -> Any:
    """Make the entries of a state and of `extra` further values, which begin `work.raw`; return how
    many there are in `work.made`, and how many values were not in entries before.
    """
    _, start, entries, words, pending = shape_of(memory, at, most)
    behind = start + entries * words
    for i in range(pending):
        work.raw[extra + i] = memory.arena[behind + i]
    count = extra + pending
    new = counted(work.raw, count, work.right, work.counts, work.marks)
    load_entries(memory.arena, start, entries, words, work.left)
    own_eps = max(eps, memory.epses[at + 3])
    inexact = memory.meta[at + 2] & INEXACT != 0
    return merge_entries(work, entries, new, inexact or new > keep, own_eps, keep), count


@inlined
def merge_entries(work: Any, left: Any, right: Any, lossy: Any, eps: Any, keep: Any) -> Any:
    """Merge entries of `work.left` and `work.right` into `work.made`; return how many there are.
    Unless it must be `lossy`, the result is only compressed when it has too many entries.
    """
    bound = bound_of(eps, total(work.left, left) + total(work.right, right))
    made = joined(work.left, left, work.right, right, bound if lossy else 1, work.made)
    if lossy or made <= keep:
        return made
    return joined(work.made, made, work.right, np.int64(0), bound, work.made)


@inlined
def store_values(memory: Any, work: Any, at: Any, count: Any, most: Any) -> Any:
    """Let a state be `count` values of `work.raw`, with room for one more; False: no memory."""
    size = size_for(count + 1, most)
    old_size, old, _, _, _ = shape_of(memory, at, most)
    start = old
    if size != old_size:
        start = take_region(memory.arena, memory.free, size, most)
        if start < 0:
            return False
        if old_size:
            free_region(memory.arena, memory.free, old_size, old)
    for i in range(count):
        memory.arena[start + i] = work.raw[i]
    memory.meta[at] = start + count
    memory.meta[at + 1] = start + region_words(size, most)
    memory.meta[at + 2] = size
    return True


@inlined
def store_summary(memory: Any, work: Any, at: Any, count: Any, most: Any) -> Any:
    """Let a state be the entries of `work.made`, with room for half as many values again. Return
    DONE, NEEDS_ARENA, or FULL when less than an eighth of the scratchpad would be left.
    """
    words = entry_words(work.made, count)
    needed = words * count
    wanted = needed + max(needed // 2, SMALL)
    old_size, start, _, _, _ = shape_of(memory, at, most)
    size = size_for(wanted, most)
    if region_words(size, most) < needed + max(SMALL, most >> 3) and wanted > most:
        return FULL
    if old_size < size or old_size > size + 1:
        new = take_region(memory.arena, memory.free, size, most)
        if new < 0:
            return NEEDS_ARENA
        if old_size:
            free_region(memory.arena, memory.free, old_size, start)
        start = new
    else:
        size = old_size
    store_entries(work.made, count, words, memory.arena, start)
    memory.meta[at] = start + needed
    memory.meta[at + 1] = start + region_words(size, most)
    flags = WIDE if words == ENTRY else 0
    flags |= 0 if is_exact(work.made, count) else INEXACT
    memory.meta[at + 2] = size | flags | (count << 8)
    return DONE


@inlined
def settle(memory: Any, work: Any, at: Any, extra: Any, most: Any, eps: Any, keep: Any) -> Any:
    """Take `extra` values of `work.raw` into a state, and leave room for one more. Return (status,
    entries): DONE; what is missing; or FULL: all is in so many entries of `work.made`, not stored.
    """
    _, _, entries, _, pending = shape_of(memory, at, most)
    if entries + pending + extra > len(work.raw):
        return NEEDS_WORK, entries + pending + extra
    if entries == 0 and extra + pending <= SMALL and extra + pending < most:
        _, start, _, _, _ = shape_of(memory, at, most)
        for i in range(pending):
            work.raw[extra + i] = memory.arena[start + i]
        fits = store_values(memory, work, at, extra + pending, most)
        return (DONE if fits else NEEDS_ARENA), np.int64(0)
    made, count = summarise(memory, work, at, extra, most, eps, keep)
    if entries == 0 and 2 * made > count and count < min(2 * keep, most):
        fits = store_values(memory, work, at, count, most)
        return (DONE if fits else NEEDS_ARENA), np.int64(0)
    return store_summary(memory, work, at, made, most), made


@inlined
def put_made(work: Any, box: Any, owner: Any, made: Any, floats: Any) -> None:
    """Put the entries of `work.made` into the outbox, with the eps of `work.eps`."""
    exact = is_exact(work.made, made)
    end = put_entries(box.data, box_start(box), floats, work.eps_bytes, work.made, made, exact)
    box_add(box, owner, end)


@inlined
def leave_if_full(
    memory: Any, work: Any, box: Any, at: Any, status: Any, made: Any, floats: Any, most: Any,
    eps: Any,
) -> Any:  # fmt: skip
    """After FULL, put the entries of `work.made` into the outbox, and empty the state, which keeps
    its region. Return the status then, and how much of what is missing there must be.
    """
    if status != FULL:
        return status, made
    if not has_room(box, entries_bound(made)):
        return NEEDS_OUTBOX, entries_bound(made)
    work.eps[0] = max(eps, memory.epses[at + 3])
    put_made(work, box, at // META, made, floats)
    size, start, _, _, _ = shape_of(memory, at, most)
    memory.meta[at] = start
    memory.meta[at + 2] = size
    memory.meta[at + 3] = 0
    return DONE, np.int64(0)


# ---- values --------------------------------------------------------------------------------------


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), MEMORY, OUTBOX, _BYTES, INTEGER, INTEGER, _INTS
)
def fill_buffers(
    begin: Any, numbers: Any, values: Any, memory: Any, box: Any, eps: Any, floats: Any, most: Any,
    report: Any,
) -> None:  # fmt: skip
    """Append values; a full buffer leaves. `report`: how many tuples were taken, and why no more.
    """
    meta, arena = memory.meta, memory.arena
    for i in range(begin, len(numbers)):
        at = np.uint64(numbers[i]) * np.uint64(META)
        place = meta[at]
        if place == meta[at + np.uint64(1)]:
            state = np.int64(at)
            size, start, _, _, pending = shape_of(memory, state, most)
            if pending == most:
                if not has_room(box, buffer_bound(most)):
                    report[0], report[1], report[2] = i, NEEDS_OUTBOX, buffer_bound(most)
                    return
                end = put_buffer(box.data, box_start(box), floats, eps, arena, start, pending)
                box_add(box, numbers[i], end)
                meta[at] = start
            elif not move_raw(meta, arena, memory.free, state, size + 1, most):
                report[0], report[1] = i, NEEDS_ARENA
                return
            place = meta[at]
        arena[np.uint64(place)] = values[i]
        meta[at] = place + 1
    report[0], report[1] = len(numbers), DONE


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), MEMORY, WORK, OUTBOX, REAL, INTEGER, INTEGER,
    INTEGER, _INTS,
)  # fmt: skip
def fill_summaries(
    begin: Any, numbers: Any, values: Any, memory: Any, work: Any, box: Any, eps: Any, keep: Any,
    floats: Any, most: Any, report: Any,
) -> None:  # fmt: skip
    """Append values; a full region is summarised, and leaves when the summary fills it."""
    meta, arena = memory.meta, memory.arena
    for i in range(begin, len(numbers)):
        at = np.uint64(numbers[i]) * np.uint64(META)
        place = meta[at]
        if place == meta[at + np.uint64(1)]:
            state = np.int64(at)
            status, made = settle(memory, work, state, np.int64(0), most, eps, keep)
            status, report[2] = leave_if_full(
                memory, work, box, state, status, made, floats, most, eps
            )
            if status != DONE:
                report[0], report[1] = i, status
                return
            place = meta[at]
        arena[np.uint64(place)] = values[i]
        meta[at] = place + 1
    report[0], report[1] = len(numbers), DONE


# ---- packed states -------------------------------------------------------------------------------


@inlined
def merge_one(
    memory: Any, work: Any, at: Any, data: Any, start: Any, end: Any, most: Any, eps: Any, keep: Any
) -> Any:
    """Merge a packed state into a state. Status as `settle`, or DAMAGED."""
    content = content_of(data, start, end)
    if content < 0:
        return DAMAGED, np.int64(0)
    its_eps = get_eps(data, start, work.eps, work.eps_bytes)
    if not 0.0 < its_eps <= 0.5:
        return DAMAGED, np.int64(0)
    _, first, entries, words, pending = shape_of(memory, at, most)
    if entries + pending + end - start > len(work.raw):
        return NEEDS_WORK, entries + pending + end - start
    if content == BUFFER:
        count = get_buffer(data, start, end, work.raw)
        if memory.meta[at] + count > memory.meta[at + 1]:
            return settle(memory, work, at, count, most, eps, keep)
        place = memory.meta[at]
        for i in range(count):
            memory.arena[place + i] = work.raw[i]
        memory.meta[at] = place + count
        return DONE, np.int64(0)
    inexact = memory.meta[at + 2] & INEXACT != 0
    if pending > 0:
        entries, _ = summarise(memory, work, at, np.int64(0), most, eps, keep)
        inexact = not is_exact(work.made, entries)
        for i in range(ENTRY * entries):
            work.left[i] = work.made[i]
    else:
        load_entries(memory.arena, first, entries, words, work.left)
    new = get_entries(data, start, end, work.right)
    if new < 0:
        return DAMAGED, np.int64(0)
    if content == SUMMARY:
        bound = bound_of(its_eps, total(work.right, new))
        new = joined(work.right, new, work.left, np.int64(0), bound, work.right)
        memory.epses[at + 3] = max(memory.epses[at + 3], its_eps)
        inexact = True
    made = merge_entries(work, entries, new, inexact, max(eps, memory.epses[at + 3]), keep)
    return store_summary(memory, work, at, made, most), made


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), column(np.uint8), MEMORY, WORK, OUTBOX, REAL,
    INTEGER, INTEGER, _INTS,
)  # fmt: skip
def merge_summaries(
    begin: Any, numbers: Any, offsets: Any, data: Any, memory: Any, work: Any, box: Any, eps: Any,
    keep: Any, most: Any, report: Any,
) -> None:  # fmt: skip
    """Merge packed states; a state that does not fit the scratchpad leaves. `report[3]` says
    whether values are FLOATs, -1 as long as it is not known.
    """
    for i in range(begin, len(numbers)):
        at = numbers[i] * META
        start, end = offsets[i], offsets[i + 1]
        if end - start > HEADER:
            floats = np.int64(data[start + 3]) & FLOATS
            if report[3] < 0:
                report[3] = floats
            if report[3] != floats:
                report[0], report[1] = i, MIXED
                return
        status, made = merge_one(memory, work, at, data, start, end, most, eps, keep)
        status, report[2] = leave_if_full(
            memory, work, box, at, status, made, report[3], most, eps
        )
        if status != DONE:
            report[0], report[1] = i, status
            return
    report[0], report[1] = len(numbers), DONE


# ---- out -----------------------------------------------------------------------------------------


@compiled_for(INTEGER, column(np.int64), MEMORY, OUTBOX, _BYTES, INTEGER, INTEGER, _INTS)
def pack_buffers(
    begin: Any, numbers: Any, memory: Any, box: Any, eps: Any, floats: Any, most: Any, report: Any
) -> None:
    for i in range(begin, len(numbers)):
        _, start, _, _, count = shape_of(memory, numbers[i] * META, most)
        if not has_room(box, buffer_bound(count)):
            report[0], report[1], report[2] = i, NEEDS_OUTBOX, buffer_bound(count)
            return
        end = put_buffer(box.data, box_start(box), floats, eps, memory.arena, start, count)
        box_add(box, numbers[i], end)
    report[0], report[1] = len(numbers), DONE


@compiled_for(
    INTEGER, column(np.int64), MEMORY, WORK, OUTBOX, REAL, INTEGER, INTEGER, INTEGER, _INTS
)
def pack_summaries(
    begin: Any, numbers: Any, memory: Any, work: Any, box: Any, eps: Any, keep: Any, floats: Any,
    most: Any, report: Any,
) -> None:  # fmt: skip
    """Write states as entries; the states themselves stay as they are."""
    for i in range(begin, len(numbers)):
        at = numbers[i] * META
        _, _, entries, _, pending = shape_of(memory, at, most)
        report[0] = i
        report[2] = entries_bound(entries + pending)
        if entries + pending > len(work.raw):
            report[1], report[2] = NEEDS_WORK, entries + pending
            return
        if not has_room(box, report[2]):
            report[1] = NEEDS_OUTBOX
            return
        work.eps[0] = max(eps, memory.epses[at + 3])
        if entries + pending == 0:
            empty = put_buffer(box.data, box_start(box), floats, work.eps_bytes, work.raw, 0, 0)
            box_add(box, numbers[i], empty)
            continue
        made, _ = summarise(memory, work, at, np.int64(0), most, eps, keep)
        put_made(work, box, numbers[i], made, floats)
    report[0], report[1] = len(numbers), DONE
