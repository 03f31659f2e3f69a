"""Groups put aside on disk, in a task that has more of them than its memory may hold.

In: rows of groups of one query, each lot of one epoch. Out: the rows of an epoch again, part by
part: all rows of a group are in the same part, so that a part can be merged by itself. The file has
no name: it is gone when the task is, however that ends.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

import numpy as np

from terascope.diagnostic import OutputError
from terascope.low.dictionary import Codes, Ints, mix
from terascope.low.groups import Rows, largest, rows_at
from terascope.low.kernels import INTEGER, column, compiled, output
from terascope.low.slots import Shape
from terascope.low.spill import cannot_spill
from terascope.types import INT_MAX

WRITTEN_ROWS: Final = 1 << 14
PARTS: Final = 64
ON_DISK: Final = 0
IN_MEMORY: Final = 32
"""Other bits of the hash: a part of what was on disk can be put apart again."""


@dataclass(frozen=True)
class Lot:
    """Rows that were put aside together, in the order of their parts."""

    offset: int
    edges: Ints
    reach: int
    """No sum of a group is larger than this."""


@dataclass(frozen=True)
class Taken:
    """The rows of an epoch, for every part one list."""

    parts: Iterator[list[Rows]]
    can_overflow: bool
    """Whether the sums of a group, put together, might not fit 64 bits."""


class Aside:
    """The groups of one query that are on disk.

    Raises:
        OutputError: there is no room on disk for what memory does not hold.
    """

    def __init__(self, shape: Shape, once: bool) -> None:
        """`once`: whether every group stands only once in a lot."""
        self._shape = shape
        self._once = once
        self._file: FileIO | None = None
        self._end = 0
        self._lots: dict[int, list[Lot]] = {}

    @property
    def epochs(self) -> set[int]:
        return set(self._lots)

    def put(self, epoch: int, rows: Rows) -> None:
        order, edges = apart(rows, self._shape, PARTS, ON_DISK)
        folder = Path(tempfile.gettempdir())
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            for start in range(0, len(order), WRITTEN_ROWS):
                written = rows_at(rows, order[start : start + WRITTEN_ROWS]).data.cast("B")
                while written:
                    written = written[self._file.write(written) :]
        except OSError as problem:
            raise cannot_spill(folder, problem) from problem
        reach = largest_sum(rows, self._shape) * (1 if self._once else len(rows))
        lot = Lot(self._end, edges, reach)
        self._lots.setdefault(epoch, []).append(lot)
        self._end += rows.nbytes

    def take(self, epoch: int) -> Taken:
        """The rows of an epoch. They are no longer kept when all of them were drawn."""
        lots = self._lots[epoch]
        return Taken(self._parts(epoch, lots), sum(lot.reach for lot in lots) > INT_MAX)

    def _parts(self, epoch: int, lots: Sequence[Lot]) -> Iterator[list[Rows]]:
        for part in range(PARTS):
            yield [rows for lot in lots if len(rows := self._read(lot, part))]
        del self._lots[epoch]
        if not self._lots and self._file is not None:
            self._file.close()
            self._file, self._end = None, 0

    def _read(self, lot: Lot, part: int) -> Rows:
        assert self._file is not None
        begin, end = int(lot.edges[part]), int(lot.edges[part + 1])
        rows = np.empty((end - begin, self._shape.stride), np.int64)
        self._file.seek(lot.offset + begin * self._shape.row_bytes)
        left = rows.data.cast("B") if len(rows) else memoryview(b"")
        while left:
            read = self._file.readinto(left)
            if not read:
                raise OutputError("groups that were kept on disk meanwhile are no longer there")
            left = left[read:]
        return rows


def largest_sum(rows: Rows, shape: Shape) -> int:
    sums = [rows[:, shape.slot(j)] for j, kind in enumerate(shape.slots) if kind == "sum_int"]
    return max((largest(values) for values in sums), default=0)


def parts_of(lots: Sequence[Rows], shape: Shape, parts: int) -> Iterator[list[Rows]]:
    """Rows that are in memory, for every part one list."""
    ordered = [apart(rows, shape, parts, IN_MEMORY) for rows in lots]
    for part in range(parts):
        yield [
            rows_at(rows, order[edges[part] : edges[part + 1]])
            for rows, (order, edges) in zip(lots, ordered, strict=True)
        ]


def apart(rows: Rows, shape: Shape, parts: int, bits: int) -> tuple[Codes, Ints]:
    """The order of rows by a hash of their keys, and where each part begins. `bits`: those of the
    hash that decide, from here on.
    """
    order = np.empty(len(rows), np.int32)
    edges = np.zeros(parts + 1, np.int64)
    spread_rows(rows, shape.first_word, shape.first_slot, parts - 1, bits, edges, order)
    return order, edges


@compiled(
    column(np.int64, 2), INTEGER, INTEGER, INTEGER, INTEGER, output(np.int64), output(np.int32)
)
def spread_rows(
    rows: Rows, first_word: int, first_slot: int, last: int, bits: int, edges: Ints, order: Codes
) -> None:
    """Count, then place. `last`: the number of the last part, a power of two less one."""
    part = np.empty(len(rows), np.int32)
    for i in range(len(rows)):
        h = np.int64(0)
        for k in range(first_word, first_slot):
            h = np.int64(mix(h ^ rows[i, k]))
        part[i] = (h >> bits) & last
        edges[part[i] + 1] += 1
    for p in range(last + 1):
        edges[p + 1] += edges[p]
    at = edges.copy()
    for i in range(len(rows)):
        order[at[part[i]]] = i
        at[part[i]] += 1
