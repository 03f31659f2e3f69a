"""The default of paper 1, section 7: all work in the high level, every tuple goes up by itself.

In: the column of the low level of any strategy. Out: a column that makes a state of each tuple and
hands it on at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from bench.holistic.level_costs import Maker
from terascope.sketches.base import Argument, Numbers, Packed, StateColumn, StateKind


class ForwardedTuples(StateColumn):
    def __init__(self, make: Maker) -> None:
        self._column = make()
        self._leaving: list[tuple[Numbers, Packed]] = []

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        each = np.arange(len(numbers))
        self._column.iterate(each, arguments)
        self._leave(numbers, self._column.pack(each))

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        self._leave(numbers, packed)

    def _leave(self, numbers: Numbers, packed: Packed) -> None:
        self._leaving.append((np.array(numbers), packed))
        self._column.clear()

    def pack(self, numbers: Numbers) -> Packed:
        return self._column.pack(np.zeros(len(numbers), np.int64))

    def flushed(self) -> tuple[Numbers, Packed] | None:
        leaving, self._leaving = self._leaving, []
        if not leaving:
            return None
        packed = pa.concat_arrays([packed for _, packed in leaving])
        return np.concatenate([numbers for numbers, _ in leaving]), packed

    def drop(self, numbers: Numbers) -> None:
        """Nothing is kept."""

    def clear(self) -> None:
        self._leaving = []
        self._column.clear()

    @property
    def memory_bytes(self) -> int:
        return self._column.memory_bytes + sum(int(p.nbytes) for _, p in self._leaving)


def high_only(kind: StateKind) -> StateKind:
    """The same states without any work in the low level."""
    return StateKind(f"high only {kind.name}", partial(ForwardedTuples, kind.low), kind.high)
