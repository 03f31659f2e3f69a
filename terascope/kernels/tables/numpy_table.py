"""The aggregation without machine code: the same groups by sorting, in numpy.

In: tuples as codes and values. Out: groups, as rows of a Shape, one for each group of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from terascope.kernels.columns.dictionary import Codes, Masks, all_valid
from terascope.kernels.merge.groups import Rows
from terascope.kernels.tables.open_table import Emit, Values
from terascope.kernels.tables.slots import Shape, SlotKind, is_float, takes_argument


class NumpyTable:
    """Has the interface of OpenTable, and keeps nothing from batch to batch."""

    memory_bytes = 0
    count = 0

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def add(
        self,
        rows: Codes,
        codes: Sequence[Codes],
        sizes: Sequence[int],
        values: Sequence[Values],
        masks: Sequence[Masks] | None,
        emit: Emit,
    ) -> None:
        """Every batch gives its groups at once; a sum that overflows is cut into several."""
        del sizes
        if masks is None:
            masks = [all_valid(len(lane)) for lane in values]
        parts = (
            [rows]
            if not self._may_overflow(rows, values, masks)
            else list(np.split(rows, len(rows)))
        )
        for part in parts:
            emit(self._groups(part, codes, values, masks))

    def _may_overflow(self, rows: Codes, values: Sequence[Values], masks: Sequence[Masks]) -> bool:
        arguments = [kind for kind in self.shape.slots if takes_argument(kind)]
        for kind, lane, mask in zip(arguments, values, masks, strict=True):
            if kind == "sum_int":
                total = np.abs(lane[rows].astype(np.float64) * (mask[rows] != 0)).sum()
                if total > 9.2e18:
                    return True
        return False

    def _groups(
        self,
        rows: Codes,
        codes: Sequence[Codes],
        values: Sequence[Values],
        masks: Sequence[Masks],
    ) -> Rows:
        shape = self.shape
        keys = [c[rows] for c in codes]
        order = np.lexsort(keys[::-1]) if keys else np.arange(len(rows))
        changed = np.zeros(len(rows), np.bool_)
        changed[:1] = True
        for key in keys:
            changed[1:] |= np.diff(key[order]) != 0
        starts = np.flatnonzero(changed)
        groups = np.zeros((len(starts), shape.stride), np.int64)
        groups[:, 0] = 1
        for k, key in enumerate(keys):
            word = key[order][starts].astype(np.int64)
            groups[:, shape.first_word + k // 2] |= word << (32 if k % 2 == 0 else 0)
        sizes = np.diff(np.append(starts, len(rows)))
        place = 0
        for j, kind in enumerate(shape.slots):
            target = groups[:, shape.slot(j)]
            if not takes_argument(kind):
                target[:] = sizes
                continue
            lane, valid = values[place][rows][order], masks[place][rows][order] != 0
            place += 1
            seen = np.add.reduceat(valid, starts) if len(starts) else np.zeros(0, np.int64)
            groups[:, 0] |= (seen > 0).astype(np.int64) << (j + 1)
            result = np.where(seen > 0, reduced(kind, lane, valid, starts), 0)
            if is_float(kind):
                target[:] = result.astype(np.float64).view(np.int64)
            else:
                target[:] = result
        return groups

    def take(self) -> Rows:
        return np.zeros((0, self.shape.stride), np.int64)


def reduced(
    kind: SlotKind, lane: Values, valid: NDArray[np.bool_], starts: NDArray[np.intp]
) -> NDArray[Any]:
    """One value for each group; of a group without values, anything."""
    match kind:
        case "count_of":
            return np.add.reduceat(valid.astype(np.int64), starts)
        case "sum_int":
            return np.add.reduceat(np.where(valid, lane, 0), starts)
        case "min_int":
            return np.minimum.reduceat(np.where(valid, lane, np.iinfo(np.int64).max), starts)
        case "max_int":
            return np.maximum.reduceat(np.where(valid, lane, np.iinfo(np.int64).min), starts)
        case "min_float":  # NaN is the largest
            return np.fmin.reduceat(np.where(valid, lane, np.nan), starts)
        case "max_float":
            return np.maximum.reduceat(np.where(valid, lane, -np.inf), starts)
        case "range":
            return np.zeros(len(starts), np.int64)
        case "or_int":
            return np.bitwise_or.reduceat(np.where(valid, lane, 0), starts)
        case "and_int":
            return np.bitwise_and.reduceat(np.where(valid, lane, -1), starts)
        case _:
            return np.bitwise_xor.reduceat(np.where(valid, lane, 0), starts)
