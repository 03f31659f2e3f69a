"""The stream and the query sets of paper 0, section 6: a day of TCP SYNs, windows of one slide.

In: a seed. Out: (time, srcIP) of 523,761 SYNs over 24 hours as Parquet, made once; and sets of n
queries with the same integer slide in (1000, 2000) s and integer ranges in (1500, 2500) s, all
different and longer than the slide. The sensor's log is not public: SYNs come at one rate all day,
and the shares of the sources follow Zipf's law. The number of sources and the exponent are those
for which the numbers of groups come nearest to what the paper says of grouped communication (figure
7).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bench.cache.streams import zipf_shares
from bench.harness import made_once
from terascope.sharing.slices import Periodic

TUPLES = 523_761
DAY = 86_400
SOURCES, EXPONENT = 1260, 1.1
SIZES = (2, 4, 8, 16, 32)
QUICK_SETS = 3
SLIDES, RANGES = (1000, 2000), (1500, 2500)
"""Both ends excluded."""
ROW_GROUP = 1 << 16
PROTOCOL = "PROTOCOL SNORT (time UINT increasing clock(s), srcIP UINT);\n"


@dataclass(frozen=True)
class Syns:
    """In order of time."""

    times: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]
    """Numbers from 0 on."""

    def __len__(self) -> int:
        return len(self.times)


def syns(seed: int, tuples: int = TUPLES) -> Syns:
    chance = np.random.default_rng([seed, tuples, SOURCES])
    times = np.sort(chance.integers(0, DAY, tuples))
    ranks = np.searchsorted(zipf_shares(SOURCES, EXPONENT), chance.random(tuples), side="right")
    return Syns(times, np.minimum(ranks, SOURCES - 1))


def syn_file(folder: Path, seed: int, tuples: int = TUPLES) -> Path:
    """The SYNs, made once."""
    return made_once(
        folder / f"syns-{tuples}-seed{seed}.parquet", lambda path: write(syns(seed, tuples), path)
    )


def write(stream: Syns, path: Path) -> None:
    columns = [pa.array(c, pa.uint32()) for c in (stream.times, stream.sources)]
    pq.write_table(pa.table(columns, ["time", "srcIP"]), path, row_group_size=ROW_GROUP)


def query_set(n: int, seed: int) -> tuple[Periodic, ...]:
    """One of the sets of n queries."""
    chance = np.random.default_rng([seed, n])
    slide = between(chance, *SLIDES)
    windows: list[Periodic] = []
    while len(windows) < n:
        window = Periodic(between(chance, *RANGES), slide)
        if window.range > slide and window not in windows:
            windows.append(window)
    return tuple(windows)


def between(chance: np.random.Generator, low: int, high: int) -> int:
    return int(chance.integers(low + 1, high))


def query_sets(n: int, sets: int, seed: int) -> list[tuple[Periodic, ...]]:
    return [query_set(n, seed * 1_000 + number) for number in range(sets)]


def gsql(windows: tuple[Periodic, ...], grouped: bool) -> str:
    """Paper 0's query 1, or query 2."""
    columns, group = ("wend, srcIP, ", " GROUP BY srcIP") if grouped else ("wend, ", "")
    queries = (
        f"QUERY q{number}:\nSELECT {columns}COUNT(*) AS n\n"
        f"FROM snort.SNORT [RANGE '{w.range} sec' SLIDE '{w.slide} sec']{group};\n"
        for number, w in enumerate(windows)
    )
    return "\n".join([PROTOCOL, *queries])
