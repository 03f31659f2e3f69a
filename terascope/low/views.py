"""A query that has the keys of its parent: the parent's groups are its own, and need no table.

In: rows of a parent's table as they leave it, with their epochs. Out: the same groups as the query
has them: those that saw a tuple of its, with its keys and slots in its order. They wait for the end
of their epoch like those of any table. So queries with one table have a stream each, and a group
costs no look-up on its way there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from terascope.low.dictionary import Ints
from terascope.low.groups import Rows, key_codes
from terascope.low.lanes import Dictionaries
from terascope.low.plan import LowAggregate
from terascope.low.slots import Shape
from terascope.low.tree import Edge
from terascope.low.waiting import Released, Waiting

if TYPE_CHECKING:
    from terascope.low.descent import Descent


class View:
    """The groups of one query, out of the table of its parent."""

    is_open = False

    def __init__(
        self,
        query: LowAggregate,
        parent: LowAggregate,
        edge: Edge,
        dictionaries: Dictionaries,
        once: bool,
        is_inner: bool,
    ) -> None:
        """`once`: whether rows that leave the table together are different groups. `is_inner`:
        they only go further down the tree.
        """
        self.query = query
        self.below: Descent | None = None
        self.key_dictionaries = [dictionaries.of_key(expr) for expr in query.plain_keys]
        self._columns = Columns(query, parent, edge)
        self._waiting = Waiting(self._columns.own, once)
        self._is_inner = is_inner
        self._flushed = 0

    # ---- groups of the parent

    def put(self, epoch: int, rows: Rows) -> None:
        """Of one epoch."""
        places = self._columns.places(rows)
        own = self._columns.of(rows if places is None else rows[places])
        self._flushed += len(own)
        if not self._is_inner:
            self._waiting.add(epoch, own)
        if self.below is not None:
            self.below.add(epoch, own)

    def put_mixed(self, epochs: Ints, rows: Rows) -> None:
        """Of several epochs."""
        places = self._columns.places(rows)
        if places is not None:
            epochs, rows = epochs[places], rows[places]
        own = self._columns.of(rows)
        self._flushed += len(own)
        if not self._is_inner:
            self._waiting.add_mixed(epochs, own)
        if self.below is not None:
            self.below.add_mixed(epochs, own)

    def pour(self) -> None:
        if self.below is not None:
            self.below.pour()

    # ---- as an aggregator has it

    @property
    def memory_bytes(self) -> int:
        return self._waiting.memory_bytes

    @property
    def is_empty(self) -> bool:
        return len(self._waiting) == 0 and not self.below

    def flush(self, before: int | None) -> None:
        """There is no table; the parent was told before."""
        del before
        self.pour()

    def put_aside(self) -> None:
        self._waiting.put_aside()

    def shrink(self) -> None:
        """There is nothing to give back."""

    def settle(self) -> None:
        self._waiting.settle()

    def release(self, before: int | None) -> Iterator[Released]:
        yield from self._waiting.release(before)

    def counts(self) -> tuple[int, int, int]:
        """Probes, evicted and flushed groups since this was asked the last time."""
        found, self._flushed = self._flushed, 0
        return 0, 0, found


class Columns:
    """Where the keys and slots of a query stand in the rows of its parent."""

    def __init__(self, query: LowAggregate, parent: LowAggregate, edge: Edge) -> None:
        self.own = Shape(len(query.plain_keys), query.shape.slots)
        self._theirs = Shape(len(parent.plain_keys), parent.shape.slots)
        self._keys = [parent.plain_keys.index(expr) for expr in query.plain_keys]
        self._slots = edge.slots
        self._always = [parent.slots[place].kept == "count" for place in edge.slots]
        self._present = edge.present

    def places(self, rows: Rows) -> Ints | None:
        """Of the groups that saw a tuple of the query's; None: all did."""
        return np.flatnonzero(rows[:, 0] & self._present) if self._present else None

    def of(self, rows: Rows) -> Rows:
        own, theirs, state = self.own, self._theirs, rows[:, 0]
        out = np.empty((len(rows), own.stride), np.int64)
        out[:, 0] = 1
        for j, (place, always) in enumerate(zip(self._slots, self._always, strict=True)):
            out[:, own.slot(j)] = rows[:, theirs.slot(place)]
            out[:, 0] |= (1 if always else state >> (1 + place) & 1) << (1 + j)
        if self._keys == list(range(theirs.keys)):
            words = slice(own.first_word, own.first_slot)
            out[:, words] = rows[:, words]
            return out
        out[:, own.first_word : own.first_slot] = 0
        for k, key in enumerate(self._keys):
            code = key_codes(rows, theirs, key).astype(np.int64)
            out[:, own.first_word + k // 2] |= code << (32 if k % 2 == 0 else 0)
        return out
