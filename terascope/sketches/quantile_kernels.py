"""Kernels over many quantile states: values and packed states in, packed states out.

In: the arrays of a column. Out: kernels that a column calls until all of its tuples are taken: one
that lacks room says how far it came, what it lacks, and how much of it.

Kernels take arrays in tuples, and unpack them first: to take an array out of a tuple for every
state would count references every time, which costs more than most states do.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from terascope.machine_code import (
    INTEGER,
    REAL,
    arrays_of,
    column,
    compiled_for,
    inlined,
    output,
)
from terascope.sketches.quantile_bytes import (
    FLOATS,
    HEADER,
    buffer_bound,
    entries_bound,
    put_buffer,
    put_entries,
)
from terascope.sketches.quantile_regions import (
    DONE,
    META,
    MIXED,
    NEEDS_ARENA,
    NEEDS_OUTBOX,
    NEEDS_WORK,
    move_values,
)
from terascope.sketches.quantile_states import (
    FULL,
    SMALL,
    empty_state,
    merge_one,
    settle,
    shape_of,
    summarise,
)


class Memory(NamedTuple):
    """The arrays of terascope.sketches.quantile_regions; `epses` is `meta` as FLOATs."""

    meta: Any
    epses: Any
    arena: Any


class Work(NamedTuple):
    """Room for the work on one state: values, entries of two summaries and of their merge, counts
    of values, and an eps with its bytes, which are the same memory.
    """

    raw: Any
    left: Any
    right: Any
    made: Any
    counts: Any
    eps: Any
    eps_bytes: Any


class Outbox(NamedTuple):
    """Packed states one behind the other, where each ends and whose it is; how many there are."""

    data: Any
    ends: Any
    owners: Any
    count: Any


_INTS: Final = output(np.int64)
_BYTES: Final = output(np.uint8)
MEMORY: Final = arrays_of(Memory, _INTS, output(np.float64), _INTS)
WORK: Final = arrays_of(Work, _INTS, _INTS, _INTS, _INTS, _INTS, output(np.float64), _BYTES)
OUTBOX: Final = arrays_of(Outbox, _BYTES, _INTS, _INTS, _INTS)


# ---- the outbox ----------------------------------------------------------------------------------


@inlined
def box_start(data: Any, ends: Any, count: Any, size: Any) -> Any:
    """Where the next state begins; -1 when there is no room for one of so many bytes."""
    start = ends[count[0] - 1] if count[0] else np.int64(0)
    if count[0] == len(ends) or start + size > len(data):
        return np.int64(-1)
    return start


@inlined
def box_add(ends: Any, owners: Any, count: Any, owner: Any, end: Any) -> None:
    ends[count[0]] = end
    owners[count[0]] = owner
    count[0] += 1


# ---- values --------------------------------------------------------------------------------------


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), MEMORY, OUTBOX, _BYTES, INTEGER, INTEGER, _INTS
)
def fill_buffers(
    begin: Any, numbers: Any, values: Any, memory: Any, box: Any, eps: Any, floats: Any, most: Any,
    report: Any,
) -> None:  # fmt: skip
    """Append values; a full buffer leaves. `report`: how many tuples were taken, why no more, and
    how much is missing.
    """
    meta, _, arena = memory
    data, ends, owners, count = box
    report[1] = DONE
    for i in range(begin, len(numbers)):
        at = np.uint64(numbers[i]) * np.uint64(META)
        place = meta[at]
        if place == meta[at + np.uint64(1)]:
            state = np.int64(at)
            size, start, _, _, pending = shape_of(meta, state, most)
            if pending < most:
                if not move_values(meta, arena, state, size + 1, most):
                    report[0], report[1] = i, NEEDS_ARENA
                    return
            else:
                room = box_start(data, ends, count, buffer_bound(most))
                if room < 0:
                    report[0], report[1], report[2] = i, NEEDS_OUTBOX, buffer_bound(most)
                    return
                end = put_buffer(data, room, floats, eps, arena, start, pending)
                box_add(ends, owners, count, numbers[i], end)
                meta[at] = start
            place = meta[at]
        arena[np.uint64(place)] = values[i]
        meta[at] = place + 1
    report[0] = len(numbers)


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), MEMORY, WORK, OUTBOX, REAL, INTEGER, INTEGER,
    INTEGER, _INTS,
)  # fmt: skip
def fill_summaries(
    begin: Any, numbers: Any, values: Any, memory: Any, work: Any, box: Any, eps: Any, keep: Any,
    floats: Any, most: Any, report: Any,
) -> None:  # fmt: skip
    """Append values; a full region is summarised, and leaves when the summary fills it."""
    meta, epses, arena = memory
    raw, left, right, made, counts, eps_word, eps_bytes = work
    data, ends, owners, count = box
    report[1] = DONE
    for i in range(begin, len(numbers)):
        at = np.uint64(numbers[i]) * np.uint64(META)
        place = meta[at]
        if place == meta[at + np.uint64(1)]:
            state = np.int64(at)
            eps_word[0] = max(eps, epses[state + 3])
            status, found = settle(
                meta, arena, raw, left, right, made, counts, state, np.int64(0), most,
                eps_word[0], keep,
            )  # fmt: skip
            if status == FULL:
                room = box_start(data, ends, count, entries_bound(found))
                if room < 0:
                    status, found = NEEDS_OUTBOX, entries_bound(found)
                else:
                    end = put_entries(data, room, floats, eps_bytes, made, found)
                    box_add(ends, owners, count, numbers[i], end)
                    empty_state(meta, state, most)
                    status = DONE
            if status != DONE:
                report[0], report[1], report[2] = i, status, found
                return
            place = meta[at]
        arena[np.uint64(place)] = values[i]
        meta[at] = place + 1
    report[0] = len(numbers)


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), column(np.uint8), MEMORY, WORK, OUTBOX, REAL,
    INTEGER, INTEGER, _INTS,
)  # fmt: skip
def merge_summaries(
    begin: Any, numbers: Any, offsets: Any, packed: Any, memory: Any, work: Any, box: Any, eps: Any,
    keep: Any, most: Any, report: Any,
) -> None:  # fmt: skip
    """Merge packed states; a state that does not fit the scratchpad leaves. `report[3]` says
    whether values are FLOATs, -1 as long as it is not known.
    """
    meta, epses, arena = memory
    raw, left, right, made, counts, eps_word, eps_bytes = work
    data, ends, owners, count = box
    report[1] = DONE
    for i in range(begin, len(numbers)):
        at = numbers[i] * META
        start, end = offsets[i], offsets[i + 1]
        if end - start > HEADER:
            floats = np.int64(packed[start + 3]) & FLOATS
            if report[3] < 0:
                report[3] = floats
            if report[3] != floats:
                report[0], report[1] = i, MIXED
                return
        status, found = merge_one(
            meta, epses, arena, raw, left, right, made, counts, eps_word, eps_bytes, at, packed,
            start, end, most, eps, keep,
        )  # fmt: skip
        if status == FULL:
            eps_word[0] = max(eps, epses[at + 3])
            room = box_start(data, ends, count, entries_bound(found))
            if room < 0:
                status, found = NEEDS_OUTBOX, entries_bound(found)
            else:
                stop = put_entries(data, room, report[3], eps_bytes, made, found)
                box_add(ends, owners, count, numbers[i], stop)
                empty_state(meta, at, most)
                status = DONE
        if status != DONE:
            report[0], report[1], report[2] = i, status, found
            return
    report[0] = len(numbers)


# ---- out -----------------------------------------------------------------------------------------


@compiled_for(INTEGER, column(np.int64), MEMORY, OUTBOX, _BYTES, INTEGER, INTEGER, _INTS)
def pack_buffers(
    begin: Any, numbers: Any, memory: Any, box: Any, eps: Any, floats: Any, most: Any, report: Any
) -> None:
    """Write states that are values."""
    meta, _, arena = memory
    data, ends, owners, count = box
    report[1] = DONE
    for i in range(begin, len(numbers)):
        _, start, _, _, pending = shape_of(meta, numbers[i] * META, most)
        room = box_start(data, ends, count, buffer_bound(pending))
        if room < 0:
            report[0], report[1], report[2] = i, NEEDS_OUTBOX, buffer_bound(pending)
            return
        end = put_buffer(data, room, floats, eps, arena, start, pending)
        box_add(ends, owners, count, numbers[i], end)
    report[0] = len(numbers)


@compiled_for(
    INTEGER, column(np.int64), MEMORY, WORK, OUTBOX, REAL, INTEGER, INTEGER, INTEGER, _INTS
)
def pack_summaries(
    begin: Any, numbers: Any, memory: Any, work: Any, box: Any, eps: Any, keep: Any, floats: Any,
    most: Any, report: Any,
) -> None:  # fmt: skip
    """Write states as entries, those of a few values as they are. The states stay as they are."""
    meta, epses, arena = memory
    raw, left, right, made, counts, eps_word, eps_bytes = work
    data, ends, owners, count = box
    report[1] = DONE
    for i in range(begin, len(numbers)):
        at = numbers[i] * META
        _, start, entries, _, pending = shape_of(meta, at, most)
        room = box_start(data, ends, count, entries_bound(entries + pending))
        if room < 0:
            report[0], report[1] = i, NEEDS_OUTBOX
            report[2] = entries_bound(entries + pending)
            return
        if entries + pending > len(raw):
            report[0], report[1], report[2] = i, NEEDS_WORK, entries + pending
            return
        eps_word[0] = max(eps, epses[at + 3])
        if entries == 0 and pending <= SMALL:
            end = put_buffer(data, room, floats, eps_bytes, arena, start, pending)
        else:
            found, _ = summarise(
                meta, arena, raw, left, right, made, counts, at, np.int64(0), most, eps_word[0],
                keep,
            )  # fmt: skip
            end = put_entries(data, room, floats, eps_bytes, made, found)
        box_add(ends, owners, count, numbers[i], end)
    report[0] = len(numbers)
