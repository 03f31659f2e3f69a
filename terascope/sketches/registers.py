"""Sketches that are registers: what HyperLogLog and the sketch of Flajolet and Martin share.

In: values. Out: for each state a sketch by which the number of different values is estimated.

Both sketches are a few registers that depend on nothing but the set of hashes, and are merged
register by register. A state begins as that set itself, which is smaller and more exact, and gets
registers when the set has grown. A packed state is the header, the length of the state (32 bits),
the number of tuples (64 bits), and a sketch of its own form.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from terascope.sketches.base import (
    Argument,
    Numbers,
    Packed,
    StateColumn,
)
from terascope.sketches.murmur import Hashes, ValueHashes
from terascope.sketches.packed_form import Data, Offsets, checked, refusal
from terascope.sketches.theta import FAMILY, NAME, SKETCH, VARIANTS
from terascope.sketches.values import count_tuples
from terascope.sketches.word_lists import FIRST, Words, enlarged
from terascope.sketches.word_sets import BOUND, TUPLES, WordSets

DENSE: Final = 1
"""The bound of a set that has become registers: no word is below it."""


class RegisterSets(WordSets):
    """Sets that become blocks of registers. FIRST is then the place of the block."""

    def __init__(self, most: int, width: int, dtype: Any) -> None:
        self._width_of_block, self._dtype = width, dtype
        super().__init__(most)

    def clear(self) -> None:
        super().clear()
        self.blocks: NDArray[Any] = np.zeros((0, self._width_of_block), self._dtype)
        self._used = 0
        self._spare: list[int] = []
        self.grown: list[tuple[int, Words]] = []
        """The sets that became registers, and their words, which no register has yet."""

    def reduce_set(self, number: int) -> None:
        _, words = self.lists(np.array([number]))
        self.make_dense(number)
        self.grown.append((number, words))

    def make_dense(self, number: int) -> None:
        """Give a set registers, which are 0; its words are dropped."""
        tuples = self.rows[number, TUPLES]
        super().drop(np.array([number]))
        if self._spare:
            block = self._spare.pop()
            self.blocks[block] = 0
        else:
            block = self._used
            self._used += 1
            if block == len(self.blocks):
                self.blocks = enlarged(self.blocks, 2 * block)
        self.rows[number, FIRST] = block
        self.rows[number, TUPLES] = tuples
        self.rows[number, BOUND] = DENSE

    def drop(self, numbers: Numbers) -> None:
        self.reach(numbers)
        rows = self.rows[numbers]
        self._spare += np.unique(rows[rows[:, BOUND] == DENSE, FIRST]).tolist()
        super().drop(numbers)

    @property
    def memory_bytes(self) -> int:
        return super().memory_bytes + self.blocks.nbytes


class RegisterSketches(StateColumn):
    """The base of both."""

    most: ClassVar[int]
    width: ClassVar[int]
    dtype: ClassVar[Any]

    def __init__(self) -> None:
        self._hashes = ValueHashes()
        self._sets = RegisterSets(self.most, self.width, self.dtype)

    @abstractmethod
    def words(self, low: Hashes, high: Hashes) -> Words:
        """All that registers depend on, as positive words."""

    @abstractmethod
    def fold(self, numbers: Numbers, words: Words) -> None:
        """Put words into the registers of those states that have some."""

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        self._include(numbers, self.words(*self._hashes.of(arguments[0])))
        count_tuples(numbers, TUPLES, self._sets.rows)

    def _include(self, numbers: Numbers, words: Words) -> None:
        self._sets.include(numbers, words)
        for number, early in self._sets.grown:
            self.fold(np.full(len(early), number), early)
        self._sets.grown.clear()
        if len(self._sets.blocks):
            self.fold(numbers, words)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        starts, data = checked(packed, FAMILY, NAME, VARIANTS, SKETCH)
        counts = np.zeros(len(packed), np.int64)
        wrong = self.measure(starts, data, counts)
        if wrong >= 0:
            state = data[starts[wrong] : starts[wrong + 1]].tobytes()
            raise ValueError(refusal(state, FAMILY, NAME))
        self._sets.reach(numbers)
        sparse, dense = np.flatnonzero(counts >= 0), np.flatnonzero(counts < 0)
        owners = np.repeat(numbers[sparse], counts[sparse])
        found = np.empty(len(owners), np.int64)
        self.read_sets(starts[sparse], counts[sparse], data, found)
        self._include(owners, found)
        for i in dense.tolist():
            self._merge_block(int(numbers[i]), data[starts[i] : starts[i + 1]])
        tuples = [data[at + 8 : at + 16].view(np.int64)[0] for at in starts[:-1]]
        np.add.at(self._sets.rows[:, TUPLES], numbers, np.array(tuples, np.int64))

    @abstractmethod
    def measure(self, starts: Offsets, data: Data, counts: Words) -> int:
        """The number of words of each packed state, -1 for one of registers; returns the first that
        is damaged, or -1.
        """

    @abstractmethod
    def read_sets(self, starts: Offsets, counts: Words, data: Data, found: Words) -> None:
        """The words of packed states that have such."""

    @abstractmethod
    def read_block(self, state: Data) -> NDArray[Any]:
        """The registers of a packed state."""

    @abstractmethod
    def join(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """The registers of both."""

    def _merge_block(self, number: int, state: Data) -> None:
        early = np.zeros(0, np.int64)
        if self._sets.rows[number, BOUND] != DENSE:
            _, early = self._sets.lists(np.array([number]))
            self._sets.make_dense(number)
        block = self._sets.rows[number, FIRST]
        self._sets.blocks[block] = self.join(self._sets.blocks[block], self.read_block(state))
        self.fold(np.full(len(early), number), early)

    def pack(self, numbers: Numbers) -> Packed:
        offsets, words = self._sets.sorted_sets(numbers)
        for number, early in self._sets.grown:  # sets that were only now seen to be large
            self.fold(np.full(len(early), number), early)
        self._sets.grown.clear()
        rows = self._sets.rows[numbers]
        dense = rows[:, BOUND] == DENSE
        return self.write(offsets, words, np.where(dense, rows[:, FIRST], -1), rows[:, TUPLES])

    @abstractmethod
    def write(self, offsets: Offsets, words: Words, blocks: Words, tuples: Words) -> Packed:
        """Packed states: of the words of a set, or of the registers of block blocks[i] where that
        is not -1.
        """

    def drop(self, numbers: Numbers) -> None:
        self._sets.drop(numbers)

    def clear(self) -> None:
        self._sets.clear()

    @property
    def memory_bytes(self) -> int:
        return self._sets.memory_bytes + self._hashes.memory_bytes
