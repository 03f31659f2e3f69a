"""A column of states: the states of one aggregate, of many groups at once (paper 1, 3.2).

In: nothing. Out: `StateColumn`, what a table keeps beside its rows for an aggregate whose state is
more than one word, and `StateKind`, which an aggregate declares (terascope.functions.slots) and
which makes such columns: one for the table next to the source (the sub-aggregate) and one for
states that are merged (the super-aggregate).

States are numbered from 0. A column takes vectors: the number of each tuple's state, and the values
of the tuple. On its way between tables, tasks and files a state is *packed*: bytes that say by
themselves what they are, so that a packed state is also a value of a query, of type BINARY.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
"""The numbers of states."""
Packed: TypeAlias = pa.LargeBinaryArray
"""Packed states, none of them NULL."""


class ValueDictionary(Protocol):
    """The values that codes stand for; 0 is NULL."""

    def values(self, codes: Any = None) -> pa.Array:
        """The values of some codes, of all without."""
        ...

    def hashes(self, codes: Any) -> NDArray[np.uint64]:
        """A hash of the value of each code, the same in every process."""
        ...


@dataclass(frozen=True)
class CodedValues:
    """Values that are no numbers, such as addresses and text: a code for each."""

    codes: NDArray[np.int32]
    dictionary: ValueDictionary

    def __len__(self) -> int:
        return len(self.codes)


Argument: TypeAlias = NDArray[Any] | CodedValues
"""The values of one argument, never NULL: int64, float64, or codes."""


class StateColumn(ABC):
    """The states of one aggregate of many groups."""

    finishes: bool = False
    """A column next to the source packs its states as the super-aggregate's column would, so that a
    group that one task owns needs no merge."""

    @abstractmethod
    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        """Take tuples in: tuple i belongs to state numbers[i], and has the values arguments[k][i].
        A number that is larger than all before begins empty states up to it (INITIALIZE).
        """

    @abstractmethod
    def merge(self, numbers: Numbers, packed: Packed) -> None:
        """Take packed states in: packed[i] into state numbers[i], in this order."""

    @abstractmethod
    def pack(self, numbers: Numbers) -> Packed:
        """The states of some numbers, as bytes (OUTPUT). They stay as they are."""

    def flushed(self) -> tuple[Numbers, Packed] | None:
        """The states that were full since the last call (FLUSHME): the number of each and what it
        held; it is empty again. One number may occur several times. None: no state was full.
        """
        return None

    @abstractmethod
    def drop(self, numbers: Numbers) -> None:
        """Free the memory of some states (DESTROY); they are empty afterwards."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all states; numbers begin at 0 again."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int: ...


@dataclass(frozen=True)
class Levels:
    """The cores of the low and the high level."""

    low_cores: float | None = None
    """The cores of the low level for each core of the high level; None: both levels run on the same
    cores."""
    why: str = "both levels run on the same cores"

    @property
    def shares_core(self) -> bool:
        return self.low_cores is None

    def cost(self, low: float, high: float) -> float:
        """The time a tuple of the busier level, from the processor time of each. On the same cores
        the times add up.
        """
        return low + high if self.low_cores is None else max(low, high * self.low_cores)


@dataclass(frozen=True)
class Traffic:
    """The tuples of an aggregation, as a sample of its source or its running tasks tell."""

    tuples: float
    """The tuples of an epoch."""
    groups: float
    """The groups of an epoch."""
    exponent: float
    """The Zipf exponent of the sizes of groups; 0: all are of one size."""
    levels: Levels = Levels()

    @property
    def per_group(self) -> float:
        return self.tuples / max(1.0, self.groups)


FORCED: Final = "the query says so"


@dataclass(frozen=True)
class StateKind:
    """The columns that keep an aggregate of some parameters. Two are equal when their names are."""

    name: str
    """All that the states depend on, such as `gk_quantile(0.01) lite`; it names the layout of
    stored states."""
    low: Callable[[], StateColumn] = field(compare=False, repr=False)
    """Makes the column of a table next to the source: a class, or functools.partial of one, so that
    it travels to other processes. Its packed states are what `high` merges."""
    high: Callable[[], StateColumn] = field(compare=False, repr=False)
    """Makes the column that merges packed states, of `low` or its own, in any order and any number
    of levels, and packs what queries see."""
    from_states: bool = field(default=False, compare=False)
    """The argument has packed states: tuples are merged, not iterated."""
    strategy: str = field(default="", compare=False)
    """How low and high level work: columns of one name and different strategies pack states that
    any of them merges."""
    why: str = field(default="", compare=False)
    """The reason for the strategy; FORCED: the query, or a setting, names it."""
    choose: Callable[[Traffic], StateKind] | None = field(default=None, compare=False, repr=False)
    """Gives the same kind with the best strategy for some traffic; None: there is no choice, or it
    was made."""

    def __str__(self) -> str:
        return self.name

    @property
    def merging(self) -> StateKind:
        """The kind that takes packed states of this kind as its argument."""
        return StateKind(f"merge {self.name}", self.high, self.high, from_states=True)


# ---- packed states as arrays ---------------------------------------------------------------------


def bytes_of(packed: Packed) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets and bytes: state i is bytes[offsets[i]:offsets[i + 1]]. No copy is made."""
    _, offsets, data = packed.buffers()
    if not len(packed):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    starts = np.frombuffer(offsets, np.int64)[packed.offset : packed.offset + len(packed) + 1]
    held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return starts, held


def packed_of(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> Packed:
    """The other way round; offsets begin with 0."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def packed_states(states: Sequence[bytes]) -> Packed:
    return pa.array(states, pa.large_binary())
