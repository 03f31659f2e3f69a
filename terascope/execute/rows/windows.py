"""Windows assembled from slices (paper 0, the superqueries): after the merge, before delivery.

In: all groups of some keys, slice by slice. Out: the groups of every window of a query, as batches
of columns: the keys, `wend` in the place of the slice, the slots merged. The groups are sorted by
their keys once, whatever the number of queries; each query then passes over them once
(terascope.kernels.merge.window_kernel).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from terascope.functions.overflow import Overflow
from terascope.kernels.columns.dictionary import Dictionary, Ints
from terascope.kernels.merge.finish import Coded, Numbers, SlotStates, arrow_column, slot_column
from terascope.kernels.merge.float_ranges import has_ranges, one_row_each
from terascope.kernels.merge.groups import NO_EPOCH, Block, GroupFields, Rows, key_codes
from terascope.kernels.merge.key_order import by_key
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.physical.low_plan import Windows
from terascope.sharing.slices import Periodic

OUTPUT_ROWS = 1 << 16
"""The approximate number of groups of windows in a batch."""
ALWAYS = 1 << 62
"""A time beyond every window."""


class Sequences:
    """The slices of groups, one group after the other, each in order of time."""

    def __init__(
        self, blocks: Sequence[Block], fields: GroupFields, end: Callable[[int], int]
    ) -> None:
        """`blocks`: groups in order of time; a group without a slice is in no window. `end`: the
        function from the start of a slice to its end.
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
        order, self._edges = self._in_order(rows)
        self._rows = rows[order]
        self._starts, self._ends = starts[order], ends[order]
        largest = int(np.diff(self._edges).max(initial=0))
        self._stack = np.empty((largest, 1 + len(shape.slots)), np.int64)

    def _in_order(self, rows: Rows) -> tuple[Ints, Ints]:
        shape = self._fields.shape
        self._several = has_ranges(rows, shape)
        if not self._several:
            return by_key(rows, shape.first_word, shape.first_slot)
        ranges = [rows[:, shape.slot(j)] for j in shape.ranges]
        keys = np.column_stack([rows[:, shape.first_word : shape.first_slot], *ranges])
        return by_key(np.ascontiguousarray(keys), 0, keys.shape[1])

    def _finished(self, made: Iterator[tuple[Rows, Ints]]) -> Iterator[tuple[Rows, Ints]]:
        """Every group of a window once, also when its FLOATs are of several ranges."""
        if not self._several:
            yield from made
            return
        lots = list(made)
        if lots:
            rows = np.concatenate([rows for rows, _ in lots])
            wends = np.concatenate([wends for _, wends in lots])
            for wend in np.unique(wends):
                one = one_row_each(rows[wends == wend], self._fields.shape)
                yield one, np.full(len(one), wend)

    def of(
        self, window: Periodic, since: int = -ALWAYS, until: int = ALWAYS
    ) -> Iterator[tuple[Rows, Ints]]:
        """Rows of windows, and where each ends: at `since` or later, before `until`.

        Raises:
            ValueMistake: a sum is too large.
        """
        shape = self._fields.shape
        since = -(-since // window.slide) * window.slide
        overlapping = window.range // window.slide + 1
        assemble = assemble_kernel(shape).over(len(self._rows) * overlapping)
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
                raise Overflow(self._fields.any_sum)
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
        """The groups of windows as columns, keys as dictionary columns."""
        fields = self._fields
        for rows, wends in self._finished(self.of(windows.window, since, until)):
            state = SlotStates(rows)
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
