"""The Shannon entropy of values, as columns of states.

In: values. Out: for each state the entropy of its values in bits: exact while it has no more than
1024 different ones, else an estimate.

A state begins as a list of pairs, the hash of a value and its count. Hashes of 63 bits take the
place of values. Pairs of the same hash are added up when the list is twice as long as it was after
the last time.

A state of more different values is a sketch of Clifford and Cosma ("A simple sketching algorithm
for entropy estimation over streaming data", 2013): 512 sums, of counts times random numbers. The
random number of a value and a sum is a function of the hash, of the stable distribution of exponent
1 that is skewed as far as possible: then E exp(t X) = t^t, so that exp(sum / n) has the mean
exp(-H), whatever the counts are, and the variance 3 exp(-2H). The mean over 512 sums gives H with a
standard error of sqrt(3 / 512) nats, 0.11 bits. Sums are linear: states are merged by adding them.
They are integers, in units of 1/1024, so that the order of merging does not matter. The list of
pairs becomes a buffer, which is added to the sums when it is full: a value that is frequent is
added once for many tuples.

A packed state is the header, the length (32 bits), the number of tuples (64 bits), and then the
pairs (hash and count, 64 bits each, by hash), or the sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.hashing import GOLDEN, mix
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import (
    Argument,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    bytes_of,
    packed_of,
    packed_states,
)
from terascope.sketches.murmur import ValueHashes
from terascope.sketches.packed_form import (
    Data,
    Offsets,
    checked,
    checked_one,
    header_of,
    put_word,
    refusal,
    word_at,
)
from terascope.sketches.value_forms import read_words, write_header, write_words
from terascope.sketches.values import count_tuples
from terascope.sketches.word_lists import (
    COUNT,
    LEFT,
    LONGEST,
    ROW,
    ROWS,
    WORDS,
    WordLists,
    Words,
    copy_list,
    empty_list,
    enlarged,
    put,
    put_in_new,
)

FAMILY: Final = "N"
NAME: Final = "a state of entropy"
PAIRS, SUMS = 0, 1
VARIANTS: Final = 2
START: Final = 16

MOST_PAIRS: Final = 1024
PROJECTIONS: Final = 512
UNIT: Final = 1024
"""Random numbers are integers in units of 1 / 1024."""
SHORTEST_ADDED: Final = 32
"""The words of the shortest list whose pairs are added up."""

DISTINCT: Final = ROW
TUPLES: Final = ROW + 1
BLOCK: Final = ROW + 2
"""The place in a row of the number of its sums plus 1; 0: it has none."""
FURTHER: Final = 3
DONE, NO_ROOM, FULL = 0, 1, 2


@cache
def random_numbers() -> tuple[Words, Words, Words]:
    """The random numbers as sums of two: the first depends on an angle of 16 bits, and on 16
    further bits where it is in the first part of all, for there is the long tail; the second is the
    logarithm of an exponential one.
    """
    part = (np.arange(65536) + 0.5) / 65536
    near, tail = (_of_angle(math.pi * (u - 0.5)) for u in (part, part / 65536))
    exponential = np.log(-np.log(part))
    fixed = [np.rint(UNIT * numbers).astype(np.int64) for numbers in (near, tail, exponential)]
    return fixed[0], fixed[1], fixed[2]


def _of_angle(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    rest = math.pi / 2 - angle
    found: NDArray[np.float64] = np.tan(angle) * rest + np.log(np.cos(angle) / rest)
    return found


class EntropySketches(StateColumn):
    def __init__(self) -> None:
        self._hashes = ValueHashes()
        self._lists = WordLists(FURTHER)
        self._scratch: Words = np.zeros(8 * MOST_PAIRS, np.int64)
        self._sums: Words = np.zeros((0, PROJECTIONS), np.int64)
        self._used = 0
        self._spare: list[int] = []

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        low, _ = self._hashes.of(arguments[0])
        hashes = (low >> np.uint64(1)).view(np.int64)
        self._add(numbers, hashes, np.ones(len(hashes), np.int64))
        count_tuples(numbers, TUPLES, self._lists.rows)

    def _add(self, numbers: Numbers, hashes: Words, counts: Words) -> None:
        lists = self._lists
        lists.reach(numbers)
        at = 0
        while at < len(numbers):
            at, why = add_pairs(
                numbers, hashes, counts, at, lists.rows, lists.words, lists.free, self._scratch
            )
            if why == NO_ROOM:
                lists.words = enlarged(lists.words, 2 * len(lists.words) + 4 * LONGEST)
            elif why == FULL:
                self._fold(int(numbers[at]))

    def _fold(self, number: int) -> None:
        """Add the pairs of a state to its sums, which it may not have yet."""
        sums = self._sums_of(number)
        _, words = self._lists.lists(np.array([number]))
        add_to_sums(words, *random_numbers(), sums)
        kept = self._lists.rows[number, ROW:].copy()
        self._lists.drop(np.array([number]))
        self._lists.rows[number, ROW:] = kept
        self._lists.rows[number, DISTINCT] = 0

    def _sums_of(self, number: int) -> Words:
        block = int(self._lists.rows[number, BLOCK]) - 1
        if block < 0:
            if self._spare:
                block = self._spare.pop()
                self._sums[block] = 0
            else:
                block = self._used
                self._used += 1
                if block == len(self._sums):
                    self._sums = enlarged(self._sums, 2 * block)
            self._lists.rows[number, BLOCK] = block + 1
        sums: Words = self._sums[block]
        return sums

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        starts, data = checked(packed, FAMILY, NAME, VARIANTS, START)
        wrong = wrong_entropy(starts, data)
        if wrong >= 0:
            state = data[starts[wrong] : starts[wrong + 1]].tobytes()
            raise ValueError(refusal(state, FAMILY, NAME))
        self._lists.reach(numbers)
        dense = data[starts[:-1] + 3] == SUMS
        counts = np.where(dense, 0, (np.diff(starts) - START) // 16)
        owners = np.repeat(numbers, counts)
        ends = np.cumsum(counts)
        places = np.arange(len(owners)) - np.repeat(ends - counts, counts)
        places = np.repeat(starts[:-1] + START, counts) + 16 * places
        self._add(owners, read_words(places, data), read_words(places + 8, data))
        for i in np.flatnonzero(dense).tolist():
            added = read_words(starts[i] + START + 8 * np.arange(PROJECTIONS), data)
            self._sums_of(int(numbers[i]))[:] += added
        np.add.at(self._lists.rows[:, TUPLES], numbers, read_words(starts[:-1] + 8, data))

    def pack(self, numbers: Numbers) -> Packed:
        lists = self._lists
        lists.reach(numbers)
        lists.words = lists.words if len(lists.words) else np.zeros(4 * LONGEST, np.int64)
        add_up_all(numbers, lists.rows, lists.words, lists.free, self._scratch)
        large = (lists.rows[numbers, BLOCK] > 0) | (lists.rows[numbers, DISTINCT] > MOST_PAIRS)
        for number in numbers[large].tolist():
            self._fold(number)
        offsets, words = lists.lists(numbers)
        rows = lists.rows[numbers]
        dense = rows[:, BLOCK] > 0
        ends = np.zeros(len(numbers) + 1, np.int64)
        sizes = np.where(dense, 8 * PROJECTIONS, 8 * np.diff(offsets))
        np.cumsum(START + sizes, out=ends[1:])
        data = np.zeros(ends[-1], np.uint8)
        write_header(data, ends[:-1], header_of(FAMILY, PAIRS))
        write_words(np.diff(ends), ends[:-1] + 4, data)
        write_words(rows[:, TUPLES], ends[:-1] + 8, data)
        write_entropy(offsets, words, rows[:, BLOCK] - 1, self._sums, ends, data)
        return packed_of(ends, data)

    def drop(self, numbers: Numbers) -> None:
        self._lists.reach(numbers)
        blocks = self._lists.rows[numbers, BLOCK]
        self._spare += (np.unique(blocks[blocks > 0]) - 1).tolist()
        self._lists.drop(numbers)

    def clear(self) -> None:
        self._lists.clear()
        self._sums = np.zeros((0, PROJECTIONS), np.int64)
        self._used, self._spare = 0, []

    @property
    def memory_bytes(self) -> int:
        sums = self._sums.nbytes + self._scratch.nbytes
        return self._lists.memory_bytes + sums + self._hashes.memory_bytes


ENTROPY_KIND: Final = StateKind("entropy(512)", EntropySketches, EntropySketches)


def entropy_of(state: bytes) -> float | None:
    """The entropy in bits; None when there was no value."""
    variant = checked_one(state, FAMILY, NAME, VARIANTS, START)
    if wrong_entropy(*bytes_of(packed_states([state]))) >= 0:
        raise ValueError(refusal(state, FAMILY, NAME))
    tuples = int.from_bytes(state[8:16], "little")
    words = np.frombuffer(state[START:], "<i8")
    if tuples == 0:
        return None
    if variant == PAIRS:
        return exact_entropy(words[1::2].tolist())
    nats = -math.log(float(np.mean(np.exp(words / (UNIT * tuples)))))
    return min(max(nats / math.log(2), 0.0), math.log2(tuples))


def exact_entropy(counts: Sequence[int]) -> float:
    """The entropy in bits of values that occurred so often."""
    total = sum(counts)
    return abs(math.log2(total) - math.fsum(n * math.log2(n) for n in counts) / total)


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def add_up(rows: Words, words: Words, free: Words, row: np.uint64, scratch: Words) -> None:
    """Make one pair of all pairs of the same hash. The chunks of the old list have room for it."""
    count = rows[row, COUNT]
    copy_list(rows, words, row, scratch, 0)
    order = np.argsort(scratch[:count:2])
    empty_list(rows, words, free, row)
    k = 0
    distinct = 0
    while k < len(order):
        value, total = scratch[2 * order[k]], np.int64(0)
        while k < len(order) and scratch[2 * order[k]] == value:
            total += scratch[2 * order[k] + 1]
            k += 1
        for word in (value, total):
            if rows[row, LEFT] != 0:
                put(rows, words, row, word)
            else:
                put_in_new(rows, words, free, row, word)
        distinct += 1
    rows[row, DISTINCT] = distinct


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), INTEGER, ROWS, WORDS, WORDS, WORDS
)
def add_pairs(
    numbers: Numbers, hashes: Words, counts: Words, at: int, rows: Words, words: Words, free: Words,
    scratch: Words,
) -> tuple[int, int]:  # fmt: skip
    """Append pairs from `at` on; returns how many are done, and why no more are."""
    for i in range(at, len(numbers)):
        row = np.uint64(numbers[i])
        count = rows[row, COUNT]
        if count >= SHORTEST_ADDED and count >= 4 * rows[row, DISTINCT]:
            if rows[row, DISTINCT] <= MOST_PAIRS:
                add_up(rows, words, free, row, scratch)
            if rows[row, DISTINCT] > MOST_PAIRS:
                return i, FULL
        if rows[row, LEFT] >= 2:
            put(rows, words, row, hashes[i])
            put(rows, words, row, counts[i])
            continue
        if free[0] + 2 * LONGEST > len(words):
            return i, NO_ROOM
        for k in range(2):
            word = hashes[i] if k == 0 else counts[i]
            if rows[row, LEFT] != 0:
                put(rows, words, row, word)
            else:
                put_in_new(rows, words, free, row, word)
    return len(numbers), DONE


@compiled_for(column(np.int64), ROWS, WORDS, WORDS, WORDS)
def add_up_all(numbers: Numbers, rows: Words, words: Words, free: Words, scratch: Words) -> None:
    for i in range(len(numbers)):
        row = np.uint64(numbers[i])
        if rows[row, COUNT] != 2 * rows[row, DISTINCT]:
            add_up(rows, words, free, row, scratch)


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64), output(np.int64)
)
def add_to_sums(pairs: Words, near: Words, tail: Words, exponential: Words, sums: Words) -> None:
    """Add the count of each pair times its random numbers to the sums."""
    low_bits = np.uint64(0xFFFF)
    for k in range(0, len(pairs), 2):
        value, count = np.uint64(pairs[k]), pairs[k + 1]
        for j in range(len(sums)):
            word = mix(value + np.uint64(j + 1) * np.uint64(GOLDEN))
            angle = word >> np.uint64(48)
            number = near[angle]
            if angle == np.uint64(0):
                number = tail[(word >> np.uint64(32)) & low_bits]
            sums[j] += count * (number + exponential[(word >> np.uint64(16)) & low_bits])


@compiled_for(column(np.int64), column(np.uint8))
def wrong_entropy(starts: Offsets, data: Data) -> int:
    """The first packed state that is damaged, or -1."""
    for i in range(len(starts) - 1):
        at, size = starts[i], starts[i + 1] - starts[i]
        if size < START or word_at(data, at + 4, 4) != np.uint64(size):
            return i
        if data[at + 3] == SUMS:
            if size != START + 8 * PROJECTIONS:
                return i
        elif (size - START) % 16 != 0 or size > START + 16 * MOST_PAIRS:
            return i
        else:
            for k in range(START, size, 16):
                if word_at(data, at + k, 8) >= np.uint64(1 << 63):
                    return i
                count = np.int64(word_at(data, at + k + 8, 8))
                if count <= 0:
                    return i
    return -1


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64, 2), column(np.int64),
    output(np.uint8),
)  # fmt: skip
def write_entropy(
    offsets: Offsets, pairs: Words, blocks: Words, sums: Words, ends: Offsets, data: Data
) -> None:
    for i in range(len(blocks)):
        at = ends[i] + START
        if blocks[i] >= 0:
            data[ends[i] + 3] = SUMS
            for k in range(PROJECTIONS):
                put_word(data, at + 8 * k, 8, np.uint64(sums[blocks[i], k]))
        else:
            for k in range(offsets[i], offsets[i + 1]):
                put_word(data, at + 8 * (k - offsets[i]), 8, np.uint64(pairs[k]))
