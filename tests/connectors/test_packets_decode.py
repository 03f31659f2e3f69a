from __future__ import annotations

import struct
from pathlib import Path

import pytest

from terascope.types import parse_ip
from tests.connectors.packet_bytes import (
    Frame,
    Row,
    ethernet,
    extension,
    fragment_header,
    icmp,
    ipv4,
    ipv6,
    layers_of,
    pcap,
    read_rows,
    tcp,
    udp,
)

LINK = {"ETH"}
V4 = {"ETH", "PKT", "IP", "IPV4"}
V6 = {"ETH", "PKT", "IP", "IPV6"}


def one(folder: Path, frame: bytes | Frame, link: int = 1) -> tuple[Row, dict[str, int]]:
    rows, report = read_rows(folder, pcap([frame], link=link))
    assert len(rows) == report.tuples == 1
    return rows[0], dict(report.malformed)


def test_every_field_of_a_tcp_packet(tmp_path: Path) -> None:
    data = ethernet(ipv4(tcp(flags=0x1B, payload=b"hello", options=b"\1\1\1\1"), options=b"\1" * 8))
    row, malformed = one(tmp_path, Frame(data, 1_600_000_000, 123_456))
    assert malformed == {}
    assert layers_of(row) == V4 | {"TCP"}
    assert row == {
        "#pos": 24,
        "#layers": row["#layers"],
        "time": 1_600_000_000,
        "timestamp": 1_600_000_000_123_456_000,
        "interface": "eth0",
        "caplen": len(data),
        "wirelen": len(data),
        "srcMAC": "02:03:04:05:06:07",
        "destMAC": "0a:0b:0c:0d:0e:0f",
        "ethertype": 0x0800,
        "vlan": None,
        "ipversion": 4,
        "srcIP": parse_ip("10.0.0.1"),
        "destIP": parse_ip("192.168.1.2"),
        "protocol": 6,
        "len": len(data) - 14,
        "hdr_length": 28,
        "tos": 0xB8,
        "ttl": 64,
        "id": 777,
        "offset": 0,
        "more_fragments": False,
        "data": data[14 + 28 :],
        "srcPort": 1234,
        "destPort": 80,
        "flags": 0x1B,
        "FIN": True,
        "SYN": True,
        "RST": False,
        "PSH": True,
        "ACK": True,
        "URG": False,
        "sequence_number": 7_000_000_001 & 0xFFFFFFFF,
        "ack_number": 99,
        "window": 512,
        "TCP_data": b"hello",
        "UDP_data": None,
        "icmp_type": None,
        "icmp_code": None,
    }


def test_every_field_of_an_ipv6_udp_packet(tmp_path: Path) -> None:
    data = ethernet(ipv6(extension(17) + udp(payload=b"query"), 0), 0x86DD)
    row, malformed = one(tmp_path, data)
    assert malformed == {}
    assert layers_of(row) == V6 | {"UDP"}
    expected = {
        "ipversion": 6, "srcIP": parse_ip("2001:db8::1"), "destIP": parse_ip("2001:db8::2"),
        "protocol": 17, "len": len(data) - 14, "hdr_length": 48, "tos": 0xB8, "ttl": 63, "id": None,
        "offset": 0, "srcPort": 53, "destPort": 5353, "UDP_data": b"query", "TCP_data": None,
        "flags": None, "SYN": None, "window": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


PACKET = ipv4(tcp(payload=b"x"))
PACKET6 = ipv6(tcp(payload=b"x"))
MAC = bytes.fromhex("020304050607")
LINKS = {
    "ethernet": (1, ethernet(PACKET)),
    "ethernet ipv6": (1, ethernet(PACKET6, 0x86DD)),
    "vlan": (1, ethernet(b"\x20\x07\x08\x00" + PACKET, 0x8100)),
    "qinq": (1, ethernet(b"\x00\x07\x81\x00\x00\x09\x08\x00" + PACKET, 0x88A8)),
    "old qinq": (1, ethernet(b"\x00\x07\x91\x00\x00\x09\x86\xdd" + PACKET6, 0x9100)),
    "mpls": (1, ethernet(b"\x00\x01\x00\x40\x00\x02\x01\x40" + PACKET, 0x8847)),
    "mpls multicast": (1, ethernet(b"\x00\x01\x01\x40" + PACKET6, 0x8848)),
    "vlan then mpls": (1, ethernet(b"\x00\x07\x88\x47\x00\x01\x01\x40" + PACKET, 0x8100)),
    "pppoe": (1, ethernet(b"\x11\x00\x00\x01\x00\x50\x00\x21" + PACKET, 0x8864)),
    "pppoe ipv6": (1, ethernet(b"\x11\x00\x00\x01\x00\x50\x00\x57" + PACKET6, 0x8864)),
    "pppoe mpls": (1, ethernet(b"\x11\x00\0\1\0\x50\x02\x81\0\1\1\x40" + PACKET, 0x8864)),
    "snap": (1, ethernet(b"\xaa\xaa\x03\0\0\0\x08\x00" + PACKET, 64)),
    "llc ip": (1, ethernet(b"\x06\x06\x03" + PACKET, 64)),
    "null little": (0, b"\x02\0\0\0" + PACKET),
    "null big": (0, b"\0\0\0\x02" + PACKET),
    "null linux ipv6": (0, b"\x0a\0\0\0" + PACKET6),
    "null freebsd ipv6": (0, b"\0\0\0\x1c" + PACKET6),
    "null darwin ipv6": (0, b"\x1e\0\0\0" + PACKET6),
    "loop": (108, b"\0\0\0\x18" + PACKET6),
    "ppp": (9, b"\xff\x03\x00\x21" + PACKET),
    "ppp bare": (9, b"\x00\x57" + PACKET6),
    "ppp compressed": (9, b"\x21" + PACKET),
    "ppp serial": (50, b"\xff\x03\x00\x21" + PACKET),
    "ppp serial hdlc": (50, b"\x0f\x00\x08\x00" + PACKET),
    "ppp ether": (51, b"\x11\x00\x00\x01\x00\x50\x00\x21" + PACKET),
    "cisco hdlc": (104, b"\x0f\x00\x86\xdd" + PACKET6),
    "raw 12": (12, PACKET),
    "raw 14": (14, PACKET6),
    "raw 101": (101, PACKET6),
    "ipv4": (228, PACKET),
    "ipv6": (229, PACKET6),
    "cooked": (113, b"\0\0\0\1\0\6" + MAC + b"\0\0\x08\x00" + PACKET),
    "cooked vlan": (113, b"\0\0\0\1\0\6" + MAC + b"\0\0\x81\0\0\7\x08\0" + PACKET),
    "cooked 2": (276, b"\x86\xdd\0\0\0\0\0\2\0\1\0\6" + MAC + b"\0\0" + PACKET6),
}


@pytest.mark.parametrize("name", LINKS)
def test_link_types_and_wrappers_are_peeled(tmp_path: Path, name: str) -> None:
    link, data = LINKS[name]
    row, malformed = one(tmp_path, data, link)
    version = 6 if data.endswith(PACKET6) else 4
    assert malformed == {}
    assert layers_of(row) == (V6 if version == 6 else V4) | {"TCP"}
    assert (row["ipversion"], row["destPort"], row["TCP_data"]) == (version, 80, b"x")
    assert row["vlan"] == (7 if "vlan" in name or "qinq" in name else None)
    if name.startswith("cooked"):
        assert (row["srcMAC"], row["destMAC"]) == ("02:03:04:05:06:07", None)
    if link != 1 and not name.startswith("cooked"):
        assert row["srcMAC"] is row["destMAC"] is None


@pytest.mark.parametrize("name", LINKS)
def test_a_frame_cut_anywhere_is_delivered_and_counted_once(tmp_path: Path, name: str) -> None:
    """The snap length cuts at every byte: malformed just while headers are cut."""
    link, data = LINKS[name]
    frames = [Frame(data[:size], wirelen=len(data)) for size in range(len(data) + 1)]
    rows, report = read_rows(tmp_path, pcap(frames, link=link))
    assert len(rows) == len(data) + 1
    whole_from = len(data) - 1  # the payload is one byte: without it the headers are still whole
    assert [("TCP" in layers_of(row)) for row in rows] == [
        size >= whole_from for size in range(len(data) + 1)
    ]
    cut = sum(report.malformed.values())
    assert cut == whole_from, dict(report.malformed)
    header = 40 if rows[-1]["ipversion"] == 6 else 20
    fixed = len(data) - 21
    assert [row["len"] for row in rows] == [
        len(PACKET6 if header == 40 else PACKET) if size >= fixed else None
        for size in range(len(data) + 1)
    ]


def test_packets_without_ip_are_in_eth_only_and_fine(tmp_path: Path) -> None:
    frames = [
        ethernet(b"\0" * 46, 0x0806),
        ethernet(b"\x42\x42\x03" + b"\0" * 43, 38),
        ethernet(b"\x11\x00\x00\x01\x00\x04\xc0\x21" + b"\0" * 40, 0x8864),
        ethernet(b"\0\0\1\x40" + b"\0" * 42, 0x8847),  # a pseudowire with its control word
    ]
    rows, report = read_rows(tmp_path, pcap(frames))
    assert [layers_of(row) for row in rows] == [LINK] * 4
    assert [row["ethertype"] for row in rows] == [0x0806, None, 0x8864, 0x8847]
    assert all(row[name] is None for row in rows for name in ("srcIP", "len", "srcPort", "data"))
    assert not report.malformed


def test_an_unsupported_link_type_is_told(tmp_path: Path) -> None:
    row, malformed = one(tmp_path, PACKET, link=10)
    assert layers_of(row) == LINK
    assert malformed == {"unsupported link type": 1}
    assert row["srcIP"] is None
    assert row["caplen"] == len(PACKET)


def test_ethernet_padding_is_not_payload(tmp_path: Path) -> None:
    row, malformed = one(tmp_path, ethernet(ipv4(tcp())) + b"\0" * 6)
    assert malformed == {}
    assert (row["TCP_data"], len(row["data"]), row["caplen"], row["len"]) == (b"", 20, 60, 40)
    row, _ = one(tmp_path, ethernet(ipv4(udp(payload=b"ab"), 17)) + b"\0" * 16)
    assert row["UDP_data"] == b"ab"


MALFORMED = {
    "IPv4 in name only": (ethernet(b"\x65" + PACKET[1:]), "bad IP version", LINK),
    "IPv6 in name only": (ethernet(PACKET, 0x86DD), "bad IP version", LINK),
    "short header length": (ethernet(ipv4(tcp(), words=4)), "bad IPv4 header length", LINK),
    "options cut": (ethernet(ipv4(b"", words=15)), "truncated IPv4 header", V4),
    "total below header": (ethernet(ipv4(tcp(), total=19)), "bad IPv4 total length", V4),
    "total beyond frame": (
        ethernet(ipv4(tcp(), total=1000)),
        "IPv4 total length beyond the frame",
        V4 | {"TCP"},
    ),
    "payload beyond frame": (
        ethernet(ipv6(tcp(), length=1000), 0x86DD),
        "IPv6 payload length beyond the frame",
        V6 | {"TCP"},
    ),
    "tcp in 19 bytes": (ethernet(ipv4(tcp()[:19])), "truncated TCP header", V4),
    "tcp header in padding": (ethernet(ipv4(tcp(), total=39)), "truncated TCP header", V4),
    "udp in 7 bytes": (ethernet(ipv4(udp()[:7], 17)), "truncated UDP header", V4),
    "icmp in 3 bytes": (ethernet(ipv4(icmp()[:3], 1)), "truncated ICMP header", V4),
    "tcp words": (ethernet(ipv4(tcp(words=4))), "bad TCP header length", V4 | {"TCP"}),
    "tcp words beyond": (ethernet(ipv4(tcp(words=6))), "bad TCP header length", V4 | {"TCP"}),
    "udp length 7": (ethernet(ipv4(udp(length=7), 17)), "bad UDP length", V4 | {"UDP"}),
    "udp length beyond": (ethernet(ipv4(udp(length=9), 17)), "bad UDP length", V4 | {"UDP"}),
    "extension cut": (
        ethernet(ipv6(extension(6, 16)[:9], 60), 0x86DD),
        "truncated IPv6 extension header",
        V6,
    ),
    "vlan cut": (ethernet(b"\0\1\x08", 0x8100), "truncated VLAN tag", LINK),
    "mpls cut": (ethernet(b"\0\1\0\x40", 0x8847), "truncated MPLS label", LINK),
    "pppoe cut": (ethernet(b"\x11\0\0\1\0\x50\0", 0x8864), "truncated PPPoE header", LINK),
    "snap cut": (ethernet(b"\xaa\xaa\x03\0", 4), "truncated LLC header", LINK),
    "nothing": (b"", "truncated link header", LINK),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_packets_are_counted_once_and_delivered_as_far_as_they_go(
    tmp_path: Path, name: str
) -> None:
    data, reason, layers = MALFORMED[name]
    row, malformed = one(tmp_path, data)
    assert malformed == {reason: 1}
    assert layers_of(row) == layers


def test_raw_ip_of_no_known_version(tmp_path: Path) -> None:
    for first in (b"\x00", b"\x55"):
        row, malformed = one(tmp_path, first + PACKET[1:], link=101)
        assert malformed == {"bad IP version": 1}
        assert layers_of(row) == LINK


def test_options_of_tcp_cut_by_the_snap_length_are_no_fault(tmp_path: Path) -> None:
    data = ethernet(ipv4(tcp(options=b"\1" * 12, payload=b"hello")))
    row, malformed = one(tmp_path, Frame(data[: 14 + 20 + 24], wirelen=len(data)))
    assert malformed == {}
    assert layers_of(row) == V4 | {"TCP"}
    assert row["TCP_data"] == b""


def test_offload_leaves_lengths_zero(tmp_path: Path) -> None:
    row, malformed = one(tmp_path, ethernet(ipv4(tcp(payload=b"segments"), total=0)))
    assert (malformed, row["len"], row["TCP_data"]) == ({}, 0, b"segments")
    row, malformed = one(tmp_path, ethernet(ipv6(tcp(payload=b"segments"), length=0), 0x86DD))
    assert (malformed, row["len"], row["TCP_data"]) == ({}, 40, b"segments")


def test_ipv4_fragments(tmp_path: Path) -> None:
    frames = [
        ethernet(ipv4(udp(payload=b"a" * 16, length=100), 17, fragment=0x2000)),
        ethernet(ipv4(b"b" * 24, 17, fragment=0x2003)),
        ethernet(ipv4(b"c" * 4, 17, fragment=0x0006)),
        ethernet(ipv4(tcp(), fragment=0x4000)),  # do not fragment
    ]
    rows, report = read_rows(tmp_path, pcap(frames))
    assert not report.malformed
    assert [layers_of(row) - V4 for row in rows] == [{"UDP"}, set(), set(), {"TCP"}]
    assert [row["offset"] for row in rows] == [0, 3, 6, 0]
    assert [row["more_fragments"] for row in rows] == [True, True, False, False]
    assert [row["srcPort"] for row in rows] == [53, None, None, 1234]
    assert [row["UDP_data"] for row in rows] == [b"a" * 16, None, None, None]
    assert [row["data"] for row in rows[1:3]] == [b"b" * 24, b"c" * 4]


def test_ipv6_extension_headers(tmp_path: Path) -> None:
    authentication = bytes([6, 4]) + b"\0" * 22
    chain = extension(43) + extension(60, 24) + extension(135) + extension(51, 16) + authentication
    frames = [
        ethernet(ipv6(chain + tcp(), 0), 0x86DD),
        ethernet(ipv6(fragment_header(17, 0, True) + udp(payload=b"abcd", length=64), 44), 0x86DD),
        ethernet(ipv6(fragment_header(17, 4, False) + b"rest", 44), 0x86DD),
        ethernet(ipv6(b"", 59), 0x86DD),
        ethernet(ipv6(extension(58) + icmp(128), 60), 0x86DD),
        ethernet(ipv6(b"\0" * 16, 50), 0x86DD),
    ]
    rows, report = read_rows(tmp_path, pcap(frames))
    assert not report.malformed
    assert [layers_of(row) - V6 for row in rows] == [
        {"TCP"}, {"UDP"}, set(), set(), {"ICMP"}, set(),
    ]  # fmt: skip
    assert [row["protocol"] for row in rows] == [6, 17, 17, 59, 58, 50]
    assert [row["offset"] for row in rows] == [0, 0, 4, 0, 0, 0]
    assert [row["id"] for row in rows] == [None, 5, 5, None, None, None]
    assert [row["hdr_length"] for row in rows] == [40 + len(chain), 48, 48, 40, 48, 40]
    assert (rows[4]["icmp_type"], rows[4]["icmp_code"]) == (128, 0)


def test_jumbograms(tmp_path: Path) -> None:
    body = udp(payload=b"j" * 70_000, length=0)
    jumbo = extension(17, 8, b"\xc2\x04" + struct.pack(">I", len(body) + 8))
    data = ethernet(ipv6(jumbo + body, 0, length=0), 0x86DD)
    rows, report = read_rows(tmp_path, pcap([data], snap=262_144))
    assert not report.malformed
    assert rows[0]["len"] == 40 + 8 + len(body)
    assert rows[0]["UDP_data"] == b"j" * 70_000


def test_icmp_and_other_protocols(tmp_path: Path) -> None:
    frames = [
        ethernet(ipv4(icmp(3, 1), 1)),
        ethernet(ipv4(b"\x00\x07\x00\x08" + b"\0" * 8, 132)),
        ethernet(ipv4(b"\0" * 4, 47)),
        ethernet(ipv4(ipv4(tcp()), 4)),
    ]
    rows, report = read_rows(tmp_path, pcap(frames))
    assert not report.malformed
    assert [layers_of(row) - V4 for row in rows] == [{"ICMP"}, set(), set(), set()]
    assert (rows[0]["icmp_type"], rows[0]["icmp_code"], rows[0]["srcPort"]) == (3, 1, None)
    assert (rows[1]["srcPort"], rows[1]["destPort"]) == (7, 8)  # SCTP
    assert [row["srcPort"] for row in rows[2:]] == [None, None]  # tunnels are not opened
