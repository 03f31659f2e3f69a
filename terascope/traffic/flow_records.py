"""Flow records as a router exports them: 13 attributes, a time, packets and bytes.

In: a `FlowProfile`. Out: one Parquet file in order of time, with the narrowest unsigned types that
fit and no NULLs; addresses are numbers. Paper 4, section VIII: its queries group by pairs of the
thirteen attributes of NetFlow.

A `FlowPopulation` says who appears in them: for each address what a router adds to it (its AS, the
length of its prefix, its interface), for each conversation (a 4-tuple) its addresses, ports,
protocol and type of service. Popularity is Zipf-like with one exponent each for sources, pairs and
4-tuples (paper 4, section VI): the shares of the 4-tuples are exactly Zipf, and they are dealt out
so that pairs and sources are so as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.traffic.flows import ICMP, TCP, UDP
from terascope.traffic.population import deal_pairs, zipf_shares
from terascope.traffic.profile import FlowProfile
from terascope.traffic.randomness import Array, generator, hash_numbers
from terascope.traffic.trace import GenerateReport, replaced

SERVICES: Final = (
    # port, protocol, share of the servers that offer it
    (443, TCP, 0.30),
    (80, TCP, 0.25),
    (53, UDP, 0.16),
    (25, TCP, 0.05),
    (22, TCP, 0.04),
    (993, TCP, 0.03),
    (123, UDP, 0.03),
    (445, TCP, 0.03),
    (8080, TCP, 0.02),
    (3306, TCP, 0.02),
    (6881, TCP, 0.03),
    (4500, UDP, 0.02),
    (2048, ICMP, 0.02),  # an echo request; NetFlow tells type * 256 + code as the port
)
FAVOURITE_SHARE: Final = 0.75
"""The share of a server's conversations that use its main service."""
PEER_TO_PEER_SHARE: Final = 0.08
"""The share of conversations in which both ports are chosen freely."""
TOS: Final = np.array([0x00, 0x08, 0x10, 0x20, 0x28, 0x48, 0x88, 0xB8], dtype=np.uint8)
MASKS: Final = np.array([8, 11, 13, 14, 15, 16, 16, 16, 17, 18, 19, 20, 21, 22, 24, 24], np.uint8)
INTERFACES: Final = 24
ADDRESSES_PER_NETWORK: Final = 64
NETWORKS_PER_AS: Final = 3
_FIRST_FREE_PORT: Final = 1024
_SLASH_16S: Final = 54_000
_FIRST_SLASH_16: Final = 11 << 8
_GOLDEN_RATIO: Final = 0.6180339887498949


@dataclass(frozen=True)
class FlowPopulation:
    addresses: dict[str, Array]
    """The name of a column without `src` or `dst` -> the values of all addresses."""
    interface: Array
    """The interface of each address."""
    pair_source: Array
    pair_destination: Array
    """Places in the columns of addresses, for each pair."""
    tuple_pair: Array
    tuples: dict[str, Array]
    """Column -> the values of all 4-tuples, the most frequent first."""


def populate_flows(profile: FlowProfile) -> FlowPopulation:
    addresses, interface = _addresses(profile)
    shares = zipf_shares(profile.pairs, profile.pair_exponent)
    ends = zipf_shares(profile.addresses, profile.source_exponent)
    source, destination = deal_pairs(shares, ends, ends, profile.seed)
    # A frequent source is not also a frequent destination just because both lists have one law.
    turned = generator(profile.seed, "destinations").permutation(profile.addresses)
    destination = turned[destination]
    pair = _tuple_pairs(profile, np.cumsum(shares))
    # Whoever answers in a conversation has the port of a service.
    answers = hash_numbers(pair, profile.seed ^ 0x616E) & np.uint64(1) == 1
    server = addresses["IP"][np.where(answers, source[pair], destination[pair])]
    tuples = _conversations(profile, answers, server)
    source, destination = source.astype(np.int32), destination.astype(np.int32)
    return FlowPopulation(addresses, interface, source, destination, pair, tuples)


def _tuple_pairs(profile: FlowProfile, shares: Array) -> Array:
    """Multiples of the golden ratio give every pair its share of the conversations of any rank."""
    place = (np.arange(profile.tuples) * _GOLDEN_RATIO + 0.5) % 1.0
    return np.minimum(np.searchsorted(shares, place), profile.pairs - 1).astype(np.int32)


def _addresses(profile: FlowProfile) -> tuple[dict[str, Array], Array]:
    """Networks of a /16 each with some of the addresses; all else follows from the network."""
    count = profile.addresses
    networks = max(1, min(_SLASH_16S, count // ADDRESSES_PER_NETWORK))
    order = generator(profile.seed, "addresses").permutation(count)
    network, host = order % networks, order // networks
    slash_16 = _FIRST_SLASH_16 + (network * 40_503 + profile.seed) % _SLASH_16S
    number = (slash_16 << 16) + (host * 40_503 + 257) % 65_536
    autonomous_system = 100 + hash_numbers(network, 11) % np.uint64(
        max(1, networks // NETWORKS_PER_AS)
    )
    interface = 1 + hash_numbers(autonomous_system, 13) % np.uint64(INTERFACES)
    columns: dict[str, Array] = {
        "IP": number.astype(np.uint32),
        "AS": autonomous_system.astype(np.uint32),
        "Mask": MASKS[hash_numbers(network, 12) % np.uint64(len(MASKS))],
    }
    return columns, interface.astype(np.uint16)


def _conversations(profile: FlowProfile, answers: Array, server: Array) -> dict[str, Array]:
    """`answers`: whether the source of a 4-tuple is its server; `server`: the server's number."""
    numbers = np.arange(profile.tuples)
    service = np.where(
        _draws(numbers, profile.seed ^ 0x66) < FAVOURITE_SHARE,
        _services(_draws(server, profile.seed ^ 0x73)),
        _services(_draws(numbers, profile.seed ^ 0x74)),
    )
    port = np.array([port for port, _, _ in SERVICES], dtype=np.uint16)[service]
    protocol = np.array([protocol for _, protocol, _ in SERVICES], dtype=np.uint8)[service]
    free = _free_ports(numbers, profile.seed ^ 0x6670)
    between_peers = _draws(numbers, profile.seed ^ 0x70) < PEER_TO_PEER_SHARE
    port = np.where(between_peers, _free_ports(numbers, profile.seed ^ 0x6671), port)
    is_icmp = protocol == ICMP
    port[is_icmp & between_peers] = 2048
    free[is_icmp] = 0
    answers = answers & ~is_icmp
    return {
        "srcPort": np.where(answers, port, free),
        "dstPort": np.where(answers, free, port),
        "protocol": protocol,
        "tos": TOS[hash_numbers(numbers, profile.seed ^ 0x746F73) % np.uint64(len(TOS))],
    }


def _draws(numbers: Array, seed: int) -> Array:
    """A number in [0, 1) for each number."""
    return np.asarray((hash_numbers(numbers, seed) >> np.uint64(11)) * (1.0 / (1 << 53)))


def _services(draws: Array) -> Array:
    shares = np.cumsum([share for _, _, share in SERVICES])
    return np.minimum(np.searchsorted(shares, draws, side="right"), len(SERVICES) - 1)


def _free_ports(numbers: Array, seed: int) -> Array:
    free = hash_numbers(numbers, seed) % np.uint64(65_536 - _FIRST_FREE_PORT)
    return (_FIRST_FREE_PORT + free).astype(np.uint16)


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


def generate_flows(
    profile: FlowProfile,
    output: Path,
    progress: Callable[[int, int], None] | None = None,
) -> GenerateReport:
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
    return GenerateReport((output,), (profile.records,))


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
    of_tuples = {name: column[chosen] for name, column in population.tuples.items()}
    flags = _FLAGS[np.minimum(np.searchsorted(_FLAG_SHARES, random.random(count)), len(_FLAGS) - 1)]
    packets = np.minimum((1.0 - random.random(count)) ** (-1 / _PACKETS_SHAPE), _MOST_PACKETS)
    packets = packets.astype(np.uint32)
    size = 40 + (random.random(count) ** 2 * 1461).astype(np.uint32)
    return {
        "time": (profile.start_time + numbers * profile.duration // profile.records).astype(
            np.uint32
        ),
        **{f"src{name}": column[source] for name, column in population.addresses.items()},
        **{f"dst{name}": column[destination] for name, column in population.addresses.items()},
        **of_tuples,
        "tcp_flags": np.where(of_tuples["protocol"] == TCP, flags, np.uint8(0)),
        "input": population.interface[source],
        "output": population.interface[destination],
        "packets": packets,
        "bytes": packets * size,
    }


def _zipf_ranks(draws: Array, count: int, exponent: float) -> Array:
    """Ranks from 0 on, rank k about (k + 1)^-exponent as frequent as the first."""
    power = 1.0 - exponent
    ranks = (1.0 + draws * ((count + 1.0) ** power - 1.0)) ** (1.0 / power)
    return np.asarray(np.minimum(ranks.astype(np.int64), count) - 1)
