"""Streams in epochs, for the experiments of paper 4.

In: the settings of a bench. Out: Parquet files with one row group for each epoch: the epoch `tb`,
and thirteen attributes as numbers.

- `zipf`, `uniform`: attributes drawn independently of each other, tuple by tuple, from as many
  values as flow records have; Zipf-like with the paper's exponents and smaller ones, or uniform.
- `generated`: `terascope generate --flows`, twenty minutes; tuples are independent draws from a
  population of conversations, so attributes depend on each other.
- `real`: three days of connections of a host in a public cloud, a day an epoch, in their order.
  NetFlow's thirteen attributes are not all there; networks, and sizes to powers of two, stand in.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from gzip import decompress
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.experiment import Settings
from bench.group_counts import REAL_FLOWS
from bench.harness import made_once
from terascope.traffic.flow_records import ATTRIBUTES, flow_batches
from terascope.traffic.profile import FlowProfile

Column: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = Mapping[str, Column]

EPOCHS: Final = 4
EPOCH_SECONDS: Final = 300
EPOCH_RECORDS: Final = 400_000
"""As in the paper's trace of Indianapolis."""
DRAWN: Final = {
    "srcIP": (20_000, 0.85),
    "dstIP": (20_000, 0.85),
    "srcPort": (30_000, 0.48),
    "dstPort": (5_000, 1.1),
    "protocol": (4, 0.67),
    "tos": (8, 0.0),
    "tcp_flags": (12, 0.48),
    "input": (24, 0.48),
    "output": (24, 0.48),
    "srcAS": (1_000, 0.67),
    "dstAS": (1_000, 0.67),
    "srcMask": (16, 0.0),
    "dstMask": (16, 0.0),
}
"""Values of each attribute, and the exponent of their law."""
STREAMS: Final = ("zipf", "uniform", "generated", "real")
NO_REAL: Final = f"no connections at ../shared/data/flows/{REAL_FLOWS.name}"
SMALLEST_NETWORK: Final = 1 << 8
SECONDS_A_DAY: Final = 86_400
REAL_DAYS: Final = 3


@dataclass(frozen=True)
class Stream:
    """A stream as a file."""

    name: str
    path: Path

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(n for n in pq.read_schema(self.path).names if n != "tb")

    def epoch(self, number: int) -> Columns:
        """The attributes of one epoch."""
        table = pq.ParquetFile(self.path).read_row_group(number)
        return {name: table.column(name).to_numpy() for name in self.attributes}

    @property
    def epochs(self) -> int:
        return int(pq.read_metadata(self.path).num_row_groups)

    @property
    def records(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)


def stream_of(name: str, settings: Settings) -> Stream:
    """A stream by its name, made once. Real connections have to be there (`has_stream`)."""
    each = settings.count(EPOCH_RECORDS)
    makers: Mapping[str, Callable[[], tuple[Column, Columns]]] = {
        "zipf": lambda: drawn(each, settings.seed, skewed=True),
        "uniform": lambda: drawn(each, settings.seed, skewed=False),
        "generated": lambda: generated(each, settings.seed),
        "real": lambda: connections(REAL_FLOWS),
    }
    size = "" if name == "real" else f"-{each}-seed{settings.seed}"
    file = settings.data / f"tree-{name}{size}.parquet"
    return Stream(name, made_once(file, lambda path: write(path, *makers[name]())))


def has_stream(name: str) -> bool:
    return name != "real" or REAL_FLOWS.exists()


def write(path: Path, epochs: Column, columns: Columns) -> None:
    """Tuples in order of their epochs, a row group for each."""
    table = pa.table({"tb": epochs, **columns})
    edges = np.flatnonzero(np.diff(epochs)) + 1
    begins = [0, *edges.tolist(), len(epochs)]
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for first, end in pairwise(begins):
            writer.write_table(table.slice(first, end - first), row_group_size=end - first)


def drawn(each: int, seed: int, *, skewed: bool) -> tuple[Column, Columns]:
    """Every attribute for itself."""
    count = EPOCHS * each
    columns: dict[str, Column] = {}
    for at, (name, (values, exponent)) in enumerate(DRAWN.items()):
        chance = np.random.default_rng([seed, at, skewed])
        columns[name] = zipf_draws(values, exponent if skewed else 0.0, count, chance)
    return np.arange(count) // each, columns


def zipf_draws(values: int, exponent: float, count: int, chance: np.random.Generator) -> Column:
    """Value k about (k + 1)^-exponent as often as the first; 0: all equally often."""
    if exponent == 0:
        return chance.integers(0, values, count)
    edges = np.cumsum(np.arange(1.0, values + 1) ** -exponent)
    found = np.searchsorted(edges / edges[-1], chance.random(count), side="right")
    return np.minimum(found, values - 1)


def generated(each: int, seed: int) -> tuple[Column, Columns]:
    """Flow records, in epochs of five minutes."""
    count = EPOCHS * each
    profile = FlowProfile(count, EPOCHS * EPOCH_SECONDS, seed=seed)
    table = pa.Table.from_batches(flow_batches(profile))
    time = table.column("time").to_numpy().astype(np.int64)
    columns = {name: table.column(name).to_numpy().astype(np.int64) for name in ATTRIBUTES}
    return time // EPOCH_SECONDS, columns


# ---- real connections ----------------------------------------------------------------------------


def connections(archive: Path) -> tuple[Column, Columns]:
    """Logs of Zeek, in order of time."""
    lines = [line for text in logs(archive) for line in text if not line[0].startswith("#")]
    time = np.array([float(line[1]) for line in lines])
    order = np.argsort(time, kind="stable")
    columns: dict[str, Column] = {
        "src": coded([line[3] for line in lines]),
        "srcPort": coded([line[4] for line in lines]),
        "dst": coded([line[5] for line in lines]),
        "dstPort": coded([line[6] for line in lines]),
        "protocol": coded([line[7] for line in lines]),
        "service": coded([line[8] for line in lines]),
        "state": coded([line[12] for line in lines]),
        "history": coded([line[16] for line in lines]),
        "srcNet": coded([network(line[3]) for line in lines]),
        "dstNet": coded([network(line[5]) for line in lines]),
        "sent": coded([magnitude(line[18]) for line in lines]),
        "received": coded([magnitude(line[20]) for line in lines]),
        "duration": coded([duration(line[9]) for line in lines]),
    }
    since = (time[order] - time.min()) / SECONDS_A_DAY
    days = np.minimum(since.astype(np.int64), REAL_DAYS - 1)
    return days, {name: codes[order] for name, codes in columns.items()}


def logs(archive: Path) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    with tarfile.open(archive) as files:
        for member in files.getmembers():
            file = files.extractfile(member) if member.name.endswith(".log.gz") else None
            if file is not None:
                text = io.StringIO(decompress(file.read()).decode())
                found.append([line.rstrip("\n").split("\t") for line in text])
    return found


def coded(values: list[str] | list[int]) -> Column:
    _, codes = np.unique(np.array(values), return_inverse=True)
    return codes.astype(np.int64)


def network(address: str) -> int:
    """The /24 of an address; of a long one all but as many bits."""
    return int(ip_address(address)) // SMALLEST_NETWORK


def magnitude(count: str) -> int:
    return int(count).bit_length() if count.isdigit() else -1


def duration(seconds: str) -> int:
    """To a power of two of microseconds."""
    return -1 if seconds == "-" else int(float(seconds) * 1e6).bit_length()
