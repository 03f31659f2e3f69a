"""Aggregation tables of fixed size: the cache next to the source (paper 1 section 6, 4 III-C).

In: batches of tuples as columns: epochs, key codes, arguments of slots, and a selection vector.
Out: partial groups as rows of a Shape, in the order in which they leave the table: evicted because
another group needs the place, or flushed because their epoch is over.

Whatever the policy, the partials of a group, combined, are the group: nothing is lost, nothing is
counted twice. If the epochs of the tuples never decrease, neither do those of the rows.

Flushing at the end of an epoch is eager (all groups at once, when the first tuple of the next epoch
comes) or lazy: the groups are old then, and every arriving tuple sends one of them off. An old one
whose place is needed leaves at that moment; before a new group must leave, and when the epoch
changes again, all old ones do. A tuple that is late joins the old group it belongs to, or leaves as
a group of its own.

Sums of integers never wrap: a group whose sum would overflow leaves and starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.kernels.codegen.generated_modules import load_module
from terascope.kernels.columns.arrays import Codes, Masks, Rows, Values
from terascope.kernels.tables.open_table_source import column_types
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import Policy
from terascope.kernels.tables.table_source import STATE_WORDS, source
from terascope.machine_code import column, compile_for, output

Flush: TypeAlias = Literal["eager", "lazy"]
Taker: TypeAlias = Callable[[Rows], None]
"""Takes rows [k, stride] from a buffer that is reused: rows that shall stay must be copied."""

OUTPUT_ROWS = 1024
"""Large enough that returning to Python costs nothing, small enough for the cache."""

LEAST_OUTPUT_ROWS = 3
NOTHING = 0xFFFFFFFF
LINK_BYTES = 20
"""Bytes of an entry of a chained table for chaining: the head of its bucket, and four links."""


class Counters(NamedTuple):
    """Counts of a table since it was made. Rows that left: evictions + flushed + late."""

    probes: int
    """Tuples."""
    misses: int
    """Tuples whose group was not there."""
    evictions: int
    """Groups that left before their epoch was over."""
    flushed: int
    """Groups that left because it was."""
    late: int
    """Tuples of an earlier epoch that left as groups of their own."""
    backlog: int
    """The most groups that ever became old at once."""


class BoundedTable:
    """A table of at most `capacity` groups."""

    def __init__(
        self,
        shape: Shape,
        policy: Policy,
        capacity: int,
        flush: Flush,
        taker: Taker,
        output_rows: int = OUTPUT_ROWS,
    ) -> None:
        if not shape.with_epoch:
            raise ValueError("the rows of a bounded table carry their epoch")
        if not 1 <= capacity < 2**31 or output_rows < LEAST_OUTPUT_ROWS:
            raise ValueError(f"no table of {capacity} groups that gives {output_rows} rows at once")
        self.shape = shape
        self.policy = policy
        self.capacity = capacity
        self._taker = taker
        self._module = compiled(shape, policy)
        self._table = np.zeros((capacity + 1) * shape.stride, np.int64)
        self._out = np.zeros((output_rows, shape.stride), np.int64)
        self._state = np.zeros(len(STATE_WORDS), np.int64)
        for word, value in (
            ("CAPACITY", capacity),
            ("ROOM", output_rows),
            ("EAGER", flush == "eager"),
            ("LATE_AT", -2),
        ):
            self._state[STATE_WORDS.index(word)] = value
        self.storage: tuple[Values, ...] = (
            self._table,
            self._out.reshape(-1),
            *_chains(policy, capacity),
        )
        self._floats = self._table.view(np.float64)

    def add(
        self,
        epochs: Rows,
        rows: Codes,
        codes: Sequence[Codes],
        values: Sequence[Values],
        masks: Sequence[Masks],
    ) -> None:
        """Takes the tuples at positions `rows` of the columns.

        `values` and `masks` are of the slots that take an argument, one by one; the mask is 0 where
        it is NULL.
        """
        columns = (*codes, *values, *masks)
        while len(rows):
            taken = self._module.add(
                *self.storage, self._floats, self._state, epochs, rows, *columns
            )
            rows = rows[taken:]
            self._hand_over()

    def flush(self) -> None:
        """All groups leave, old ones first. The table is then as new."""
        while not self._module.flush(*self.storage, self._state):
            self._hand_over()
        self._hand_over()
        self._state[STATE_WORDS.index("STARTED")] = 0

    @property
    def counters(self) -> Counters:
        first = STATE_WORDS.index("PROBES")  # the others follow in this order
        return Counters(*self._state[first : first + len(Counters._fields)].tolist())

    @property
    def occupied(self) -> int:
        """The number of groups in the table."""
        return self._word("OCCUPIED")

    @property
    def waiting(self) -> int:
        """Old groups that wait to be flushed."""
        return self._word("OLD")

    @property
    def memory_bytes(self) -> int:
        return self._state.nbytes + sum(array.nbytes for array in self.storage)

    def _word(self, name: str) -> int:
        return int(self._state[STATE_WORDS.index(name)])

    def _hand_over(self) -> None:
        at = STATE_WORDS.index("OUT")
        count = int(self._state[at])
        if count:
            self._state[at] = 0
            self._taker(self._out[:count])


def capacity_for(shape: Shape, memory_bytes: int, policy: Policy) -> int:
    """Groups of the largest table that keeps within the memory, but never less than one."""
    fixed = (OUTPUT_ROWS + 1) * shape.row_bytes + 8 * len(STATE_WORDS)
    links = LINK_BYTES if policy == "lru" else 0
    ring = 16 if policy == "lru" else 0
    return max(1, min((memory_bytes - fixed - ring) // (shape.row_bytes + links), 2**31 - 1))


@cache
def compiled(shape: Shape, policy: Policy) -> ModuleType:
    """The kernel module of a table."""
    module = load_module(source(shape, policy))
    words, links = output(np.int64), output(np.uint32)
    storage = (words, words, links, links) if policy == "lru" else (words, words)
    columns = (column(np.int64), column(np.int32), *column_types(shape, False))
    compile_for(module.add, *storage, output(np.float64), words, *columns)
    compile_for(module.flush, *storage, words)
    return module


def _chains(policy: Policy, capacity: int) -> tuple[npt.NDArray[np.uint32], ...]:
    """Bucket heads and links of a chained table: all entries free, one after the other."""
    if policy != "lru":
        return ()
    heads = np.full(capacity, NOTHING, np.uint32)
    links = np.zeros((capacity + 1, 4), np.uint32)
    links[:, 0] = np.arange(1, capacity + 2)
    links[capacity, 1:3] = capacity
    return heads, links.reshape(-1)
