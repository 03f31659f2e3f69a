"""The groups a merger holds: wide rows, in parts by the hash of their keys.

In: wide rows (terascope.kernels.merge.merge_source), a strip at a time. Out: each group once. Rows
are appended to their part; a part that is full is combined, which needs no more memory than the
part and stays in the processor's cache, however many groups there are in all. So what is held grows
with the number of groups, not of partials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from terascope.kernels.columns.dictionary import Ints
from terascope.kernels.merge.merge_rows import append_to_parts, enlarge
from terascope.kernels.merge.merge_source import WideShape, combine_kernel

FIRST_CAPACITY: Final = 1 << 10
LARGEST_ALONE: Final = 1 << 14
"""Rows that are still held in one part."""

PARTS: Final = 1 << 9
"""The number of parts: with more, too many places would be written at once."""


class MergeTable:
    """Rows in parts: part p is rows [p * capacity, p * capacity + fills[p])."""

    def __init__(self, wide: WideShape) -> None:
        self.wide = wide
        self._kernel = combine_kernel(wide.shape)
        self._give_room(1, FIRST_CAPACITY)

    def _give_room(self, parts: int, capacity: int) -> None:
        self.capacity = capacity
        self.rows: Ints = np.empty((parts * capacity, self.wide.stride), np.int64)
        self.fills: Ints = np.zeros(parts, np.int64)
        self._places = np.empty(2 << capacity.bit_length(), np.int32)

    def __len__(self) -> int:
        """Rows held; groups, when they have just been combined."""
        return int(self.fills.sum())

    @property
    def memory_bytes(self) -> int:
        return self.rows.nbytes

    @property
    def next_bytes(self) -> int:
        """Memory that growing needs, while the old rows are still there."""
        return self.rows.nbytes + self._next_rows() * self.wide.row_bytes

    def _next_rows(self) -> int:
        alone = len(self.fills) == 1 and self.capacity >= LARGEST_ALONE
        return 4 * self.capacity if alone else 2 * len(self.rows)

    def take_in(self, strip: Ints, count: int, start: int) -> int:
        """Take rows of a strip from `start` on: all, or as many as there is room for before
        `grow` is called. Returns how far it came.
        """
        at, full = start, -1
        while True:
            at, full = append_to_parts(
                strip, at, count, self.wide.words, self.rows, self.fills, self.capacity
            )
            if at == count or self._combine(full) * 8 > self.capacity * 5:
                return at

    def _combine(self, part: int) -> int:
        """Combine a part; return its number of groups."""
        start = part * self.capacity
        end = start + int(self.fills[part])
        combine = self._kernel.over(end - start)
        kept = combine(self.rows, self.rows.view(np.float64), start, end, self._places)
        groups = int(kept - start)
        self.fills[part] = groups
        return groups

    def grow(self) -> None:
        rows, fills, capacity, room = self.rows, self.fills, self.capacity, self._next_rows()
        if len(fills) == 1 and capacity >= LARGEST_ALONE:
            self._give_room(PARTS, room // PARTS)
            self._place_again(rows[: int(fills[0])])
        else:
            self._give_room(len(fills), room // len(fills))
            enlarge(rows, fills, capacity, self.rows, self.capacity)
            self.fills = fills

    def _place_again(self, rows: Ints) -> None:
        at = self.take_in(rows, len(rows), 0)
        while at < len(rows):
            self.grow()
            at = self.take_in(rows, len(rows), at)

    def has_any(self, words: Sequence[int]) -> bool:
        """Whether one of these words is not zero in some row."""
        for part, fill in enumerate(self.fills.tolist()):
            begin = part * self.capacity
            if any(bool(self.rows[begin : begin + fill, word].any()) for word in words):
                return True
        return False

    def combine(self) -> None:
        """Every group once."""
        for part in range(len(self.fills)):
            self._combine(part)
