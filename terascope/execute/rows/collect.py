"""Queries that need all rows of a window or epoch, in a task: ranks, aggregations, windows.

In: batches of finished rows, all those of a window in one task. Out, when everything was seen: the
first `limit` rows of each window (ORDER BY with LIMIT), or the groups of the rows (a query over a
query), which are made by the aggregation of the low level once more, over other columns. Rows are
ranked when they have become as many as those that were kept of all before: each of them is sorted a
few times, however many windows there are.

Windows are assembled from slices (paper 0, the superqueries): after the merge, all groups of some
keys are put in the order of their keys once, whatever the number of queries; each query then passes
over them once (terascope.kernels.merge.window_kernel).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.execute.grouping.aggregator import Aggregator
from terascope.execute.grouping.pending_tuples import PendingTuples
from terascope.execute.grouping.selections import Admission
from terascope.execute.results.result_files import sorted_places
from terascope.functions.overflow import Overflow
from terascope.kernels.codegen.program import functions, program
from terascope.kernels.columns.arrays import Codes, Flags, Ints, Rows, Values, decoded
from terascope.kernels.columns.batch import FinishedRows, VectorBatch
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.kernels.merge.float_ranges import finished_blocks, has_ranges, one_row_each
from terascope.kernels.merge.groups import NO_EPOCH, Block, GroupFields, by_key
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.kernels.merge.window_states import window_states
from terascope.physical.low_plan import Windows
from terascope.physical.row_pipeline import Regroup, Top
from terascope.sharing.slices import Periodic

RANKED_ROWS: Final = 1 << 16
"""The least number of rows that are ranked at a time."""
LONG_RUN: Final = 64
"""In windows of fewer rows, hopeless rows are not removed before sorting."""


class Ranking:
    """The rows that may be among the first."""

    def __init__(self, top: Top) -> None:
        self._top = top
        self._batches: list[pa.RecordBatch] = []
        self._ranked = 0
        """The number of rows that were left when rows were last ranked."""
        self._new = 0
        """The number of rows that have come since."""

    def take(self, columns: pa.RecordBatch) -> None:
        rows = plain(hopeful(columns, self._top))
        self._batches.append(rows)
        self._new += rows.num_rows
        if self._new > max(RANKED_ROWS, self._ranked):
            self.result()

    def results(self) -> Iterator[pa.RecordBatch]:
        yield self.result()

    def result(self) -> pa.RecordBatch:
        """The first rows of all batches; there must be at least one."""
        ranked = first_rows(pa.concat_batches(self._batches), self._top)
        self._batches, self._ranked, self._new = [ranked], ranked.num_rows, 0
        return ranked


def plain(columns: pa.RecordBatch) -> pa.RecordBatch:
    """A batch without dictionaries, of which every batch has its own."""
    return pa.RecordBatch.from_arrays([*map(decoded, columns.columns)], columns.schema.names)


def first_rows(columns: pa.RecordBatch, top: Top) -> pa.RecordBatch:
    """The first rows of each window, of a batch without dictionaries."""
    rows = FinishedRows(columns)
    arrays = [columns.column(name) for name in top.per]
    arrays += [rows.column(expr) for expr, _ in top.order]
    names = [f"k{i}" for i in range(len(arrays))]
    down = [False] * len(top.per) + [descending for _, descending in top.order]
    table = pa.Table.from_arrays(arrays, names)
    places = sorted_places(table, list(zip(names, down, strict=True))).to_numpy()
    per = [codes_of(column)[places] for column in arrays[: len(top.per)]]
    first = changes(per, len(places))  # another window begins
    starts = np.maximum.accumulate(np.where(first, np.arange(len(places)), 0))
    kept = places[np.arange(len(places)) - starts < top.limit]
    return columns.take(pa.array(np.sort(kept)))


def codes_of(column: pa.Array) -> Values:
    """Numbers that differ where values differ."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    return np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def changes(columns: Sequence[Values], rows: int) -> Flags:
    """The mask of rows that differ from the row before; the first row does."""
    found = np.zeros(rows, np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def hopeful(columns: pa.RecordBatch, top: Top) -> pa.RecordBatch:
    """A batch, whose first criterion is a number that is never NULL, without the rows that have
    enough others of their window before them. Sorting all rows would take far longer.
    """
    if columns.num_rows <= 4 * top.limit or not top.order or top.limit < 1:
        return columns
    expr, descending = top.order[0]
    if not expr.type.is_whole:
        return columns
    found = FinishedRows(columns).column(expr)
    if pa.types.is_dictionary(found.type) or found.null_count:
        return columns
    per = [codes_of(columns.column(name)) for name in top.per]
    ends = np.append(np.flatnonzero(changes(per, columns.num_rows))[1:], columns.num_rows)
    return columns.filter(pa.array(hopes(found.to_numpy(), ends, top.limit, descending)))


def hopes(values: Values, ends: Ints, limit: int, descending: bool) -> Flags:
    """The mask of numbers that can be among the first `limit` of their run; ties can."""
    hope = np.ones(len(values), np.bool_)
    lengths = np.diff(ends, prepend=0)
    for run in np.flatnonzero(lengths > max(LONG_RUN, 4 * limit)).tolist():
        some = slice(int(ends[run] - lengths[run]), int(ends[run]))
        own = values[some]
        place = len(own) - limit if descending else limit - 1
        edge = np.partition(own, place)[place]
        hope[some] = own >= edge if descending else own <= edge
    return hope


class Regrouping:
    """The groups of one query over a query."""

    def __init__(self, regroup: Regroup, compiled: bool = True) -> None:
        query = regroup.query
        self._sums = regroup.sums
        self._program = program((), query.outputs)
        _, self._derive = functions(self._program, compiled=False)
        self._dictionaries = TaskDictionaries()
        self._chosen = Admission(0, (0,) * len(query.slots))
        self._pending_tuples = PendingTuples([(self._chosen, query)])
        self._aggregator = Aggregator(query, self._dictionaries, compiled)

    def take(self, columns: pa.RecordBatch) -> None:
        batch = VectorBatch(columns, self._dictionaries, self._program, self._derive)
        self._pending_tuples.add(batch, {0: np.arange(len(batch), dtype=np.int32)})
        self._aggregator.take(self._pending_tuples.take(), self._chosen)
        self._aggregator.settle()

    @property
    def fields(self) -> GroupFields:
        fields = self._aggregator.query.groups
        return replace(fields, sums=self._sums) if self._sums else fields

    @property
    def dictionaries(self) -> Sequence[Dictionary]:
        return self._aggregator.key_dictionaries

    def results(self) -> Iterator[pa.RecordBatch]:
        """The groups of all rows."""
        shape = self.fields.shape
        released = list(self._aggregator.release(None))
        several = any(has_ranges(one.block.rows, shape) for one in released)
        if not several and not all(one.whole for one in released):
            raise Overflow(self.fields.any_sum)
        for block in finished_blocks((one.block for one in released), shape, several):
            yield finished_columns([block], self.fields, self.dictionaries)

    def blocks(self) -> list[Block]:
        """The groups in order of time; a group may occur twice, in parts that should not be merged
        before they are windows.
        """
        blocks = [released.block for released in self._aggregator.release(None)]
        # Parts of several ranges are released as they came.
        several = any(has_ranges(block.rows, self.fields.shape) for block in blocks)
        return [Block.together(blocks).in_order()] if several else blocks


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
        self._states = block.states
        self._starts, self._ends = starts[order], ends[order]
        largest = int(np.diff(self._edges).max(initial=0))
        self._stack = np.empty((largest, 1 + len(shape.slots)), np.int64)

    def _in_order(self, rows: Rows) -> tuple[Codes, Ints]:
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
        for rows, wends in self._finished(self.of(windows.window, since, until)):
            # A run for each row: to find runs of the same end and to repeat them costs more.
            states = None
            if self._states is not None:
                states = self._states.empty()
                window_states(rows, self._rows, self._states, states)
            block = Block(wends, np.arange(1, len(rows) + 1), rows, states)
            made = finished_columns([block], self._fields, dictionaries)
            yield made.rename_columns(list(windows.columns))
