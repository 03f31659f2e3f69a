"""The table of a batch run: open addressing, every group kept while there is memory.

In: tuples as codes and values. Out: groups, as rows of a Shape. Unlike the bounded tables
(bounded_tables.py) it evicts no group: it grows up to its share of the memory and is emptied as a
whole when that is used up, so that most groups leave it complete. Where the codes of the keys are
few enough a group's place is computed from them, without any probing (`dense`). docs/decisions.md
has the figures behind this choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.kernels.columns.dictionary import Codes, Ints, Masks
from terascope.kernels.tables.open_table_source import insert_kernel, update_kernel
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, compiled_for, output

Rows: TypeAlias = NDArray[np.int64]
"""Groups: one row each, as the Shape lays it out."""
Values: TypeAlias = NDArray[Any]
Emit: TypeAlias = Callable[[Rows], None]

FIRST_PLACES: Final = 1 << 10
DENSE_PLACES: Final = 1 << 16
"""Beyond this a computed place is no longer near enough."""


class OpenTable:
    """The groups of one aggregation."""

    def __init__(self, shape: Shape, max_bytes: int) -> None:
        self.shape = shape
        self._most_places = max(FIRST_PLACES, power_below(max_bytes // shape.row_bytes))
        self._widths: tuple[int, ...] | None = None
        self._reset(FIRST_PLACES)

    def _reset(self, places: int) -> None:
        self._entries: Ints = np.zeros(places * self.shape.stride, np.int64)
        self._floats = self._entries.view(np.float64)
        self._places = places
        self.count = 0

    @property
    def memory_bytes(self) -> int:
        return self._entries.nbytes

    def add(
        self,
        rows: Codes,
        codes: Sequence[Codes],
        sizes: Sequence[int],
        values: Sequence[Values],
        masks: Sequence[Masks] | None,
        emit: Emit,
    ) -> None:
        """Take the tuples `rows` of a batch. `sizes`: how many codes each key has by now.

        No masks: no argument is NULL, and no sum can overflow, which is faster.
        """
        widths = dense_widths(sizes)
        if widths is not None and (self._widths is not None or self.count == 0):
            if widths != self._widths:
                self._become_dense(widths, emit)
            self._add(widths, rows, codes, values, masks, emit)
            return
        if self._widths is not None:
            self._become_open(emit)
        self._add((), rows, codes, values, masks, emit)

    def _add(
        self,
        widths: tuple[int, ...],
        rows: Codes,
        codes: Sequence[Codes],
        values: Sequence[Values],
        masks: Sequence[Masks] | None,
        emit: Emit,
    ) -> None:
        update = update_kernel(self.shape, masks is None, self._widths is not None)
        at = 0
        while True:
            limit = self._places if self._widths is not None else self._places * 5 // 8
            at, self.count = update(
                self._entries, self._floats, self._places, limit, self.count,
                rows, at, *widths, *codes, *values, *(masks or ()),
            )  # fmt: skip
            if at == len(rows):
                return
            if self._widths is None and self.count >= limit and self._places < self._most_places:
                self._grow()
            else:  # no more room, or a sum that would overflow: what is there goes up
                emit(self.take())

    def shrink(self) -> None:
        """Shrink an empty table to its initial size."""
        self._widths = None
        self._reset(FIRST_PLACES)

    def _grow(self) -> None:
        groups = self.take()
        self._reset(4 * self._places if 4 * self._places <= self._most_places else 2 * self._places)
        self.insert(groups)

    def insert(self, groups: Rows) -> bool:
        """Take other groups of the same shape in; FALSE when a sum overflows, half-way then."""
        flat = groups.ravel()
        count = insert_kernel(self.shape)(
            self._entries, self._floats, self._places, self.count,
            flat, flat.view(np.float64), len(groups),
        )  # fmt: skip
        self.count = max(0, count)
        return bool(count >= 0)

    @staticmethod
    def for_groups(shape: Shape, number: int) -> OpenTable:
        """A table with room for that many groups."""
        table = OpenTable(shape, 0)
        table._reset(max(FIRST_PLACES, 1 << (2 * number - 1).bit_length()))
        return table

    def _become_dense(self, widths: tuple[int, ...], emit: Emit) -> None:
        if self.count:
            emit(self.take())
        self._widths = widths
        self._reset(1 << sum(widths))

    def _become_open(self, emit: Emit) -> None:
        groups = self.take()
        self._widths = None
        places = FIRST_PLACES
        while places < 4 * len(groups) and places < self._most_places:
            places *= 2
        self._reset(places)
        if len(groups) * 2 > places:
            emit(groups)
        else:
            self.insert(groups)

    def take(self) -> Rows:
        """All groups; the table is empty then."""
        groups = np.empty((self.count, self.shape.stride), np.int64)
        places = np.empty(self.count if self._widths is not None else 0, np.int64)
        drain(self._entries, self.shape.stride, groups, places)
        if self._widths is not None:
            self._write_keys(groups, places)
        self.count = 0
        return groups

    def _write_keys(self, groups: Rows, places: Ints) -> None:
        """The keys of a dense table are its places."""
        assert self._widths is not None
        shift = 0
        codes: list[Ints] = []
        for width in reversed(self._widths):
            codes.append((places >> shift) & ((1 << width) - 1))
            shift += width
        codes.reverse()
        for word in range(self.shape.words):
            upper = codes[2 * word] << 32
            lower = codes[2 * word + 1] if 2 * word + 1 < len(codes) else 0
            groups[:, self.shape.first_word + word] = upper | lower


def merge_groups(shape: Shape, parts: Sequence[Rows]) -> Rows | None:
    """The groups of several tables, each once; None when a 64-bit sum overflows."""
    table = OpenTable.for_groups(shape, sum(len(rows) for rows in parts))
    if all(table.insert(rows) for rows in parts):
        return table.take()
    return None


def dense_widths(sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Bits for each key, when all of them together are few; None else."""
    widths = tuple(max(1, (size - 1).bit_length()) for size in sizes)
    return widths if 1 << sum(widths) <= DENSE_PLACES else None


def power_below(number: int) -> int:
    return 1 << max(0, number.bit_length() - 1)


@compiled_for(output(np.int64), INTEGER, output(np.int64, 2), output(np.int64))
def drain(entries: Ints, stride: int, groups: Rows, places: Ints) -> None:
    """Move all groups out of a table, in one pass; on request with their places."""
    found = 0
    for base in range(0, len(entries), stride):
        if entries[base] != 0:
            for k in range(stride):
                groups[found, k] = entries[base + k]
                entries[base + k] = 0
            if len(places) != 0:
                places[found] = base // stride
            found += 1
