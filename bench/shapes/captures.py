"""Real captures with other clocks: the same packets in another time.

In: pcap files of ../shared/data, and over how many seconds their packets shall be spread. Out: one
pcap file. Stretched, a capture has as many epochs as one likes; compressed, it has one.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL: Final = (
    SHARED / "showcase" / "ndpi42_rebased_s96.pcap",
    SHARED / "attack" / "westermo_right.pcap",
    SHARED / "showcase" / "zeek_echo-connections.pcap.gz",
)
"""195,626 packets of many protocols, 35,124 of an industrial network, and echo connections."""
HEADER: Final = 24
RECORD: Final = struct.Struct("<IIII")
START: Final = 1_600_000_000


def missing() -> str | None:
    """Why there are no real captures; None: they are there."""
    absent = [path.name for path in REAL if not path.exists()]
    return f"no captures in ../shared/data ({', '.join(absent)})" if absent else None


def packets(paths: Sequence[Path], most: int) -> list[bytes]:
    """The packets of captures, each with the lengths of its record."""
    found: list[bytes] = []
    for path in paths:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        at = HEADER
        while at + RECORD.size <= len(raw) and len(found) < most:
            end = at + RECORD.size + RECORD.unpack_from(raw, at)[2]
            found.append(raw[at + 8 : end])
            at = end
    return found


def retimed(target: Path, seconds: float, count: int, gap: float = 0.0) -> Path:
    """`count` real packets, evenly over some seconds, with a silence in the middle."""
    found = packets(REAL, count)
    records = [REAL[0].read_bytes()[:HEADER]]
    for number in range(count):
        micros = int(number * seconds * 1e6 / count) + (
            int(gap * 1e6) if 2 * number >= count else 0
        )
        records.append(struct.pack("<II", START + micros // 1_000_000, micros % 1_000_000))
        records.append(found[number % len(found)])
    target.write_bytes(b"".join(records))
    return target
