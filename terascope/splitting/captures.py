"""Packets of captures as records that can be put into other captures as they are.

In: splits of capture files. Out: `PacketPiece`s: a window of bytes, where each packet's record
stands in it with its own header, the heading under which the record means what it does, and the
columns that say which partition it belongs to.

A record of a pcap file is copied byte by byte under the file header of its source: time, lengths,
link type and byte order stay what they are, so that a reader sees the same packets. A packet block
of a pcapng file is copied with its options behind a section header with the same byte order and the
same interfaces (link type, snap length, resolution and offset of times; names and comments of
interfaces are left out). A simple packet block has no time of its own but takes that of the packet
before it, which may be in another partition: it becomes an enhanced block of a further interface
that counts nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.connectors import file_bytes
from terascope.connectors.base import Column, FileFault, ReadReport, Split
from terascope.connectors.file_bytes import ByteStream, GzipStream, PlainStream
from terascope.connectors.packets.columns import BATCH_PACKETS, PacketBatch, PacketLayout
from terascope.connectors.packets.connector import looked_at
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.network import TABLE_FIELDS
from terascope.connectors.packets.pcapng import (
    BYTE_ORDER,
    ENHANCED_BLOCK,
    INTERFACE_BLOCK,
    SECTION_BLOCK,
    SIMPLE_BLOCK,
)
from terascope.connectors.packets.records import (
    CAPLEN,
    DATA,
    NO_INTERFACE,
    OFFSET,
    REASON,
    RECORD_ROWS,
    SECOND,
    TIMESTAMP,
    WIRELEN,
    Records,
    empty_records,
)
from terascope.connectors.packets.scan import (
    RESOLUTION_OPTION,
    SHIFT_OPTION,
    CaptureInterface,
    PcapngFraming,
    RecordScan,
    open_framing,
)
from terascope.connectors.packets.words import Bytes, Ints, load32
from terascope.machine_code import BOOLEAN, column, compiled_for, output
from terascope.splitting.outputs import Heading

PCAP, PCAPNG = ".pcap", ".pcapng"
NANOSECOND_TICKS: Final = 9
"""The resolution option of an interface that counts nanoseconds."""
NO_NUMBER: Final = 0xFFFFFFFF
"""The number of an interface that no section declares."""


@dataclass(frozen=True)
class PacketPiece:
    """Packets of one window, under one heading."""

    heading: Heading
    window: Bytes
    starts: Ints
    lengths: Ints
    times: Ints | None
    """Seconds; None where they are not wanted."""
    batch: pa.RecordBatch | None
    """The wanted columns; None where none is wanted."""

    def __len__(self) -> int:
        return len(self.starts)


def packet_pieces(
    split: Split, columns: Sequence[Column], report: ReadReport, timed: bool = False
) -> Iterator[PacketPiece]:
    """The packets of a split of a capture. A piece is good until the next one is asked for.
    `timed`: the times of the packets are wanted.
    """
    with file_bytes.opened_raw(split.path) as file:
        start, fault = looked_at(file)
        if fault is not None:
            report.blame(split.path, fault)
            return
        framing, header = open_framing(start, split.options)
        packed = file_bytes.starts_as_gzip(file)
        at = header if split.start == 0 else split.start
        stop = file_bytes.NO_END if packed else split.end
        stream: ByteStream = GzipStream(file) if packed else PlainStream(file, at)
        window = SlidingWindow(stream, 0 if packed else at, stop)
        scan = RecordScan(window, framing, at, stop, report)
        records = empty_records(BATCH_PACKETS, len(TABLE_FIELDS))
        layout = PacketLayout(columns) if columns else None
        counted = 0
        while not scan.done:
            found = scan.fill(records, RECORD_ROWS)
            consumed = stream.consumed if packed else scan.position - split.start
            report.bytes_read += consumed - counted
            counted = consumed
            if not found:
                continue
            report.tuples += found
            batch = None
            if layout is not None:
                decoded = PacketBatch(split, layout, records)
                decoded.decode(window.view, found, report)
                batch = decoded.finish()
            times = records.numbers[TIMESTAMP, :found] // SECOND if timed else None
            places = records.numbers[OFFSET, :found] - window.base
            if isinstance(framing, PcapngFraming):
                yield block_piece(framing, window.view, records, places, times, batch)
            else:
                ends = records.numbers[DATA, :found] + records.numbers[CAPLEN, :found]
                heading = Heading(start, PCAP)
                yield PacketPiece(heading, window.view, places, ends - places, times, batch)
        if stream.damaged:
            report.blame(split.path, FileFault.DAMAGED_GZIP)


# ---- pcapng --------------------------------------------------------------------------------------


def block_piece(
    framing: PcapngFraming,
    window: Bytes,
    records: Records,
    places: Ints,
    times: Ints | None,
    batch: pa.RecordBatch | None,
) -> PacketPiece:
    section = framing.section
    lengths, simple = np.empty(len(places), np.int64), np.empty(len(places), np.uint8)
    measure_blocks(window, places, section.big, lengths, simple)
    rows = np.flatnonzero(simple).tolist()
    interfaces = section.interfaces
    if rows:
        number = NO_NUMBER
        if interfaces:
            number = len(interfaces)
            first = interfaces[0]
            interfaces += (CaptureInterface(first.link, first.snap, NANOSECOND_TICKS),)
        # A packet of an interface that is not declared stays so beside the further one.
        is_odd = records.marks[REASON, : len(places)] == NO_INTERFACE
        odd = np.flatnonzero(is_odd).tolist()
        numbers = dict.fromkeys(rows, number) | dict.fromkeys(odd, NO_NUMBER)
        window = with_enhanced(window, records, numbers, section.big, places, lengths)
    heading = Heading(section_heading(section.big, interfaces), PCAPNG, within=True)
    return PacketPiece(heading, window, places, lengths, times, batch)


@compiled_for(
    column(np.uint8), column(np.int64), BOOLEAN, output(np.int64), output(np.uint8)
)  # fmt: skip
def measure_blocks(window: Bytes, places: Ints, big: bool, lengths: Ints, simple: Bytes) -> None:
    """The length of each block, and whether it is a simple one."""
    for i in range(len(places)):
        simple[i] = load32(window, places[i], big) == SIMPLE_BLOCK
        lengths[i] = load32(window, places[i] + 4, big)


def with_enhanced(
    window: Bytes,
    records: Records,
    numbers: Mapping[int, int],
    big: bool,
    places: Ints,
    lengths: Ints,
) -> Bytes:
    """The window with new enhanced blocks behind it, with these numbers of interfaces, for some of
    the packets; their places and lengths are changed.
    """
    order = ">" if big else "<"
    made = bytearray()
    for row, number in numbers.items():
        data, captured, wire, time = (
            int(records.numbers[line, row]) for line in (DATA, CAPLEN, WIRELEN, TIMESTAMP)
        )
        ticks = time if number != NO_NUMBER else time // 1000
        content = window[data : data + captured].tobytes().ljust(-(-captured // 4) * 4, b"\0")
        total = 32 + len(content)
        places[row], lengths[row] = len(window) + len(made), total
        made += struct.pack(
            order + "7I", ENHANCED_BLOCK, total, number, ticks >> 32, ticks & 0xFFFFFFFF,
            captured, wire,
        )  # fmt: skip
        made += content + struct.pack(order + "I", total)
    whole = np.empty(len(window) + len(made) + 64, np.uint8)
    whole[: len(window)] = window
    whole[len(window) : len(window) + len(made)] = np.frombuffer(made, np.uint8)
    return whole


def section_heading(big: bool, interfaces: Sequence[CaptureInterface]) -> bytes:
    """A section header and the descriptions of the interfaces of the section."""
    order = ">" if big else "<"
    made = struct.pack(order + "3I2HqI", SECTION_BLOCK, 28, BYTE_ORDER, 1, 0, -1, 28)
    for one in interfaces:
        options = struct.pack(order + "2HB3x", RESOLUTION_OPTION, 1, one.resolution)
        if one.shift:
            options += struct.pack(order + "2Hq", SHIFT_OPTION, 8, one.shift)
        options += bytes(4)
        total = 20 + len(options)
        made += struct.pack(order + "2I2HI", INTERFACE_BLOCK, total, one.link, 0, one.snap)
        made += options + struct.pack(order + "I", total)
    return made
