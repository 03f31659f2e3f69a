"""The aggregation without machine code: the same groups by sorting, in numpy.

In: tuples as codes and values. Out: groups, as rows of a Shape, one for each group of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from terascope.functions.slots import COUNT_OF, RANGE, SUM_INT, Fold, SlotKind
from terascope.kernels.columns.dictionary import Codes, Masks, all_valid
from terascope.kernels.merge.groups import Rows
from terascope.kernels.tables.open_table import Emit, Values
from terascope.kernels.tables.slots import Shape


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
            masks = [all_valid(len(vector)) for vector in values]
        parts = (
            [rows]
            if not self._may_overflow(rows, values, masks)
            else list(np.split(rows, len(rows)))
        )
        for part in parts:
            emit(self._groups(part, codes, values, masks))

    def _may_overflow(self, rows: Codes, values: Sequence[Values], masks: Sequence[Masks]) -> bool:
        arguments = [kind for kind in self.shape.slots if kind.takes_argument]
        for kind, vector, mask in zip(arguments, values, masks, strict=True):
            if kind == SUM_INT:
                total = np.abs(vector[rows].astype(np.float64) * (mask[rows] != 0)).sum()
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
            if not kind.takes_argument:
                target[:] = sizes
                continue
            vector, valid = values[place][rows][order], masks[place][rows][order] != 0
            place += 1
            seen = np.add.reduceat(valid, starts) if len(starts) else np.zeros(0, np.int64)
            groups[:, 0] |= (seen > 0).astype(np.int64) << (j + 1)
            result = np.where(seen > 0, reduced(kind, vector, valid, starts), 0)
            if kind.is_float:
                target[:] = result.astype(np.float64).view(np.int64)
            else:
                target[:] = result
        return groups

    def take(self) -> Rows:
        return np.zeros((0, self.shape.stride), np.int64)


def reduced(
    kind: SlotKind, vector: Values, valid: NDArray[np.bool_], starts: NDArray[np.intp]
) -> NDArray[Any]:
    """One value for each group; of a group without values, anything."""
    if kind == COUNT_OF:
        return np.add.reduceat(valid.astype(np.int64), starts)
    if kind == RANGE:
        return np.zeros(len(starts), np.int64)
    if kind == SUM_INT:
        return np.add.reduceat(np.where(valid, vector, 0), starts)
    assert isinstance(kind, Fold)
    values = np.where(valid, vector, kind.identity)
    if kind.numpy:
        return np.asarray(getattr(np, kind.numpy).reduceat(values, starts))
    folded = np.frompyfunc(operation(kind), 2, 1).reduceat(values.astype(object), starts)
    return np.asarray(folded, np.float64 if kind.is_float else np.int64)


def operation(kind: Fold) -> Callable[[Any, Any], Any]:
    """The operation of a fold on two values, from the statements of its kernels."""
    lines = kind.merging("slot", "value", "True")
    scope: dict[str, Any] = {"np": np, "math": math}
    exec("\n    ".join(["def fold(slot, value):", *lines, "return slot"]), scope)
    fold: Callable[[Any, Any], Any] = scope["fold"]
    return fold
