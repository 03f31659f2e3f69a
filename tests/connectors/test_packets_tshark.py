"""Every packet of the real captures, by tshark and by us: equal, or the difference is explained."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from terascope.connectors.packets.fields import ICMP, TCP, UDP
from terascope.types import format_ip
from tests.connectors.packet_bytes import Row, read_table

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
FOLDERS = ("attack", "edge", "showcase", "netflow")
CAPTURES = sorted(
    f"{folder}/{path.name}" for folder in FOLDERS for path in (DATA / folder).glob("*.pcap*")
)
SLOW = {"showcase/ndpi42_rebased_s96.pcap", "showcase/zeek_echo-connections.pcap.gz"}
"""tshark alone takes seconds for these."""
TSHARK = shutil.which("tshark")

TSHARK_FIELDS = (
    "frame.protocols frame.time_epoch frame.len frame.cap_len ip.src ip.dst ipv6.src ipv6.dst "
    "ip.len tcp.srcport tcp.dstport tcp.flags tcp.seq_raw tcp.ack_raw tcp.window_size_value "
    "udp.srcport udp.dstport"
).split()
OUR_FIELDS = (
    "#layers timestamp wirelen caplen srcIP destIP len srcPort destPort flags sequence_number "
    "ack_number window ipversion"
).split()
SWITCHED_OFF = (
    "ip.defragment ipv6.defragment tcp.desegment_tcp_streams tcp.analyze_sequence_numbers".split()
)
OUTERMOST_IP = re.compile(r"(?:^|:)(ipv6|ip)(?=:|$)(?::ipv6\.\w+)*(?::([^:]+))?")

SHORT = (
    "tshark names a transport whose fixed header is not whole; such a packet is not TCP or UDP here"
)
BAD_HEADER = "tshark names IP where the version or the header length forbid reading it"
CUT_OPTIONS = (
    "IPv4 options run beyond the frame: tshark leaves the addresses out, we give what is there"
)
OFFLOAD = "IPv4 total length 0 (offload): we give what the header says, tshark the frame's length"
FABRICPATH = "Cisco FabricPath, a frame in a frame, is not among the wrappers that are peeled"
FDDI = "FDDI frames are an unsupported link type"
MORE_THAN_31_BITS = "the record says 4093509168 bytes on the wire; tshark shows 2^31 - 1"
PSEUDOWIRE = "MPLS payload starting with 4: IPv4 here, with no length; tshark guesses otherwise"
DIFFERENCES: dict[str, dict[str, tuple[int, str]]] = {
    "edge/suricata_decode-too-small.pcap": {
        "transport": (4, SHORT),
        "tcp packets": (1, SHORT),
        "udp packets": (3, SHORT),
    },
    "edge/zeek_llc.pcap": dict.fromkeys(
        ("ipversion", "transport", "tcp packets", "RST"), (1333, FDDI)
    ),
    "edge/zeek_trunc_mpls-6in6-broken.pcap.gz": {
        "ipversion": (22 + 1, f"22: {BAD_HEADER}; 1: {PSEUDOWIRE}"),
        "srcIP": (3, CUT_OPTIONS),
        "destIP": (5, CUT_OPTIONS),
        "len": (11, OFFLOAD),
    },
    "showcase/ndpi42_rebased_s96.pcap": {
        "ipversion": (8 + 12, f"8: {BAD_HEADER}; 12: {FABRICPATH}"),
        "transport": (31 + 12, f"31: {SHORT}; 12: {FABRICPATH}"),
        "tcp packets": (31 + 12, f"31: {SHORT}; 12: {FABRICPATH}"),
        "SYN": (1 + 2, f"1: {SHORT}; 2: {FABRICPATH}"),
        "SYN-ACK": (2 + 2, f"2: {SHORT}; 2: {FABRICPATH}"),
        "RST": (3, SHORT),
        "wirelen": (1, MORE_THAN_31_BITS),
        "len": (438, OFFLOAD),
    },
}
"""File -> what differs -> in how many packets (or tshark's count less ours), and why."""


def tshark_rows(path: Path) -> list[dict[str, str]]:
    assert TSHARK is not None
    command = [
        TSHARK,
        "-n",
        "-r",
        str(path),
        "-T",
        "fields",
        "-E",
        "occurrence=f",
        "-E",
        "separator=|",
    ]
    command += [part for name in SWITCHED_OFF for part in ("-o", f"{name}:FALSE")]
    command += [part for name in TSHARK_FIELDS for part in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [
        dict(zip(TSHARK_FIELDS, line.split("|"), strict=True)) for line in done.stdout.splitlines()
    ]


def number(text: str, base: int = 10) -> int | None:
    return int(text, base) if text else None


def address(text: str) -> str | None:
    return str(ipaddress.ip_address(text)) if text else None


def theirs(row: dict[str, str]) -> Row:
    """A packet as tshark sees it: the outermost IP header, and the transport right behind it."""
    found = OUTERMOST_IP.search(row["frame.protocols"])
    version, transport = found.groups("") if found else (None, "")
    transport = {"icmpv6": "icmp"}.get(transport, transport)
    ends = ("ipv6.src", "ipv6.dst") if version == "ipv6" else ("ip.src", "ip.dst")
    packet: Row = {
        "timestamp": int(Decimal(row["frame.time_epoch"]) * 10**9),
        "wirelen": int(row["frame.len"]),
        "caplen": int(row["frame.cap_len"]),
        "ipversion": {"ip": 4, "ipv6": 6}.get(version or ""),
        "transport": transport if transport in ("tcp", "udp", "icmp") else None,
    }
    if version:
        packet |= {"srcIP": address(row[ends[0]]), "destIP": address(row[ends[1]])}
    if version == "ip":
        packet["len"] = number(row["ip.len"])
    if transport == "tcp":
        packet["flags"] = (number(row["tcp.flags"], 16) or 0) & 0xFF
        packet["sequence_number"] = number(row["tcp.seq_raw"])
        packet["ack_number"] = number(row["tcp.ack_raw"])
        packet["window"] = number(row["tcp.window_size_value"])
    if transport in ("tcp", "udp"):
        packet["srcPort"] = number(row[f"{transport}.srcport"])
        packet["destPort"] = number(row[f"{transport}.dstport"])
    return packet


def ours(row: Row) -> Row:
    layers = row["#layers"]
    transport = (
        "tcp" if layers & TCP else "udp" if layers & UDP else "icmp" if layers & ICMP else None
    )
    packet = {name: row[name] for name in ("timestamp", "wirelen", "caplen", "ipversion")}
    packet["transport"] = transport
    if row["ipversion"]:
        packet |= {name: format_ip(row[name]) for name in ("srcIP", "destIP")}
    if row["ipversion"] == 4:
        packet["len"] = row["len"]
    if transport == "tcp":
        names = ("flags", "sequence_number", "ack_number", "window", "srcPort", "destPort")
        packet |= {name: row[name] for name in names}
    if transport == "udp":
        packet |= {name: row[name] for name in ("srcPort", "destPort")}
    return packet


def counts(packets: list[Row]) -> Counter[str]:
    found: Counter[str] = Counter(packets=len(packets))
    for packet in packets:
        transport = packet["transport"]
        found[f"{transport} packets"] += 1
        if transport == "tcp":
            flags = packet["flags"]
            found["SYN"] += flags & 0x12 == 0x02
            found["SYN-ACK"] += flags & 0x12 == 0x12
            found["RST"] += flags & 0x04 != 0
    del found["None packets"]
    return found


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
@pytest.mark.skipif(not CAPTURES, reason="the captures of ../shared/data are not there")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow, pytest.mark.soak] if name in SLOW else [])
        for name in CAPTURES or ["none"]
    ],
)
def test_tshark_reads_the_same(name: str) -> None:
    table, report = read_table(DATA / name, OUR_FIELDS)
    mine = [ours(row) for row in table.to_pylist()]
    every = [theirs(row) for row in tshark_rows(DATA / name)]
    other = [row for row in every if row["timestamp"] < 1 << 63]  # others have no possible time
    assert report.malformed["timestamp out of range"] == len(every) - len(other)
    assert len(mine) == len(other)
    differing: Counter[str] = Counter()
    for one, two in zip(mine, other, strict=True):
        for key in one.keys() & two.keys():
            differing[key] += one[key] != two[key]
    our_counts, their_counts = counts(mine), counts(other)
    for key in our_counts | their_counts:
        differing[key] = their_counts[key] - our_counts[key]
    expected = {key: count for key, (count, _) in DIFFERENCES.get(name, {}).items()}
    assert {key: count for key, count in differing.items() if count} == expected
