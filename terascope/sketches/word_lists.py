"""Lists of 64-bit words, one for each of many states, all in one array.

In: words, each with the number of its list. Out: the lists, one behind the other.

A list of one word stands in the row of its state. A longer one is a chain of chunks, which begin
with 4 words and get as long as the list is, up to 4096: nothing is copied when a list grows, and at
most about half of the room of a small list is unused. The last word of a full chunk is the place of
the next one. The chunks of a dropped list are used again: free chunks of one size are a chain, too.

Kernels that run out of room stop, and say how far they came; `more_room` doubles the array.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Numbers

Words = NDArray[np.int64]

COUNT: Final = 0
FIRST: Final = 1
"""The only word of a list of one; else the place of the first chunk."""
END: Final = 2
"""Where the next word goes."""
LEFT: Final = 3
"""How many words the last chunk still takes."""
ROW: Final = 4

SHORTEST: Final = 4
LONGEST: Final = 4096
USED: Final = 0
"""The place in `free` of the number of words in use. Place k, from 2 to 12, has the first free
chunk of 2^k words, plus 1; 0: there is none."""


class WordLists:
    """The rows of a column of states, whose first four words describe the list of the state. Other
    words of a row, `further` of them, are the column's own.
    """

    def __init__(self, further: int = 0) -> None:
        self._width = ROW + further
        self.clear()

    def clear(self) -> None:
        self.rows: Words = np.zeros((0, self._width), np.int64)
        self.words: Words = np.zeros(0, np.int64)
        self.free: Words = np.zeros(13, np.int64)
        self.count = 0

    def reach(self, numbers: Numbers) -> None:
        """See to it that there is a row for each number; new ones are zero."""
        self.rows, self.count = reached(self.rows, self.count, numbers)

    def more_room(self) -> None:
        self.words = enlarged(self.words, 2 * len(self.words))

    def append(self, numbers: Numbers, words: Words, each: int = 1) -> None:
        """Append to the list numbers[i] its words[i * each : (i + 1) * each]."""
        self.reach(numbers)
        at = 0
        while True:
            at = append_words(numbers, words, at, each, self.rows, self.words, self.free)
            if at == len(words):
                return
            self.more_room()

    def append_lists(self, numbers: Numbers, offsets: Words, words: Words) -> None:
        """Append to the list numbers[i] its words[offsets[i] : offsets[i + 1]]."""
        self.append(np.repeat(numbers, np.diff(offsets)), words)

    def lists(self, numbers: Numbers) -> tuple[Words, Words]:
        """Offsets and words: the list numbers[i] is words[offsets[i] : offsets[i + 1]]."""
        self.reach(numbers)
        offsets = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(self.rows[numbers, COUNT], out=offsets[1:])
        words = np.empty(offsets[-1], np.int64)
        gather(numbers, self.rows, self.words, offsets, words)
        return offsets, words

    def drop(self, numbers: Numbers) -> None:
        """The lists are empty afterwards, and the rows zero."""
        self.reach(numbers)
        release(numbers, self.rows, self.words, self.free)

    @property
    def memory_bytes(self) -> int:
        return self.rows.nbytes + self.words.nbytes


def reached(rows: Words, count: int, numbers: Numbers) -> tuple[Words, int]:
    """Rows for all numbers, and how many are in use: the array at least doubles when it grows."""
    needed = int(numbers.max()) + 1 if len(numbers) else 0
    if needed <= count:
        return rows, count
    if needed > len(rows):
        rows = enlarged(rows, max(needed, 2 * count))
    return rows, needed


def enlarged(array: NDArray[Any], room: int) -> NDArray[Any]:
    """A longer array that begins with the given one; what follows is zero. Memory that nothing was
    written to costs nothing yet.
    """
    larger = np.zeros((max(room, 64), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


# ---- in kernels ----------------------------------------------------------------------------------


@inlined
def chunk_words(count: int) -> int:
    """The length of the chunk that a list of so many words gets next."""
    size = SHORTEST
    while size <= count and size < LONGEST:
        size <<= 1
    return size


@inlined
def size_class(size: int) -> int:
    power = 2
    while (1 << power) < size:
        power += 1
    return power


@inlined
def take_chunk(words: Words, free: Words, size: int) -> Any:
    """The place of a chunk; negative when there is no room."""
    place = size_class(size)
    start = free[place] - 1
    if start >= 0:
        free[place] = words[start]
        return start
    start = free[USED]
    if start + size > len(words):
        return -1
    free[USED] = start + size
    return start


@inlined
def give_chunk(words: Words, free: Words, size: int, start: int) -> None:
    place = size_class(size)
    words[start] = free[place]
    free[place] = start + 1


@inlined
def put(rows: Words, words: Words, row: np.uint64, word: np.int64) -> None:
    """Append a word to a list whose last chunk takes more. It is apart from `put_in_new` so that it
    is short enough to be inlined: a call takes ten times as long.
    """
    end = rows[row, END]
    words[np.uint64(end)] = word
    rows[row, END] = end + 1
    rows[row, LEFT] -= 1
    rows[row, COUNT] += 1


@inlined
def put_in_new(rows: Words, words: Words, free: Words, row: np.uint64, word: np.int64) -> bool:
    """Append a word to an empty list, or to one that needs a new chunk. False, and nothing is
    changed, when there is no room.
    """
    count = rows[row, COUNT]
    if count == 0:
        rows[row, FIRST] = word
        rows[row, COUNT] = 1
        return True
    size = chunk_words(count)
    start = take_chunk(words, free, size)
    if start < 0:
        return False
    end, left = start, size - 1
    if count == 1:
        words[start] = rows[row, FIRST]
        rows[row, FIRST] = start
        end, left = start + 1, size - 2
    else:
        words[rows[row, END]] = start
    words[end] = word
    rows[row, END] = end + 1
    rows[row, LEFT] = left - 1
    rows[row, COUNT] = count + 1
    return True


@inlined
def copy_list(rows: Words, words: Words, row: np.uint64, out: Words, at: int) -> None:
    """Write a list to out[at:]."""
    count = rows[row, COUNT]
    if count == 1:
        out[at] = rows[row, FIRST]
        return
    start, done = rows[row, FIRST], 0
    while done < count:
        size = chunk_words(max(done, 1)) - 1
        some = min(size, count - done)
        for k in range(some):
            out[np.uint64(at + done + k)] = words[np.uint64(start + k)]
        done += some
        if done < count:
            start = words[start + size]


@inlined
def empty_list(rows: Words, words: Words, free: Words, row: np.uint64) -> None:
    """Free the chunks of a list; its row says then that it is empty."""
    count = rows[row, COUNT]
    if count > 1:
        start, done = rows[row, FIRST], 0
        while done < count:
            size = chunk_words(max(done, 1))
            following = words[start + size - 1]
            give_chunk(words, free, size, start)
            done += size - 1
            start = following
    rows[row, COUNT] = 0
    rows[row, LEFT] = 0


ROWS: Final = output(np.int64, 2)
WORDS: Final = output(np.int64)


@compiled_for(column(np.int64), column(np.int64), INTEGER, INTEGER, ROWS, WORDS, WORDS)
def append_words(
    numbers: Numbers, added: Words, at: int, each: int, rows: Words, words: Words, free: Words
) -> int:
    """Append words from `at` on, until all are done or there is no room; returns how many are."""
    item, part = at // each, at % each
    for i in range(at, len(added)):
        row = np.uint64(numbers[np.uint64(item)])
        word = added[np.uint64(i)]
        if rows[row, LEFT] != 0:
            put(rows, words, row, word)
        elif not put_in_new(rows, words, free, row, word):
            return i
        part += 1
        if part == each:
            item += 1
            part = 0
    return len(added)


@compiled_for(column(np.int64), column(np.int64, 2), column(np.int64), column(np.int64), WORDS)
def gather(numbers: Numbers, rows: Words, words: Words, offsets: Words, out: Words) -> None:
    for i in range(len(numbers)):
        copy_list(rows, words, np.uint64(numbers[i]), out, offsets[i])


@compiled_for(column(np.int64), ROWS, WORDS, WORDS)
def release(numbers: Numbers, rows: Words, words: Words, free: Words) -> None:
    for i in range(len(numbers)):
        empty_list(rows, words, free, np.uint64(numbers[i]))
        rows[numbers[i], :] = 0
