"""The one entry: write a synthetic trace.

In: a profile, and where to write. Out: the files, complete or not at all, and a report
of what is in them. First the packets of a trace: chunks of PACKET records in order of time. Memory
is bounded: a flow is expanded when it starts, and its packets are kept in the bucket of their
chunk. Then the writers: a nanosecond pcap file (compressed where its name ends in .gz), or a
Parquet table of the fields that a packet source would decode from the same frames.
"""

from __future__ import annotations

import gzip
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.traffic.conversations import PACKET, SYN, expand
from terascope.traffic.flows import (
    SLOT_NS,
    SLOTS_PER_SECOND,
    TCP,
    UDP,
    CastScenario,
    ScenarioReport,
    cast_scenarios,
    mean_factor,
    pareto_sizes,
    quiet_flows,
    rate_factors,
    scenario_flows,
    start_ns,
)
from terascope.traffic.frames import ETHERNET, file_header, put_records
from terascope.traffic.payloads import PAYLOADS
from terascope.traffic.population import Population, address_texts, populate
from terascope.traffic.profile import Profile
from terascope.traffic.randomness import Array, generator

_BUFFER: Final = 8 << 20
ROW_GROUP: Final = 1 << 20
"""Rows of a Parquet file; integers are int64, addresses text."""
_CHUNK_PACKETS: Final = 400_000
_PILOT_FLOWS: Final = 4096
_LEAD_SECONDS: Final = 4.0
"""Flows start this long before the trace, so that it does not open with handshakes only."""


@dataclass(frozen=True)
class TrafficStream:
    """A trace about to be drawn."""

    profile: Profile
    population: Population
    casts: tuple[CastScenario, ...]
    custom: Array
    """Addresses given by the user, see `population`."""
    flows_per_second: float

    def chunks(self) -> Iterator[Array]:
        """Sorted packets; chunk after chunk, never going back in time."""
        remaining = self.profile.packets
        for chunk in self._timed_chunks():
            if remaining is None:
                yield chunk
                continue
            yield chunk[:remaining]
            remaining -= len(chunk)
            if remaining <= 0:
                return

    def _timed_chunks(self) -> Iterator[Array]:
        profile = self.profile
        scale = 1.0 / mean_factor(profile)
        # By the quiet rate, so that a mild scenario leaves the quiet traffic as it is without it.
        busiest = sum(cast.scenario.packet_share for cast in self.casts) / 4
        rate_per_slot = profile.quiet_rate * max(1.0, busiest) / SLOTS_PER_SECOND
        slots = int(np.clip(_CHUNK_PACKETS / rate_per_slot, 1, 36000))
        span = slots * SLOT_NS
        lead = round(min(_LEAD_SECONDS, profile.seconds / 4) * SLOTS_PER_SECOND)
        slot = -lead
        origin = start_ns(profile) + slot * SLOT_NS
        first = start_ns(profile)
        last = first + round(profile.seconds * 1e9) if profile.packets is None else 2**62
        buckets: dict[int, list[Array]] = defaultdict(list)
        flows_so_far = 0
        bucket = 0
        while origin + bucket * span < last:
            factors = scale * rate_factors(profile, np.arange(slot, slot + slots))
            wanted = factors * self.flows_per_second
            counts = generator(profile.seed, "arrivals", bucket).poisson(wanted / SLOTS_PER_SECOND)
            flows = quiet_flows(profile, self.population, counts, slot, flows_so_far)
            flows_so_far += len(flows)
            parts = [scenario_flows(profile, cast, slot, slots) for cast in self.casts]
            packets = expand(np.concatenate([flows, *parts]), profile.retransmission_rate)
            _fill_buckets(buckets, packets, origin, span, first, last)
            waiting = buckets.pop(bucket, [])
            if waiting:
                yield _in_order(np.concatenate(waiting))
            bucket += 1
            slot += slots


def _in_order(packets: Array) -> Array:
    # Stable, so that packets of the same nanosecond stand in the order they were made.
    order = np.argsort(packets["time"], kind="stable")
    # As rows of plain integers: numpy moves those several times faster than records.
    rows = packets.view(np.int64).reshape(len(packets), -1)
    return np.take(rows, order, axis=0).reshape(-1).view(PACKET)


def _fill_buckets(
    buckets: dict[int, list[Array]], packets: Array, origin: int, span: int, first: int, last: int
) -> None:
    """Put packets where they wait for their chunk; those outside [first, last) are not seen."""
    packets = _in_order(packets)
    low, high = np.searchsorted(packets["time"], [first, last])
    packets = packets[low:high]
    if not len(packets):
        return
    low_bucket = (int(packets["time"][0]) - origin) // span
    high_bucket = (int(packets["time"][-1]) - origin) // span
    edges = origin + np.arange(low_bucket, high_bucket + 2) * span
    cuts = np.searchsorted(packets["time"], edges)
    for index, bucket in enumerate(range(low_bucket, high_bucket + 1)):
        piece = packets[cuts[index] : cuts[index + 1]]
        if len(piece):
            buckets[bucket].append(piece.copy())  # a view would keep the whole chunk alive


def open_stream(profile: Profile) -> TrafficStream:
    packets_per_flow = _mean_packets(profile)
    flows_per_second = profile.quiet_rate / packets_per_flow
    population = populate(profile, flows_per_second * profile.seconds)
    custom = np.zeros((256, 16), dtype=np.uint8)
    casts = cast_scenarios(profile, population, custom)
    return TrafficStream(profile, population, casts, custom, flows_per_second)


def _mean_packets(profile: Profile) -> float:
    """Packets a flow really has, measured on a pilot: handshakes and losses add to the setting."""
    pilot = replace(profile, scenarios=(), hosts=16, servers=4)
    flows = quiet_flows(pilot, populate(pilot, 64.0), np.array([_PILOT_FLOWS]), 0, 0)
    even = (np.arange(_PILOT_FLOWS) + 0.5) / _PILOT_FLOWS
    flows["size"] = pareto_sizes(profile, generator(profile.seed, "pilot").permutation(even))
    return len(expand(flows, profile.retransmission_rate)) / _PILOT_FLOWS


# ---- writers -------------------------------------------------------------------------------------


@contextmanager
def replaced(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths to write to instead of `files`, which they replace when the block ends well."""
    parts = [path.with_name(f".{path.name}.{os.getpid()}.part") for path in files]
    try:
        yield parts
        for part, path in zip(parts, files, strict=True):
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


class PcapWriter:
    """One pcap file being written."""

    def __init__(self, path: Path, snaplen: int, custom: Array, compress: bool) -> None:
        self._raw: IO[bytes] = path.open("wb", buffering=0)
        # No name and no time in the gzip header: the same packets give the same bytes.
        self._file: IO[bytes] | gzip.GzipFile = (
            gzip.GzipFile("", "wb", 1, self._raw, mtime=0) if compress else self._raw
        )
        self._snaplen = snaplen
        self._custom = custom
        self._buffer = np.zeros(_BUFFER, dtype=np.uint8)
        self._file.write(file_header(snaplen))

    def write(self, packets: Array) -> None:
        begin = 0
        while begin < len(packets):
            begin, size = put_records(
                packets, begin, self._buffer, self._snaplen, self._custom, PAYLOADS
            )
            view = self._buffer[:size].data
            while len(view):
                view = view[self._file.write(view) :]

    def close(self) -> None:
        self._file.close()
        self._raw.close()


def packet_columns(packets: Array, snaplen: int, custom: Array) -> pa.Table:
    """The fields of packets as Arrow columns; NULL where a packet has no such field."""
    is_tcp = packets["protocol"] == TCP
    has_ports = is_tcp | (packets["protocol"] == UDP)
    is_v6 = packets["version"] == 6
    is_syn = is_tcp & (packets["flags"] & SYN != 0)
    transport = np.where(is_tcp, np.where(is_syn, 32, 20), 8)
    header = np.where(is_v6, 40, 20)
    length = header + transport + packets["payload"]

    def number(values: Array, present: Array | None = None) -> pa.Array:
        missing = None if present is None else ~present
        return pa.array(values.astype(np.int64), type=pa.int64(), mask=missing)

    columns = {
        "time": number(packets["time"] // 1_000_000_000),
        "timestamp": number(packets["time"]),
        "ipversion": number(packets["version"]),
        "srcIP": _address_texts(packets["src"], packets["version"], custom),
        "destIP": _address_texts(packets["dst"], packets["version"], custom),
        "protocol": number(packets["protocol"]),
        "len": number(length),
        "wirelen": number(length + ETHERNET),
        "caplen": number(np.minimum(length + ETHERNET, snaplen)),
        "hdr_length": number(header),
        "tos": number(packets["tos"]),
        "ttl": number(packets["ttl"]),
        "id": number(packets["ident"], ~is_v6),
        "offset": number(np.zeros(len(packets)), ~is_v6),
        "srcPort": number(packets["sport"], has_ports),
        "destPort": number(packets["dport"], has_ports),
        "flags": number(packets["flags"], is_tcp),
        "sequence_number": number(packets["seq"], is_tcp),
        "ack_number": number(packets["ack"], is_tcp),
        "window": number(packets["window"], is_tcp),
        "data_length": number(packets["payload"], has_ports),
    }
    return pa.table(columns)


def _address_texts(numbers: Array, versions: Array, custom: Array) -> pa.Array:
    """Text once for each different address, then looked up for each packet."""
    keys = (versions.astype(np.int64) << 32) | numbers
    different, places = np.unique(keys, return_inverse=True)
    words = address_texts(different & 0xFFFFFFFF, different >> 32, custom)
    return pa.array(words, type=pa.string()).take(pa.array(places))


class ParquetWriter:
    """One Parquet file being written."""

    def __init__(self, path: Path, snaplen: int, custom: Array) -> None:
        schema = packet_columns(np.zeros(0, PACKET), snaplen, custom).schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._snaplen = snaplen
        self._custom = custom
        self._pending: list[pa.Table] = []
        self._rows = 0

    def write(self, packets: Array) -> None:
        if not len(packets):
            return
        self._pending.append(packet_columns(packets, self._snaplen, self._custom))
        self._rows += len(packets)
        while self._rows >= ROW_GROUP:
            table = pa.concat_tables(self._pending)
            self._writer.write_table(table.slice(0, ROW_GROUP), row_group_size=ROW_GROUP)
            self._pending = [table.slice(ROW_GROUP)]
            self._rows -= ROW_GROUP

    def close(self) -> None:
        if self._rows:
            self._writer.write_table(pa.concat_tables(self._pending), row_group_size=ROW_GROUP)
        self._writer.close()


# ---- the entry -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class GenerateReport:
    """The files that were written, with the packets, or flow records, of each."""

    files: tuple[Path, ...]
    counts: tuple[int, ...]
    scenarios: tuple[ScenarioReport, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.files)


def generate(
    profile: Profile,
    output: Path,
    progress: Callable[[int, int], None] | None = None,
) -> GenerateReport:
    """Write the trace, as pcap or, where the name ends in .parquet, as Parquet; `progress` is
    called with the packets done and the packets to expect.

    With several links, `trace.pcap` becomes `trace-0.pcap`, `trace-1.pcap`, ... Files that exist
    are replaced when the new ones are complete.

    Raises:
        OSError: a file cannot be written.
    """
    stream = open_stream(profile)
    files = link_files(output, profile.links)
    counts = [0] * len(files)
    with replaced(files) as parts, ExitStack() as opened:
        writers: list[PcapWriter | ParquetWriter] = []
        for part in parts:
            if output.name.endswith(".parquet"):
                writers.append(ParquetWriter(part, profile.snaplen, stream.custom))
            else:
                compress = output.name.endswith(".gz")
                writers.append(PcapWriter(part, profile.snaplen, stream.custom, compress))
            opened.callback(writers[-1].close)
        for chunk in stream.chunks():
            for link, writer in enumerate(writers):
                mine = chunk if len(writers) == 1 else chunk[chunk["link"] == link]
                writer.write(mine)
                counts[link] += len(mine)
            if progress is not None:
                progress(sum(counts), max(profile.expected_packets, sum(counts)))
    return GenerateReport(files, tuple(counts), tuple(cast.report for cast in stream.casts))


def link_files(output: Path, links: int) -> tuple[Path, ...]:
    """The file of each link."""
    if links == 1:
        return (output,)
    stem, dot, suffixes = output.name.partition(".")
    return tuple(output.with_name(f"{stem}-{link}{dot}{suffixes}") for link in range(links))
