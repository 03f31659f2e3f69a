"""Flow records as a router exports them: 13 attributes, a time, packets and bytes.

In: a `FlowProfile`. Out: one Parquet file in order of time, with the narrowest unsigned types that
fit and no NULLs; addresses are numbers. Paper 4, section VIII: its queries group by pairs of the
thirteen attributes of NetFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.traffic.flow_population import TCP, FlowPopulation, populate_flows
from terascope.traffic.flow_profile import FlowProfile
from terascope.traffic.part_files import replaced
from terascope.traffic.randomness import Array, generator

ROW_GROUP: Final = 128 << 10
SCHEMA: Final = pa.schema(
    [
        pa.field(name, type, nullable=False)
        for name, type in (
            ("time", pa.uint32()),
            ("srcIP", pa.uint32()),
            ("dstIP", pa.uint32()),
            ("srcPort", pa.uint16()),
            ("dstPort", pa.uint16()),
            ("protocol", pa.uint8()),
            ("tos", pa.uint8()),
            ("tcp_flags", pa.uint8()),
            ("input", pa.uint16()),
            ("output", pa.uint16()),
            ("srcAS", pa.uint32()),
            ("dstAS", pa.uint32()),
            ("srcMask", pa.uint8()),
            ("dstMask", pa.uint8()),
            ("packets", pa.uint32()),
            ("bytes", pa.uint32()),
        )
    ]
)
ATTRIBUTES: Final = tuple(SCHEMA.names[1:-2])
"""The thirteen of a NetFlow record: all but time, packets and bytes."""
# Seen flags of a flow: whole ones, pieces cut by a timeout, scans, refusals.
_FLAGS: Final = np.array([0x1B, 0x10, 0x18, 0x1A, 0x02, 0x13, 0x12, 0x14, 0x04, 0x1F], np.uint8)
_FLAG_SHARES: Final = np.cumsum([0.34, 0.18, 0.16, 0.10, 0.08, 0.05, 0.04, 0.03, 0.01, 0.01])
_MOST_PACKETS: Final = 100_000
_PACKETS_SHAPE: Final = 1.3


@dataclass(frozen=True)
class FlowReport:
    """What was written."""

    file: Path
    records: int
    bytes: int


def generate_flows(
    profile: FlowProfile,
    output: Path,
    progress: Callable[[int, int], None] | None = None,
) -> FlowReport:
    """Write the records; a file that exists is replaced when the new one is complete.

    Raises:
        OSError: the file cannot be written.
    """
    with (
        replaced([output]) as (part,),
        pq.ParquetWriter(part, SCHEMA, compression="zstd") as writer,
    ):
        done = 0
        for batch in flow_batches(profile):
            writer.write_batch(batch, row_group_size=ROW_GROUP)
            done += batch.num_rows
            if progress is not None:
                progress(done, profile.records)
    return FlowReport(output, profile.records, output.stat().st_size)


def flow_batches(profile: FlowProfile) -> Iterator[pa.RecordBatch]:
    """The records in order of time, a row group at a time."""
    population = populate_flows(profile)
    for first in range(0, profile.records, ROW_GROUP):
        numbers = np.arange(first, min(first + ROW_GROUP, profile.records))
        random = generator(profile.seed, "flow records", first // ROW_GROUP)
        columns = _records(profile, population, numbers, random)
        yield pa.record_batch([pa.array(columns[f.name], f.type) for f in SCHEMA], schema=SCHEMA)


def _records(
    profile: FlowProfile, population: FlowPopulation, numbers: Array, random: np.random.Generator
) -> dict[str, Array]:
    count = len(numbers)
    chosen = _zipf_ranks(random.random(count), profile.tuples, profile.tuple_exponent)
    pair = population.tuple_pair[chosen]
    source, destination = population.pair_source[pair], population.pair_destination[pair]
    addresses = population.addresses
    protocol = population.protocol[chosen]
    flags = _FLAGS[np.minimum(np.searchsorted(_FLAG_SHARES, random.random(count)), len(_FLAGS) - 1)]
    packets = np.minimum((1.0 - random.random(count)) ** (-1 / _PACKETS_SHAPE), _MOST_PACKETS)
    packets = packets.astype(np.uint32)
    size = 40 + (random.random(count) ** 2 * 1461).astype(np.uint32)
    return {
        "time": (profile.start_time + numbers * profile.duration // profile.records).astype(
            np.uint32
        ),
        "srcIP": addresses.number[source],
        "dstIP": addresses.number[destination],
        "srcPort": population.source_port[chosen],
        "dstPort": population.destination_port[chosen],
        "protocol": protocol,
        "tos": population.tos[chosen],
        "tcp_flags": np.where(protocol == TCP, flags, np.uint8(0)),
        "input": addresses.interface[source],
        "output": addresses.interface[destination],
        "srcAS": addresses.autonomous_system[source],
        "dstAS": addresses.autonomous_system[destination],
        "srcMask": addresses.mask[source],
        "dstMask": addresses.mask[destination],
        "packets": packets,
        "bytes": packets * size,
    }


def _zipf_ranks(draws: Array, count: int, exponent: float) -> Array:
    """Ranks from 0 on, rank k about (k + 1)^-exponent as frequent as the first."""
    power = 1.0 - exponent
    ranks = (1.0 + draws * ((count + 1.0) ** power - 1.0)) ** (1.0 / power)
    return np.asarray(np.minimum(ranks.astype(np.int64), count) - 1)
