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

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from terascope.functions.slots import RANGE, SlotKind
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
    slots = [statements(k, j, shape.slot(j), 2 << j) for j, k in enumerate(shape.slots)]

    def each(what: str) -> list[str]:
        return [line for slot in slots for line in getattr(slot, what)]

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
        *indent(each("begun")),
        "    time = begun",
        "    while time < until:",
        "        while high < stop and ends[high] <= time:",
        "            state = rows[high, 0]",
        *indent(each("come"), 3),
        "            back_state |= state",
        "            high += 1",
        "        while low < high and starts[low] < time - range_:",
        "            if low == middle:",
        "                front = np.int64(0)",
        *indent(each("emptied"), 4),
        "                for i in range(high - 1, low - 1, -1):",
        "                    state = rows[i, 0]",
        *indent(each("stacked"), 5),
        "                    front |= state",
        "                    stack[i - begin, 0] = front",
        "                middle = high",
        "                back_state = np.int64(0)",
        *indent(each("gone"), 3),
        "            low += 1",
        "        if low < high:",
        "            front = np.int64(0)",
        "            if low < middle:",
        "                front = stack[low - begin, 0]",
        "            out[made, 0] = front | back_state",
        *indent((f"out[made, {k}] = rows[low, {k}]" for k in range(1, shape.first_slot)), 3),
        *indent(each("given"), 3),
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


@dataclass(frozen=True)
class SlotStatements:
    """The statements about one slot."""

    begun: list[str] = field(default_factory=list)
    """No slice has come."""
    come: list[str] = field(default_factory=list)
    """Slice `high` comes."""
    emptied: list[str] = field(default_factory=list)
    """All that came goes to the front stack."""
    stacked: list[str] = field(default_factory=list)
    """Combine slice i with the slices after it."""
    gone: list[str] = field(default_factory=list)
    """Slice `low` goes."""
    given: list[str] = field(default_factory=list)
    """The slot of a window."""


def statements(kind: SlotKind, j: int, at: int, bit: int) -> SlotStatements:
    """The statements of slot j, in word `at` of a row, whose bit of a state is `bit`. Counts and
    sums are numbers of 128 bits: `total` the lower, `above` the upper 64.
    """
    rows, out = view(kind, "rows", "floats"), view(kind, "out", "out_floats")
    if kind == RANGE:
        return SlotStatements(given=[f"out[made, {at}] = rows[low, {at}]"])
    if kind.state is not None:  # merged afterwards, from these rows of slices
        return SlotStatements(given=[f"out[made, {at}] = (low << 32) | high"])
    begun = [f"total{j}, above{j} = np.int64(0), np.int64(0)"]
    if kind.take_back:
        return SlotStatements(
            begun=begun,
            come=kind.merging(f"total{j}", f"{rows}[high, {at}]", "True"),
            gone=kind.taking_back(f"total{j}", f"{rows}[low, {at}]"),
            given=[f"{out}[made, {at}] = total{j}"],
        )
    if kind.is_added:
        carry = f"(value >> 63) + np.int64(np.uint64(total{j}) < np.uint64(value))"
        return SlotStatements(
            begun=begun,
            come=[f"value = rows[high, {at}]", f"total{j} += value", f"above{j} += {carry}"],
            gone=[f"value = rows[low, {at}]", f"above{j} -= {carry}", f"total{j} -= value"],
            given=[
                f"if above{j} != total{j} >> 63:",
                "    return group, made, True",
                f"out[made, {at}] = total{j}",
            ],
        )
    nothing, stack = "0.0" if kind.is_float else "np.int64(0)", view(kind, "stack", "stack_floats")
    comes = kind.merging(f"back{j}", f"{rows}[high, {at}]", f"back_state & {bit} != 0")
    combined = kind.merging(f"front{j}", f"{rows}[i, {at}]", f"front & {bit} != 0")
    whole = kind.merging(f"whole{j}", f"back{j}", f"front & {bit} != 0")
    return SlotStatements(
        begun=[f"back{j} = {nothing}"],
        come=[f"if state & {bit} != 0:", *indent(comes)],
        emptied=[f"front{j} = {nothing}", f"back{j} = {nothing}"],
        stacked=[
            f"if state & {bit} != 0:",
            *indent(combined),
            f"{stack}[i - begin, {1 + j}] = front{j}",
        ],
        given=[
            f"whole{j} = {nothing}",
            f"if front & {bit} != 0:",
            f"    whole{j} = {stack}[low - begin, {1 + j}]",
            f"if back_state & {bit} != 0:",
            *indent(whole),
            f"{out}[made, {at}] = whole{j}",
        ],
    )
