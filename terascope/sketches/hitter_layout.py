"""Packed states of heavy hitters: how their bytes are laid out, and how they are checked.

In: packed states. Out: the same as words of 64 bits, checked so that kernels may trust every count
and length in them, and the keys of the names they hold. All lengths are multiples of eight bytes
and all numbers are little endian. A state begins with b"TH", the version 2 and a byte with the
variant (lower four bits) and the kind of identifiers (upper four).

- LIST, pairs of identifier and weight: the numbers of narrow, wide and named pairs, 32 bits each
  and padded to two words, then the pairs. A narrow pair is a word: identifier << 31 | weight; an
  empty one is 0. A wide pair is two words. A named pair is the weight, the length of the name, and
  its bytes, padded. No identifier occurs twice.
- RUNS: as a list, but an identifier may occur several times: weights add up.
- FREQUENT: as a list, with three words before the pairs: the weight that every identifier may be
  short of, the sum of all weights, and the number of pairs kept.
- SKETCH: the number of plain candidates, flags, the number of named candidates; the sum of all
  weights; width (32 bits), depth and levels (16 each); the number of candidates kept; counters of
  32 bits, or of 64 when bit 0 of the flags is set; candidates as wide and named pairs, with bounds
  on their weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, inlined, output
from terascope.sketches.base import Packed, bytes_of
from terascope.sketches.hitter_ids import Bytes, HitterIds, IdKind, Keys, Words

MAGIC: Final = int.from_bytes(b"TH\2", "little")
LIST: Final = 1
FREQUENT: Final = 2
SKETCH: Final = 3
RUNS: Final = 4
LIST_HEAD: Final = 2
LONG_HEAD: Final = 5
"""Words before the pairs of a FREQUENT state, and before the counters of a SKETCH."""
WEIGHT_BITS: Final = 31
NARROW_MAX: Final = (1 << WEIGHT_BITS) - 1
"""The largest weight that fits a word with its identifier."""
WEIGHT_MAX: Final = (1 << 63) - 1
TOP_CELLS: Final = 256
"""Exact counts of prefixes of 8 bits."""
WIDEST: Final = 1 << 20
DEEPEST: Final = 16

FAULTS: Final = (
    "these bytes are not a state of heavy hitters",
    "this state of heavy hitters is cut short, or damaged",
    "sketches of heavy hitters with different parameters cannot be merged",
)


@dataclass(frozen=True)
class Contents:
    """Packed states that were checked."""

    starts: NDArray[np.int64]
    """State i is words[starts[i]:starts[i + 1]]."""
    words: Words
    variants: frozenset[int]
    kind: IdKind
    names: int
    name_bytes: int
    first_name: NDArray[np.int64]
    """How many names stand before each state."""
    sketch: int
    """The place of a sketch among the states, -1 without."""


def contents_of(packed: Packed) -> Contents:
    """Check packed states.

    Raises:
        ValueError: some bytes are no state, or states are of different kinds.
    """
    starts, words = aligned(packed)
    first_name = np.zeros(len(starts), np.int64)
    fault, variants, kinds, name_bytes, sketch = check(starts, words, first_name)
    if fault >= 0:
        raise ValueError(FAULTS[fault])
    found = [kind for kind in IdKind if kinds >> kind & 1 and kind is not IdKind.NOTHING]
    if len(found) > 1:
        names = " and ".join(kind.name for kind in found)
        raise ValueError(f"heavy hitters of different types cannot be merged: {names}")
    return Contents(
        starts,
        words,
        frozenset(v for v in (LIST, FREQUENT, SKETCH, RUNS) if variants >> v & 1),
        found[0] if found else IdKind.NOTHING,
        int(first_name[-1]),
        name_bytes,
        first_name,
        sketch,
    )


def variants_of(packed: Packed) -> NDArray[np.int64]:
    """The variant of each state; ValueError when some bytes are too short for one."""
    starts, words = aligned(packed)
    if np.any(np.diff(starts) < LIST_HEAD):
        raise ValueError(FAULTS[0])
    return (words[starts[:-1]] >> np.uint64(24) & np.uint64(15)).astype(np.int64)


def aligned(packed: Packed) -> tuple[NDArray[np.int64], Words]:
    """The states as words: the first word of each, and all words."""
    starts, held = bytes_of(packed)
    if np.any((starts - starts[0]) & 7):
        raise ValueError(FAULTS[0])
    if starts[0] & 7 or held.ctypes.data & 7:
        held = held[starts[0] : starts[-1]].copy()
        starts = starts - starts[0]
    return starts >> 3, held[: len(held) & ~7].view(np.uint64)


def named_keys(contents: Contents, ids: HitterIds) -> Keys:
    """The keys of all names, in the order they stand in."""
    if contents.kind is not IdKind.NOTHING:
        if ids.kind not in (IdKind.NOTHING, contents.kind):
            raise ValueError(
                f"heavy hitters of different types cannot be merged: {ids.kind.name} and"
                f" {contents.kind.name}"
            )
        ids.kind = contents.kind
    if not contents.names:
        return np.zeros(0, np.int64)
    offsets = np.zeros(contents.names + 1, np.int64)
    data = np.empty(contents.name_bytes, np.uint8)
    copy_names(contents.starts, contents.words, offsets, data)
    return ids.name(offsets, data, False)


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def low_half(word: Any) -> Any:
    return np.int64(word & np.uint64(0xFFFFFFFF))


@inlined
def high_half(word: Any) -> Any:
    return np.int64(word >> np.uint64(32))


@inlined
def halves(low: Any, high: Any) -> Any:
    return np.uint64(low) | np.uint64(high) << np.uint64(32)


@inlined
def variant_of(word: Any) -> Any:
    return np.int64(word >> np.uint64(24) & np.uint64(15))


@inlined
def cells_of(width: Any, depth: Any, levels: Any) -> Any:
    return TOP_CELLS + width * depth * levels


@inlined
def sketch_words(words: Words, first: Any) -> Any:
    """The words of the counters of a packed sketch; -1 when its parameters are none."""
    sizes = words[first + 3]
    width = low_half(sizes)
    depth = high_half(sizes) & 0xFFFF
    levels = high_half(sizes) >> 16
    if width < 2 or width > WIDEST or width & (width - 1) != 0:
        return np.int64(-1)
    if depth < 1 or depth > DEEPEST or levels < 1 or 24 % levels != 0:
        return np.int64(-1)
    cells = cells_of(width, depth, levels)
    return cells if words[first + 1] & np.uint64(1) else cells // 2


@inlined
def before_names(words: Words, first: Any, size: Any) -> Any:
    """The number of words of a state that stand before its names; -1: it is damaged."""
    word = words[first]
    variant = variant_of(word)
    if variant == SKETCH:
        if size < LONG_HEAD:
            return np.int64(-1)
        counters = sketch_words(words, first)
        return np.int64(-1) if counters < 0 else LONG_HEAD + counters + 2 * high_half(word)
    head = LONG_HEAD if variant == FREQUENT else LIST_HEAD
    return head + high_half(word) + 2 * low_half(words[first + 1])


@compiled_for(column(np.int64), column(np.uint64), output(np.int64))
def check(
    starts: NDArray[np.int64], words: Words, first_name: NDArray[np.int64]
) -> tuple[int, int, int, int, int]:
    """The fault found, or -1; bits of the variants and of the kinds; the bytes of all names; the
    place of a sketch. Names are counted on the way.
    """
    variants, kinds, name_bytes, sketch, names = 0, 0, 0, -1, 0
    for i in range(len(starts) - 1):
        first, end = starts[i], starts[i + 1]
        size = end - first
        if size < LIST_HEAD or end > len(words):
            return 0, 0, 0, 0, 0
        word = words[first]
        variant = variant_of(word)
        kind = np.int64(word >> np.uint64(28) & np.uint64(15))
        if word & np.uint64(0xFFFFFF) != MAGIC or variant < 1 or variant > RUNS or kind > 5:
            return 0, 0, 0, 0, 0
        before = before_names(words, first, size)
        if before < 0 or before > size:
            return 1, 0, 0, 0, 0
        at = first + before
        count = high_half(words[first + 1])
        for _ in range(count):
            if at + 2 > end or words[at + 1] > np.uint64(8 * (end - at - 2)):
                return 1, 0, 0, 0, 0
            length = np.int64(words[at + 1])
            name_bytes += int(length)
            at += 2 + (length + 7) // 8
        if at != end:
            return 1, 0, 0, 0, 0
        if variant == SKETCH:
            if sketch >= 0:
                other = starts[sketch]
                if words[other + 3] != words[first + 3] or words[other + 4] != words[first + 4]:
                    return 2, 0, 0, 0, 0
            sketch = i
        variants |= 1 << int(variant)
        if size > LIST_HEAD:  # an empty list has no kind
            kinds |= 1 << int(kind)
        names += count
        first_name[i + 1] = names
    return -1, variants, kinds, name_bytes, sketch


@compiled_for(column(np.int64), column(np.uint64), output(np.int64), output(np.uint8))
def copy_names(
    starts: NDArray[np.int64], words: Words, offsets: NDArray[np.int64], data: Bytes
) -> None:
    """The bytes of all names, one after the other."""
    number, used = 0, 0
    for i in range(len(starts) - 1):
        first = starts[i]
        at = first + before_names(words, first, starts[i + 1] - first)
        for _ in range(high_half(words[first + 1])):
            length = np.int64(words[at + 1])
            for k in range(length):
                word = words[at + 2 + k // 8]
                data[used + k] = np.uint8(word >> np.uint64(8 * (k % 8)) & np.uint64(255))
            used += int(length)
            number += 1
            offsets[number] = used
            at += 2 + (length + 7) // 8


@inlined
def name_words(ends: NDArray[np.int64], key: Any) -> Any:
    """The words that a named pair takes."""
    number = key & 0xFFFFFFFF
    return 2 + (ends[number + 1] - ends[number] + 7) // 8


@inlined
def put_name(
    words: Words, at: Any, ends: NDArray[np.int64], content: Bytes, key: Any, weight: Any
) -> Any:
    """Write a named pair at a place where all is 0; the place behind it."""
    number = key & 0xFFFFFFFF
    begin, length = ends[number], ends[number + 1] - ends[number]
    words[at] = np.uint64(weight)
    words[at + 1] = np.uint64(length)
    for k in range(length):
        words[at + 2 + k // 8] |= np.uint64(content[begin + k]) << np.uint64(8 * (k % 8))
    return at + 2 + (length + 7) // 8


@inlined
def head_word(variant: Any, kind: Any, count: Any) -> Any:
    return halves(MAGIC | variant << 24 | kind << 28, count)


@compiled_for(
    column(np.int64), column(np.uint64), column(np.int64),
    output(np.int64), output(np.int64), output(np.int64),
)  # fmt: skip
def list_pairs(
    starts: NDArray[np.int64],
    words: Words,
    names: Keys,
    places: Keys,
    keys: Keys,
    weights: Keys,
) -> int:
    """The pairs of lists: the place of the state that has a pair, its key and its weight; the
    number of pairs. Pairs without a weight are left out. There is room for as many pairs as there
    are words.
    """
    count, name = 0, 0
    for i in range(len(starts) - 1):
        first = starts[i]
        if variant_of(words[first]) == SKETCH:
            name += high_half(words[first + 1])
            continue
        at = first + (LONG_HEAD if variant_of(words[first]) == FREQUENT else LIST_HEAD)
        for _ in range(high_half(words[first])):
            keys[count] = np.int64(words[at] >> np.uint64(WEIGHT_BITS)) & 0xFFFFFFFF
            weights[count] = np.int64(words[at] & np.uint64(NARROW_MAX))
            places[count] = i
            count += int(weights[count] != 0)
            at += 1
        for _ in range(low_half(words[first + 1])):
            keys[count] = low_half(words[at])
            weights[count] = np.int64(words[at + 1]) & WEIGHT_MAX
            places[count] = i
            count += int(weights[count] != 0)
            at += 2
        for _ in range(high_half(words[first + 1])):
            keys[count] = names[name]
            weights[count] = np.int64(words[at]) & WEIGHT_MAX
            places[count] = i
            count += int(weights[count] != 0)
            name += 1
            at += 2 + (np.int64(words[at + 1]) + 7) // 8
    return count


def pairs_of(contents: Contents, names: Keys) -> tuple[Keys, Keys, Keys]:
    """The pairs of all lists: the place of the state that has a pair, its key and its weight."""
    room = len(contents.words) if contents.variants != {SKETCH} else 0
    places, keys, weights = np.empty((3, room), np.int64)
    if room:
        room = list_pairs(contents.starts, contents.words, names, places, keys, weights)
    return places[:room], keys[:room], weights[:room]
