"""Windows from slices, in machine code: a result costs a few merges, whatever range and slide are.

In: rows of slices, those of a group beside each other and in order of time. Out: rows of windows.
What can be taken back (counts, sums and XORs of integers) is kept as one value: a slice is added
when it comes and subtracted when it goes (subtract-on-evict). Everything else, FLOATs included, is
kept on two stacks: behind `middle` a value of all that came since, before it the values of all
suffixes, made anew when the last of them is used up; each slice is combined twice in its life.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.low.kernels import INTEGER, column, compiled, inlined, output
from terascope.low.slots import SlotKind

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

ADD, XOR, ADD_FLOAT, MIN, MAX, MIN_FLOAT, MAX_FLOAT, OR, AND = range(9)
OPERATIONS: Final[dict[SlotKind, int]] = {
    "count": ADD,
    "count_of": ADD,
    "sum_int": ADD,
    "xor_int": XOR,
    "sum_float": ADD_FLOAT,
    "min_int": MIN,
    "max_int": MAX,
    "min_float": MIN_FLOAT,
    "max_float": MAX_FLOAT,
    "or_int": OR,
    "and_int": AND,
}


@inlined
def at_or_after(time: int, slide: int) -> int:
    """The first multiple of the slide that is not before a time."""
    return -((-time) // slide) * slide


@inlined
def combine(
    op: int, ints: Ints, floats: Floats, j: int, seen: bool, value: int, real: float
) -> None:
    """Take a value into slot j, which may have seen none yet."""
    if not seen:
        if op == ADD_FLOAT or op == MIN_FLOAT or op == MAX_FLOAT:
            floats[j] = real
        else:
            ints[j] = value
    elif op == ADD_FLOAT:
        floats[j] += real
    elif op == MIN:
        ints[j] = min(ints[j], value)
    elif op == MAX:
        ints[j] = max(ints[j], value)
    elif op == MIN_FLOAT:  # a NaN gives way to anything
        if real < floats[j] or math.isnan(floats[j]):
            floats[j] = real
    elif op == MAX_FLOAT:  # a NaN stays
        if real > floats[j] or math.isnan(real):
            floats[j] = real
    elif op == OR:
        ints[j] |= value
    elif op == AND:
        ints[j] &= value


@compiled(
    output(np.int64, 2), output(np.float64, 2), column(np.int64), column(np.int64),
    column(np.int64), INTEGER, column(np.int64), INTEGER, INTEGER, INTEGER,
    output(np.int64, 2), output(np.float64, 2), output(np.int64),
    output(np.int64, 2), output(np.float64, 2),
)  # fmt: skip
def assemble(
    rows: Ints,
    floats: Floats,
    starts: Ints,
    ends: Ints,
    edges: Ints,
    first: int,
    ops: Ints,
    first_slot: int,
    range_: int,
    slide: int,
    out: Ints,
    out_floats: Floats,
    wends: Ints,
    stack: Ints,
    stack_floats: Floats,
) -> tuple[int, int, bool]:
    """The windows of the groups from `first` on, as many as there is surely room for: the first
    group that was left, how many rows there are, and whether a sum overflowed.

    `edges`: where the rows of each group begin. `stack` has a row for each slice of the largest
    group: the state, and the slots.
    """
    slots = len(ops)
    total = np.zeros(slots, np.int64)
    above = np.zeros(slots, np.int64)  # the upper 64 bits of a sum
    back = np.zeros(slots, np.int64)
    back_floats = np.zeros(slots, np.float64)
    made = 0
    for group in range(first, len(edges) - 1):
        begin, stop = edges[group], edges[group + 1]
        if made + windows_between(starts, ends, begin, stop, range_, slide) > len(out):
            return group, made, False
        low, high, middle = begin, begin, begin
        total[:] = 0
        above[:] = 0
        back_state = np.int64(0)
        time = at_or_after(ends[low], slide)
        while True:
            while high < stop and ends[high] <= time:
                state = rows[high, 0]
                for j in range(slots):
                    value = rows[high, first_slot + j]
                    if ops[j] == ADD:
                        sum_ = total[j] + value
                        carried = np.uint64(sum_) < np.uint64(value)
                        above[j] += (value >> 63) + np.int64(carried)
                        total[j] = sum_
                    elif ops[j] == XOR:
                        total[j] ^= value
                    elif (state >> (j + 1)) & 1 != 0:
                        seen = (back_state >> (j + 1)) & 1 != 0
                        real = floats[high, first_slot + j]
                        combine(ops[j], back, back_floats, j, seen, value, real)
                back_state |= state
                high += 1
            while low < high and starts[low] < time - range_:
                if low == middle:
                    for i in range(high - 1, low - 1, -1):
                        state = rows[i, 0]
                        before = np.int64(0)
                        if i + 1 < high:
                            before = stack[i + 1 - begin, 0]
                            for j in range(slots):
                                stack[i - begin, 1 + j] = stack[i + 1 - begin, 1 + j]
                        for j in range(slots):
                            if ops[j] >= ADD_FLOAT and (state >> (j + 1)) & 1 != 0:
                                seen = (before >> (j + 1)) & 1 != 0
                                value = rows[i, first_slot + j]
                                real = floats[i, first_slot + j]
                                own, own_floats = stack[i - begin], stack_floats[i - begin]
                                combine(ops[j], own, own_floats, 1 + j, seen, value, real)
                        stack[i - begin, 0] = before | state
                    middle = high
                    back_state = np.int64(0)
                for j in range(slots):
                    value = rows[low, first_slot + j]
                    if ops[j] == ADD:
                        borrowed = np.uint64(total[j]) < np.uint64(value)
                        above[j] -= (value >> 63) + np.int64(borrowed)
                        total[j] -= value
                    elif ops[j] == XOR:
                        total[j] ^= value
                low += 1
            if low < high:
                state = back_state
                front = np.int64(0)
                if low < middle:
                    front = stack[low - begin, 0]
                    state |= front
                out[made, 0] = state
                for k in range(1, first_slot):
                    out[made, k] = rows[low, k]
                for j in range(slots):
                    at = first_slot + j
                    if ops[j] <= XOR:
                        out[made, at] = total[j]
                        if ops[j] == ADD and above[j] != total[j] >> 63:
                            return group, made, True
                        continue
                    out[made, at] = 0
                    has_front = (front >> (j + 1)) & 1 != 0
                    if has_front:
                        out[made, at] = stack[low - begin, 1 + j]
                    if (back_state >> (j + 1)) & 1 != 0:
                        own, own_floats = out[made], out_floats[made]
                        combine(ops[j], own, own_floats, at, has_front, back[j], back_floats[j])
                wends[made] = time
                made += 1
                time += slide
            elif high == stop:
                break
            else:
                time = max(time + slide, at_or_after(ends[high], slide))
    return len(edges) - 1, made, False


@inlined
def windows_between(
    starts: Ints, ends: Ints, begin: int, stop: int, range_: int, slide: int
) -> int:
    """No fewer than the windows that the slices of a group are in."""
    span = (starts[stop - 1] + range_ - ends[begin]) // slide + 1
    each = (stop - begin) * (range_ // slide + 1)
    found: int = max(np.int64(0), min(span, each))
    return found
