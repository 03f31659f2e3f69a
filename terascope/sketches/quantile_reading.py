"""Answers from quantile states.

In: bytes of terascope.sketches.quantile_bytes. Out: `Quantiles`, a state that can be asked for the
value at a rank, the rank of a value, and how wrong these may be.

The state gives for each of some values how many are surely smaller, and up to how many more may be
(terascope.sketches.quantile_entries). From a KLL sketch (terascope.sketches.kll) it is the
estimate, and the error that the sketch stays within in 99 of 100 cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.sketches.quantile_bytes import (
    BUFFER,
    FLOATS,
    content_of,
    floats_of_keys,
    get_buffer,
    get_entries,
)
from terascope.sketches.quantile_entries import COUNTS, ENTRY, counted


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Values in order, without repetition. Arrays have an element for each."""

    values: NDArray[Any]
    """int64 or float64; NaN is the largest."""
    below: NDArray[np.int64]
    """How many values are surely smaller .."""
    unsure: NDArray[np.int64]
    """.. and how many more may be."""
    upto: NDArray[np.int64]
    """How many values are surely not larger."""
    count: int
    sampling_error: int = 0
    """An error in ranks that comes on top."""
    eps: float = 0.0
    """The eps that the state was made with; 0: it is not known."""

    @property
    def error(self) -> int:
        """The number of ranks that an answer is wrong by at most."""
        if not self.count:
            return 0
        before = np.concatenate([[0], self.upto[:-1]])
        widest = int((self.below + self.unsure - before).max())
        return (widest + 1) // 2 + self.sampling_error

    def percentile(self, percent: float) -> int | float | None:
        """A value whose rank is near max(1, ceil(percent / 100 * n)); that of this rank if the
        state is exact.
        """
        if not self.count:
            return None
        rank = max(1, math.ceil(percent / 100.0 * self.count))
        wrong = np.maximum(self.below + self.unsure + 1 - rank, rank - self.upto)
        found = self.values[int(np.argmin(np.maximum(wrong, 0)))].item()
        return found if isinstance(found, int) else float(found)

    def ranks(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """How many values are not larger than each of these, halfway between the bounds."""
        if not self.count:
            return np.zeros(len(values))
        place = _places(self.values, values) - 1  # the last value that is not larger
        least = np.where(place < 0, 0, self.upto[place])
        behind = np.minimum(place + 1, len(self.values) - 1)
        most = np.where(place + 1 < len(self.values), (self.below + self.unsure)[behind], least)
        equal = (place >= 0) & _same(self.values[place], values)
        own = self.upto[place] + self.unsure[place]
        return (least + np.where(equal, np.minimum(most, own), most)) / 2.0

    def distance(self, other: Quantiles) -> float | None:
        """The Kolmogorov-Smirnov distance: the largest difference between the shares of values that
        are not larger than some value. None: one of the two has no values.
        """
        if not self.count or not other.count:
            return None
        places = np.concatenate([self.values, other.values])
        apart = self.ranks(places) / self.count - other.ranks(places) / other.count
        return float(np.abs(apart).max())


def _places(held: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """How many held values are not larger than each value; NaN is the largest, as numpy has it."""
    return np.searchsorted(held, values, side="right")


def _same(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((left == right) | ((left != left) & (right != right)))


@lru_cache(maxsize=8)
def read_quantiles(state: bytes) -> Quantiles:
    """Read a packed state; ValueError when it is none. The last few are kept: a query often has
    several answers from one state.
    """
    data = np.frombuffer(state, np.uint8)
    room = len(data) + 1
    raw, entries = np.empty(room, np.int64), np.empty(ENTRY * room, np.int64)
    count = int(read_entries(data, len(data), raw, entries, np.zeros(COUNTS, np.int64)))
    eps = float(data[4:12].view(np.float64)[0]) if count >= 0 else 0.0
    if not 0 < eps <= 0.5:
        raise ValueError("the bytes are no state of approx_quantile, or are damaged")
    found = entries[: ENTRY * count].reshape(count, ENTRY)
    keys, copies, hidden, unsure = (found[:, k].copy() for k in range(ENTRY))
    upto = np.cumsum(copies + hidden)
    values = floats_of_keys(keys) if data[3] & FLOATS else keys
    return Quantiles(values, upto - copies, unsure, upto, int(upto[-1]) if count else 0, eps=eps)


@compiled_for(column(np.uint8), INTEGER, output(np.int64), output(np.int64), output(np.int64))
def read_entries(data: Any, end: Any, raw: Any, entries: Any, counts: Any) -> Any:
    """The entries of one packed state; -1 when it is none."""
    content = content_of(data, 0, end)
    if content < 0:
        return np.int64(-1)
    if content == BUFFER:
        return counted(raw, get_buffer(data, 0, end, raw), entries, counts)
    return get_entries(data, 0, end, entries)
