"""Heavy hitters of many groups as text, all at once.

In: a column of packed states of heavy hitters. Out: the list of each in JSON, the same that
terascope.functions.hitter_lists writes for one. One kernel reads the states, keeps the k heaviest
identifiers of each in order, and writes their text. Identifiers with names, which are text, IPv6
addresses, FLOATs and large numbers, are written in Python, once for the whole column.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.hitter_lists import written
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.count_min import estimate_key, is_scrambled
from terascope.sketches.hitter_answers import identifier_of, rank
from terascope.sketches.hitter_ids import NAMED, Bytes, HitterIds, IdKind, Keys, Prefixes, Words
from terascope.sketches.hitter_layout import (
    FREQUENT,
    LIST_HEAD,
    LONG_HEAD,
    NARROW_MAX,
    RUNS,
    SKETCH,
    WEIGHT_BITS,
    WEIGHT_MAX,
    Contents,
    cells_of,
    contents_of,
    high_half,
    low_half,
    named_keys,
    sketch_words,
    variant_of,
)
from terascope.sketches.pair_tables import plus
from terascope.sketches.sketch_rows import unpack_counters

Ints: TypeAlias = NDArray[np.int64]

ENTRY_BYTES: Final = 100
"""The most bytes of an entry of a list without its name."""
FIRST_ENTRY_BYTES: Final = 48
"""The bytes that an entry with small numbers takes, as most entries are."""


def listed_column(
    packed: pa.Array, k: int, with_other: bool, one: Callable[[bytes], str | None]
) -> pa.Array:
    """The k heaviest identifiers of each state, and the weight of all others if it is wanted. `one`
    makes the list of a single state: of bytes that are no state, or of one whose identifiers repeat
    or are found by search.
    """
    held = packed.cast(pa.large_binary())
    states = held.drop_null() if held.null_count else held
    try:
        contents = contents_of(states)
    except ValueError:
        contents = None
    if contents is None or not is_listed(contents):
        return pa.array([None if s is None else one(s) for s in held.to_pylist()], pa.string())
    texts = lists_of(contents, k, with_other)
    if not held.null_count:
        return texts
    there = held.is_valid().to_numpy(zero_copy_only=False)
    return texts.take(pa.array(np.cumsum(there) - 1, mask=~there))


def is_listed(contents: Contents) -> bool:
    """Whether the states name their heaviest identifiers, each of them once."""
    if RUNS in contents.variants:
        return False
    return contents.sketch < 0 or contents.words[contents.starts[contents.sketch] + 4] > 0


def lists_of(contents: Contents, k: int, with_other: bool) -> pa.Array:
    ids = HitterIds(IdKind.NOTHING)
    keys = named_keys(contents, ids)
    names = NameTexts.of(ids)
    count = len(contents.starts) - 1
    offsets, empty = np.zeros(count + 1, np.int64), np.zeros(count, np.bool_)
    text = np.empty(4096 + min(k, 8) * count * FIRST_ENTRY_BYTES, np.uint8)
    at = 0
    while at < count:
        at = write_lists(
            contents.starts, contents.words, keys, contents.first_name, ids.prefixes, names.ranks,
            names.ends, names.texts, int(ids.kind), int(is_scrambled(ids.kind)), k,
            int(with_other), at, offsets, empty, text,
        )  # fmt: skip
        if at < count:
            text = np.concatenate([text, np.empty(len(text) + names.longest * k, np.uint8)])
    buffers = [pa.array(~empty).buffers()[1] if empty.any() else None]
    buffers += [pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers).cast(pa.string())


@dataclass(frozen=True)
class NameTexts:
    """The names of a column as JSON."""

    ends: Ints
    texts: Bytes
    longest: int
    ranks: Ints
    """Numbers that sort as the names do, among each other and among plain identifiers."""

    @classmethod
    def of(cls, ids: HitterIds) -> NameTexts:
        values = [identifier_of(ids, NAMED | number) for number in range(ids.count)]
        texts = [json.dumps(written(v), ensure_ascii=False).encode("utf-8") for v in values]
        ends = np.cumsum([0, *map(len, texts)]).astype(np.int64)
        ranks = np.empty(len(values), np.int64)
        order = sorted(range(len(values)), key=lambda number: rank(values[number]))
        below = sum(isinstance(value, int) and value < 0 for value in values)
        ranks[order] = np.arange(len(values)) - below
        ranks[ranks >= 0] += NAMED
        longest = int(np.diff(ends).max(initial=0))
        return cls(ends, np.frombuffer(b"".join(texts), np.uint8), longest, ranks)


# ---- the kernel ----------------------------------------------------------------------------------


def constant(text: bytes) -> Bytes:
    return np.frombuffer(text, np.uint8)


ID: Final = constant(b'{"id": ')
ESTIMATE: Final = constant(b', "estimate": ')
ERROR: Final = constant(b', "error": ')
OTHER: Final = constant(b'{"id": null, "other": ')
TRUE: Final = constant(b"true")
FALSE: Final = constant(b"false")
PAIRS: Final = constant("".join(f"{number:02d}" for number in range(100)).encode())
COMMA, SPACE, OPEN, CLOSE, BRACE, QUOTE, DOT, ZERO = b', []}".0'


@inlined
def put(text: Bytes, at: Any, part: Bytes) -> Any:
    for k in range(np.uint64(len(part))):
        text[at + k] = part[k]
    return at + np.uint64(len(part))


@inlined
def put_one(text: Bytes, at: Any, letter: Any) -> Any:
    text[at] = np.uint8(letter)
    return at + np.uint64(1)


@inlined
def put_number(text: Bytes, at: Any, number: Any) -> Any:
    """Write a number that is not negative, in decimal, two digits at a time."""
    rest, digits = np.uint64(number), np.uint64(1)
    if rest >= np.uint64(10):
        digits += np.uint64(1)
        power = np.uint64(100)
        while digits < np.uint64(19) and rest >= power:
            digits += np.uint64(1)
            power *= np.uint64(10)
    place = at + digits
    while rest >= np.uint64(100):
        place -= np.uint64(2)
        pair = np.uint64(2) * (rest % np.uint64(100))
        rest //= np.uint64(100)
        text[place] = PAIRS[pair]
        text[place + np.uint64(1)] = PAIRS[pair + np.uint64(1)]
    if rest >= np.uint64(10):
        text[at] = PAIRS[np.uint64(2) * rest]
        text[at + np.uint64(1)] = PAIRS[np.uint64(2) * rest + np.uint64(1)]
    else:
        text[at] = np.uint8(ZERO + rest)
    return at + digits


@inlined
def put_identifier(text: Bytes, at: Any, key: Any, kind: Any, ends: Ints, texts: Bytes) -> Any:
    if key >= NAMED:
        number = key - NAMED
        return put(text, at, texts[ends[number] : ends[number + 1]])
    if kind == IdKind.BOOL.value:
        return put(text, at, TRUE if key != 0 else FALSE)
    if kind != IdKind.ADDRESS.value:
        return put_number(text, at, key)
    at = put_one(text, at, QUOTE)
    for shift in (24, 16, 8, 0):
        at = put_number(text, at, key >> shift & 255)
        at = put_one(text, at, DOT if shift > 0 else QUOTE)
    return at


@inlined
def keep(
    heaviest: Keys, weights: Keys, kept: Any, key: Any, weight: Any, k: Any, ranks: Ints
) -> Any:
    """Put an identifier among the k heaviest so far, if it is one of them; how many there are."""
    if kept == k and weight < weights[k - 1]:
        return kept
    own = key if key < NAMED else ranks[key - NAMED]
    at = kept
    while at > 0:
        other = heaviest[at - 1]
        if weights[at - 1] > weight:
            break
        if weights[at - 1] == weight and (other if other < NAMED else ranks[other - NAMED]) < own:
            break
        at -= 1
    if at == k:
        return kept
    last = kept if kept < k else k - 1
    for place in range(last, at, -1):
        heaviest[place] = heaviest[place - 1]
        weights[place] = weights[place - 1]
    heaviest[at] = key
    weights[at] = weight
    return last + 1


@compiled_for(
    column(np.int64), column(np.uint64), column(np.int64), column(np.int64), column(np.int64, 2),
    column(np.int64), column(np.int64), column(np.uint8), INTEGER, INTEGER, INTEGER, INTEGER,
    INTEGER, output(np.int64), output(np.bool_), output(np.uint8),
)  # fmt: skip
def write_lists(
    starts: Ints,
    words: Words,
    names: Keys,
    first_name: Ints,
    prefixes: Prefixes,
    ranks: Ints,
    ends: Ints,
    texts: Bytes,
    kind: int,
    scrambled: int,
    k: int,
    with_other: int,
    start: int,
    offsets: Ints,
    empty: NDArray[np.bool_],
    text: Bytes,
) -> int:
    """Write the lists of states from `start` on; the place of the first one without room."""
    heaviest, weights = np.empty(k, np.int64), np.empty(k, np.int64)
    sizes, cells = np.zeros(6, np.int64), np.empty(0, np.uint64)
    at = np.uint64(offsets[start])
    for i in range(start, len(starts) - 1):
        first = starts[i]
        variant = variant_of(words[first])
        kept, total, offset, error = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        place = np.uint64(first + LIST_HEAD)
        narrow, wide = high_half(words[first]), low_half(words[first + 1])
        if variant == SKETCH:
            width, shape = low_half(words[first + 3]), high_half(words[first + 3])
            sizes[0] = 0
            while 1 << sizes[0] < width:
                sizes[0] += 1
            sizes[1], sizes[2], sizes[5] = shape & 0xFFFF, shape >> 16, scrambled
            cells = unpack_counters(words, first, cells_of(width, sizes[1], sizes[2]))
            place = np.uint64(first + LONG_HEAD + sketch_words(words, first))
            narrow, wide = np.int64(0), narrow
        elif variant == FREQUENT:
            offset = np.int64(words[first + 2] & np.uint64(WEIGHT_MAX))
            place = np.uint64(first + LONG_HEAD)
        least, last = np.int64(0), np.int64(0)  # the lightest of k identifiers that are kept
        for _ in range(narrow):
            word = words[place]
            place += np.uint64(1)
            weight = np.int64(word & np.uint64(NARROW_MAX))
            total += weight
            if weight < least:
                continue
            key = np.int64(word >> np.uint64(WEIGHT_BITS)) & 0xFFFFFFFF
            if weight > least or key < last:
                kept = keep(heaviest, weights, kept, key, weight, k, ranks)
                if kept == k:
                    least, last = weights[k - 1], heaviest[k - 1]
        for number in range(wide + first_name[i + 1] - first_name[i]):
            if number < wide:
                key = low_half(words[place])
                weight = np.int64(words[place + np.uint64(1)] & np.uint64(WEIGHT_MAX))
                place += np.uint64(2)
            else:
                key = names[first_name[i] + number - wide]
                weight = np.int64(words[place] & np.uint64(WEIGHT_MAX))
                size = np.int64(words[place + np.uint64(1)])
                place += np.uint64(2 + (size + 7) // 8)
            total = plus(total, weight)
            if variant == SKETCH:
                weight = min(weight, estimate_key(cells, np.uint64(0), key, sizes, prefixes))
            if weight > 0:
                kept = keep(heaviest, weights, kept, key, weight, k, ranks)
        if variant == SKETCH:
            total = np.int64(words[first + 2] & np.uint64(WEIGHT_MAX))
            error = np.int64(np.ceil(np.e * total / low_half(words[first + 3])))
        elif variant == FREQUENT:
            total, error = np.int64(words[first + 3] & np.uint64(WEIGHT_MAX)), offset
        size = (kept + 1) * ENTRY_BYTES
        for j in range(kept):
            if heaviest[j] >= NAMED:
                size += ends[heaviest[j] - NAMED + 1] - ends[heaviest[j] - NAMED]
        if at + np.uint64(size) > np.uint64(len(text)):
            return i
        empty[i] = total == 0
        if total > 0:
            other = total
            at = put_one(text, at, OPEN)
            for j in range(kept):
                if j > 0:
                    at = put_one(text, put_one(text, at, COMMA), SPACE)
                estimate = plus(weights[j], offset)
                off = min(error, estimate)
                other -= estimate - off
                at = put_identifier(text, put(text, at, ID), heaviest[j], kind, ends, texts)
                at = put_number(text, put(text, at, ESTIMATE), estimate)
                at = put_number(text, put(text, at, ERROR), off)
                at = put_one(text, at, BRACE)
            if with_other != 0:
                if kept > 0:
                    at = put_one(text, put_one(text, at, COMMA), SPACE)
                at = put_number(text, put(text, at, OTHER), max(0, other))
                at = put_one(text, at, BRACE)
            at = put_one(text, at, CLOSE)
        offsets[i + 1] = np.int64(at)
    return len(starts) - 1
