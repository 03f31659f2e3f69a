"""The groups a merger holds: wide rows, in parts by the hash of their keys.

In: wide rows, a strip at a time. Out: each group once (paper 1, 3.2: super-aggregates). Rows are
appended to their part; a part that is full is combined, which needs no more memory than the part
and stays in the processor's cache, however many groups there are in all. So what is held grows with
the number of groups, not of partials.

While they are merged, groups are *wide* rows: [state] [key words, the epoch's code the last of the
keys] [slots] [high words of the integer sums]. A sum and its high word are one 128-bit number: only
the whole sum decides whether it fits 64 bits, not the order in which its parts arrive.

The kernels that move wide rows, from the columns of a payload into rows and out again epoch by
epoch, do not depend on the shape of an aggregation: they are compiled once for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from terascope.functions.slots import SUM_INT
from terascope.hashing import table_hash
from terascope.kernels.codegen.generated_modules import GeneratedKernel, indent
from terascope.kernels.columns.arrays import Codes, Ints, Rows
from terascope.kernels.merge.groups import row_hash
from terascope.kernels.merge.states import Chains, StoredStates
from terascope.kernels.tables.slots import Shape, view
from terascope.machine_code import BOOLEAN, INTEGER, column, compiled_for, output

ROWS = output(np.int64, 2)
STRIP = 1 << 12
"""Rows filled column by column at a time: as many as stay in the cache."""


@compiled_for(ROWS, INTEGER, BOOLEAN, column(np.int32), column(np.int32))
def put_code(strip: Ints, word: int, upper: bool, indices: Codes, meaning: Codes) -> None:
    """A key: its index in the payload as the code it has here, in a half of a word."""
    if upper:
        for i in range(len(indices)):
            strip[i, word] = np.int64(meaning[indices[i]]) << 32
    else:
        for i in range(len(indices)):
            strip[i, word] |= np.int64(meaning[indices[i]])


@compiled_for(ROWS, INTEGER, INTEGER, INTEGER, ROWS, output(np.int64), INTEGER)
def append_to_parts(
    strip: Ints, start: int, count: int, words: int, rows: Ints, fills: Ints, capacity: int
) -> tuple[int, int]:
    """Rows of a strip to the parts their keys belong to, until one finds its part full: its number,
    and the part.
    """
    stride = strip.shape[1]
    last = len(fills) - 1
    for i in range(start, count):
        part = np.int64(row_hash(strip, i, 1, 1 + words)) & last
        fill = fills[part]
        if fill == capacity:
            return i, int(part)
        at = part * capacity + fill
        for k in range(stride):
            rows[at, k] = strip[i, k]
        fills[part] = fill + 1
    return count, -1


@compiled_for(
    ROWS, column(np.int64), INTEGER, INTEGER, BOOLEAN, column(np.int32), *(output(np.int64),) * 2
)
def order_by_epoch(
    rows: Ints,
    fills: Ints,
    capacity: int,
    word: int,
    upper: bool,
    ranks: Codes,
    edges: Ints,
    order: Ints,
) -> None:
    """Row numbers, epoch by epoch. `ranks` is the place of each epoch code, `edges` where each
    epoch begins: filled here.
    """
    shift = 32 if upper else 0
    for part in range(len(fills)):
        for i in range(part * capacity, part * capacity + fills[part]):
            edges[ranks[(rows[i, word] >> shift) & 0xFFFFFFFF] + 1] += 1
    for rank in range(1, len(edges)):
        edges[rank] += edges[rank - 1]
    cursors = edges.copy()
    for part in range(len(fills)):
        for i in range(part * capacity, part * capacity + fills[part]):
            rank = ranks[(rows[i, word] >> shift) & 0xFFFFFFFF]
            order[cursors[rank]] = i
            cursors[rank] += 1


@compiled_for(ROWS, column(np.int64), INTEGER, BOOLEAN, INTEGER, ROWS)
def take_rows(
    rows: Ints, order: Ints, words: int, odd: bool, first_slot: int, target: Ints
) -> None:
    """Rows without the code of their epoch: state, `words` key words, slots as many as fit.

    With an odd number of keys the epoch's code is the lower half of the last word.
    """
    slots = target.shape[1] - 1 - words
    for i in range(len(order)):
        at = order[i]
        target[i, 0] = rows[at, 0]
        for k in range(words):
            target[i, 1 + k] = rows[at, 1 + k]
        if odd:
            target[i, words] &= ~np.int64(0xFFFFFFFF)
        for j in range(slots):
            target[i, 1 + words + j] = rows[at, first_slot + j]


@compiled_for(ROWS, column(np.int64), INTEGER, INTEGER)
def fits(rows: Ints, order: Ints, low: int, high: int) -> bool:
    """Whether a 128-bit sum of each row is the 64-bit number in its low word."""
    wrong = 0
    for at in order:
        wrong += rows[at, high] != rows[at, low] >> 63
    return wrong == 0


def wide_shape(shape: Shape) -> Shape:
    return Shape(shape.keys + 1, shape.with_high_words.slots)


@cache
def combine_kernel(shape: Shape, wide: bool) -> GeneratedKernel:
    """The function `combine(rows, the same as FLOATs, start, end, places)`. It returns where the
    groups of these rows end now; -1 when a sum overflows, which one of `wide` rows cannot. The
    first row of a group stays, the others are combined into it.

    Rows that stay move to the front, over those that are gone, so that no second array is needed;
    `places` is an open-addressing table of row numbers, as small as the rows are few. Rows with
    states have the places of these, and a further argument links those that have become one
    (terascope.kernels.merge.states.Chains).
    """
    layout = wide_shape(shape) if wide else shape
    words = range(layout.words)
    ranges = map(layout.slot, shape.ranges)  # only digits of the same range are combined
    same = " and ".join(
        [f"rows[held, {1 + i}] == w{i}" for i in words]
        + [f"rows[held, {place}] == rows[i, {place}]" for place in ranges]
    )
    body = [
        "bits = np.int64(4)",
        "while (np.int64(1) << bits) < 2 * (end - start):",
        "    bits += 1",
        "shift = np.uint64(64 - bits)",
        "top = (np.int64(1) << bits) - 1",
        "for at in range(top + 1):",
        "    places[at] = -1",
        "kept = start",
        "for i in range(start, end):",
        *(f"    w{i} = rows[i, {1 + i}]" for i in words),
        f"    at = np.int64({table_hash(layout.word_names)} >> shift)",
        "    while True:",
        "        held = start + np.int64(places[at])",
        "        if held < start:",
        "            places[at] = kept - start",
        "            if kept != i:",
        *indent([f"rows[kept, {k}] = rows[i, {k}]" for k in range(layout.stride)], 4),
        "            kept += 1",
        "            break",
        f"        if {same or 'True'}:",
        "            mine = rows[held, 0]",
        "            other = rows[i, 0]",
        *indent(slot_lines(shape, layout), 3),
        "            rows[held, 0] = mine | other",
        "            break",
        "        at = (at + 1) & top",
        "return kept",
    ]
    types = ROWS, output(np.float64, 2), INTEGER, INTEGER, output(np.int32)
    if not shape.states:
        return GeneratedKernel("combine(rows, floats, start, end, places)", body, *types)
    return GeneratedKernel("combine(rows, floats, start, end, places, links)", body, *types, ROWS)


def slot_lines(shape: Shape, layout: Shape) -> list[str]:
    """Combine the slots of row i into those of row `held`. `layout`: the rows, wide or not."""
    lines: list[str] = []
    high = layout.slot(len(shape.slots))
    for j, kind in enumerate(shape.slots):
        if kind.state is not None:
            lines += linked(layout.slot(j), 1 << (j + 1), shape.states.index(j))
            continue
        at, bit, array = layout.slot(j), 1 << (j + 1), view(kind, "rows", "floats")
        if kind == SUM_INT:
            lines += [f"a, b = rows[held, {at}], rows[i, {at}]", "total = a + b"]
            if layout == shape:
                lines += ["if ((a ^ total) & (b ^ total)) < 0:", "    return np.int64(-1)"]
            else:  # the carry out of the low words is the majority of the top bits
                carry = "((((a & b) | ((a | b) & ~total)) >> 63) & 1)"
                lines.append(f"rows[held, {high}] += rows[i, {high}] + {carry}")
                high += 1
            lines.append(f"rows[held, {at}] = total")
            continue
        merged = kind.merging(f"{array}[held, {at}]", f"{array}[i, {at}]", f"mine & {bit} != 0")
        if merged and not kind.is_added:  # what has seen nothing is zero
            merged = [f"if other & {bit} != 0:", *indent(merged)]
        lines += merged
    return lines


def linked(at: int, bit: int, k: int) -> list[str]:
    """Link the state of row i, in word `at`, behind that of row `held`."""
    return [
        f"if other & {bit} != 0:",
        f"    if mine & {bit} != 0:",
        f"        links[{k}, rows[i, {at}]] = links[{k}, rows[held, {at}]]",
        f"        links[{k}, rows[held, {at}]] = rows[i, {at}]",
        "    else:",
        f"        rows[held, {at}] = rows[i, {at}]",
    ]


def merge_groups(
    shape: Shape, parts: Sequence[Rows], states: StoredStates | None = None
) -> Rows | None:
    """The groups of several tables, each once; None when a 64-bit sum overflows. `states`: those
    of the rows.
    """
    rows = np.concatenate([np.empty((0, shape.stride), np.int64), *parts])
    places = np.empty(places_for(len(rows)), np.int32)
    combine = combine_kernel(shape, False).over(len(rows))
    if states is None:
        kept = int(combine(rows, rows.view(np.float64), 0, len(rows), places))
        return None if kept < 0 else rows[:kept]
    chains = Chains(rows, states, shape)
    kept = int(combine(rows, rows.view(np.float64), 0, len(rows), places, chains.links))
    if kept < 0:
        return None
    chains.resolve(rows[:kept])
    return rows[:kept]


def places_for(rows: int) -> int:
    """The number of places that combining so many rows needs."""
    return max(16, 2 << rows.bit_length())


FIRST_CAPACITY: Final = 1 << 10
LARGEST_ALONE: Final = 1 << 14
"""Rows that are still held in one part."""

PARTS: Final = 1 << 9
"""The number of parts: with more, too many places would be written at once."""


class MergeTable:
    """Rows in parts: part p is rows [p * capacity, p * capacity + fills[p])."""

    def __init__(self, shape: Shape, states: StoredStates | None = None) -> None:
        """`states`: those of the rows."""
        self.wide = wide_shape(shape)
        self._states = states
        self._kernel = combine_kernel(shape, True)
        self._give_room(1, FIRST_CAPACITY)

    def _give_room(self, parts: int, capacity: int) -> None:
        self.capacity = capacity
        self.rows: Ints = np.empty((parts * capacity, self.wide.stride), np.int64)
        self.fills: Ints = np.zeros(parts, np.int64)
        self._places = np.empty(places_for(capacity), np.int32)

    def __len__(self) -> int:
        """Rows held; groups, when they have just been combined."""
        return int(self.fills.sum())

    @property
    def memory_bytes(self) -> int:
        return self.rows.nbytes

    @property
    def next_bytes(self) -> int:
        """Memory that growing needs, while the old rows are still there."""
        return self.rows.nbytes + self._next_rows() * self.wide.row_bytes

    def _next_rows(self) -> int:
        alone = len(self.fills) == 1 and self.capacity >= LARGEST_ALONE
        return 4 * self.capacity if alone else 2 * len(self.rows)

    def take_in(self, strip: Ints, count: int, start: int) -> int:
        """Take rows of a strip from `start` on: all, or as many as there is room for before
        `grow` is called. Returns how far it came.
        """
        at, full = start, -1
        while True:
            at, full = append_to_parts(
                strip, at, count, self.wide.words, self.rows, self.fills, self.capacity
            )
            if at == count or self._combine(full) * 8 > self.capacity * 5:
                return at

    def _combine(self, part: int) -> int:
        """Combine a part; return its number of groups. Those of all parts are combined where rows
        have states: parts fill evenly, and many states are merged faster at once.
        """
        if self._states is not None:
            self._combine_states(self._states)
        else:
            self.fills[part] = self._combined(part)
        return int(self.fills[part])

    def _combined(self, part: int, *links: Ints) -> int:
        """Combine the rows of a part; return their number."""
        start = part * self.capacity
        end = start + int(self.fills[part])
        combine = self._kernel.over(end - start)
        floats = self.rows.view(np.float64)
        return int(combine(self.rows, floats, start, end, self._places, *links)) - start

    def _combine_states(self, states: StoredStates) -> None:
        chains = Chains(self.rows, states, self.wide)
        for part in range(len(self.fills)):
            self.fills[part] = self._combined(part, chains.links)
        starts = np.arange(len(self.fills)) * self.capacity
        before = np.cumsum(self.fills) - self.fills
        kept = np.arange(len(self)) + np.repeat(starts - before, self.fills)
        rows = self.rows[kept]
        chains.resolve(rows)
        self.rows[kept] = rows

    def grow(self) -> None:
        rows, fills, capacity, room = self.rows, self.fills, self.capacity, self._next_rows()
        if len(fills) == 1 and capacity >= LARGEST_ALONE:
            self._give_room(PARTS, room // PARTS)
            at, count = 0, int(fills[0])
            while (at := self.take_in(rows, count, at)) < count:
                self.grow()
        else:
            self._give_room(len(fills), room // len(fills))
            sizes = len(fills), -1, self.wide.stride
            self.rows.reshape(sizes)[:, :capacity] = rows.reshape(sizes)
            self.fills = fills

    def has_any(self, words: Sequence[int]) -> bool:
        """Whether one of these words is not zero in some row."""
        begins = range(0, len(self.rows), self.capacity)
        return any(
            bool(self.rows[begin : begin + fill, word].any())
            for begin, fill in zip(begins, self.fills.tolist(), strict=True)
            for word in words
        )

    def combine(self) -> None:
        """Every group once."""
        if self._states is not None:
            self._combine_states(self._states)
            return
        for part in range(len(self.fills)):
            self._combine(part)
