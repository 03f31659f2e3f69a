"""The machine code that combines partials of the same group (dissertation 3.4.3; paper 1, 3.2:
super-aggregates).

In: the shape of an aggregation. Out: its `combine`, generated and compiled.

While they are merged, groups are *wide* rows: [state] [key words, the epoch's code the last of the
keys] [slots] [high words of the integer sums]. A sum and its high word are one 128-bit number: only
the whole sum decides whether it fits 64 bits, not the order in which its parts arrive.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from terascope.functions.slots import SUM_INT, SlotKind
from terascope.hashing import table_hash
from terascope.kernels.codegen.generated_modules import GeneratedKernel, indent
from terascope.kernels.tables.slots import Shape, view
from terascope.machine_code import INTEGER, output


def wide_shape(shape: Shape) -> Shape:
    """The shape of wide rows."""
    return Shape(shape.keys + 1, shape.with_high_words.slots)


@cache
def combine_kernel(shape: Shape) -> GeneratedKernel:
    """The function `combine(rows, the same as FLOATs, start, end, places)`. It returns where the
    groups of these rows end now.
    """
    rows, floats = output(np.int64, 2), output(np.float64, 2)
    signature = rows, floats, INTEGER, INTEGER, output(np.int32)
    return GeneratedKernel(combine_source(shape), "combine", *signature)


def combine_source(shape: Shape) -> str:
    """The first row of a group stays, the others are combined into it.

    Rows that stay move to the front, over those that are gone, so that no second array is needed;
    `places` is an open-addressing table of row numbers, as small as the rows are few.
    """
    wide = wide_shape(shape)
    words = range(wide.words)
    ranges = map(wide.slot, shape.ranges)  # rows are combined if their digits are of the same range
    same = " and ".join(
        [f"rows[held, {1 + i}] == w{i}" for i in words]
        + [f"rows[held, {place}] == rows[i, {place}]" for place in ranges]
    )
    lines = [
        "@kernel",
        "def combine(rows, floats, start, end, places):",
        "    bits = np.int64(4)",
        "    while (np.int64(1) << bits) < 2 * (end - start):",
        "        bits += 1",
        "    shift = np.uint64(64 - bits)",
        "    top = (np.int64(1) << bits) - 1",
        "    for at in range(top + 1):",
        "        places[at] = -1",
        "    kept = start",
        "    for i in range(start, end):",
        *(f"        w{i} = rows[i, {1 + i}]" for i in words),
        f"        at = np.int64({table_hash(wide.word_names)} >> shift)",
        "        while True:",
        "            held = start + np.int64(places[at])",
        "            if held < start:",
        "                places[at] = kept - start",
        "                if kept != i:",
        *indent([f"rows[kept, {k}] = rows[i, {k}]" for k in range(wide.stride)], 5),
        "                kept += 1",
        "                break",
        f"            if {same}:",
        "                mine = rows[held, 0]",
        "                other = rows[i, 0]",
        *indent(slot_lines(shape, wide), 4),
        "                rows[held, 0] = mine | other",
        "                break",
        "            at = (at + 1) & top",
        "    return kept",
    ]
    return "\n".join(lines) + "\n"


def slot_lines(shape: Shape, wide: Shape) -> list[str]:
    lines: list[str] = []
    high = len(shape.slots)
    for j, kind in enumerate(shape.slots):
        if kind == SUM_INT:
            lines += add_wide(wide.slot(j), wide.slot(high))
            high += 1
        else:
            lines += combine_lines(kind, wide.slot(j), j)
    return lines


def combine_lines(kind: SlotKind, place: int, slot: int) -> list[str]:
    array = view(kind, "rows", "floats")
    bit = 1 << (slot + 1)
    lines = kind.merging(f"{array}[held, {place}]", f"{array}[i, {place}]", f"mine & {bit} != 0")
    if kind.is_added or not lines:  # what has seen nothing is zero
        return lines
    return [f"if other & {bit} != 0:", *indent(lines)]


def add_wide(low: int, high: int) -> list[str]:
    """A 128-bit addition; the carry out of the low words is the majority of the top bits."""
    return [
        f"a = rows[held, {low}]",
        f"b = rows[i, {low}]",
        "total = a + b",
        f"rows[held, {low}] = total",
        f"rows[held, {high}] += rows[i, {high}] + ((((a & b) | ((a | b) & ~total)) >> 63) & 1)",
    ]
