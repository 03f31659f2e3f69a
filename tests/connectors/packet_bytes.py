"""Packets and capture files built by hand, byte by byte, and how the tests read them back."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from terascope.connectors.base import LAYERS, POSITION, Column, ReadReport
from terascope.connectors.packets.columns import native_type
from terascope.connectors.packets.connector import PacketConnector
from terascope.connectors.packets.fields import ALL_FIELDS, LAYER_BITS, canonical
from tests.connectors.table_reading import splits_of

WHOLE = 1 << 60
ALL_NAMES = (POSITION, LAYERS, *(field.name for field in ALL_FIELDS))
Row = dict[str, Any]

# ------------------------------------------------------------------------------- packets


def tcp(
    source: int = 1234,
    destination: int = 80,
    flags: int = 0x02,
    payload: bytes = b"",
    options: bytes = b"",
    words: int | None = None,
) -> bytes:
    words = 5 + len(options) // 4 if words is None else words
    fixed = struct.pack(
        ">HHIIBBHHH",
        source,
        destination,
        7_000_000_001 & 0xFFFFFFFF,
        99,
        words << 4,
        flags,
        512,
        0,
        0,
    )
    return fixed + options + payload


def udp(
    source: int = 53, destination: int = 5353, payload: bytes = b"", length: int | None = None
) -> bytes:
    length = 8 + len(payload) if length is None else length
    return struct.pack(">HHHH", source, destination, length, 0) + payload


def icmp(kind: int = 8, code: int = 0) -> bytes:
    return bytes([kind, code, 0, 0]) + b"ping"


def ipv4(
    payload: bytes,
    protocol: int = 6,
    *,
    options: bytes = b"",
    fragment: int = 0,
    total: int | None = None,
    version: int = 4,
    words: int | None = None,
    source: str = "10.0.0.1",
    destination: str = "192.168.1.2",
) -> bytes:
    words = 5 + len(options) // 4 if words is None else words
    total = 20 + len(options) + len(payload) if total is None else total
    fixed = struct.pack(
        ">BBHHHBBH", version << 4 | words, 0xB8, total, 777, fragment, 64, protocol, 0
    )
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    return fixed + ends + options + payload


def ipv6(
    payload: bytes,
    following: int = 6,
    *,
    length: int | None = None,
    source: str = "2001:db8::1",
    destination: str = "2001:db8::2",
) -> bytes:
    length = len(payload) if length is None else length
    fixed = struct.pack(">IHBB", 6 << 28 | 0xB8 << 20 | 5, length, following, 63)
    return (
        fixed
        + ipaddress.ip_address(source).packed
        + ipaddress.ip_address(destination).packed
        + payload
    )


def extension(following: int, size: int = 8, body: bytes = b"") -> bytes:
    """An options-like IPv6 extension header of `size` bytes."""
    return (bytes([following, size // 8 - 1]) + body).ljust(size, b"\x01\x00"[:1])


def fragment_header(following: int, offset: int, more: bool, ident: int = 5) -> bytes:
    return struct.pack(">BBHI", following, 0, offset << 3 | more, ident)


def ethernet(payload: bytes, kind: int = 0x0800) -> bytes:
    return bytes.fromhex("0a0b0c0d0e0f 020304050607") + struct.pack(">H", kind) + payload


# ----------------------------------------------------------------------------- pcap files


@dataclass(frozen=True)
class Frame:
    """A packet in a file: bytes captured, time in seconds and parts, length on the wire."""

    data: bytes
    second: int = 1_600_000_000
    part: int = 0
    wirelen: int | None = None


def pcap(
    frames: Iterable[Frame | bytes],
    *,
    link: int = 1,
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    snap: int = 65535,
) -> bytes:
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for index, frame in enumerate(frames):
        f = Frame(frame, 1_600_000_000 + index, index) if isinstance(frame, bytes) else frame
        wirelen = len(f.data) if f.wirelen is None else f.wirelen
        out.append(struct.pack(order + "IIII", f.second, f.part, len(f.data), wirelen))
        if magic == 0xA1B2CD34:
            out.append(struct.pack(order + "IHBB", 2, 0x0800, 0, 0))
        out.append(f.data)
    return b"".join(out)


# --------------------------------------------------------------------------- pcapng files


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += b"\0" * (-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def described(
    link: int = 1,
    *,
    resolution: int | None = None,
    shift: int | None = None,
    snap: int = 0,
    order: str = "<",
) -> bytes:
    options = option(2, b"eth7", order)
    if resolution is not None:
        options += option(9, bytes([resolution]), order)
    if shift is not None:
        options += option(14, struct.pack(order + "q", shift), order)
    options += option(0, b"", order)
    return block(1, struct.pack(order + "HHI", link, 0, snap) + options, order)


def enhanced(
    data: bytes,
    ticks: int,
    number: int = 0,
    *,
    order: str = "<",
    wirelen: int | None = None,
    caplen: int | None = None,
) -> bytes:
    head = struct.pack(
        order + "IIIII",
        number,
        ticks >> 32,
        ticks & 0xFFFFFFFF,
        len(data) if caplen is None else caplen,
        len(data) if wirelen is None else wirelen,
    )
    return block(6, head + data + b"\0" * (-len(data) % 4) + option(0, b"", order), order)


def simple(data: bytes, wirelen: int | None = None, order: str = "<") -> bytes:
    return block(3, struct.pack(order + "I", wirelen or len(data)) + data, order)


def obsolete(data: bytes, ticks: int, number: int = 0, order: str = "<") -> bytes:
    head = struct.pack(
        order + "HHIIII", number, 0xFFFF, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data)
    )
    return block(2, head + data, order)


# ------------------------------------------------------------------------------- reading


def columns_named(names: Sequence[str]) -> list[Column]:
    found = []
    for name in names:
        type = native_type(canonical(name))
        assert type is not None, name
        found.append(Column(name, type))
    return found


def read_table(
    path: Path, names: Sequence[str] = ALL_NAMES, target: int = WHOLE
) -> tuple[pa.Table, ReadReport]:
    """All splits of a file, one after the other."""
    connector = PacketConnector()
    report = ReadReport()
    columns = columns_named(names)
    splits = splits_of(connector, "eth0", [path], {}, target)
    batches = [batch for split in splits for batch in connector.read(split, columns, report)]
    if not batches:
        return pa.table({name: [] for name in names}), report
    table = pa.Table.from_batches(batches)
    table.validate(full=True)
    return table, report


def read_rows(
    folder: Path, content: bytes, names: Sequence[str] = ALL_NAMES, target: int = WHOLE
) -> tuple[list[Row], ReadReport]:
    """The packets of a file with this content."""
    path = folder / "trace"
    path.write_bytes(content)
    table, report = read_table(path, names, target)
    rows: list[Row] = table.to_pylist()
    return rows, report


def layers_of(row: Row) -> set[str]:
    return {name for name, bit in LAYER_BITS.items() if row[LAYERS] & bit}
