"""The packet connector: capture files in, splits and column batches out.

In: pcap and pcapng files, plain or gzip, recognised by their first bytes. Out: `Split`s cut where
records start, and Arrow batches of requested columns; unreadable parts are counted in the report.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from terascope.connectors import file_bytes
from terascope.connectors.base import (
    EMPTY,
    Column,
    Connector,
    Edge,
    FileFault,
    Range,
    ReadReport,
    Split,
)
from terascope.connectors.file_bytes import ByteStream, GzipStream, PlainStream
from terascope.connectors.packets.columns import BATCH_PACKETS, PacketBatch, PacketLayout
from terascope.connectors.packets.fields import ALL_FIELDS
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.network import TABLE_FIELDS
from terascope.connectors.packets.pcap import FILE_HEADER_BYTES, parse_header, starts_as_pcap
from terascope.connectors.packets.pcapng import BYTE_ORDER, SMALLEST_BLOCK
from terascope.connectors.packets.planning import CutRule, cutting, plan
from terascope.connectors.packets.records import SECOND, empty_records
from terascope.connectors.packets.scan import PCAPNG_MAGIC, RecordScan, open_framing

PCAPNG_ORDERS: Final = tuple(BYTE_ORDER.to_bytes(4, order) for order in ("big", "little"))
"""The byte orders that a section header may announce."""
UNSETTLED: Final = 2_000_000_000
"""Nanoseconds after a change within which another might not show in a file's times."""


class PacketConnector(Connector):
    kind = "pcap"
    suffixes: tuple[str, ...] = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz")
    is_packets = True

    def columns(self, files: Sequence[Path], options: Mapping[str, str]) -> tuple[Column, ...]:
        """All packet fields, NULL where a packet has none."""
        return ALL_FIELDS

    def ranges(
        self, path: Path, options: Mapping[str, str], target_bytes: int, edge: Edge | None
    ) -> Sequence[Range]:
        """A plain file in ranges that start and end on records, with the bounds of their clocks; a
        gzip file as a whole.
        """
        return parts(path, cutting(target_bytes, edge))

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the split's packets of all layers, distinguished by `#layers`."""
        layout = PacketLayout(columns)
        with file_bytes.opened_raw(split.path) as file:
            start, fault = looked_at(file)
            if fault is not None:
                report.blame(split.path, fault)
                report.bytes_read += file.seek(0, 2)
                return
            framing, header = open_framing(start, split.options)
            packed = file_bytes.starts_as_gzip(file)
            at = header if split.start == 0 else split.start
            stop = file_bytes.NO_END if packed else split.end
            stream: ByteStream = GzipStream(file) if packed else PlainStream(file, at)
            window = SlidingWindow(stream, 0 if packed else at, stop)
            scan = RecordScan(window, framing, at, stop, report)
            yield from batches(scan, window, split, layout, stream if packed else None, report)
            if stream.damaged:
                report.blame(split.path, FileFault.DAMAGED_GZIP)

    def fault(self, path: Path, options: Mapping[str, str]) -> FileFault | None:
        with file_bytes.opened_raw(path) as file:
            return looked_at(file)[1]

    def estimated_tuples(self, path: Path, size: int) -> float:
        return file_bytes.estimated_records(path, size, record_length)


class GeneratedTraffic(PacketConnector):
    """Packets that are made while they are read: a live source, without files of its own."""

    kind = "generate"
    suffixes = ()


def batches(
    scan: RecordScan,
    window: SlidingWindow,
    split: Split,
    layout: PacketLayout,
    packed: ByteStream | None,
    report: ReadReport,
) -> Iterator[pa.RecordBatch]:
    """Scan and decode by turns, window by window, and give a batch whenever one is full."""
    counted = 0
    records = empty_records(BATCH_PACKETS, len(TABLE_FIELDS))
    while not scan.done:
        batch = PacketBatch(split, layout, records)
        while not scan.done and batch.room:
            found = scan.fill(records, batch.room)
            if found:
                batch.decode(window.view, found, report)
        consumed = packed.consumed if packed else scan.position - split.start
        report.bytes_read += consumed - counted
        counted = consumed
        if batch.filled == 0:
            continue
        report.tuples += batch.filled
        report.horizon["timestamp"] = max(report.horizon.get("timestamp", 0), batch.latest)
        report.horizon["time"] = report.horizon["timestamp"] // SECOND
        yield batch.finish()


def parts(path: Path, cut: CutRule) -> Sequence[Range]:
    """The ranges of one file. A file that has not changed since it was cut is not walked again."""
    with file_bytes.opened_raw(path) as file:
        found = os.fstat(file.fileno())
    state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    settled = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > UNSETTLED
    return known_parts(path, state, cut) if settled else found_parts(path, cut)


@lru_cache(maxsize=256)
def known_parts(path: Path, state: tuple[int, ...], cut: CutRule) -> Sequence[Range]:
    """A cache: the parts of a file in the same state are the same."""
    return found_parts(path, cut)


def found_parts(path: Path, cut: CutRule) -> Sequence[Range]:
    with file_bytes.opened_raw(path) as file:
        start, fault = looked_at(file)
        size = file.seek(0, 2)
        if fault is not None or file_bytes.starts_as_gzip(file):
            return [Range(0, size)]
        framing, at = open_framing(start)
        if at == size:
            return [Range(0, size, EMPTY)]
        window = SlidingWindow(PlainStream(file, at), at, size)
        return plan(window, framing, at, size, cut).parts


def is_damaged(packed: BinaryIO) -> bool:
    """Whether a gzip file that unpacks to next to nothing has more to it."""
    stream = GzipStream(packed)
    while stream.read_into(memoryview(bytearray(FILE_HEADER_BYTES))):
        pass
    return stream.damaged


def starts_as_capture(start: bytes) -> bool:
    """Whether the first bytes are those of a capture, or may become so."""
    magic = start[:4]
    if len(start) >= 12 and magic == PCAPNG_MAGIC:
        return start[8:12] in PCAPNG_ORDERS
    return not magic or starts_as_pcap(magic) or PCAPNG_MAGIC.startswith(magic)


def looked_at(file: BinaryIO) -> tuple[bytes, FileFault | None]:
    """The first 24 bytes of the unpacked file, or all it has, and why it is no capture."""
    room = bytearray(FILE_HEADER_BYTES)
    filled = file_bytes.filled_from(file_bytes.stream_of(file), memoryview(room))
    start = bytes(room[:filled])
    if len(start) == FILE_HEADER_BYTES and starts_as_capture(start):
        return start, None
    if not starts_as_capture(start):
        return start, FileFault.NOT_A_CAPTURE
    if file_bytes.starts_as_gzip(file) and is_damaged(file):
        return start, FileFault.DAMAGED_GZIP
    return start, FileFault.CUT_HEADER if start else FileFault.EMPTY


def record_length(start: bytes) -> float | None:
    """The mean length of the packets of a capture, or of its blocks, nearly all of which are
    packets; None when there is no whole one.
    """
    if len(start) < FILE_HEADER_BYTES:
        return None
    header = parse_header(start)
    if header is not None:
        first, big, length_at, more = FILE_HEADER_BYTES, header.big, 8, header.record_bytes
    elif start.startswith(PCAPNG_MAGIC):
        first, big, length_at, more = 0, start[8:12] == PCAPNG_ORDERS[0], 4, 0
    else:
        return None
    length = struct.Struct(">I" if big else "<I")
    ends = [first]
    while ends[-1] + max(length_at + 4, more) <= len(start):
        (bytes_held,) = length.unpack_from(start, ends[-1] + length_at)
        if bytes_held + more < SMALLEST_BLOCK:
            break
        ends.append(ends[-1] + bytes_held + more)
    return (ends[-1] - first) / (len(ends) - 1) if len(ends) > 1 else None
