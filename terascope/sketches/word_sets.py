"""Sets of 64-bit words, one for each of many states, all in one array.

In: words, each with the number of its set. Out: the sets.

A set is a list (terascope.sketches.word_lists) that may have a word several times. When it is twice
as long as it was after its words were last sorted, they are sorted again and each is kept once: a
word is sorted a few times at most, and a set takes no more than twice the room of its words. No
hash table is needed, which would have to grow and to forget the words of dropped sets. Most words
that come again are not even appended: a small table has the words that came last.

A set may have a bound: words that are not below it are passed over (for Theta sketches).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.hashing import GOLDEN, mix
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Numbers
from terascope.sketches.word_lists import (
    COUNT,
    FIRST,
    LEFT,
    ROW,
    ROWS,
    WORDS,
    WordLists,
    Words,
    copy_list,
    empty_list,
    put,
    put_in_new,
)

DISTINCT: Final = ROW
"""The place in a row of the number of words after the last sort."""
TUPLES: Final = ROW + 1
"""The place of the number of tuples, which a column counts."""
BOUND: Final = ROW + 2
"""The place of the bound; 0: there is none."""
FURTHER: Final = 3

RECENT: Final = 1 << 13
"""The number of words that came last."""
SHORTEST_SORTED: Final = 16
UNLIMITED: Final = 1 << 62

DONE, NO_ROOM, NO_SCRATCH, OVERFULL = 0, 1, 2, 3


class WordSets(WordLists):
    """`most`: a set of more words, after a sort, is reduced by `reduce_set`."""

    def __init__(self, most: int = UNLIMITED) -> None:
        super().__init__(FURTHER)
        self._most = most

    def clear(self) -> None:
        super().clear()
        self._recent: Words = np.zeros((RECENT, 2), np.int64)
        self._scratch: Words = np.zeros(2 * SHORTEST_SORTED, np.int64)

    def include(self, numbers: Numbers, words: Words) -> None:
        """Put words[i] into the set numbers[i]."""
        self.reach(numbers)
        at, why = 0, NO_ROOM
        while at < len(numbers):
            at, why = include_words(
                numbers, words, at, self._most, self.rows, self.words, self.free,
                self._recent, self._scratch,
            )  # fmt: skip
            if why == NO_ROOM:
                self.more_room()
            elif why == NO_SCRATCH:
                self._scratch = np.empty(2 * int(self.rows[numbers[at], COUNT]), np.int64)
            elif why == OVERFULL:
                self.reduce_set(int(numbers[at]))

    def sorted_sets(self, numbers: Numbers) -> tuple[Words, Words]:
        """Offsets and words, each once and in ascending order."""
        self.reach(numbers)
        at = 0
        while at < len(numbers):
            at = sort_sets(numbers, at, self.rows, self.words, self.free, self._scratch)
            if at < len(numbers):
                self._scratch = np.empty(2 * int(self.rows[numbers[at], COUNT]), np.int64)
        offsets, words = self.lists(numbers)
        for number in numbers[self.rows[numbers, DISTINCT] > self._most]:
            self.reduce_set(int(number))
            offsets, words = self.lists(numbers)
        return offsets, words

    def reduce_set(self, number: int) -> None:
        """Make a set that was sorted no larger than `most`."""

    def put_set(self, number: int, words: Words) -> None:
        """Replace a set by words that are sorted, each of them there once."""
        kept = self.rows[number, ROW:].copy()
        self.drop(np.array([number]))
        self.append(np.full(len(words), number), words)
        self.rows[number, ROW:] = kept
        self.rows[number, DISTINCT] = len(words)

    def drop(self, numbers: Numbers) -> None:
        super().drop(numbers)
        self._recent[:] = 0

    @property
    def memory_bytes(self) -> int:
        return super().memory_bytes + self._recent.nbytes + self._scratch.nbytes


# ---- in kernels ----------------------------------------------------------------------------------


@inlined
def is_recent(recent: Words, row: np.uint64, word: np.int64) -> bool:
    """Whether a word was among the last ones that its set was given; from now on it is."""
    place = mix(np.uint64(word) ^ (row * np.uint64(GOLDEN))) & np.uint64(RECENT - 1)
    number = np.int64(row) + 1
    if recent[place, 0] == number and recent[place, 1] == word:
        return True
    recent[place, 0] = number
    recent[place, 1] = word
    return False


@inlined
def sort_list(rows: Words, words: Words, free: Words, row: np.uint64, scratch: Words) -> None:
    """Sort a list, and keep each word once. The chunks of the old list have room for it."""
    count = rows[row, COUNT]
    copy_list(rows, words, row, scratch, 0)
    part = scratch[:count]
    part.sort()
    kept = 1
    for k in range(1, count):
        if part[k] != part[kept - 1]:
            part[kept] = part[k]
            kept += 1
    empty_list(rows, words, free, row)
    for k in range(kept):
        if rows[row, LEFT] != 0:
            put(rows, words, row, part[k])
        else:
            put_in_new(rows, words, free, row, part[k])
    rows[row, DISTINCT] = kept


@compiled_for(
    column(np.int64), column(np.int64), INTEGER, INTEGER, ROWS, WORDS, WORDS,
    output(np.int64, 2), WORDS,
)  # fmt: skip
def include_words(
    numbers: Numbers, added: Words, at: int, most: int, rows: Words, words: Words, free: Words,
    recent: Words, scratch: Words,
) -> tuple[int, int]:  # fmt: skip
    """Put words into sets from `at` on; returns how many are done, and why no more are."""
    for i in range(at, len(numbers)):
        row, word = np.uint64(numbers[np.uint64(i)]), added[np.uint64(i)]
        bound = rows[row, BOUND]
        if (bound != 0 and word >= bound) or is_recent(recent, row, word):
            continue
        count = rows[row, COUNT]
        if count >= SHORTEST_SORTED and count >= 2 * rows[row, DISTINCT]:
            why = DONE
            if rows[row, DISTINCT] > most:
                why = OVERFULL
            elif count > len(scratch):
                why = NO_SCRATCH
            else:
                sort_list(rows, words, free, row, scratch)
                if rows[row, DISTINCT] > most:
                    why = OVERFULL
            if why != DONE:
                recent[:, 0] = 0  # the word is not in its set yet
                return i, why
        if rows[row, LEFT] != 0:
            put(rows, words, row, word)
        elif not put_in_new(rows, words, free, row, word):
            recent[:, 0] = 0
            return i, NO_ROOM
    return len(numbers), DONE


@compiled_for(column(np.int64), INTEGER, ROWS, WORDS, WORDS, WORDS)
def sort_sets(
    numbers: Numbers, at: int, rows: Words, words: Words, free: Words, scratch: Words
) -> int:
    """Sort lists from `at` on, until all are or one is longer than `scratch`."""
    for i in range(at, len(numbers)):
        row = np.uint64(numbers[i])
        count = rows[row, COUNT]
        if count == rows[row, DISTINCT]:
            continue
        if count > len(scratch):
            return i
        if count == 1:
            rows[row, DISTINCT] = 1
        elif count == 2 and words[rows[row, FIRST]] < words[rows[row, FIRST] + 1]:
            rows[row, DISTINCT] = 2
        else:
            sort_list(rows, words, free, row, scratch)
    return len(numbers)
