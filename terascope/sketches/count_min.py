"""Count-Min sketches at several levels of granularity (paper 1, 4.2; Cormode and Muthukrishnan).

In: keys (terascope.sketches.hitter_ids) and weights. Out: the parameters of a sketch, and the parts
of kernels that add to its counters, estimate a weight, and search.

A sketch has exact counts of the 256 prefixes of 8 bits and, for each of g levels, d rows of w
counters. With g = 3 the levels count whole identifiers of 32 bits, and their prefixes of 24 and 16
bits. A weight is added to one counter of each row, and the smallest of them estimates the weight of
an identifier: never below it, and above it by more than e / w of the sum of all weights with a
probability of at most e^-d. The weight of an identifier is no larger than that of its prefixes: the
search for the heaviest identifiers descends from the heaviest prefixes.

Identifiers that are near each other, as ports, lengths or numbers of hosts are, share their upper
bits, and their coarser levels would tell nothing. So the levels of plain identifiers are those of
their *scrambled* bits, a bijection of 32 bits that the search inverts: the rows of all levels count
an identifier among others that have nothing in common with it. Only addresses keep their own bits,
because their prefixes are themselves of interest (terascope.sketches.hitter_answers).

Each row has a hash function of its own, a multiplication by an odd number whose upper bits are the
place. Sketches of the same parameters are added counter by counter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import inlined
from terascope.sketches.hitter_ids import NAMED, PLAIN_MAX, IdKind, Keys, Prefixes
from terascope.sketches.hitter_layout import DEEPEST, TOP_CELLS, WIDEST

WIDTH: Final = 256
DEPTH: Final = 2
LEVELS: Final = 3
CANDIDATES: Final = 64
SEARCHED_BITS: Final = 24
"""Bits of an identifier below the prefixes that are counted exactly."""
OF_NAMES: Final = 1 << 40
"""The bit that tells the hashes of names from plain identifiers in hashed rows. Only the counts of
prefixes of 8 bits have both in common."""


@dataclass(frozen=True)
class SketchSize:
    """The parameters of a sketch: w counters in each of d rows, for each of g levels."""

    width: int = WIDTH
    depth: int = DEPTH
    levels: int = LEVELS
    candidates: int = CANDIDATES
    """How many of the heaviest identifiers are kept by name beside the counters. With 0 they are
    found by search, which only plain identifiers allow."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.width > WIDEST or self.width & (self.width - 1):
            raise ValueError(f"the width is a power of two from 2 to {WIDEST}, not {self.width}")
        if not 1 <= self.depth <= DEEPEST:
            raise ValueError(f"the depth lies between 1 and {DEEPEST}: {self.depth}")
        if self.levels < 1 or SEARCHED_BITS % self.levels:
            raise ValueError(f"the number of levels divides {SEARCHED_BITS}: {self.levels}")
        if self.candidates < 0 or (not self.candidates and self.levels == 1):
            raise ValueError("one level allows no search: keep candidates")

    @property
    def cells(self) -> int:
        return TOP_CELLS + self.width * self.depth * self.levels

    @property
    def step(self) -> int:
        """Bits from one level to the next."""
        return SEARCHED_BITS // self.levels

    def array(self, kind: IdKind) -> NDArray[np.int64]:
        """The parameters as kernels take them, for identifiers of a kind."""
        log_width, scrambled = self.width.bit_length() - 1, int(is_scrambled(kind))
        sizes = (log_width, self.depth, self.levels, self.candidates, self.cells, scrambled)
        return np.array(sizes, np.int64)

    def error(self, total: int) -> int:
        """The most that an estimate is too large by, with a probability of 1 - e^-depth."""
        return math.ceil(math.e * total / self.width)

    def __str__(self) -> str:
        return f"w={self.width} d={self.depth} g={self.levels} c={self.candidates}"


def is_scrambled(kind: IdKind) -> bool:
    """Whether sketches of a kind of identifiers count scrambled bits."""
    return kind is not IdKind.ADDRESS


FACTORS: Final = (0x7FEB352D, 0x846CA68B)
"""Odd numbers of a mix of 32 bits (Wellons, "Prospecting for hash functions")."""


def unscrambled(bits: Keys) -> Keys:
    """The identifiers that have some scrambled bits."""
    found = bits.astype(np.uint64)
    found ^= found >> np.uint64(16)
    found = found * np.uint64(pow(FACTORS[1], -1, 1 << 32)) & np.uint64(PLAIN_MAX)
    found ^= found >> np.uint64(15) ^ found >> np.uint64(30)
    found = found * np.uint64(pow(FACTORS[0], -1, 1 << 32)) & np.uint64(PLAIN_MAX)
    found ^= found >> np.uint64(16)
    return found.astype(np.int64)


# ---- parts of kernels ----------------------------------------------------------------------------
# `sizes` is SketchSize.array(), `prefixes` the bits that names are counted by.


@inlined
def scrambled(key: Any, sizes: Keys) -> Any:
    """A key as a sketch counts it."""
    if sizes[5] == 0 or key >= NAMED:
        return np.int64(key)
    bits = np.uint64(key)
    bits ^= bits >> np.uint64(16)
    bits = bits * np.uint64(FACTORS[0]) & np.uint64(PLAIN_MAX)
    bits ^= bits >> np.uint64(15)
    bits = bits * np.uint64(FACTORS[1]) & np.uint64(PLAIN_MAX)
    return np.int64(bits ^ bits >> np.uint64(16))


@inlined
def bits_of(key: Any, level: Any, step: Any, prefixes: Prefixes) -> Any:
    """The bits of a scrambled key that a level counts; the prefix of 8 bits behind the last one."""
    if key < NAMED:
        return np.uint64(key) >> np.uint64(step * level)
    number = np.uint64(key - NAMED)
    column, shift = np.uint64(0), np.uint64(step * level)
    if step == 8:
        column, shift = np.uint64(level), np.uint64(0)
    bits = np.uint64(prefixes[number, column]) >> shift
    return bits if step * level == SEARCHED_BITS else bits | np.uint64(OF_NAMES)


@inlined
def place_of(bits: Any, row: Any, shift: Any) -> Any:
    """The counter of a row: the upper bits of a multiple, after the lower bits were mixed in."""
    factor = np.uint64(0x9E3779B97F4A7C15) + np.uint64(row) * np.uint64(0xD1B54A32D192ED04)
    spread = (bits + np.uint64(1)) * (factor | np.uint64(1))
    return ((spread ^ (spread >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)) >> shift


@inlined
def add_to_sketch(
    counters: Any, base: Any, key: Any, weight: Any, sizes: Keys, prefixes: Prefixes
) -> Any:
    """Add a weight to the sketch that begins at a place of `counters`; the new estimate of its
    identifier.
    """
    log_width, depth, levels = sizes[0], sizes[1], sizes[2]
    shift = np.uint64(64 - log_width)
    width = np.uint64(1) << np.uint64(log_width)
    step = SEARCHED_BITS // levels
    key = scrambled(key, sizes)
    top = base + bits_of(key, levels, step, prefixes)
    counters[top] = np.uint64(counters[top]) + np.uint64(weight)
    row = base + np.uint64(TOP_CELLS)
    least = np.uint64(0xFFFFFFFFFFFFFFFF)
    for level in range(levels):
        bits = bits_of(key, level, step, prefixes)
        for r in range(depth):
            at = row + place_of(bits, level * depth + r, shift)
            count = np.uint64(counters[at]) + np.uint64(weight)
            counters[at] = count
            if level == 0 and count < least:
                least = count
            row += width
    return np.int64(least)


@inlined
def estimate_bits(counters: Any, start: Any, bits: Any, level: Any, sizes: Keys) -> Any:
    """The estimated weight of a prefix of a level, in the sketch that begins at `start`."""
    depth, levels = sizes[1], sizes[2]
    if level == levels:
        return np.int64(counters[start + bits])
    shift = np.uint64(64 - sizes[0])
    width = np.uint64(1) << np.uint64(sizes[0])
    row = start + np.uint64(TOP_CELLS) + np.uint64(level * depth) * width
    least = np.uint64(0xFFFFFFFFFFFFFFFF)
    for r in range(depth):
        least = min(least, np.uint64(counters[row + place_of(bits, level * depth + r, shift)]))
        row += width
    return np.int64(least)


@inlined
def estimate_key(counters: Any, start: Any, key: Any, sizes: Keys, prefixes: Prefixes) -> Any:
    """The estimated weight of an identifier: the smallest over its prefixes, of which none is
    lighter.
    """
    levels = sizes[2]
    step = SEARCHED_BITS // levels
    key = scrambled(key, sizes)
    least = np.int64(counters[start + bits_of(key, levels, step, prefixes)])
    for level in range(levels):
        bits = bits_of(key, level, step, prefixes)
        least = min(least, estimate_bits(counters, start, bits, level, sizes))
    return least
