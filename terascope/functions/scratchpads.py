"""Scratchpads: states of fixed size that a user's kernels work on, as machine code.

In: `Kernels`, plain Python functions that numba can compile, over a pad: an array of so many words.
Out: `ScratchpadStates`, the pads of many groups side by side, and one compiled loop over the tuples
of a vector. Paper 1, 3.2: "malloc is deprecated for low-level queries", so a state there is a
scratchpad in the group's row. Layout of a packed state: `TS`, version, 0; the length of the
aggregate's name in two bytes, the name; the pad.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from terascope.functions.base import AggregateFunction, Value, ValueMistake
from terascope.functions.object_states import user_code
from terascope.machine_code import inlined
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    bytes_of,
    packed_of,
)

Pad = NDArray[Any]
FIRST_ROOM: Final = 64


@dataclass(frozen=True)
class Kernels:
    """The parts of an aggregate as functions that numba compiles. A pad is an array of `words`;
    `initialize` and `output` run in Python, once for an aggregate and once for a group.
    """

    initialize: Callable[..., None]
    """initialize(pad, *parameters): the pad, of zeros, becomes the state of nothing."""
    iterate: Callable[..., None]
    """iterate(pad, *values): take a tuple in."""
    output: Callable[..., Value]
    """output(pad, *parameters): the value."""
    merge: Callable[..., None] | None = None
    """merge(pad, other): take another state in."""
    flushme: Callable[..., bool] | None = None
    """flushme(pad): whether a state next to the source is full and should leave."""
    words: Literal["float64", "int64", "uint8"] = "float64"


class ScratchpadStates(StateColumn):
    """The pads of one aggregate; `flushes`: full ones leave, as they do next to the source."""

    def __init__(
        self,
        aggregate: AggregateFunction,
        kernels: Kernels,
        floats: tuple[bool, ...],
        parameters: tuple[Value, ...],
        flushes: bool = False,
    ) -> None:
        self.aggregate, self.kernels, self.floats = aggregate, kernels, floats
        self.flushes = flushes and kernels.flushme is not None
        with user_code(aggregate.name):
            self._initial = initial_pad(kernels, aggregate.scratchpad, parameters)
        self._header = np.frombuffer(header_of(aggregate), np.uint8)
        self._count = 0
        self._pads = np.empty((FIRST_ROOM, len(self._initial)), self._initial.dtype)
        self._flushed = np.empty(FIRST_ROOM, np.int64)
        self._flushed_pads = np.empty_like(self._pads)
        self._full = 0

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        if not len(numbers):
            return
        self._reach(int(numbers.max()) + 1)
        columns = tuple(map(self._numbers_of, arguments, self.floats))
        with user_code(self.aggregate.name):
            step, _ = loops(self.kernels, len(columns), self.flushes)
            at = 0
            while at < len(numbers):
                at, self._full = step(
                    self._pads, numbers, columns, self._initial, at,
                    self._flushed, self._flushed_pads, self._full,
                )  # fmt: skip
                if at < len(numbers):
                    self._more_room()

    def _numbers_of(self, argument: Argument, is_float: bool) -> Pad:
        if isinstance(argument, CodedValues):
            raise ValueMistake(f"function {self.aggregate.name}: kernels take numbers only")
        return np.ascontiguousarray(argument, np.float64 if is_float else None)

    def _more_room(self) -> None:
        """Twice the room for full states."""
        room = 2 * len(self._flushed)
        self._flushed = np.resize(self._flushed, room)
        self._flushed_pads = np.resize(self._flushed_pads, (room, self._pads.shape[1]))

    def flushed(self) -> tuple[Numbers, Packed] | None:
        if not self._full:
            return None
        count, self._full = self._full, 0
        return self._flushed[:count].copy(), self._packed(self._flushed_pads[:count])

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        if not len(numbers):
            return
        self._reach(int(numbers.max()) + 1)
        others = self._unpacked(packed)
        _, join = loops(self.kernels, len(self.floats), self.flushes)
        with user_code(self.aggregate.name):
            join(self._pads, numbers, others)

    def pack(self, numbers: Numbers) -> Packed:
        if len(numbers):
            self._reach(int(numbers.max()) + 1)
        return self._packed(self._pads[numbers])

    def _packed(self, pads: Pad) -> Packed:
        count, size = len(pads), len(self._header) + self.aggregate.scratchpad
        rows = np.empty((count, size), np.uint8)
        rows[:, : len(self._header)] = self._header
        rows[:, len(self._header) :] = np.ascontiguousarray(pads).view(np.uint8)
        return packed_of(np.arange(count + 1, dtype=np.int64) * size, rows.reshape(-1))

    def _unpacked(self, packed: Packed) -> Pad:
        offsets, data = bytes_of(packed)
        size = len(self._header) + self.aggregate.scratchpad
        if (np.diff(offsets) != size).any():
            raise ValueError(f"these bytes are no packed state of {self.aggregate.name}")
        rows = data[offsets[0] : offsets[-1]].reshape(len(packed), size)
        if (rows[:, : len(self._header)] != self._header).any():
            raise ValueError(f"these bytes are no packed state of {self.aggregate.name}")
        return np.ascontiguousarray(rows[:, len(self._header) :]).view(self._initial.dtype)

    def drop(self, numbers: Numbers) -> None:
        self._pads[numbers[numbers < self._count]] = self._initial

    def clear(self) -> None:
        self._count = 0

    @property
    def memory_bytes(self) -> int:
        return self._pads.nbytes + self._flushed_pads.nbytes + self._flushed.nbytes

    def _reach(self, count: int) -> None:
        """Begin states up to this number."""
        if count <= self._count:
            return
        if count > len(self._pads):
            room = max(count, 2 * len(self._pads))
            grown = np.empty((room, self._pads.shape[1]), self._pads.dtype)
            grown[: self._count] = self._pads[: self._count]
            self._pads = grown
        self._pads[self._count : count] = self._initial
        self._count = count


# ---- pads ----------------------------------------------------------------------------------------


def header_of(aggregate: AggregateFunction) -> bytes:
    name = aggregate.name.encode()
    return b"TS\x01\x00" + struct.pack("<H", len(name)) + name


def initial_pad(kernels: Kernels, size: int, parameters: tuple[Value, ...]) -> Pad:
    """The state of nothing."""
    pad = np.zeros(size // np.dtype(kernels.words).itemsize, kernels.words)
    kernels.initialize(pad, *parameters)
    return pad


def pad_of(kernels: Kernels, held: bytes) -> Pad:
    """A pad that may be changed, of its bytes."""
    return np.frombuffer(bytearray(held), kernels.words)


def unpacked_pad(aggregate: AggregateFunction, packed: bytes) -> bytes:
    """The bytes of the pad of a packed state.

    Raises:
        ValueError: the bytes are no state of this aggregate.
    """
    header = header_of(aggregate)
    if packed[: len(header)] != header or len(packed) != len(header) + aggregate.scratchpad:
        raise ValueError(f"these bytes are no packed state of {aggregate.name}")
    return packed[len(header) :]


# ---- compiled loops ------------------------------------------------------------------------------

_compiled: dict[Hashable, tuple[Any, Any]] = {}
"""Loops by what their kernels do: every task gets functions of its own of the same code, and none
should be compiled again."""


def loops(kernels: Kernels, arity: int, flushes: bool) -> tuple[Any, Any]:
    """The loop over the tuples of a vector, and the loop over states to be merged."""
    flushme = kernels.flushme if flushes else None
    used = (kernels.iterate, kernels.merge, flushme)
    key = (arity, *(None if each is None else meaning(each) for each in used))
    if key not in _compiled:
        _compiled[key] = (
            tuple_loop(inlined(kernels.iterate), row_of(arity), inlined(flushme or never)),
            merge_loop(inlined(kernels.merge or never)),
        )
    return _compiled[key]


def never(*_: Any) -> bool:
    return False


def row_of(arity: int) -> Any:
    """The values of a tuple, as a compiled function of the columns and its place."""
    if arity == 0:
        return inlined(lambda columns, i: ())
    before, last = row_of(arity - 1), arity - 1
    return inlined(lambda columns, i: (*before(columns, i), columns[last][i]))


def tuple_loop(iterate: Any, row: Any, flushme: Any) -> Any:
    def loop(
        pads: Pad, numbers: Numbers, columns: tuple[Pad, ...], initial: Pad, start: int,
        flushed: Numbers, flushed_pads: Pad, full: int,
    ) -> tuple[int, int]:  # fmt: skip
        """Returns how far it came, and the number of full states so far."""
        for i in range(start, len(numbers)):
            if full == len(flushed):
                return i, full
            pad = pads[np.uint64(numbers[i])]
            iterate(pad, *row(columns, np.uint64(i)))
            if flushme(pad):
                flushed[full] = numbers[i]
                flushed_pads[full] = pad
                pad[:] = initial
                full += 1
        return len(numbers), full

    return inlined(loop)


def merge_loop(merge: Any) -> Any:
    def loop(pads: Pad, numbers: Numbers, others: Pad) -> None:
        for i in range(len(numbers)):
            merge(pads[np.uint64(numbers[i])], others[np.uint64(i)])

    return inlined(loop)


def meaning(value: Any) -> Hashable:
    """A key that two functions share only if they do the same."""
    if isinstance(value, FunctionType):
        code, known = value.__code__, value.__globals__
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used = [known[name] for name in code.co_names if name in known]
        return (code, value.__defaults__, *map(meaning, (*cells, *used)))
    return value if isinstance(value, Hashable) else id(value)
