"""The small captures of docs/examples, packet by packet. Run this file to write them again."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

from tests.connectors.packet_bytes import Frame, ethernet, icmp, pcap, udp

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
LAPTOP, PHONE, TABLET = "10.0.0.1", "10.0.0.2", "10.0.0.7"
WEB, RESOLVER, STRANGER = "192.0.2.80", "198.51.100.53", "203.0.113.9"
GET = b"GET /index.html HTTP/1.1\r\nHost: example.org\r\n\r\n"


def ip(source: str, destination: str, payload: bytes, protocol: int) -> bytes:
    """An Ethernet frame with an IPv4 or IPv6 packet."""
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    if ":" in source:
        head = struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64)
        return ethernet(head + ends + payload, 0x86DD)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0)
    return ethernet(head + ends + payload)


def at(seconds: float, data: bytes) -> Frame:
    microseconds = round(seconds * 1_000_000)
    return Frame(data, microseconds // 1_000_000, microseconds % 1_000_000)


def tcp(
    seconds: float,
    source: tuple[str, int],
    destination: tuple[str, int],
    flags: int,
    numbers: tuple[int, int] = (0, 0),
    payload: bytes = b"",
) -> Frame:
    ports = source[1], destination[1]
    head = struct.pack(">HHIIBBHHH", *ports, *numbers, 5 << 4, flags, 512, 0, 0)
    return at(seconds, ip(source[0], destination[0], head + payload, 6))


def datagram(
    seconds: float, source: tuple[str, int], destination: tuple[str, int], size: int
) -> Frame:
    payload = udp(source[1], destination[1], b"?" * size)
    return at(seconds, ip(source[0], destination[0], payload, 17))


laptop, phone, web = (LAPTOP, 50001), (PHONE, 50002), (WEB, 80)
resolver = (RESOLVER, 53)

TINY = (
    at(0.0, ethernet(b"\0" * 28, 0x0806)),
    datagram(1.0, (LAPTOP, 40001), resolver, 22),
    datagram(1.02, resolver, (LAPTOP, 40001), 52),
    tcp(2.0, laptop, web, SYN, (1000, 0)),
    tcp(2.03, web, laptop, SYN | ACK, (9000, 1001)),
    tcp(2.06, laptop, web, ACK, (1001, 9001)),
    tcp(2.1, laptop, web, PSH | ACK, (1001, 9001), GET),
    tcp(3.0, laptop, web, PSH | ACK, (1001, 9001), GET),
    tcp(3.2, web, laptop, PSH | ACK, (9001, 1048), b"x" * 460),
    tcp(5.0, laptop, web, FIN | ACK, (1048, 9461)),
    tcp(20.0, phone, web, SYN, (2000, 0)),
    tcp(20.5, web, phone, SYN | ACK, (7000, 2001)),
    tcp(61.0, (STRANGER, 6001), web, SYN, (1, 0)),
    tcp(61.01, (STRANGER, 6002), web, SYN, (1, 0)),
    tcp(61.02, (STRANGER, 6003), web, SYN, (1, 0)),
    tcp(70.0, phone, web, PSH | ACK, (2001, 7001), b"y" * 60),
    datagram(75.0, ("2001:db8::1", 40002), ("2001:db8::53", 53), 22),
    at(90.0, ip(PHONE, WEB, icmp(8), 1)),
    tcp(130.0, phone, web, FIN | ACK, (2061, 7001)),
)
SECOND = (
    tcp(2.5, (TABLET, 50007), web, SYN, (500, 0)),
    tcp(2.6, web, (TABLET, 50007), SYN | ACK, (800, 501)),
    tcp(62.0, (TABLET, 50007), web, PSH | ACK, (501, 801), GET),
)
CAPTURES = {"tiny.pcap": pcap(TINY), "second.pcap": pcap(SECOND)}

if __name__ == "__main__":
    for name, content in CAPTURES.items():
        (FOLDER / name).write_bytes(content)
