"""The traffic generator of paper 1, section 5, as Parquet files.

In: how many groups, how many values each of them has, and whether they are skewed. Out: a file with
the interval `tb`, the group `srcIP`, the length `len` and the value of every packet, twice: as
`destIP`, a random address, and as `destPort`, one of consecutive numbers, which share their upper
bits, so that the coarser levels of a sketch do not tell them apart. The
paper's generator draws groups and values independently and uniformly, 310,000 packets a second with
782 bytes in the mean, and aggregates over 10 seconds. Skewed traffic has groups and values that
follow Zipf's law.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.cache.streams import zipf_shares
from bench.experiment import Settings
from bench.harness import made_once
from bench.trees.streams import Column

INTERVAL_PACKETS: Final = 3_100_000
"""Of 10 seconds."""
SHORTEST: Final = 64
LENGTHS: Final = 1436
"""From 64 on: 782 bytes in the mean."""
EXPONENT: Final = 1.1
"""Of skewed groups and values; the paper does not say its own."""
FIRST_PORT: Final = 1024
ROW_GROUP: Final = 1 << 17


@dataclass(frozen=True)
class Generated:
    """Traffic of one kind."""

    groups: int
    values: int
    """The number of different values of an attribute, the same ones in all groups."""
    skewed: bool = False
    intervals: int = 1
    """Of 10 seconds."""

    def __str__(self) -> str:
        law = "skewed" if self.skewed else "uniform"
        return f"{self.groups:,} groups, {self.values:,} values, {law}"

    @property
    def file_name(self) -> str:
        return f"udafs-{self.groups}-{self.values}-{'skewed' if self.skewed else 'uniform'}"

    def path(self, settings: Settings) -> Path:
        """The file, made once for each scale and seed."""
        count = self.intervals * settings.count(INTERVAL_PACKETS)
        file = settings.data / f"{self.file_name}-{count}-seed{settings.seed}.parquet"
        return made_once(file, lambda path: self._write(path, count, settings.seed))

    def _write(self, path: Path, count: int, seed: int) -> None:
        chance = np.random.default_rng([seed, self.groups, self.values, self.skewed])
        addresses = chance.choice(1 << 32, self.values, replace=False)
        values = drawn(self.values, self.skewed, count, chance)
        columns = {
            "tb": np.arange(count) * self.intervals // count,
            "srcIP": drawn(self.groups, self.skewed, count, chance),
            "destIP": addresses[values],
            "destPort": FIRST_PORT + values,
            "len": lengths(drawn(self.values, self.skewed, count, chance), self.values),
        }
        pq.write_table(pa.table(columns), path, row_group_size=ROW_GROUP)


def drawn(values: int, skewed: bool, count: int, chance: np.random.Generator) -> Column:
    """Numbers of values, the most frequent ones anywhere among the others."""
    if not skewed:
        return chance.integers(0, values, count)
    shares = zipf_shares(values, EXPONENT)
    ranks = np.minimum(np.searchsorted(shares, chance.random(count), side="right"), values - 1)
    return chance.permutation(values)[ranks]


def lengths(numbers: Column, values: int) -> Column:
    """The lengths of packets, evenly over all that there are."""
    return SHORTEST + numbers * LENGTHS // values
