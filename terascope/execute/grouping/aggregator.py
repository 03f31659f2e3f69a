"""One aggregation of the low level: batches in, groups of epochs that are over out.

In: the tuples of a query, batch by batch. Out: blocks of groups, each of one epoch. A table fills
while an epoch lasts; groups that leave it are pending until no tuple of their epoch can follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np

from terascope.execute.grouping.pending_groups import Lot, Released, without_epoch
from terascope.execute.grouping.pending_tuples import TupleVectors, reading_slots, set_apart
from terascope.execute.grouping.selections import Admission, Selection
from terascope.execute.grouping.table_states import TableStates
from terascope.execute.grouping.tree_edges import ApartBy, TreeNode
from terascope.functions.overflow import states_of
from terascope.functions.slots import SUM_INT
from terascope.kernels.columns.arrays import Codes, Ints, Rows, Values, Vector
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.groups import NO_EPOCH, Block, largest
from terascope.kernels.tables.bounded_tables import BoundedTable, capacity_for
from terascope.kernels.tables.open_table import NumpyTable, OpenTable
from terascope.kernels.tables.partitioned import group_parts
from terascope.kernels.tables.slots import Shape, TableColumns
from terascope.machine_code import column, compiled_for, output
from terascope.physical.low_plan import LowAggregate, Slot
from terascope.plan.expr import Expr

NO_OVERFLOW: Final = 1 << 62
MOST_RUNS: Final = 4096
MANY_ROWS: Final = 1 << 15
MANY_FLUSHED: Final = 1 << 14
"""Pending rows from which on flushed states are merged."""
MANY_GROUPS: Final = 1 << 14
"""With more groups a table is larger than the cache: tuples are grouped part by part."""


class Aggregator(TreeNode):
    """The table of one query, and the groups that left it."""

    def __init__(
        self,
        query: LowAggregate,
        dictionaries: TaskDictionaries,
        compiled: bool,
        read: LowAggregate | None = None,
        is_inner: bool = False,
    ) -> None:
        """`read`: the query as its table sees it, if it takes a parent's groups and not tuples.
        `is_inner`: groups that leave the table only enter its children, and are never pending.
        """
        # A bounded table may evict a group again and again.
        # A state may leave before its group does.
        once = (not compiled or query.table.kind == "open") and not query.shape.states
        super().__init__(query, dictionaries, once, is_inner)
        self._read = read or query
        self._read_shape = Shape(self.shape.keys, self._read.shape.slots)
        """The shape of groups of one epoch in the table."""
        self._epoch = NO_EPOCH
        """The epoch of the groups in the table, or the earliest of their epochs."""
        self._reach = 0
        """An upper bound of the size of all sums in the table."""
        self._complete = True
        """Whether every slot in the table has a value."""
        self._last: int | None = None
        """The number of groups of the last batch."""
        self._states = TableStates(query.slots, dictionaries) if query.shape.states else None
        self._leaving: list[tuple[int | Ints, Rows]] | None = None
        """Groups that left while tuples are added: their states are not complete before that."""
        self._merged = 0
        """The number of pending rows after they were last merged."""
        self._table = self._make_table(compiled)
        self.is_open = isinstance(self._table, OpenTable)

    def _make_table(self, compiled: bool) -> OpenTable | NumpyTable | BoundedTable:
        choice = self.query.table
        if not compiled:
            return NumpyTable(self._read.shape)
        if choice.kind == "open":
            return OpenTable(self._read.shape, choice.max_bytes)
        shape = replace(self._read_shape, with_epoch=True)
        capacity = choice.groups or capacity_for(shape, choice.max_bytes, choice.kind)
        return BoundedTable(shape, choice.kind, capacity, choice.flush, self._wait_apart)

    @property
    def memory_bytes(self) -> int:
        states = 0 if self._states is None else self._states.memory_bytes
        return self._table.memory_bytes + states + super().memory_bytes

    @property
    def is_empty(self) -> bool:
        return self._held == 0 and super().is_empty

    @property
    def _held(self) -> int:
        table = self._table
        return table.occupied if isinstance(table, BoundedTable) else table.count

    # ---- tuples

    def take(self, tuples: TupleVectors, chosen: Admission, some: Codes | None = None) -> None:
        """Take the tuples that are admitted, or some of them."""
        rows = tuples.chosen[chosen.entry] if some is None else some
        if len(rows):
            self.probes += len(rows)
            with states_of(self.query.name):
                self._take(tuples, chosen, rows)
            if self._states is not None:
                self._states.done()
            self.pour()

    def _take(self, tuples: TupleVectors, chosen: Admission, rows: Codes) -> None:
        entry = chosen.entry
        wanted = reading_slots(self._read, chosen)
        codes = [tuples.vector("codes", expr, entry) for expr in self.query.plain_keys]
        if self._states is not None:
            self._states.decide(codes, tuples.chosen[entry])
        vectors = [self._vector(tuples, slot, selection, entry) for slot, selection in wanted]
        columns = TableColumns(codes, [v for v, _ in vectors], [m for _, m in vectors])
        epochs = self._epochs(tuples, entry)
        if self.shape.ranges:
            rows, columns, apart, groups = set_apart(
                tuples, rows, self._read, columns, self._read_shape
            )
            if len(groups):  # FLOATs beyond the ordinary range leave as partial groups
                self.evicted += len(groups)
                self.leave(NO_EPOCH if epochs is None else epochs[apart], groups)
            if not len(rows):
                return
        if isinstance(self._table, BoundedTable):
            if epochs is None:
                epochs = np.full(tuples.count, NO_EPOCH, np.int64)
            self._note_oldest(epochs[rows])
            with self._iterating(tuples, rows):
                self._table.add(epochs, rows, codes, columns.values, columns.masks)
        elif epochs is None:
            with self._iterating(tuples, rows):
                self._add(rows, columns, False)
        elif self.query.epoch_in_key:
            self._note_oldest(epochs[rows])
            halves = np.ascontiguousarray(epochs).view(np.int32)
            word = [np.ascontiguousarray(halves[half::2]) for half in (1, 0)]
            with self._iterating(tuples, rows):
                self._add(rows, replace(columns, codes=[*word, *codes]), False)
        else:
            most, present = self._most(tuples, columns), all(map(tuples.is_present, columns.masks))
            sure = present and tuples.count * most < NO_OVERFLOW
            name = ("runs", self._epoch_key, entry, id(rows))
            for epoch, some in tuples.once(name, runs, epochs, rows):
                if epoch != self._epoch:
                    self._empty()
                    self._epoch, self._reach, self._complete = epoch, 0, True
                if self._add_apart(tuples, entry, some, columns, sure):
                    continue
                self._reach += len(some) * most
                self._complete = self._complete and present
                with self._iterating(tuples, some):
                    self._add(some, columns, self._complete and self._reach < NO_OVERFLOW)

    def _vector(
        self, tuples: TupleVectors, slot: Slot, selection: Selection, entry: Selection
    ) -> Vector:
        if self._states is None or slot.kept.state is None:
            return tuples.argument(slot, selection, entry)
        return self._states.vector(self._read.slots.index(slot), slot, tuples, selection, entry)

    @contextmanager
    def _iterating(self, tuples: TupleVectors, rows: Codes) -> Iterator[None]:
        """While tuples are added to the table: then they are taken into their states, and groups
        that left meanwhile leave.
        """
        if self._states is None:
            yield
            return
        self._leaving = []
        yield
        self._states.iterate(tuples, rows)
        leaving, self._leaving = self._leaving, None
        self._flush_states(leaving)
        for epochs, groups in leaving:
            self.leave(epochs, groups)
        if not self._held:
            self._states.clear()

    def _flush_states(self, leaving: Sequence[tuple[int | Ints, Rows]]) -> None:
        """States that are full leave as if their groups had been evicted."""
        assert self._states is not None
        assert self._pending.states is not None
        full = self._states.full()
        if not full:
            return
        epochs, held = self._with_epochs(self._table.held())
        for own, groups in leaving:
            each = np.full(len(groups), own) if isinstance(own, int) else own
            epochs, held = np.append(epochs, each), np.concatenate([held, groups])
        for rows, places in full.rows(held, self._pending.states):
            self.evicted += len(rows)
            super().leave(epochs[places], rows)
        if self._pending.rows > max(MANY_FLUSHED, 2 * self._merged):
            self._pending.merge()
            self._merged = self._pending.rows

    def _with_epochs(self, rows: Rows) -> tuple[Ints, Rows]:
        """Rows of the table as they leave it, and their epochs."""
        if isinstance(self._table, BoundedTable) or self.query.epoch_in_key:
            return without_epoch(rows)
        return np.full(len(rows), self._epoch), rows

    def leave(self, epochs: int | Ints, groups: Rows, apart: ApartBy | None = None) -> None:
        if self._states is None:
            super().leave(epochs, groups, apart)
        elif self._leaving is not None:
            self._leaving.append((epochs, groups.copy()))
        else:
            assert self._pending.states is not None
            packed = self._states.leave(groups, self._pending.states)
            super().leave(epochs, packed)

    def _epochs(self, tuples: TupleVectors, choice: Selection) -> Ints | None:
        if self.query.epoch is None:
            return None
        values = tuples.vector("values", self._epoch_key, choice)
        masks = tuples.vector("masks", self._epoch_key, choice)
        if tuples.is_present(masks):
            return values
        return np.where(masks != 0, values, NO_EPOCH)

    @property
    def _epoch_key(self) -> Expr:
        assert self.query.epoch is not None
        return self.query.keys[self.query.epoch][1]

    def _note_oldest(self, epochs: Ints) -> None:
        oldest = int(epochs.min())
        self._epoch = min(oldest, self._epoch) if self._held else oldest

    def _add(self, rows: Codes, columns: TableColumns, sure: bool) -> None:
        assert not isinstance(self._table, BoundedTable)
        if not len(rows):
            return
        sizes = [len(d) for d in self.key_dictionaries]
        if self.query.epoch_in_key:
            sizes = [1 << 30, *sizes]  # epochs go on: no place can be computed from them
        self._table.add(rows, columns, sizes, sure, self._evicted)

    # ---- many tuples at once

    def _is_large(self, rows: Codes) -> bool:
        """Whether a table of the groups of these tuples would be larger than the cache."""
        if len(rows) < MANY_ROWS or not isinstance(self._table, OpenTable):
            return False
        sizes = [len(d) for d in self.key_dictionaries]
        few = self._last is not None and self._last < MANY_GROUPS
        return not few and math.prod(sizes) > MANY_GROUPS

    @property
    def _most_different(self) -> int:
        """The key with the most values, by which tuples are partitioned."""
        sizes = [len(d) for d in self.key_dictionaries]
        return sizes.index(max(sizes))

    def apart_by(self) -> int:
        """The key that tuples are partitioned by; equal ones should follow each other."""
        if not self.key_dictionaries:
            return 0
        return id(self.key_dictionaries[self._most_different])

    def _most(self, tuples: TupleVectors, columns: TableColumns) -> int:
        """The largest absolute value that is summed."""
        arguments = [s for s in self._read.slots if s.kept.takes_argument]
        pairs = zip(arguments, columns.values, strict=True)
        summed = [values for slot, values in pairs if slot.kept == SUM_INT]
        return max((tuples.once(("most", id(v)), largest, v) for v in summed), default=0)

    def _add_apart(
        self, tuples: TupleVectors, entry: Selection, some: Codes, columns: TableColumns, sure: bool
    ) -> bool:
        """Group tuples part by part, if they are many or partitioned already. False when they are
        not, or when a sum overflows.
        """
        keys = self.query.plain_keys
        by = tuples.apart_by
        vector: Callable[[Values], Values]
        if self._states is not None:
            return False
        if by is not None and by[0] in keys and len(some) == tuples.count and self.is_open:
            key, edges, vector = by[0], by[1], itself
        elif self._is_large(some):
            place = self._most_different
            apart = tuples.apart(columns.codes[place], entry, some)
            key, edges, vector = keys[place], apart.edges, apart.vector
        else:
            return False
        parts = TableColumns(
            [vector(c) for c in columns.codes],
            [vector(values) for values in columns.values],
            [] if sure else [vector(masks) for masks in columns.masks],
        )
        found = group_parts(self._read_shape, edges, parts, sure)
        if found is None:
            return False
        groups, begins = found
        self._last = len(groups)
        self.flushed += len(groups)
        self.leave(self._epoch, groups, (key, begins))
        return True

    # ---- groups

    def _evicted(self, groups: Rows) -> None:
        self.evicted += len(groups)
        self._wait(groups)

    def _empty(self) -> None:
        if isinstance(self._table, BoundedTable):
            self._table.flush()
        elif self._table.count:
            self._last = self._table.count
            self.flushed += self._last
            self._wait(self._table.take())
        if self._states is not None and self._leaving is None:
            self._states.clear()

    def _wait(self, groups: Rows) -> None:
        if not self.query.epoch_in_key or self.query.epoch is None:
            self.leave(self._epoch, groups)
        elif len(groups):
            self._wait_apart(groups)

    def _wait_apart(self, groups: Rows) -> None:
        """Pending rows of several epochs, which have their epoch in the second word."""
        self.leave(*without_epoch(groups))

    def flush(self, before: int | None) -> None:
        if self._held and (before is None or self._epoch < before):
            self._empty()
            self.pour()

    def _taken(self, before: int | None) -> Lot | None:
        """The groups of a table with states, if some of its epochs are before one. Their states are
        in the columns until `clear`.
        """
        due = before is None or self._epoch < before
        if self._states is None or not isinstance(self._table, OpenTable) or not due:
            return None
        self._last = self._table.count
        self.flushed += self._last
        rows = self._table.take()
        in_key = self.query.epoch_in_key and self.query.epoch is not None
        block = Block.of_each(*without_epoch(rows)) if in_key else Block.of(self._epoch, rows)
        return Lot(block, self._states.in_columns(self.shape))

    def spill(self) -> None:
        table = self._taken(None)
        self.flush(None)
        self._pending.spill(table)
        if self._states is not None:
            self._states.clear()
        self.shrink()

    def shrink(self) -> None:
        if isinstance(self._table, OpenTable):
            self._table.shrink()

    def release(self, before: int | None) -> Iterator[Released]:
        with states_of(self.query.name):
            if self._states is None:
                self.flush(before)
                yield from super().release(before)
                return
            table = self._taken(before)
            self.flush(before)
            yield from self._pending.release_states(before, table)
            if not self._held:
                self._states.clear()

    def counts(self) -> tuple[int, int, int]:
        probes, evicted, flushed = super().counts()
        if isinstance(self._table, BoundedTable):
            left = self._table.counters
            evicted, flushed = evicted + left.evictions + left.late, flushed + left.flushed
        return probes, evicted, flushed


def itself(vector: Values) -> Values:
    return vector


def runs(epochs: Ints, rows: Codes) -> list[tuple[int, Codes]]:
    """The tuples of each epoch of a batch, in order of time."""
    edges = np.empty(MOST_RUNS + 1, np.int64)
    count = run_edges(epochs, rows, edges)
    if count > 0:
        parts = [rows[edges[i] : edges[i + 1]] for i in range(count)]
        return [(int(epochs[part[0]]), part) for part in parts]
    own = epochs[rows]
    return [(epoch, rows[own == epoch]) for epoch in np.unique(own).tolist()]


@compiled_for(column(np.int64), column(np.int32), output(np.int64))
def run_edges(epochs: Ints, rows: Codes, edges: Ints) -> int:
    """The position at which each epoch of some tuples begins, and the number of tuples; -1 when
    time goes back, or there are too many epochs.
    """
    edges[0] = 0
    count = 0
    for r in range(1, len(rows)):
        before, now = epochs[rows[r - 1]], epochs[rows[r]]
        if now != before:
            if now < before or count + 2 >= len(edges):
                return -1
            count += 1
            edges[count] = r
    edges[count + 1] = len(rows)
    return count + 1
