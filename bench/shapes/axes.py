"""What a run may grow along, and a query set for each: the axes of `shapes`.

In: a folder for data and a size. Out: the text of a set and its source, of that size along one axis
while all else stays as it is. The work of a set may grow as fast as its size, and not faster. An
axis is run as a batch in one process without Spark, or as a stream in micro-batches of Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.shapes.captures import retimed
from bench.shapes.plain import run_set, source
from bench.shapes.sets import KINDS, many
from bench.shapes.streaming import run_stream

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

Made: TypeAlias = tuple[str, str]
"""The text of a set and its source."""
MOST_POWER: Final = 1.15
PACKETS: Final = 60_000
ROWS: Final = 200_000


@dataclass(frozen=True)
class Axis:
    """One way to grow."""

    name: str
    sizes: tuple[int, int, int]
    """Of the bench."""
    small: tuple[int, int, int]
    """Of the test: as small as can be if the power is to show."""
    make: Callable[[Path, int], Made]
    real: bool = False
    """Whether it needs real captures."""
    memory_bytes: int = 4 << 30
    """The memory that a task may use. By default groups of all sizes fit: where they no longer do,
    every group is written to disk and read again, and time doubles once."""
    batches: Callable[[int], int] | None = None
    """Micro-batches of a stream of some size; None: it is a batch."""

    @property
    def is_stream(self) -> bool:
        return self.batches is not None


def by_source(epoch: str, rest: str = "") -> str:
    return (
        "QUERY q: SELECT tb, srcIP, COUNT(*) AS n, SUM(len) AS total FROM PKT "
        f"GROUP BY {epoch} AS tb, srcIP {rest};"
    )


def epochs(folder: Path, size: int) -> Made:
    """The same packets, stretched over so many epochs of ten seconds."""
    path = retimed(folder / "epochs.pcap", 10.0 * size, PACKETS)
    return by_source("time/10"), source("eth0", "pcap", path)


def top_epochs(folder: Path, size: int) -> Made:
    text, bound = epochs(folder, size)
    return text.replace(" ;", " ORDER BY n DESC LIMIT 3;"), bound


def joined_epochs(folder: Path, size: int) -> Made:
    """A join of each epoch with the one before."""
    text, bound = epochs(folder, size)
    join = "QUERY j: SELECT a.tb, a.srcIP, a.n, b.n FROM q a JOIN q b "
    return f"{text} {join} ON a.srcIP = b.srcIP AND a.tb = b.tb + 1;", bound


def packets(folder: Path, size: int) -> Made:
    """Compressed: all packets within a minute."""
    path = retimed(folder / "packets.pcap", 60.0, size)
    return by_source("time/10"), source("eth0", "pcap", path)


def silence(folder: Path, size: int) -> Made:
    """A capture with `size` seconds of silence in its middle; windows slide over the gap."""
    path = retimed(folder / "silence.pcap", 600.0, PACKETS, float(size))
    window = "QUERY w: SELECT srcIP, COUNT(*) AS n FROM PKT [RANGE 60 SLIDE 10] GROUP BY srcIP; "
    return window + by_source("time/1"), source("eth0", "pcap", path)


TABLE: Final = "PROTOCOL T (time UINT increasing clock(s), k ULLONG, v ULLONG); "


def table(path: Path, times: np.ndarray, keys: np.ndarray) -> str:
    columns = {"time": times, "k": keys, "v": keys % 1000}
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: pa.array(values.astype(np.int64)) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), path, row_group_size=1 << 17)
    return source("link", "parquet", path)


def groups(folder: Path, size: int) -> Made:
    """As many groups as tuples, in one epoch."""
    keys = np.random.default_rng(1).permutation(size)
    bound = table(folder / f"groups-{size}.parquet", np.full(size, 600), keys)
    return TABLE + "QUERY q: SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/60 AS tb, k;", bound


def few_keys(folder: Path, name: str, rows: int = ROWS) -> str:
    numbers = np.arange(rows)
    return table(folder / f"{name}.parquet", numbers // 50, numbers % 50)


def queries(kind: str) -> Callable[[Path, int], Made]:
    """So many queries of a kind."""

    def make(folder: Path, size: int) -> Made:
        return TABLE + many(kind, size), few_keys(folder, "queries", 20_000)

    return make


def columns(folder: Path, size: int) -> Made:
    """So many computed columns of groups."""
    items = ", ".join(f"SUM(v) + {i} AS c{i}" for i in range(size))
    return TABLE + f"QUERY q: SELECT tb, k, {items} FROM T GROUP BY time/60 AS tb, k;", few_keys(
        folder, "columns"
    )


def listed(folder: Path, size: int) -> Made:
    """So many values in an IN list."""
    values = ", ".join(str(2 * i) for i in range(size))
    text = f"QUERY q: SELECT tb, COUNT(*) AS n FROM T WHERE v IN ({values}) GROUP BY time/60 AS tb;"
    return TABLE + text, few_keys(folder, "listed")


def windows(folder: Path, size: int) -> Made:
    """Windows of so many slices. Every second has tuples of all groups: the rows stay as many."""
    text = f"QUERY q: SELECT k, COUNT(*) AS n FROM T [RANGE {size} SLIDE 1] GROUP BY k;"
    return TABLE + text, few_keys(folder, "windows")


def files(folder: Path, size: int) -> Made:
    """A folder of so many small files."""
    place = folder / f"files-{size}"
    place.mkdir(parents=True, exist_ok=True)
    for i in range(size):
        table(place / f"{i:06}.parquet", np.arange(20) + 20 * i, np.arange(20))
    return TABLE + "QUERY q: SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/60 AS tb, k;", source(
        "link", "parquet", place
    )


def pieces(folder: Path, size: int) -> Made:
    """The same packets, whatever the number of micro-batches they are read in."""
    del size
    return epochs(folder, 600)


def a_few(size: int) -> int:
    """Micro-batches where their number is not what grows."""
    del size
    return FEW_BATCHES


def itself(size: int) -> int:
    return size


FEW_BATCHES: Final = 4
LITTLE_MEMORY: Final = 128 << 20
"""Groups of the smallest size do not fit, and a sixteenth of the largest does: every group is
written to disk once."""
MANY_EPOCHS: Final = (3_000, 12_000, 48_000)
FEW_EPOCHS: Final = (1_000, 4_000, 16_000)
SILENCES: Final = (10**3, 10**6, 10**9)
SLICES: Final = (60, 600, 3_000)
MANY_GROUPS: Final = (1_000_000, 3_000_000, 9_000_000)
FEW_GROUPS: Final = (500_000, 1_000_000, 2_000_000)
BATCH_AXES: Final = (
    Axis("epochs", MANY_EPOCHS, FEW_EPOCHS, epochs, True),
    Axis("epochs, ORDER BY LIMIT", MANY_EPOCHS, FEW_EPOCHS, top_epochs, True),
    Axis("epochs, joined", MANY_EPOCHS, FEW_EPOCHS, joined_epochs, True),
    Axis("packets", (200_000, 400_000, 800_000), (40_000, 80_000, 160_000), packets, True),
    Axis("seconds of silence", SILENCES, SILENCES, silence, True),
    Axis("groups", MANY_GROUPS, FEW_GROUPS, groups),
    Axis("groups, spilled", MANY_GROUPS, FEW_GROUPS, groups, memory_bytes=LITTLE_MEMORY),
    *(Axis(kind, (20, 60, 180), (10, 40, 120), queries(kind)) for kind in KINDS),
    Axis("columns", (50, 150, 450), (50, 200, 800), columns),
    Axis("IN list", (1_000, 10_000, 100_000), (100, 500, 2_500), listed),
    Axis("slices of a window", SLICES, SLICES, windows),
    Axis("files", (250, 1_000, 4_000), (30, 90, 270), files),
)
STREAM_AXES: Final = (
    Axis("stream: epochs", MANY_EPOCHS, (500, 2_000, 8_000), epochs, True, batches=a_few),
    Axis("stream: seconds of silence", SILENCES, SILENCES, silence, True, batches=a_few),
    Axis("stream: micro-batches", (10, 40, 160), (3, 9, 27), pieces, True, batches=itself),
    Axis("stream: groups", (250_000, 1_000_000, 4_000_000), (20_000, 80_000, 320_000), groups,
         batches=a_few),
    Axis("stream: queries", (10, 40, 160), (3, 9, 27), queries("queries"), batches=a_few),
    Axis("stream: slices of a window", SLICES, SLICES, windows, batches=a_few),
    Axis("stream: files", (50, 200, 800), (10, 30, 90), files, batches=a_few),
)  # fmt: skip
AXES: Final = BATCH_AXES + STREAM_AXES


def measured(
    axis: Axis, sizes: Sequence[int], folder: Path, runs: int, spark: SparkSession | None = None
) -> list[float]:
    """Processor time for each size: the best of some runs, after one that does not count. A stream
    needs a session.
    """
    made = [axis.make(folder / str(size), size) for size in ensured(folder, sizes)]
    best = [math.inf] * len(made)
    for run in range(runs + 1):
        for place, (text, bound) in enumerate(made):
            seconds = once(axis, sizes[place], text, bound, spark)
            if run:
                best[place] = min(best[place], seconds)
    return best


def once(axis: Axis, size: int, text: str, bound: str, spark: SparkSession | None) -> float:
    """Processor time of one run."""
    if axis.batches is None:
        return run_set(text, [bound], axis.memory_bytes).seconds
    assert spark is not None, "a stream needs a session"
    return run_stream(text, bound, axis.batches(size), spark).seconds


def ensured(folder: Path, sizes: Sequence[int]) -> Sequence[int]:
    for size in sizes:
        (folder / str(size)).mkdir(parents=True, exist_ok=True)
    return sizes


NOISE: Final = 0.03
"""Of the time of the smallest size: less than this is not taken for growth."""
STEEPEST: Final = 4.0


def power(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """With which power of the size time grows: p in time = a + b * size^p, which three sizes
    determine. Every run has a cost `a` that does not grow; it may not hide how the rest does.

    Where the largest size takes less than twice the time of the smallest, what grows cannot be told
    from noise, and it is the slope between the logarithms of the two larger sizes.
    """
    small, middle, large = seconds
    if large < 2 * small:
        return math.log(large / middle) / math.log(sizes[2] / sizes[1])
    steps = (large - middle) / max(middle - small, NOISE * small)
    low, high = -STEEPEST, STEEPEST
    while high - low > 1e-6:
        guess = (low + high) / 2
        low, high = (guess, high) if steps_of(sizes, guess) < steps else (low, guess)
    return low


def steps_of(sizes: Sequence[int], guess: float) -> float:
    """The larger step of size^p by the smaller one; it grows with the power."""
    first, second, third = (math.log(size / sizes[0]) for size in sizes)
    if abs(guess) < 1e-9:
        return (third - second) / (second - first)
    return (math.exp(guess * third) - math.exp(guess * second)) / math.expm1(guess * second)
