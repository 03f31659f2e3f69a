"""Writers of packets: a nanosecond pcap file, or a Parquet table of the fields that a packet source
would decode from the same frames.

In: chunks of PACKET records. Out: files that are complete or not there (`replaced`). A pcap file
whose name ends in .gz is compressed. A Parquet file has row groups of about a million rows;
integers are int64, addresses text.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.traffic.addresses import texts
from terascope.traffic.conversations import PACKET, SYN
from terascope.traffic.flows import TCP, UDP
from terascope.traffic.frames import ETHERNET, file_header, put_records
from terascope.traffic.payloads import PAYLOADS
from terascope.traffic.randomness import Array


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


_BUFFER = 8 << 20


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
                packets, begin, self._buffer, 0, self._snaplen, self._custom, PAYLOADS
            )
            view = self._buffer[:size].data
            while len(view):
                view = view[self._file.write(view) :]

    def close(self) -> None:
        self._file.close()
        self._raw.close()


ROW_GROUP: Final = 1 << 20


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
    words = texts(different & 0xFFFFFFFF, different >> 32, custom)
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
