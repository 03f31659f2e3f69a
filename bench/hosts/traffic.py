"""A trace of TCP packets, split into the partitions that hosts hold.

In: a number of packets, a partitioning set, and a number of hosts. Out: a folder with two
partitions for each host, in the form that `terascope split` writes. The trace is that of a site
with some servers: flows of a heavy-tailed number of packets, 5% of them suspicious (flags that no
TCP flow has), clients in subnets of 16 addresses, popularity by Zipf, and a few packets that come
more than a second after the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.harness import made_once
from terascope.connectors.base import Column
from terascope.partitioning.layout import Generation, Layout, StoredPartition, write_layout
from terascope.partitioning.placing import even_bounds, partition_numbers, value_hashes
from terascope.partitioning.sets import parse_set
from terascope.types import Type

Numbers = NDArray[Any]
PER_HOST: Final = 2
"""The partitions of a host."""
PATTERN: Final = 0x29
"""The OR of the flags of a suspicious flow: FIN, PSH and URG, a scan called Christmas tree."""
SUSPICIOUS: Final = 0.05
LATE: Final = 0.002
"""The share of packets that come more than a second after the one before."""
COLUMNS: Final = {
    "time": Type.UINT, "timestamp": Type.LLONG, "srcIP": Type.UINT, "destIP": Type.UINT,
    "srcPort": Type.UINT, "destPort": Type.UINT, "flags": Type.UINT, "len": Type.UINT,
    "seq_number": Type.UINT,
}  # fmt: skip
PROTOCOL: Final = """\
PROTOCOL TCP (
    time UINT increasing clock(s), timestamp LLONG, srcIP UINT, destIP UINT, srcPort UINT,
    destPort UINT, flags UINT, len UINT, seq_number UINT
);
"""
ROW_GROUP: Final = 1 << 16


@dataclass(frozen=True)
class Trace:
    """The properties of a trace."""

    packets: int
    seconds: int = 240
    mean: float = 40.0
    """Packets of a flow."""
    subnets: int = 32
    servers: int = 60
    exponent: float = 0.6
    """Of the popularity of subnets and servers."""
    seed: int = 1

    @property
    def name(self) -> str:
        return "-".join(f"{value:g}" for value in vars(self).values())


def generate(trace: Trace) -> pa.Table:
    """All packets, in the order of time."""
    rng = np.random.default_rng(trace.seed)
    flows = max(1, round(trace.packets / trace.mean))
    sigma = 1.0
    sizes = np.ceil(rng.lognormal(np.log(trace.mean) - sigma**2 / 2, sigma, flows)).astype(np.int64)
    sizes[-1] += max(0, trace.packets - sizes.sum())
    flow = np.repeat(np.arange(flows), sizes)[: trace.packets]
    first = np.concatenate([[0], np.cumsum(sizes)])[flow]
    number = np.arange(len(flow)) - first
    gaps = rng.exponential(0.03, len(flow)) + 1e-6
    gaps = np.where(rng.random(len(flow)) < LATE, gaps + 1.2, gaps)
    since = np.cumsum(gaps)
    starts = rng.uniform(0, trace.seconds - 2, flows)
    at = starts[flow] + since - since[np.minimum(first, len(flow) - 1)]
    at = np.minimum(at, trace.seconds - 1e-3)
    clients, servers = trace.subnets * 16, trace.servers
    client = 16 * zipf(rng, trace.subnets, trace.exponent, flows) + rng.integers(0, 16, flows)
    server = zipf(rng, servers, trace.exponent, flows)
    assert client.max() < clients
    bad = rng.random(flows) < SUSPICIOUS
    usual = np.where(number == 0, 0x02, np.where(rng.random(len(flow)) < 0.3, 0x18, 0x10))
    flags = np.where(bad[flow], PATTERN, usual)
    port = rng.choice([80, 443, 22, 25, 8080], flows, p=[0.3, 0.45, 0.1, 0.05, 0.1])
    columns = {
        "time": at.astype(np.uint32) + np.uint32(1_700_000_040),
        "timestamp": ((at + 1_700_000_040) * 1e9).astype(np.int64),
        "srcIP": (0x0A000000 + client)[flow].astype(np.uint32),
        "destIP": (0xC0A80000 + server)[flow].astype(np.uint32),
        "srcPort": rng.integers(1024, 65536, flows)[flow].astype(np.uint32),
        "destPort": port[flow].astype(np.uint32),
        "flags": flags.astype(np.uint32),
        "len": rng.choice([40, 576, 1500], len(flow), p=[0.45, 0.15, 0.4]).astype(np.uint32),
        "seq_number": (1000 + number).astype(np.uint32),
    }
    order = np.argsort(at, kind="stable")
    return pa.table({name: values[order] for name, values in columns.items()})


def zipf(rng: np.random.Generator, values: int, exponent: float, count: int) -> Numbers:
    weights = np.arange(1, values + 1) ** -exponent
    return rng.choice(values, count, p=weights / weights.sum())


def trace_file(folder: Path, trace: Trace) -> Path:
    """The trace in one file, made once."""

    def make(path: Path) -> None:
        pq.write_table(generate(trace), path, row_group_size=ROW_GROUP)

    return made_once(folder / f"hosts-{trace.name}.parquet", make)


def columns() -> list[Column]:
    return [Column(name, type) for name, type in COLUMNS.items()]


def split_trace(
    table: pa.Table,
    by: str,
    hosts: Sequence[str],
    folder: Path,
    row_group: int = ROW_GROUP,
    per_host: int = PER_HOST,
) -> None:
    """Write the partitions of a trace into a folder. `by`: the partitioning set; empty: tuples are
    dealt out in turn. `hosts`: the host of each partition, `per_host` partitions each.
    """
    count = per_host * len(hosts)
    if by:
        batch = table.combine_chunks().to_batches()[0]
        hashes = value_hashes(parse_set(by, columns()), batch)
        numbers = partition_numbers(hashes, even_bounds(count))
    else:
        numbers = np.arange(table.num_rows) % count
    stored = []
    for number in range(count):
        path = f"host{number // per_host + 1}/{number}.parquet"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        some = table.filter(pa.array(numbers == number))
        pq.write_table(some, folder / path, row_group_size=row_group)
        size = (folder / path).stat().st_size
        stored.append(StoredPartition(path, hosts[number // per_host], some.num_rows, size))
    write_layout(folder, Layout(by, "parquet", tuple(stored), (Generation(even_bounds(count)),)))
