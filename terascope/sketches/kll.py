"""KLL sketches of Apache DataSketches: the modern alternative for quantiles.

In: values of groups, packed states. Out: `KllSketches`, the column that merges them, and
`KllState`, a packed state that was read. The low level keeps plain buffers of values
(terascope.sketches.quantile_columns).

A state begins as an exact list of values with their counts, of the same bytes as any other exact
state (terascope.sketches.quantile_bytes). When it has more different values than fit 1 KB, about
50, it becomes a sketch:

    b"TK", version 1, 0, eps as float64, the number of NaNs as int64, the sketch

The sketch is a kll_doubles_sketch, byte for byte as DataSketches in Spark and elsewhere writes it.
Integers are kept as float64. The library passes NaNs over, so they are counted beside the sketch;
they are the largest values.

A sketch keeps a random choice of values. Of its answers 99 in 100 are wrong by at most the stated
part of all ranks, whatever was merged in whatever order; k is the smallest one with which that part
is at most eps.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from terascope.sketches.base import Argument, Numbers, Packed, StateColumn, packed_states
from terascope.sketches.quantile_columns import Summaries
from terascope.sketches.quantile_reading import Quantiles, read_quantiles

Sketch: TypeAlias = Any
"""A kll_doubles_sketch."""

FAMILY: Final = b"TK"
_HEADER: Final = struct.Struct("<2sBBdq")
_PREAMBLE: Final = struct.Struct("<BBBBHBxQHBx")
"""How a sketch of several values begins: kind, version, family, flags, k, m, n, smallest k, levels.
"""
_VERSION: Final = 1
LEAST_K, MOST_K = 8, 65535
EXACT_BYTES: Final = 1024
"""The scratchpad of the exact list that a state begins with."""
DAMAGED: Final = "the bytes are no KLL state of approx_quantile, or are damaged"


@lru_cache
def k_for(eps: float) -> int:
    """The smallest k whose rank error is at most eps; the largest there is if none has."""
    error = datasketches.kll_doubles_sketch.get_normalized_rank_error
    low, high = LEAST_K, MOST_K
    while low < high:
        middle = (low + high) // 2
        if error(middle, False) <= eps:
            high = middle
        else:
            low = middle + 1
    return low


# ---- one state -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class KllState:
    """A sketch, and the number of NaNs beside it."""

    eps: float
    nans: int
    sketch: Sketch

    def to_bytes(self) -> bytes:
        head = _HEADER.pack(FAMILY, _VERSION, 0, self.eps, self.nans)
        return head + bytes(self.sketch.serialize())

    def with_values(self, values: NDArray[np.float64]) -> KllState:
        """The same state after more values; the sketch is changed in place."""
        numbers = values[~np.isnan(values)]
        if len(numbers):
            self.sketch.update(np.ascontiguousarray(numbers))
        return KllState(self.eps, self.nans + len(values) - len(numbers), self.sketch)

    def merged(self, other: KllState) -> KllState:
        """The same state after another; the sketch is changed in place."""
        self.sketch.merge(other.sketch)
        return KllState(max(self.eps, other.eps), self.nans + other.nans, self.sketch)

    def quantiles(self) -> Quantiles:
        """The estimates of the sketch, and its error once it has given values up."""
        kept, counts = retained(self.sketch)
        values, places = np.unique(np.where(kept == 0, 0.0, kept), return_inverse=True)
        weights = np.bincount(places, counts, len(values)).astype(np.int64)
        if self.nans:
            values, weights = np.append(values, np.nan), np.append(weights, self.nans)
        upto = np.cumsum(weights)
        unsure = np.zeros(len(upto), np.int64)
        count = int(upto[-1]) if len(upto) else 0
        error = math.ceil(self._error * self.sketch.n)
        return Quantiles(values, upto - weights, unsure, upto, count, error)

    @property
    def _error(self) -> float:
        estimates = self.sketch.is_estimation_mode()
        return float(self.sketch.normalized_rank_error(False)) if estimates else 0.0


def new_kll(eps: float) -> KllState:
    return KllState(eps, 0, datasketches.kll_doubles_sketch(k_for(eps)))


def is_kll(state: bytes) -> bool:
    return state[:2] == FAMILY


def read_kll(state: bytes) -> KllState:
    """Read a packed sketch; ValueError when it is none."""
    if len(state) < _HEADER.size or state[2:4] != bytes([_VERSION, 0]) or not is_kll(state):
        raise ValueError(DAMAGED)
    _, _, _, eps, nans = _HEADER.unpack_from(state)
    if not 0 < eps <= 0.5 or not 0 <= nans < 1 << 61:
        raise ValueError(DAMAGED)
    return KllState(eps, nans, read_sketch(state[_HEADER.size :]))


def read_sketch(data: bytes) -> Sketch:
    """Read the bytes of DataSketches; ValueError when they are damaged. The library checks lengths,
    but not that k is possible, the levels are in order, and they hold as many values as it says.
    """
    if len(data) >= _PREAMBLE.size and data[0] == 5:
        levels = _PREAMBLE.unpack_from(data)[8]
        starts = np.frombuffer(data[_PREAMBLE.size : _PREAMBLE.size + 4 * levels], "<u4")
        if len(starts) != levels or not levels or (np.diff(starts.astype(np.int64)) < 0).any():
            raise ValueError(DAMAGED)
    try:
        sketch = datasketches.kll_doubles_sketch.deserialize(data)
        error = sketch.normalized_rank_error(False)
        if error < 1 and int(retained(sketch)[1].sum()) == sketch.n:
            return sketch
    except (IndexError, RuntimeError, ValueError, MemoryError) as mistake:
        raise ValueError(DAMAGED) from mistake
    raise ValueError(DAMAGED)


def retained(sketch: Sketch) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The values that a sketch keeps, and how many values each stands for: 2^l on level l. They are
    read from its bytes, since the library's iterator gives values of a sketch without any on level
    0, as Spark makes them, the weight 1.
    """
    if sketch.n <= 1:
        only = np.array([sketch.get_min_value()] if sketch.n else [], np.float64)
        return only, np.ones(len(only), np.int64)
    data = sketch.serialize()
    levels = _PREAMBLE.unpack_from(data)[8]
    starts = np.frombuffer(data, "<u4", levels, _PREAMBLE.size).astype(np.int64)
    first = _PREAMBLE.size + 4 * levels + 16  # behind the smallest and the largest value
    values = np.frombuffer(data, "<f8", sketch.num_retained, first)
    sizes = np.diff(np.append(starts - starts[0], len(values)))
    return values, np.repeat(np.int64(1) << np.arange(levels), sizes)


def quantiles_of(state: bytes) -> Quantiles:
    """The answers of a packed state of either family."""
    return _kept(state) if is_kll(state) else read_quantiles(state)


@lru_cache(maxsize=8)
def _kept(state: bytes) -> Quantiles:
    return read_kll(state).quantiles()


def sketch_bytes(state: bytes) -> bytes:
    """The bytes of DataSketches of a packed state; a sketch is made of an exact one. ValueError for
    a summary, whose values are not known.
    """
    if is_kll(state):
        return bytes(read_kll(state).sketch.serialize())
    held = read_quantiles(state)
    made = new_kll(held.eps).with_values(_values_of(held))
    return bytes(made.sketch.serialize())


def state_of_sketch(data: bytes) -> bytes:
    """The packed state of a kll_doubles_sketch that Spark or DataSketches made."""
    sketch = read_sketch(data)
    return KllState(float(sketch.normalized_rank_error(False)), 0, sketch).to_bytes()


def _values_of(held: Quantiles) -> NDArray[np.float64]:
    """All values of an exact state, as often as they occur."""
    if held.error:
        raise ValueError(
            "a Greenwald-Khanna summary cannot become a KLL sketch; name the strategy where the"
            " state is made: approx_quantile(x) WITH strategy 'kll'"
        )
    return np.repeat(held.values.astype(np.float64), held.upto - held.below)


# ---- many states ---------------------------------------------------------------------------------


class KllSketches(StateColumn):
    """States that are exact lists while they are small, and sketches afterwards. With `exact_bytes`
    of None they only become sketches when one is merged in: for states of an unknown family.
    """

    def __init__(self, eps: float, exact_bytes: int | None = EXACT_BYTES) -> None:
        self._eps = eps
        self._lists = Summaries(eps, exact_bytes, exact=exact_bytes is not None)
        self._sketches: dict[int, KllState] = {}

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        self._lists.iterate(numbers, arguments)
        self._take_full()

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        sketches = pc.starts_with(packed, FAMILY).to_numpy(zero_copy_only=False)
        for place in np.flatnonzero(sketches):
            number, state = int(numbers[place]), read_kll(packed[int(place)].as_py())
            held = self._sketches.get(number)
            self._sketches[number] = held.merged(state) if held else state
        if sketches.any():
            numbers = np.asarray(numbers)[~sketches]
            packed = packed.filter(pa.array(~sketches))
        self._lists.merge(numbers, packed)
        self._take_full()

    def _take_full(self) -> None:
        """The lists that became too long go into sketches."""
        leaving = self._lists.flushed()
        if leaving is None:
            return
        for number, state in zip(leaving[0].tolist(), leaving[1].to_pylist(), strict=True):
            self._sketches[number] = self._with(number, state)

    def _with(self, number: int, state: bytes) -> KllState:
        """The sketch of a state with an exact list taken in."""
        held = self._sketches.get(number) or new_kll(self._eps)
        return held.with_values(_values_of(read_quantiles(state)))

    def pack(self, numbers: Numbers) -> Packed:
        packed = self._lists.pack(numbers)
        places = [i for i, n in enumerate(numbers.tolist()) if n in self._sketches]
        if not places:
            return packed
        made = []
        for place in places:
            number = int(numbers[place])
            self._sketches[number] = self._with(number, packed[place].as_py())
            made.append(self._sketches[number].to_bytes())
        self._lists.drop(numbers[places])
        order = np.arange(len(numbers))
        order[places] = len(numbers) + np.arange(len(places))
        return pa.concat_arrays([packed, packed_states(made)]).take(pa.array(order))

    def drop(self, numbers: Numbers) -> None:
        self._lists.drop(numbers)
        if self._sketches:
            for number in numbers.tolist():
                self._sketches.pop(number, None)

    def clear(self) -> None:
        self._lists.clear()
        self._sketches = {}

    @property
    def memory_bytes(self) -> int:
        kept = sum(200 + 8 * state.sketch.num_retained for state in self._sketches.values())
        return int(self._lists.memory_bytes + kept)
