"""Columns of quantile states that are buffers of values, or summaries.

In: values of groups, packed states. Out: `ValueBuffers`, the lite variant of paper 1, 4.1, which
hands its values on when the scratchpad is full, and `Summaries`, which keeps sorted entries
(terascope.sketches.quantile_entries): the heavy variant within a scratchpad, or without a limit
what the high level merges states in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    bytes_of,
    packed_of,
)
from terascope.sketches.quantile_bytes import keys_of_floats
from terascope.sketches.quantile_entries import COUNTS, ENTRY
from terascope.sketches.quantile_kernels import (
    Memory,
    Outbox,
    Work,
    fill_buffers,
    fill_summaries,
    merge_summaries,
    pack_buffers,
    pack_summaries,
)
from terascope.sketches.quantile_regions import (
    DAMAGED,
    DONE,
    MIXED,
    NEEDS_ARENA,
    NEEDS_WORK,
    Regions,
)

SCRATCHPAD: Final = 2800
"""Bytes of a state of the low level, as in paper 1."""
LEAST_SCRATCHPAD: Final = 256
NO_LIMIT: Final = 1 << 40
"""Words of a scratchpad without a limit."""
FEWEST_KEPT: Final = 32


def keys_of(argument: Argument) -> tuple[NDArray[np.int64], bool]:
    """Values as integers that have their order, and whether they are FLOATs."""
    assert not isinstance(argument, CodedValues), "quantiles are of numbers"
    if argument.dtype != np.float64:
        return np.ascontiguousarray(argument, np.int64), False
    values = np.ascontiguousarray(argument)
    keys = np.empty(len(values), np.int64)
    keys_of_floats(values, values.view(np.int64), keys)
    return keys, True


class PackedStates:
    """Packed states one behind the other, in arrays that grow."""

    def __init__(self, states: int = 64, size: int = 4096) -> None:
        self._offsets = np.zeros(states + 1, np.int64)
        self.box = Outbox(
            np.empty(size, np.uint8), self._offsets[1:], np.empty(states, np.int64),
            np.zeros(1, np.int64),
        )  # fmt: skip

    @property
    def count(self) -> int:
        return int(self.box.count[0])

    def grow(self, size: int) -> None:
        """Make room for one more state of so many bytes, and for many of the size of others."""
        box, count = self.box, self.count
        used = int(self._offsets[count])
        data, owners = box.data, box.owners
        if count == len(owners):
            self._offsets = np.concatenate([self._offsets, np.empty_like(owners)])
            owners = np.concatenate([owners, np.empty_like(owners)])
        if used + size > len(data):
            data = np.empty(max(2 * len(data), used + 2 * size), np.uint8)
            data[:used] = box.data[:used]
        self.box = Outbox(data, self._offsets[1:], owners, box.count)

    def add(self, owners: Numbers, packed: Packed) -> None:
        """Put packed states behind those that are there."""
        offsets, data = bytes_of(packed)
        for owner, start, end in zip(owners, offsets[:-1], offsets[1:], strict=True):
            self.grow(int(end - start))
            box, count = self.box, self.count
            begin = self._offsets[count]
            box.ends[count], box.owners[count] = begin + end - start, owner
            box.data[begin : begin + end - start] = data[start:end]
            box.count[0] = count + 1

    def taken(self) -> tuple[Numbers, Packed]:
        """The numbers and bytes of all states. The arrays are handed over."""
        offsets = self._offsets[: self.count + 1]
        return self.box.owners[: self.count], packed_of(offsets, self.box.data[: offsets[-1]])


class QuantileColumn(StateColumn):
    """What the columns of all variants share: memory, room for work, and the outbox."""

    def __init__(self, eps: float, scratchpad: int | None) -> None:
        if scratchpad is not None and scratchpad < LEAST_SCRATCHPAD:
            raise ValueError(
                f"a scratchpad of quantiles has at least {LEAST_SCRATCHPAD} bytes, not {scratchpad}"
            )
        self._eps = eps
        self._most = NO_LIMIT if scratchpad is None else scratchpad // 8
        self._keep = max(FEWEST_KEPT, int(np.ceil(1.5 / eps)))
        if scratchpad is not None:
            self._keep = min(self._keep, self._most // 4)
        self._regions = Regions(self._most)
        self._report = np.zeros(4, np.int64)
        self._work = _work(512)
        self._leaving = PackedStates()
        self._floats: bool | None = None

    @abstractmethod
    def _fill(self, begin: int, numbers: Numbers, keys: NDArray[np.int64]) -> None: ...

    @abstractmethod
    def _pack(self, begin: int, numbers: Numbers, states: PackedStates) -> None: ...

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        keys, floats = keys_of(arguments[0])
        if self._floats not in (None, floats):
            raise ValueError(_MIXED)
        self._floats = floats
        numbers = np.ascontiguousarray(numbers, np.int64)
        self._regions.begin(numbers)
        self._until_done(
            len(numbers), lambda begin: self._fill(begin, numbers, keys), self._leaving
        )

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, data = bytes_of(packed)
        numbers = np.ascontiguousarray(numbers, np.int64)
        self._regions.begin(numbers)
        self._report[3] = -1 if self._floats is None else self._floats

        def merge(begin: int) -> None:
            merge_summaries(
                begin, numbers, offsets, data, self._memory, self._work, self._leaving.box,
                self._eps, self._keep, self._most, self._report,
            )  # fmt: skip

        self._until_done(len(numbers), merge, self._leaving)
        self._floats = None if self._report[3] < 0 else bool(self._report[3])

    def pack(self, numbers: Numbers) -> Packed:
        numbers = np.ascontiguousarray(numbers, np.int64)
        self._regions.begin(numbers)
        states = PackedStates(len(numbers) + 1, 64 * len(numbers) + 4096)
        self._until_done(len(numbers), lambda begin: self._pack(begin, numbers, states), states)
        return states.taken()[1]

    def flushed(self) -> tuple[Numbers, Packed] | None:
        if not self._leaving.count:
            return None
        leaving = self._leaving
        self._leaving = PackedStates(len(leaving.box.owners), len(leaving.box.data))
        return leaving.taken()

    def drop(self, numbers: Numbers) -> None:
        self._regions.drop(numbers)

    def clear(self) -> None:
        self._regions.clear()
        self._leaving = PackedStates()
        self._floats = None

    @property
    def memory_bytes(self) -> int:
        held = (*self._work, self._leaving.box.data)
        return self._regions.memory_bytes + sum(int(array.nbytes) for array in held)

    @property
    def _memory(self) -> Memory:
        held = self._regions
        return Memory(held.meta, held.meta.view(np.float64), held.arena)

    @property
    def _eps_bytes(self) -> NDArray[np.uint8]:
        return np.array([self._eps]).view(np.uint8)

    def _until_done(self, count: int, call: Callable[[int], None], states: PackedStates) -> None:
        """Call a kernel until it has gone through all, giving it what it lacks."""
        done = 0
        while done < count:
            call(done)
            done, status, amount = (int(number) for number in self._report[:3])
            if status == NEEDS_ARENA:
                self._regions.grow()
            elif status == NEEDS_WORK:
                self._work = _work(2 * amount)
            elif status == DAMAGED:
                raise ValueError("the bytes are no state of approx_quantile, or are damaged")
            elif status == MIXED:
                raise ValueError(_MIXED)
            elif status != DONE:
                states.grow(amount)


_MIXED: Final = "a state of FLOATs and a state of integers cannot be merged"


def _work(size: int) -> Work:
    """Room for the work on a state of so many values and entries."""
    eps = np.zeros(1)
    left, right, made = (np.empty(ENTRY * size, np.int64) for _ in range(3))
    counts = np.zeros(COUNTS, np.int64)
    return Work(np.empty(size, np.int64), left, right, made, counts, eps, eps.view(np.uint8))


class LowColumn(QuantileColumn):
    """A column that takes values only: packed states that are merged into it leave at once."""

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        merged = Summaries(self._eps)
        merged.merge(numbers, packed)
        owners = np.unique(np.asarray(numbers))
        self._leaving.add(owners, merged.pack(owners))


class ValueBuffers(LowColumn):
    """States that are values in the order of arrival; a full one leaves."""

    def __init__(self, eps: float, scratchpad: int = SCRATCHPAD) -> None:
        super().__init__(eps, scratchpad)

    def _fill(self, begin: int, numbers: Numbers, keys: NDArray[np.int64]) -> None:
        fill_buffers(
            begin, numbers, keys, self._memory, self._leaving.box, self._eps_bytes,
            int(bool(self._floats)), self._most, self._report,
        )  # fmt: skip

    def _pack(self, begin: int, numbers: Numbers, states: PackedStates) -> None:
        pack_buffers(
            begin, numbers, self._memory, states.box, self._eps_bytes, int(bool(self._floats)),
            self._most, self._report,
        )  # fmt: skip


class Summaries(QuantileColumn):
    """States that are sorted entries and a few values behind them. `exact`: they are never
    compressed, so that nothing but the scratchpad limits them.
    """

    def __init__(self, eps: float, scratchpad: int | None = None, *, exact: bool = False) -> None:
        super().__init__(eps, scratchpad)
        if exact:
            self._keep = NO_LIMIT

    def _fill(self, begin: int, numbers: Numbers, keys: NDArray[np.int64]) -> None:
        fill_summaries(
            begin, numbers, keys, self._memory, self._work, self._leaving.box, self._eps,
            self._keep, int(bool(self._floats)), self._most, self._report,
        )  # fmt: skip

    def _pack(self, begin: int, numbers: Numbers, states: PackedStates) -> None:
        pack_summaries(
            begin, numbers, self._memory, self._work, states.box, self._eps, self._keep,
            int(bool(self._floats)), self._most, self._report,
        )  # fmt: skip
