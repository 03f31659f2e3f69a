"""Windows from slices, in machine code: a result costs a few merges, whatever range and slide are.

In: the shape of rows of slices. Out: its `assemble`, generated and compiled, which takes rows of
slices, those of a group beside each other and in order of time, and gives rows of windows. What can
be taken back (counts, sums and XORs of integers, the digits of FLOATs among them) is kept as one
value: a slice is added when it comes and subtracted when it goes (subtract-on-evict). Everything
else is kept on two stacks: behind `middle` a value of all that came since, before it the values of
all suffixes, made anew when the last of them is used up; each slice is combined twice in its life.

Every slot has variables of its own, so that they stay in registers: one kernel for all shapes, with
loops over the slots and what is to be done with each, takes three to four times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias, TypeGuard

import numpy as np

from terascope.functions.slots import RANGE, Fold, SlotKind
from terascope.kernels.codegen.generated_modules import GeneratedKernel, indent
from terascope.kernels.tables.slots import Shape, view
from terascope.machine_code import INTEGER, column, output


@cache
def assemble_kernel(shape: Shape) -> GeneratedKernel:
    """The function `assemble(rows, the same as FLOATs, starts, ends, edges, first, range, slide,
    since, until, out, the same as FLOATs, wends, stack, the same as FLOATs)`: the windows of the
    groups from `first` on, as many as there is surely room for, of those that end at `since` or
    later, which is a multiple of the slide, and before `until`. It returns the first group that was
    left, how many rows there are, and whether a sum overflowed. `edges`: where the rows of each
    group begin. `stack` has a row for each slice of the largest group: the state, and the slots.
    """
    rows, floats, ints = output(np.int64, 2), output(np.float64, 2), column(np.int64)
    read = rows, floats, ints, ints, ints
    written = rows, floats, output(np.int64), rows, floats
    function = (
        "assemble(rows, floats, starts, ends, edges, first, range_, slide,"
        " since, until, out, out_floats, wends, stack, stack_floats)"
    )
    body = [
        "made = 0",
        "for group in range(first, len(edges) - 1):",
        "    begin, stop = edges[group], edges[group + 1]",
        "    begun = max(since, -((-ends[begin]) // slide) * slide)",
        "    last = min(starts[stop - 1] + range_, until - 1)",
        "    each = (stop - begin) * (range_ // slide + 1)",
        "    if made + max(np.int64(0), min((last - begun) // slide + 1, each)) > len(out):",
        "        return group, made, False",
        "    low, high, middle = begin, begin, begin",
        "    back_state = np.int64(0)",
        *indent(each_slot(shape, begun)),
        "    time = begun",
        "    while time < until:",
        "        while high < stop and ends[high] <= time:",
        "            state = rows[high, 0]",
        *indent(each_slot(shape, come), 3),
        "            back_state |= state",
        "            high += 1",
        "        while low < high and starts[low] < time - range_:",
        "            if low == middle:",
        "                front = np.int64(0)",
        *indent(each_slot(shape, emptied), 4),
        "                for i in range(high - 1, low - 1, -1):",
        "                    state = rows[i, 0]",
        *indent(each_slot(shape, stacked), 5),
        "                    front |= state",
        "                    stack[i - begin, 0] = front",
        "                middle = high",
        "                back_state = np.int64(0)",
        *indent(each_slot(shape, gone), 3),
        "            low += 1",
        "        if low < high:",
        "            front = np.int64(0)",
        "            if low < middle:",
        "                front = stack[low - begin, 0]",
        "            out[made, 0] = front | back_state",
        *indent((f"out[made, {k}] = rows[low, {k}]" for k in range(1, shape.first_slot)), 3),
        *indent(each_slot(shape, given), 3),
        "            wends[made] = time",
        "            made += 1",
        "            time += slide",
        "        elif high == stop:",
        "            break",
        "        else:",
        "            time = max(time + slide, -((-ends[high]) // slide) * slide)",
        "return len(edges) - 1, made, False",
    ]
    return GeneratedKernel(function, body, *read, *(INTEGER,) * 5, *written)


# ---- what is done with a slot --------------------------------------------------------------------

Statements: TypeAlias = Callable[[SlotKind, int, int, int], list[str]]
"""For slot j, which stands in word `at` of a row, and whose bit of a state is `bit`."""


def each_slot(shape: Shape, statements: Statements) -> Iterator[str]:
    for j, kind in enumerate(shape.slots):
        yield from statements(kind, j, shape.slot(j), 1 << (j + 1))


def has_inverse(kind: SlotKind) -> TypeGuard[Fold]:
    """Whether a value that was merged can be taken back. Counts and sums, which can be, too, are
    numbers of 128 bits: `total` the lower, `above` the upper 64.
    """
    return isinstance(kind, Fold) and bool(kind.take_back)


def nothing(kind: SlotKind) -> str:
    return "0.0" if kind.is_float else "np.int64(0)"


def begun(kind: SlotKind, j: int, at: int, bit: int) -> list[str]:
    """No slice has come."""
    if kind == RANGE:
        return []
    if kind.is_added or has_inverse(kind):
        return [f"total{j}, above{j} = np.int64(0), np.int64(0)"]
    return [f"back{j} = {nothing(kind)}"]


def come(kind: SlotKind, j: int, at: int, bit: int) -> list[str]:
    """Slice `high` comes."""
    if kind == RANGE:
        return []
    if has_inverse(kind):
        return kind.merging(f"total{j}", f"{view(kind, 'rows', 'floats')}[high, {at}]", "True")
    if kind.is_added:
        return [
            f"value = rows[high, {at}]",
            f"total{j} += value",
            f"above{j} += (value >> 63) + np.int64(np.uint64(total{j}) < np.uint64(value))",
        ]
    value = f"{view(kind, 'rows', 'floats')}[high, {at}]"
    taken = kind.merging(f"back{j}", value, f"back_state & {bit} != 0")
    return [f"if state & {bit} != 0:", *indent(taken)]


def emptied(kind: SlotKind, j: int, at: int, bit: int) -> list[str]:
    """All that came goes to the front stack."""
    if kind == RANGE or kind.is_added or has_inverse(kind):
        return []
    return [f"front{j} = {nothing(kind)}", f"back{j} = {nothing(kind)}"]


def stacked(kind: SlotKind, j: int, at: int, bit: int) -> list[str]:
    """Combine slice i with the slices after it."""
    if kind == RANGE or kind.is_added or has_inverse(kind):
        return []
    value = f"{view(kind, 'rows', 'floats')}[i, {at}]"
    taken = kind.merging(f"front{j}", value, f"front & {bit} != 0")
    return [
        f"if state & {bit} != 0:",
        *indent(taken),
        f"{view(kind, 'stack', 'stack_floats')}[i - begin, {1 + j}] = front{j}",
    ]


def gone(kind: SlotKind, j: int, at: int, bit: int) -> list[str]:
    """Slice `low` goes."""
    if kind == RANGE:
        return []
    if has_inverse(kind):
        return kind.taking_back(f"total{j}", f"{view(kind, 'rows', 'floats')}[low, {at}]")
    if kind.is_added:
        return [
            f"value = rows[low, {at}]",
            f"above{j} -= (value >> 63) + np.int64(np.uint64(total{j}) < np.uint64(value))",
            f"total{j} -= value",
        ]
    return []


def given(kind: SlotKind, j: int, at: int, bit: int) -> list[str]:
    """The slot of a window."""
    if kind == RANGE:
        return [f"out[made, {at}] = rows[low, {at}]"]
    if has_inverse(kind):
        return [f"{view(kind, 'out', 'out_floats')}[made, {at}] = total{j}"]
    if kind.is_added:
        return [
            f"if above{j} != total{j} >> 63:",
            "    return group, made, True",
            f"out[made, {at}] = total{j}",
        ]
    stack, out = view(kind, "stack", "stack_floats"), view(kind, "out", "out_floats")
    taken = kind.merging(f"whole{j}", f"back{j}", f"front & {bit} != 0")
    return [
        f"whole{j} = {nothing(kind)}",
        f"if front & {bit} != 0:",
        f"    whole{j} = {stack}[low - begin, {1 + j}]",
        f"if back_state & {bit} != 0:",
        *indent(taken),
        f"{out}[made, {at}] = whole{j}",
    ]
