"""Hashes of 64-bit words: all that kernels use.

In: a word, or the names of the words of a key in a generated kernel. Out: a hash.

- `mix` spreads every bit over all others (the finaliser of splitmix64). It is used where hashes
  leave a table: for the destination of a group, for parts on disk, for samples, and for
  dictionaries.
- `multiplied` is one multiplication; only its upper bits are good. It is used where a word is
  looked up in a small table, or tuples are put into parts.
- `table_hash` is the same for the keys of a table of groups, which are small dense codes. It
  spreads them better than a random function would: 20,000 groups of one key fill 1.41 times as many
  places of a table of 20,000, those of two keys 0.95 to 1.05 times as many. The upper bits are the
  place.
- `random_hash` behaves as a random function (0.99 to 1.01 times as many): the cost model of bounded
  tables predicts evictions for such a one (paper 4, III). It takes two multiplications for each
  word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import inlined

GOLDEN: Final = 0x9E3779B97F4A7C15
"""The golden ratio of 2^64: multiples of it are far apart."""
LAST: Final = 0xD6E8FEB86659FD93


@inlined
def mix(word: Any) -> Any:
    """All bits of a uint64, or of an array of them, spread over all others."""
    x = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def multiplied(word: Any, shift: np.uint64) -> Any:
    """The upper bits of a multiple of a word: those from `shift` on."""
    return (np.uint64(word) * np.uint64(GOLDEN)) >> shift


# ---- values --------------------------------------------------------------------------------------


@inlined
def word_of(data: NDArray[np.uint8], begin: int, end: int) -> np.int64:
    """A word for a run of bytes: exact below eight of them, else negative, and a mere hash.

    An IPv4 address, held in five bytes, is the common case.
    """
    size = end - begin
    if size == 5:
        first = np.uint64(begin)
        return (
            np.int64(5 << 56)
            | np.int64(data[first])
            | np.int64(data[first + np.uint64(1)]) << 8
            | np.int64(data[first + np.uint64(2)]) << 16
            | np.int64(data[first + np.uint64(3)]) << 24
            | np.int64(data[first + np.uint64(4)]) << 32
        )
    word = np.int64(size) << 56
    if size < 8:
        for k in range(size):
            word |= np.int64(data[begin + k]) << (8 * k)
        return word
    state = np.uint64(size)
    at = begin
    while at < end:
        part = np.uint64(0)
        for k in range(min(8, end - at)):
            part |= np.uint64(data[at + k]) << np.uint64(8 * k)
        state = mix(state ^ part)
        at += 8
    return np.int64(state | np.uint64(1 << 63))


@inlined
def value_hash(word: np.int64) -> np.uint64:
    """The hash of a value, by the word of it: the same in every process."""
    return np.uint64(mix(np.uint64(word + 0x632BE5AB)))


# ---- in generated kernels ------------------------------------------------------------------------


def table_hash(words: Sequence[str]) -> str:
    """An expression over the names of words, each an int64."""
    if not words:
        return "np.uint64(0)"
    text = f"np.uint64({words[0]})"
    if len(words) == 1:
        text = f"({text} ^ ({text} >> np.uint64(29)))"
    for word in words[1:]:
        text = f"(({text} * np.uint64({GOLDEN:#x})) ^ np.uint64({word}))"
    return f"({text} * np.uint64({LAST:#x}))"


def random_hash(words: Sequence[str]) -> list[str]:
    """Statements that set `h`. The names are those of uint64s."""
    if not words:
        return ["h = np.uint64(0)"]
    factor = f"np.uint64({GOLDEN:#x})"
    lines = [f"h = {words[0]} * {factor}"]
    lines += [f"h = ((h ^ (h >> np.uint64(29))) + {word}) * {factor}" for word in words[1:]]
    return [*lines, f"h = (h ^ (h >> np.uint64(32))) * np.uint64({LAST:#x})"]
