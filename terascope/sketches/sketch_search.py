"""Estimates from one packed sketch, and the search for heavy prefixes (paper 1, 4.2).

In: a packed sketch that was checked. Out: `Sketch`, its counters and candidates. The search begins
with the exact counts of the prefixes of 8 bits and descends from level to level to the prefixes
that have at least the weight asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.sketches.count_min import (
    SEARCHED_BITS,
    SketchSize,
    estimate_bits,
    estimate_key,
    is_scrambled,
    unscrambled,
)
from terascope.sketches.hitter_ids import HitterIds, Keys, Prefixes, Words
from terascope.sketches.hitter_layout import LONG_HEAD, WEIGHT_MAX, Contents


@dataclass(frozen=True)
class Sketch:
    """The counters of a packed sketch, with 64 bits each."""

    size: SketchSize
    cells: Words
    candidates: Mapping[int, int]
    """The keys of candidates, and bounds on their weights."""
    ids: HitterIds

    @property
    def sizes(self) -> Keys:
        return self.size.array(self.ids.kind)

    @property
    def keys(self) -> Keys:
        return np.array(list(self.candidates), np.int64)

    def estimates(self, keys: Keys) -> Keys:
        found = np.empty(len(keys), np.int64)
        estimate_keys(self.cells, keys, self.sizes, self.ids.prefixes, found)
        bounds = [self.candidates.get(key, WEIGHT_MAX) for key in keys.tolist()]
        return np.minimum(found, np.array(bounds, np.int64))

    def search(self, threshold: int, levels: int) -> tuple[Keys, Keys]:
        """The plain identifiers with at least a weight, or their prefixes `levels` levels above
        them, and estimates. Prefixes are those of the bits that the sketch counts.
        """
        found = np.arange(256, dtype=np.int64)
        estimates = self.cells[:256].astype(np.int64)
        heavy = estimates >= max(1, threshold)
        found, estimates = found[heavy], estimates[heavy]
        for level in range(self.size.levels - 1, levels - 1, -1):
            found, estimates = children(self, found, estimates, level, max(1, threshold))
        if not levels and is_scrambled(self.ids.kind):
            found = unscrambled(found)
        return found, estimates


def sketch_of(contents: Contents, names: Keys, ids: HitterIds) -> Sketch:
    words = contents.words
    sizes = int(words[3])
    size = SketchSize(sizes & 0xFFFFFFFF, sizes >> 32 & 0xFFFF, sizes >> 48, int(words[4]))
    wide = int(words[1]) & 1
    end = LONG_HEAD + (size.cells if wide else size.cells // 2)
    held = words[LONG_HEAD:end]
    cells = held.copy() if wide else held.view(np.uint32).astype(np.uint64)
    candidates: dict[int, int] = {}
    for at in range(end, end + 2 * (int(words[0]) >> 32), 2):
        candidates[int(words[at]) & 0xFFFFFFFF] = int(words[at + 1]) & WEIGHT_MAX
    at = end + 2 * (int(words[0]) >> 32)
    for key in names.tolist():
        candidates[key] = int(words[at]) & WEIGHT_MAX
        at += 2 + (int(words[at + 1]) + 7) // 8
    return Sketch(size, cells & np.uint64(WEIGHT_MAX), candidates, ids)


@compiled_for(
    column(np.uint64), column(np.int64), column(np.int64), column(np.int64, 2), output(np.int64)
)
def estimate_keys(
    cells: Words, keys: Keys, sizes: Keys, prefixes: Prefixes, found: NDArray[np.int64]
) -> None:
    for k in range(len(keys)):
        found[k] = estimate_key(cells, np.uint64(0), keys[k], sizes, prefixes)


@compiled_for(
    column(np.uint64), column(np.int64, 1, "A"), INTEGER, column(np.int64), output(np.int64)
)
def estimate_prefixes(
    cells: Words, bits: Keys, level: int, sizes: Keys, found: NDArray[np.int64]
) -> None:
    for k in range(len(bits)):
        found[k] = estimate_bits(cells, np.uint64(0), np.uint64(bits[k]), level, sizes)


def children(
    sketch: Sketch, found: Keys, estimates: Keys, level: int, threshold: int
) -> tuple[Keys, Keys]:
    """The prefixes one level below some prefixes that have at least a weight."""
    step = SEARCHED_BITS // sketch.size.levels
    inner = (found[:, None] << step | np.arange(1 << step)).reshape(-1)
    bounds = np.repeat(estimates, 1 << step)
    below = np.empty(len(inner), np.int64)
    estimate_prefixes(sketch.cells, inner, level, sketch.sizes, below)
    below = np.minimum(below, bounds)
    heavy = below >= threshold
    return inner[heavy], below[heavy]
