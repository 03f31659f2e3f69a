"""The machine code that combines partials of the same group (dissertation 3.4.3; paper 1, 3.2:
super-aggregates).

In: the shape of an aggregation. Out: its `combine`, generated and compiled.

While they are merged, groups are *wide* rows: [state] [key words, the epoch's code the last of the
keys] [slots] [high words of the integer sums]. A sum and its high word are one 128-bit number: only
the whole sum decides whether it fits 64 bits, not the order in which its parts arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from terascope.functions.slots import SUM_INT, SlotKind
from terascope.hashing import table_hash
from terascope.kernels.codegen.generated_modules import GeneratedKernel
from terascope.kernels.tables.slots import Shape, view
from terascope.machine_code import INTEGER, output


@dataclass(frozen=True)
class WideShape:
    """The wide rows of a shape."""

    shape: Shape

    @property
    def sums(self) -> tuple[int, ...]:
        """The slots with a high word."""
        return tuple(i for i, kind in enumerate(self.shape.slots) if kind == SUM_INT)

    @property
    def ranges(self) -> tuple[int, ...]:
        """The words with the ranges of digits: rows are combined if these are equal."""
        return tuple(self.first_slot + j for j in self.shape.ranges)

    @property
    def words(self) -> int:
        """Key words with the epoch's code."""
        return self.shape.keys // 2 + 1

    @property
    def first_slot(self) -> int:
        return 1 + self.words

    @property
    def first_high(self) -> int:
        return self.first_slot + len(self.shape.slots)

    @property
    def stride(self) -> int:
        return self.first_high + len(self.sums)

    @property
    def row_bytes(self) -> int:
        return 8 * self.stride

    @property
    def spilled(self) -> Shape:
        """The shape of a wide row without its epoch: high words are slots like any other."""
        return Shape(self.shape.keys, self.shape.slots + (SUM_INT,) * len(self.sums))


@cache
def combine_kernel(shape: Shape) -> GeneratedKernel:
    """The function `combine(rows, the same as FLOATs, start, end, places)`. It returns where the
    groups of these rows end now.
    """
    rows, floats = output(np.int64, 2), output(np.float64, 2)
    signature = rows, floats, INTEGER, INTEGER, output(np.int32)
    return GeneratedKernel(combine_source(WideShape(shape)), "combine", *signature)


def combine_source(wide: WideShape) -> str:
    """The first row of a group stays, the others are combined into it.

    Rows that stay move to the front, over those that are gone, so that no second array is needed;
    `places` is an open-addressing table of row numbers, as small as the rows are few.
    """
    words = range(wide.words)
    same = " and ".join(
        [f"rows[held, {1 + i}] == w{i}" for i in words]
        + [f"rows[held, {place}] == rows[i, {place}]" for place in wide.ranges]
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
        f"        at = np.int64({table_hash([f'w{i}' for i in words])} >> shift)",
        "        while True:",
        "            held = start + np.int64(places[at])",
        "            if held < start:",
        "                places[at] = kept - start",
        "                if kept != i:",
        *indented(5, [f"rows[kept, {k}] = rows[i, {k}]" for k in range(wide.stride)]),
        "                kept += 1",
        "                break",
        f"            if {same}:",
        "                mine = rows[held, 0]",
        "                other = rows[i, 0]",
        *indented(4, slot_lines(wide)),
        "                rows[held, 0] = mine | other",
        "                break",
        "            at = (at + 1) & top",
        "    return kept",
    ]
    return "\n".join(lines) + "\n"


def slot_lines(wide: WideShape) -> list[str]:
    lines: list[str] = []
    for j, kind in enumerate(wide.shape.slots):
        place = wide.first_slot + j
        if kind == SUM_INT:
            lines += add_wide(place, wide.first_high + wide.sums.index(j))
        else:
            lines += combine_lines(kind, place, j)
    return lines


def combine_lines(kind: SlotKind, place: int, slot: int) -> list[str]:
    array = view(kind, "rows", "floats")
    bit = 1 << (slot + 1)
    lines = kind.merging(f"{array}[held, {place}]", f"{array}[i, {place}]", f"mine & {bit} != 0")
    if kind.is_added or not lines:  # what has seen nothing is zero
        return lines
    return [f"if other & {bit} != 0:", *indented(1, lines)]


def add_wide(low: int, high: int) -> list[str]:
    """A 128-bit addition; the carry out of the low words is the majority of the top bits."""
    return [
        f"a = rows[held, {low}]",
        f"b = rows[i, {low}]",
        "total = a + b",
        f"rows[held, {low}] = total",
        f"rows[held, {high}] += rows[i, {high}] + ((((a & b) | ((a | b) & ~total)) >> 63) & 1)",
    ]


def indented(levels: int, lines: list[str]) -> list[str]:
    return ["    " * levels + line for line in lines]
