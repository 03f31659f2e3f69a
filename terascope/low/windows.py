"""Windows put together from slices (paper 0, the superqueries): after the merge, before delivery.

In: all groups of some keys, slice by slice. Out: the groups of every window of a query, as batches
of columns: the keys, `wend` in the place of the slice, the slots merged. The groups are put in the
order of their keys once, whatever the number of queries; each query then passes over them once
(terascope.low.window_kernel).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from terascope.functions.base import ValueMistake
from terascope.functions.slices import SliceVector
from terascope.low.dictionary import Dictionary, Ints
from terascope.low.finish import Coded, Numbers, State, arrow_column, slot_column
from terascope.low.groups import NO_EPOCH, Block, GroupFields, Rows, key_codes
from terascope.low.kernels import INTEGER, compiled, output
from terascope.low.kernels import column as column_of
from terascope.low.window_kernel import assemble_kernel
from terascope.sharing.slices import Periodic

OUTPUT_ROWS = 1 << 16
"""About as many groups of windows as a batch has."""
ALWAYS = 1 << 62
"""No window is so far from time 0."""


@dataclass(frozen=True)
class Windows:
    """Groups of windows that are made of the groups of slices of another stream."""

    stream: str
    vector: SliceVector
    window: Periodic
    columns: tuple[str, ...]
    """Of the stream: the keys, `wend` where the slice was, and the slots."""
    keys: int
    """How many of them are keys."""


class Sequences:
    """The slices of groups, one group after the other, each in order of time."""

    def __init__(
        self, blocks: Sequence[Block], fields: GroupFields, end: Callable[[int], int]
    ) -> None:
        """`blocks`: in order of time; one without a slice is in no window. `end`: where a slice
        ends that begins then.
        """
        assert fields.epoch is not None
        self._fields = fields
        shape = fields.shape
        empty = Block.of(None, np.empty((0, shape.stride), np.int64))
        block = Block.together([empty, *blocks])
        block = block.where(block.epochs != NO_EPOCH)
        rows = np.ascontiguousarray(block.rows)
        starts = block.values(block.epochs)
        ends = block.values(np.array([end(e) for e in block.epochs.tolist()], np.int64))
        order, self._edges = by_key(rows, shape.first_word, shape.first_slot)
        self._rows = rows[order]
        self._starts, self._ends = starts[order], ends[order]
        largest = int(np.diff(self._edges).max(initial=0))
        self._stack = np.empty((largest, 1 + len(shape.slots)), np.int64)

    def of(
        self, window: Periodic, since: int = -ALWAYS, until: int = ALWAYS
    ) -> Iterator[tuple[Rows, Ints]]:
        """Rows of windows, and where each ends: at `since` or later, before `until`.

        Raises:
            ValueMistake: a sum is too large.
        """
        shape = self._fields.shape
        since = -(-since // window.slide) * window.slide
        assemble = assemble_kernel(shape)
        room, group = OUTPUT_ROWS, 0
        while group < len(self._edges) - 1:
            out, wends = np.empty((room, shape.stride), np.int64), np.empty(room, np.int64)
            rows, stack = self._rows, self._stack
            left, made, overflow = assemble(
                rows, rows.view(np.float64), self._starts, self._ends, self._edges, group,
                window.range, window.slide, since, until,
                out, out.view(np.float64), wends, stack, stack.view(np.float64),
            )  # fmt: skip
            if overflow:
                raise ValueMistake("integer overflow in sum")
            if made:
                yield out[:made], wends[:made]
            if left == group:  # its windows alone need more room
                room *= 2
            group = left

    def batches(
        self,
        windows: Windows,
        dictionaries: Sequence[Dictionary],
        since: int = -ALWAYS,
        until: int = ALWAYS,
    ) -> Iterator[pa.RecordBatch]:
        """The same as columns, keys as dictionary columns."""
        fields = self._fields
        for rows, wends in self.of(windows.window, since, until):
            state = State(rows)
            arrays = []
            for place, field in enumerate(fields.fields):
                if place == fields.epoch:
                    made: Numbers | Coded = Numbers(wends)
                elif place < len(fields.keys):
                    key = place - (fields.epoch is not None and place > fields.epoch)
                    made = Coded(dictionaries[key], key_codes(rows, fields.shape, key))
                else:
                    made = slot_column(rows, state, fields, place - len(fields.keys))
                arrays.append(arrow_column(made, field.type, plain=False))
            yield pa.RecordBatch.from_arrays(arrays, list(windows.columns))


def by_key(rows: Rows, first_word: int, end: int) -> tuple[Ints, Ints]:
    """The places of rows in the order of their groups, and where each group begins."""
    groups = np.empty(len(rows), np.int64)
    places = np.full(1 << max(4, (2 * len(rows)).bit_length()), -1, np.int64)
    number = number_groups(rows, first_word, end, places, groups)
    edges = np.zeros(number + 1, np.int64)
    order = np.empty(len(rows), np.int64)
    put_in_order(groups, edges, order)
    return order, edges


@compiled(column_of(np.int64, 2), INTEGER, INTEGER, output(np.int64), output(np.int64))
def number_groups(rows: Rows, first_word: int, end: int, places: Ints, groups: Ints) -> int:
    """A number for each different key, in the order they come. `places`: -1, a power of two."""
    top = len(places) - 1
    first = np.empty(len(rows), np.int64)
    count = 0
    for i in range(len(rows)):
        hashed = np.int64(0)
        for k in range(first_word, end):
            hashed = (hashed ^ rows[i, k]) * np.int64(-7046029254386353131)
            hashed ^= (hashed >> 29) & np.int64(0x7FFFFFFFF)
        at = hashed & top
        while True:
            known = places[at]
            if known < 0:
                places[at] = count
                first[count] = i
                groups[i] = count
                count += 1
                break
            same = True
            for k in range(first_word, end):
                if rows[first[known], k] != rows[i, k]:
                    same = False
                    break
            if same:
                groups[i] = known
                break
            at = (at + 1) & top
    return count


@compiled(column_of(np.int64), output(np.int64), output(np.int64))
def put_in_order(groups: Ints, edges: Ints, order: Ints) -> None:
    """Count, then place; rows of a group keep their order."""
    for i in range(len(groups)):
        edges[groups[i] + 1] += 1
    for g in range(len(edges) - 1):
        edges[g + 1] += edges[g]
    cursors = edges[:-1].copy()
    for i in range(len(groups)):
        order[cursors[groups[i]]] = i
        cursors[groups[i]] += 1
