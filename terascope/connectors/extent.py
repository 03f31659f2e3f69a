"""About how many tuples an interface has, without reading it.

In: the files of an interface. Out: a number, from their sizes and the beginnings of a few: the
lengths of records, of lines, or what a Parquet footer says. It takes about a millisecond and
compiles nothing, so that one can tell whether a closer look is worth its time.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.packets.connector import PCAPNG_MAGIC
from terascope.connectors.packets.pcap import FILE_HEADER_BYTES, PcapHeader, parse_header
from terascope.connectors.packets.pcapng import BYTE_ORDER
from terascope.connectors.registry import Interface
from terascope.diagnostic import SourceError

LOOKED_AT: Final = 4
"""Files of an interface, evenly apart."""
BEGINNING: Final = 1 << 16
"""Bytes of each."""
SHORTEST: Final = 40.0
"""Bytes of a tuple, where nothing can be told: hardly any kind has shorter ones."""
GZIP: Final = b"\x1f\x8b"
BLOCK_HEADER: Final = 8
SHORTEST_BLOCK: Final = 12


def about_tuples(interface: Interface) -> float:
    """How many tuples there are; 0.0 where there are no files to look at."""
    try:
        sizes = [(path, path.stat().st_size) for path in interface.files]
    except (SourceError, OSError):  # whoever reads it will say so
        return 0.0
    filled = [(path, size) for path, size in sizes if size]
    if not filled:
        return 0.0
    number = min(LOOKED_AT, len(filled))
    some = [filled[i * len(filled) // number] for i in range(number)]
    found = sum(tuples_of(interface.kind, path, size) for path, size in some)
    return found * sum(size for _, size in filled) / sum(size for _, size in some)


def tuples_of(kind: str, path: Path, size: int) -> float:
    """About how many tuples a file of so many bytes has."""
    try:
        if kind == "parquet":
            return float(pq.read_metadata(path).num_rows)
        with path.open("rb") as file:
            packed = file.read(BEGINNING)
    except (OSError, pa.ArrowException):
        return size / SHORTEST
    start, growth = unpacked(packed)
    length = record_length(start) if kind == "pcap" else line_length(start)
    return size * growth / (length or SHORTEST)


def unpacked(start: bytes) -> tuple[bytes, float]:
    """The beginning of a file as it is without compression, and how much longer that is."""
    if not start.startswith(GZIP):
        return start, 1.0
    try:
        plain = zlib.decompressobj(wbits=31).decompress(start)
    except zlib.error:
        return b"", 1.0
    return plain, len(plain) / len(start)


def line_length(start: bytes) -> float | None:
    """The mean length of the lines; None when there is no whole one."""
    lines = start.count(b"\n")
    return (start.rfind(b"\n") + 1) / lines if lines else None


def record_length(start: bytes) -> float | None:
    """The mean length of the packets of a capture; None when there is no whole one."""
    if len(start) < FILE_HEADER_BYTES:
        return None
    header = parse_header(start)
    if header is not None:
        ends = ends_of_records(start, header)
    else:
        ends = ends_of_blocks(start) if start.startswith(PCAPNG_MAGIC) else []
    return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None


def ends_of_records(start: bytes, header: PcapHeader) -> list[int]:
    """Where the header of a pcap file ends, and each packet."""
    held = struct.Struct(">I" if header.big else "<I")
    ends = [FILE_HEADER_BYTES]
    while ends[-1] + header.record_bytes <= len(start):
        (bytes_held,) = held.unpack_from(start, ends[-1] + 8)
        ends.append(ends[-1] + header.record_bytes + bytes_held)
    return ends


def ends_of_blocks(start: bytes) -> list[int]:
    """Where each block of a pcapng file ends: nearly all are packets."""
    length = struct.Struct("<I" if start[8:12] == BYTE_ORDER.to_bytes(4, "little") else ">I")
    ends = [0]
    while ends[-1] + BLOCK_HEADER <= len(start):
        (bytes_held,) = length.unpack_from(start, ends[-1] + 4)
        if bytes_held < SHORTEST_BLOCK:
            break
        ends.append(ends[-1] + bytes_held)
    return ends
