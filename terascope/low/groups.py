"""Groups on their way from the tables of the low level to results (paper 1, section 3.2: partial
aggregates go up).

In: rows of tables, a block for each epoch. Out: nothing yet; this is what the exchange, the merge
and the results say to each other about groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.low.dictionary import Dictionary
from terascope.low.kernels import column, compiled, output
from terascope.low.slots import Shape
from terascope.plan.rel import Field
from terascope.types import Type

Rows: TypeAlias = NDArray[np.int64]
"""Rows of a Shape without epoch word, int64[n, stride]."""


@dataclass(frozen=True)
class GroupFields:
    """A low aggregation from outside: its columns, and which of the keys is its epoch."""

    keys: tuple[Field, ...]
    slots: tuple[Field, ...]
    shape: Shape
    epoch: int | None = None
    """The place among the keys of the one that blocks hold apart; the others are codes."""

    def __post_init__(self) -> None:
        if self.shape.with_epoch or len(self.slots) != len(self.shape.slots):
            raise ValueError(f"{self.shape} is not the shape of slots {self.slots}")
        if len(self.coded) != self.shape.keys:
            raise ValueError(f"{self.shape} is not the shape of keys {self.keys}")

    @property
    def coded(self) -> tuple[Field, ...]:
        """The keys that stand in a row, as codes."""
        return tuple(f for i, f in enumerate(self.keys) if i != self.epoch)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.keys, *self.slots)

    @property
    def key_types(self) -> tuple[Type, ...]:
        return tuple(f.type for f in self.coded)


@dataclass(frozen=True)
class Block:
    """Groups of one epoch."""

    epoch: int | None
    """None is the epoch NULL, and the epoch of an aggregation that has none."""
    rows: Rows


@dataclass(frozen=True)
class Groups:
    """Blocks whose codes are those of the same dictionaries, one for each coded key."""

    dictionaries: Sequence[Dictionary]
    blocks: Iterator[Block]


def key_codes(rows: Rows, shape: Shape, key: int) -> NDArray[np.int32]:
    """The codes of a key, as a view of the rows: no copy is made."""
    halves = rows.view(np.int32)
    place = 2 * (shape.first_word + key // 2)
    # The earlier key of a word is its upper half; the machine is little-endian.
    return halves[:, place + (1 if key % 2 == 0 else 0)]


def rows_at(rows: Rows, places: NDArray[np.int32]) -> Rows:
    """Some of the rows, in the order of their places."""
    out = np.empty((len(places), rows.shape[1]), np.int64)
    pick_rows(rows, places, out)
    return out


@compiled(column(np.int64, 2), column(np.int32), output(np.int64, 2))
def pick_rows(rows: Rows, places: NDArray[np.int32], out: Rows) -> None:
    """Numpy takes several times as long."""
    for i in range(len(places)):
        for k in range(rows.shape[1]):
            out[i, k] = rows[np.uint32(places[i]), k]


def largest(values: NDArray[np.int64]) -> int:
    """The size of the largest number, whatever its sign."""
    return max(abs(int(values.max())), abs(int(values.min())))
