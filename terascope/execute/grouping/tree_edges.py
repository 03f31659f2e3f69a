"""The edges below one node of an aggregate tree: groups that left its table become tuples of its
children (paper 4, III-D).

In: rows of the node's table, with their epochs, as they leave. Out: one set of vectors for all
children, which each of them takes. Rows are pending until they are many, or until the node has
taken all of its input; a child takes them in the order in which they left. Children with the keys
of the node need no table (terascope.execute.grouping.tableless_node): they take the rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from terascope.execute.grouping.pending_tuples import Name, TupleVectors
from terascope.execute.grouping.selections import Admission, Selection
from terascope.execute.grouping.tree import ParentEdge, epoch_of, slot_column
from terascope.functions.slots import COUNT
from terascope.kernels.columns.batch import Values
from terascope.kernels.columns.dictionary import Codes, Ints, Masks, all_valid
from terascope.kernels.merge.groups import Rows
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.physical.low_plan import LowAggregate
from terascope.plan.expr import Expr

if TYPE_CHECKING:
    from terascope.execute.grouping.aggregator import Aggregator
    from terascope.execute.grouping.tableless_node import TablelessNode

MOST_ROWS: Final = 1 << 16
"""The number of pending rows from which on they are passed to the children."""


class TreeEdges:
    """The tree edges from one parent to its children."""

    def __init__(
        self,
        parent: LowAggregate,
        children: Sequence[tuple[ParentEdge, Aggregator]],
        views: Sequence[TablelessNode] = (),
    ) -> None:
        self._parent = parent
        self._views = views
        self._shape = Shape(len(parent.plain_keys), parent.shape.slots)
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
        """The number of pending rows."""
        return self._count

    def add(self, epoch: int, rows: Rows) -> None:
        """Add groups of one epoch."""
        if len(rows):
            for view in self._views:
                view.put(epoch, rows)
            self._wait(np.full(len(rows), epoch, np.int64), rows)

    def add_mixed(self, epochs: Ints, rows: Rows) -> None:
        """Add groups of several epochs."""
        if len(rows):
            for view in self._views:
                view.put_mixed(epochs, rows)
            self._wait(epochs, rows)

    def _wait(self, epochs: Ints, rows: Rows) -> None:
        if self._children:
            self._rows.append(rows)
            self._epochs.append(epochs)
            self._count += len(rows)
            if self._count >= MOST_ROWS:
                self.pour()

    def add_apart(self, epoch: int, rows: Rows, by: tuple[Expr, Ints]) -> None:
        """Add groups of one epoch that are partitioned by one of their keys."""
        self.pour()
        if len(rows):
            for view in self._views:
                view.put(epoch, rows)
            if self._children:
                self._put(rows, np.full(len(rows), epoch, np.int64), by)

    def pour(self) -> None:
        """Pass all pending rows to the children."""
        for view in self._views:
            view.pour()
        if not self._count:
            return
        rows = self._rows[0] if len(self._rows) == 1 else np.concatenate(self._rows)
        epochs = self._epochs[0] if len(self._epochs) == 1 else np.concatenate(self._epochs)
        self._rows, self._epochs, self._count = [], [], 0
        self._put(rows, epochs, None)

    def _put(self, rows: Rows, epochs: Ints, by: tuple[Expr, Ints] | None) -> None:
        groups = self._tuple_vectors(rows, epochs)
        groups.apart_by = by
        for edge, child in sorted(self._children, key=lambda one: one[1].apart_by()):
            selection = self._selections[edge.present]
            child.take(groups, Admission(selection, (selection,) * len(edge.query.slots)))

    def _tuple_vectors(self, rows: Rows, epochs: Ints) -> TupleVectors:
        state = np.ascontiguousarray(rows[:, 0])
        vectors: dict[Name, Values] = {}
        for k, expr in self._keys:
            vectors["codes", expr, None] = codes_of(rows, self._shape, k)
        for j in self._slots:
            slot = self._parent.slots[j]
            expr = slot_column(j, slot.kind)
            vectors["values", expr, None] = words_of(rows, self._shape.slot(j), slot.kind.is_float)
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


def codes_of(rows: Rows, shape: Shape, key: int) -> Codes:
    """The codes of a key, one for each row."""
    codes = np.empty(len(rows), np.int32)
    pick_codes(rows, shape.first_word + key // 2, 32 if key % 2 == 0 else 0, codes)
    return codes


@compiled_for(column(np.int64, 2), INTEGER, INTEGER, output(np.int32))
def pick_codes(rows: Rows, word: int, shift: int, codes: Codes) -> None:
    for i in range(len(codes)):
        codes[i] = np.int32(rows[i, word] >> shift)


def words_of(rows: Rows, word: int, as_float: bool) -> Values:
    """The values of a slot, one for each row."""
    values = np.ascontiguousarray(rows[:, word])
    return values.view(np.float64) if as_float else values


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
