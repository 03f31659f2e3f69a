"""A query with the keys of its parent: the parent's groups are its own, and it needs no table.

In: rows of a parent's table as they leave it, with their epochs. Out: the groups of the query:
those with at least one of its tuples, with its keys and slots in its order. They are pending until
the end of their epoch, like those of any table. So queries with a shared table have a stream each,
without a look-up for each group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from terascope.execute.grouping.pending_groups import PendingGroups, Released
from terascope.execute.grouping.tree import ParentEdge
from terascope.functions.slots import COUNT
from terascope.kernels.columns.batch import TaskDictionaries
from terascope.kernels.columns.dictionary import Codes, Ints
from terascope.kernels.merge.groups import Rows
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.physical.low_plan import LowAggregate

if TYPE_CHECKING:
    from terascope.execute.grouping.tree_edges import TreeEdges


class TablelessNode:
    """The groups of one query, copied from the table of its parent."""

    is_open = False
    probes = 0
    """Always 0: nothing is looked up."""

    def __init__(
        self,
        query: LowAggregate,
        parent: LowAggregate,
        edge: ParentEdge,
        dictionaries: TaskDictionaries,
        once: bool,
        is_inner: bool,
    ) -> None:
        """`once`: whether rows that leave the table together are different groups. `is_inner`:
        groups only enter the children.
        """
        self.query = query
        self.below: TreeEdges | None = None
        self.key_dictionaries = [dictionaries.of_key(expr) for expr in query.plain_keys]
        self._columns = Columns(query, parent, edge)
        self._pending = PendingGroups(self._columns.own, once)
        self._is_inner = is_inner
        self._flushed = 0

    # ---- groups of the parent

    def put(self, epoch: int, rows: Rows) -> None:
        """Take rows of one epoch."""
        own, _ = self._columns.of(rows)
        self._flushed += len(own)
        if not self._is_inner:
            self._pending.add(epoch, own)
        if self.below is not None:
            self.below.add(epoch, own)

    def put_mixed(self, epochs: Ints, rows: Rows) -> None:
        """Take rows of several epochs."""
        own, places = self._columns.of(rows)
        own_epochs = epochs[places]
        self._flushed += len(own)
        if not self._is_inner:
            self._pending.add_mixed(own_epochs, own)
        if self.below is not None:
            self.below.add_mixed(own_epochs, own)

    def pour(self) -> None:
        if self.below is not None:
            self.below.pour()

    # ---- as an aggregator has it

    @property
    def spilled_bytes(self) -> int:
        return self._pending.spilled_bytes

    @property
    def memory_bytes(self) -> int:
        return self._pending.memory_bytes

    @property
    def is_empty(self) -> bool:
        return self._pending.is_empty and not self.below

    def flush(self, before: int | None) -> None:
        """There is no table to flush; the parent was flushed before."""
        del before
        self.pour()

    def spill(self) -> None:
        self._pending.spill()

    def shrink(self) -> None:
        """There is nothing to give back."""

    def settle(self) -> None:
        self._pending.settle()

    def release(self, before: int | None) -> Iterator[Released]:
        yield from self._pending.release(before)

    def counts(self) -> tuple[int, int, int]:
        """Probes, evicted and flushed groups since the last call."""
        found, self._flushed = self._flushed, 0
        return 0, 0, found


class Columns:
    """The positions of the keys and slots of a query in the rows of its parent."""

    def __init__(self, query: LowAggregate, parent: LowAggregate, edge: ParentEdge) -> None:
        self.own = Shape(len(query.plain_keys), query.shape.slots)
        theirs = Shape(len(parent.plain_keys), parent.shape.slots)
        keys = [parent.plain_keys.index(expr) for expr in query.plain_keys]
        self._present = edge.present
        self._keys = np.array([2 * theirs.first_word + swapped(key) for key in keys], np.int64)
        """The keys as halves of words."""
        self._slots = np.array([theirs.slot(place) for place in edge.slots], np.int64)
        counted = [parent.slots[place].kept == COUNT for place in edge.slots]
        pairs = zip(edge.slots, counted, strict=True)
        self._bits = np.array([0 if always else 1 + place for place, always in pairs], np.int64)
        """The state bits of slots with a value. Bit 0 is always set."""

    def of(self, rows: Rows) -> tuple[Rows, Ints]:
        """The groups with at least one tuple of the query, and their positions."""
        count = np.count_nonzero(rows[:, 0] & self._present) if self._present else len(rows)
        out = np.empty((count, self.own.stride), np.int64)
        places = np.empty(count, np.int64)
        pick_groups(
            rows,
            self._present,
            self._keys,
            self._slots,
            self._bits,
            out,
            out.view(np.int32),
            places,
        )
        return out, places


def swapped(key: int) -> int:
    """The half of a key word with a key: the earlier of two keys is the upper half."""
    return key ^ 1


@compiled_for(
    column(np.int64, 2),
    INTEGER,
    column(np.int64),
    column(np.int64),
    column(np.int64),
    output(np.int64, 2),
    output(np.int32, 2),
    output(np.int64),
)
def pick_groups(
    rows: Rows,
    present: int,
    keys: Ints,
    slots: Ints,
    bits: Ints,
    out: Rows,
    halves: Codes,
    places: Ints,
) -> None:
    """`halves`: the same memory as `out`."""
    first, at = 1 + (len(keys) + 1) // 2, 0
    for i in range(len(rows)):
        state = rows[i, 0]
        if present != 0 and state & present == 0:
            continue
        seen = np.int64(1)
        for j in range(len(slots)):
            out[at, first + j] = rows[i, slots[j]]
            seen |= (state >> bits[j] & 1) << (1 + j)
        out[at, 0] = seen
        if len(keys) % 2 == 1:
            out[at, first - 1] = 0
        for k in range(len(keys)):
            word = rows[i, keys[k] // 2]
            halves[at, 2 + (k ^ 1)] = np.int32(word >> 32 if keys[k] % 2 == 1 else word)
        places[at] = i
        at += 1
