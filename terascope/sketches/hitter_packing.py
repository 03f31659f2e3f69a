"""Lists of pairs as packed states (terascope.sketches.hitter_layout).

In: the pairs of several states. Out: a packed list of each.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Packed, packed_of
from terascope.sketches.hitter_ids import NAMED, Bytes, HitterIds, Keys, Words
from terascope.sketches.hitter_layout import (
    LIST,
    LIST_HEAD,
    LONG_HEAD,
    NARROW_MAX,
    WEIGHT_BITS,
    halves,
    head_word,
    name_words,
    put_name,
)

NO_EXTRA: Final = np.zeros((0, 3), np.int64)


def pack_pairs(
    bounds: NDArray[np.int64],
    keys: Keys,
    weights: Keys,
    ids: HitterIds,
    variant: int = LIST,
    extra: NDArray[np.int64] = NO_EXTRA,
) -> Packed:
    """The lists of several states: state i has the pairs bounds[i] to bounds[i + 1]. FREQUENT
    states have three numbers each in `extra`.
    """
    offsets = np.zeros(len(bounds), np.int64)
    measure_pairs(bounds, keys, weights, ids.ends, len(extra), offsets)
    words = np.zeros(int(offsets[-1]), np.uint64)
    head = variant | int(ids.kind) << 4
    write_pairs(bounds, keys, weights, ids.ends, ids.content, head, extra, offsets, words)
    return packed_of(8 * offsets, words.view(np.uint8))


@inlined
def is_narrow(key: Any, weight: Any) -> bool:
    return bool(key < NAMED and weight <= NARROW_MAX)


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64), INTEGER,
    output(np.int64),
)  # fmt: skip
def measure_pairs(
    bounds: NDArray[np.int64],
    keys: Keys,
    weights: Keys,
    ends: NDArray[np.int64],
    extra: int,
    offsets: NDArray[np.int64],
) -> None:
    for i in range(len(bounds) - 1):
        size = LIST_HEAD if extra == 0 else LONG_HEAD
        for k in range(bounds[i], bounds[i + 1]):
            if keys[k] >= NAMED:
                size += name_words(ends, keys[k])
            else:
                size += 1 if weights[k] <= NARROW_MAX else 2
        offsets[i + 1] = offsets[i] + size


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), column(np.int64), column(np.uint8),
    INTEGER, column(np.int64, 2), column(np.int64), output(np.uint64),
)  # fmt: skip
def write_pairs(
    bounds: NDArray[np.int64],
    keys: Keys,
    weights: Keys,
    ends: NDArray[np.int64],
    content: Bytes,
    head: int,
    extra: NDArray[np.int64],
    offsets: NDArray[np.int64],
    words: Words,
) -> None:
    """Write the lists; the words are 0. `head`: the variant, and the kind of identifiers."""
    for i in range(len(bounds) - 1):
        first = offsets[i]
        at = first + LIST_HEAD
        if len(extra) > 0:
            for k in range(3):
                words[at + k] = np.uint64(extra[i, k])
            at = first + LONG_HEAD
        narrow, wide, named = 0, 0, 0
        for k in range(bounds[i], bounds[i + 1]):
            if is_narrow(keys[k], weights[k]):
                words[at] = np.uint64(keys[k]) << np.uint64(WEIGHT_BITS) | np.uint64(weights[k])
                narrow += 1
                at += 1
        if narrow < bounds[i + 1] - bounds[i]:
            for k in range(bounds[i], bounds[i + 1]):
                if keys[k] < NAMED and weights[k] > NARROW_MAX:
                    words[at] = np.uint64(keys[k])
                    words[at + 1] = np.uint64(weights[k])
                    wide += 1
                    at += 2
            for k in range(bounds[i], bounds[i + 1]):
                if keys[k] >= NAMED:
                    at = put_name(words, at, ends, content, keys[k], weights[k])
                    named += 1
        words[first] = head_word(head & 15, head >> 4, narrow)
        words[first + 1] = halves(wide, named)
