"""Paper 4, section III-C: how long chains are when b groups stand in b buckets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.cache.placement import chain_lengths
from terascope.functions.slots import COUNT
from terascope.kernels.tables.bounded_tables import BoundedTable
from terascope.kernels.tables.slots import Shape

SHAPE: Final = Shape(2, (COUNT,), with_epoch=True)
BUCKETS: Final = tuple(range(10_000, 100_001, 10_000))
PAPER_LONGEST: Final = (6, 8)
PAPER_MEAN: Final = 1.6


@dataclass(frozen=True)
class Chains:
    """Averages over the fillings."""

    longest: float
    mean: float
    """Of the buckets that are not empty."""


def chains(buckets: int, fillings: int, seed: int) -> Chains:
    """Tables filled with b groups each, others every time."""
    chance = np.random.default_rng([seed, buckets])
    rows = np.arange(buckets, dtype=np.int32)
    epochs = np.zeros(buckets, np.int64)
    longest, mean = [], []
    for _ in range(fillings):
        table = BoundedTable(SHAPE, "lru", buckets, "eager", lambda rows: None)
        some = chance.integers(0, 2**31, buckets, dtype=np.int32)
        table.add(epochs, rows, [some, rows], [], [])  # the second key makes them all different
        lengths = chain_lengths(table)
        longest.append(lengths.max())
        mean.append(lengths[lengths > 0].mean())
    return Chains(float(np.mean(longest)), float(np.mean(mean)))
