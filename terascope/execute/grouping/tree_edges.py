"""The nodes of an aggregate tree: groups that left a table are pending there, and become tuples of
the node's children (paper 4, III-D).

In: rows of a table, with their epochs, as they leave. Out: the groups of the epochs that are over,
and one set of vectors for all children, which each of them takes. Rows are pending until they are
many, or until the node has taken all of its input; a child takes them in the order in which they
left. A child with the keys of its parent needs no table: the parent's groups that saw a tuple of
the child are its own, with its keys and slots in its order, and cost no look-up on their way there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from terascope.execute.grouping.pending_groups import PendingGroups, Released
from terascope.execute.grouping.pending_tuples import Name, TupleVectors
from terascope.execute.grouping.selections import Admission, Selection
from terascope.execute.grouping.tree import ParentEdge, epoch_of, slot_column
from terascope.functions.slots import COUNT
from terascope.kernels.columns.arrays import Codes, Ints, Masks, Rows, Values, all_valid
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.groups import key_codes
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.physical.low_plan import LowAggregate
from terascope.plan.expr import Expr

if TYPE_CHECKING:
    from terascope.execute.grouping.aggregator import Aggregator

ApartBy: TypeAlias = tuple[Expr, Ints]
"""A key by which rows are apart, and where each part begins."""

MOST_ROWS: Final = 1 << 16
"""The number of pending rows from which on they are passed to the children."""


class TreeNode:
    """The groups of one query after they left a table."""

    is_open = False
    """Whether its table grows with its groups."""

    def __init__(
        self, query: LowAggregate, dictionaries: TaskDictionaries, once: bool, is_inner: bool
    ) -> None:
        """`once`: whether rows that leave the table together are different groups. `is_inner`:
        they only go further down the tree, and are not pending.
        """
        self.query = query
        self.shape = query.group_shape
        self.below: TreeEdges | None = None
        """The tree edges that groups that leave the table take as well."""
        self.key_dictionaries = [dictionaries.of_key(expr) for expr in query.plain_keys]
        """One for each key that is a code."""
        self.probes = 0
        """Tuples, or groups of a parent, that were looked up in the table."""
        self.evicted = 0
        """Groups that left the table before their epoch was over."""
        self.flushed = 0
        """Groups that left the table at the end of their epoch."""
        self._is_inner = is_inner
        self._pending = PendingGroups(self.shape, once)

    @property
    def spilled_bytes(self) -> int:
        return self._pending.spilled_bytes

    @property
    def memory_bytes(self) -> int:
        return self._pending.memory_bytes

    @property
    def is_empty(self) -> bool:
        return self._pending.is_empty and not self.below

    def leave(self, epochs: int | Ints, groups: Rows, apart: ApartBy | None = None) -> None:
        """Groups of one epoch, or of one each, have left the table."""
        if not self._is_inner:
            self._pending.add(epochs, groups)
        if self.below is not None:
            self.below.add(epochs, groups, apart)

    def pour(self) -> None:
        if self.below is not None:
            self.below.pour()

    def flush(self, before: int | None) -> None:
        """Empty the table if it has groups of epochs before the given one; None: in any case."""
        del before
        self.pour()

    def spill(self) -> None:
        """Spill all groups, pending or in the table."""
        self._pending.spill()

    def shrink(self) -> None:
        """Free the memory of an empty table."""

    def settle(self) -> None:
        """Copy pending groups out of the memory of a batch that is done."""
        self._pending.settle()

    def release(self, before: int | None) -> Iterator[Released]:
        """Release the groups of the epochs before one, or of all."""
        yield from self._pending.release(before)

    def counts(self) -> tuple[int, int, int]:
        """Probes, evicted and flushed groups."""
        return self.probes, self.evicted, self.flushed


class TablelessNode(TreeNode):
    """The groups of one query, copied from the table of its parent."""

    def __init__(
        self,
        query: LowAggregate,
        parent: LowAggregate,
        edge: ParentEdge,
        dictionaries: TaskDictionaries,
        once: bool,
        is_inner: bool,
    ) -> None:
        super().__init__(query, dictionaries, once, is_inner)
        theirs = parent.group_shape
        keys = [parent.plain_keys.index(expr) for expr in query.plain_keys]
        self._present = edge.present
        self._keys = np.array([2 * theirs.first_word + (key ^ 1) for key in keys], np.int64)
        """As halves of words: the earlier key of two is the upper half."""
        self._slots = np.array([theirs.slot(place) for place in edge.slots], np.int64)
        counted = [parent.slots[place].kept == COUNT for place in edge.slots]
        pairs = zip(edge.slots, counted, strict=True)
        self._bits = np.array([0 if always else 1 + place for place, always in pairs], np.int64)
        """The state bits of slots with a value. Bit 0 is always set."""

    def put(self, epochs: int | Ints, rows: Rows) -> None:
        """Take groups of the parent: those that saw a tuple of the query."""
        present = rows[:, 0] & self._present
        count = int(np.count_nonzero(present)) if self._present else len(rows)
        own, places = np.empty((count, self.shape.stride), np.int64), np.empty(count, np.int64)
        halves = own.view(np.int32)
        pick_groups(rows, self._present, self._keys, self._slots, self._bits, own, halves, places)
        self.flushed += count
        self.leave(epochs if isinstance(epochs, int) else epochs[places], own)


@compiled_for(
    column(np.int64, 2), INTEGER, column(np.int64), column(np.int64), column(np.int64),
    output(np.int64, 2), output(np.int32, 2), output(np.int64),
)  # fmt: skip
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


class TreeEdges:
    def __init__(
        self, parent: LowAggregate, nodes: Sequence[tuple[ParentEdge, Aggregator | TablelessNode]]
    ) -> None:
        children = [(edge, n) for edge, n in nodes if not isinstance(n, TablelessNode)]
        self._parent = parent
        self._views = [node for _, node in nodes if isinstance(node, TablelessNode)]
        self._shape = parent.group_shape
        self._children = children
        bits = dict.fromkeys(edge.present for edge, _ in children)
        self._selections: dict[int, Selection] = {present: n for n, present in enumerate(bits)}
        self._slots = sorted({place for edge, _ in children for place in edge.slots})
        self._keys = [
            (k, expr)
            for k, expr in enumerate(parent.plain_keys)
            if any(expr in edge.query.plain_keys for edge, _ in children)
        ]
        self._rows: list[Rows] = []
        self._epochs: list[Ints] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, epochs: int | Ints, rows: Rows, apart: ApartBy | None = None) -> None:
        """Groups of one epoch, or of one each. `apart`: the key by which they are apart already, so
        that the children need not do that again.
        """
        if apart is not None:
            self.pour()
        if not len(rows):
            return
        for view in self._views:
            view.put(epochs, rows)
        if not self._children:
            return
        each = np.full(len(rows), epochs, np.int64) if isinstance(epochs, int) else epochs
        if apart is not None:
            self._put(rows, each, apart)
            return
        self._rows.append(rows)
        self._epochs.append(each)
        self._count += len(rows)
        if self._count >= MOST_ROWS:
            self.pour()

    def pour(self) -> None:
        for view in self._views:
            view.pour()
        if not self._count:
            return
        rows = self._rows[0] if len(self._rows) == 1 else np.concatenate(self._rows)
        epochs = self._epochs[0] if len(self._epochs) == 1 else np.concatenate(self._epochs)
        self._rows, self._epochs, self._count = [], [], 0
        self._put(rows, epochs, None)

    def _put(self, rows: Rows, epochs: Ints, by: ApartBy | None) -> None:
        groups = self._tuple_vectors(rows, epochs)
        groups.apart_by = by
        for edge, child in sorted(self._children, key=lambda one: one[1].apart_by()):
            selection = self._selections[edge.present]
            child.take(groups, Admission(selection, (selection,) * len(edge.query.slots)))

    def _tuple_vectors(self, rows: Rows, epochs: Ints) -> TupleVectors:
        state = np.ascontiguousarray(rows[:, 0])
        vectors: dict[Name, Values] = {}
        for k, expr in self._keys:
            vectors["codes", expr, None] = np.ascontiguousarray(key_codes(rows, self._shape, k))
        for j in self._slots:
            slot = self._parent.slots[j]
            expr = slot_column(j, slot.kind)
            values = np.ascontiguousarray(rows[:, self._shape.slot(j)])
            vectors["values", expr, None] = (
                values.view(np.float64) if slot.kind.is_float else values
            )
            always = slot.kept == COUNT
            vectors["masks", expr, None] = all_valid(len(rows)) if always else bit_of(state, 1 + j)
        epoch = epoch_of(self._parent)
        if epoch is not None:
            vectors["values", epoch, None] = epochs
            vectors["masks", epoch, None] = all_valid(len(rows))
        chosen = {selection: having(state, bits) for bits, selection in self._selections.items()}
        return TupleVectors(
            len(rows), sum(vector.nbytes for vector in vectors.values()), chosen, vectors
        )


def bit_of(state: Ints, bit: int) -> Masks:
    """The mask of rows in which a bit is set."""
    if np.bitwise_and.reduce(state) >> bit & 1:
        return all_valid(len(state))
    return (state >> bit & 1).astype(np.uint8)


def having(state: Ints, bits: int) -> Codes:
    """The rows that have one of some bits; all rows, if there are no bits."""
    if bits == 0:
        return np.arange(len(state), dtype=np.int32)
    return np.flatnonzero(state & bits).astype(np.int32)
