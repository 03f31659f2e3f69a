"""`decode`: how many packets one core turns from a capture into columns in a second.

One process reads the capture, from memory, through the connector a query would use; what is told is
the number of packets by seconds of processor time. Several sets of columns: the header fields of
TCP first, then what flows need, one field alone, payloads, everything.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.compute as pc

from bench.experiment import Column, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.harness import made_once
from bench.set50 import PACKETS, packet_profile
from terascope.connectors.base import LAYERS, ReadReport
from terascope.connectors.base import Column as Field
from terascope.connectors.packets.fields import ALL_FIELDS
from terascope.connectors.registry import Interface, read_split
from terascope.traffic.trace import generate
from terascope.types import Type

SPLIT_BYTES = 4 << 20
WHOLE = 65_535
TCP_FIELDS = (
    *("time", "timestamp", "srcIP", "destIP", "protocol", "len", "hdr_length", "tos", "ttl", "id"),
    *("srcPort", "destPort", "flags", "sequence_number", "ack_number", "window"),
)
FLOW_FIELDS = ("time", "srcIP", "destIP", "srcPort", "destPort", "len")
COLUMN_SETS: dict[str, tuple[str, ...]] = {
    "terascope": TCP_FIELDS,
    "terascope, flow fields": FLOW_FIELDS,
    "terascope, len alone": ("len",),
    "terascope, with payload": (*TCP_FIELDS, "TCP_data"),
    "terascope, all fields": tuple(f.name for f in ALL_FIELDS),
}


@dataclass(frozen=True)
class Decode:
    """Reads a capture once, in one thread."""

    capture: Path
    fields: tuple[str, ...]
    name: str = "terascope"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Decoding:
        del cores  # one
        types = {f.name: f.type for f in ALL_FIELDS}
        columns = [Field(name, types[name]) for name in self.fields]
        return Decoding(self.capture, (*columns, Field(LAYERS, Type.LLONG)))


@dataclass(frozen=True)
class Decoding:
    capture: Path
    columns: tuple[Field, ...]

    def warm(self) -> None:
        """Compiles, on the first piece of the capture."""
        splits = Interface("link", "pcap", str(self.capture)).splits(SPLIT_BYTES)
        for _ in read_split(splits[0], self.columns, ReadReport()):
            pass

    def run(self, output: Path) -> Figures:
        report = ReadReport()
        lengths = 0
        measured = 0.0
        began = time.process_time()
        splits = Interface("link", "pcap", str(self.capture)).splits(SPLIT_BYTES)
        for split in splits:
            for batch in read_split(split, self.columns, report):
                measured += time.process_time() - began
                if "len" in batch.schema.names:  # to be compared, not to be timed
                    lengths += pc.sum(batch.column("len")).as_py() or 0
                began = time.process_time()
        measured += time.process_time() - began
        return {
            "rows": report.tuples,
            "lengths": lengths,
            "cpu_seconds": measured,
            "per_second": report.tuples / measured,
            "nanoseconds": measured / report.tuples * 1e9,
        }

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class SamePackets:
    """Every set of columns must have found all packets, with the same lengths."""

    expected: dict[str, int]
    """Contender -> packets in its capture."""
    lengths: dict[int, float] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0]["rows"])

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.rows is None:
                continue
            packets = self.expected[outcome.contender]
            lengths = self.lengths.setdefault(packets, outcome.figures[0]["lengths"])
            outcome.checked = outcome.rows == packets and all(
                figures["lengths"] == lengths for figures in outcome.figures
            )
            if not outcome.checked:
                outcome.remark = f"{outcome.rows:,} packets of {packets:,}, or other lengths"


@dataclass(frozen=True)
class DecodeExperiment:
    name: str = "decode"
    title: str = "packets per second and core, from a capture to columns"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        cut = capture_file(settings, packets, packet_profile(packets, settings.seed).snaplen)
        fewer = max(1, packets // 5)
        whole = capture_file(settings, fewer, WHOLE)
        contenders: tuple[Contender, ...] = (
            *(Decode(cut, fields, name) for name, fields in COLUMN_SETS.items()),
            Decode(whole, TCP_FIELDS, "terascope, whole packets"),
        )
        expected = {c.name: packets for c in contenders} | {contenders[-1].name: fewer}
        sizes = [path.stat().st_size / 2**20 for path in (cut, whole)]
        about = (
            f"{packets:,} packets cut at 256 bytes, {sizes[0]:,.0f} MB;"
            f" whole ones: {fewer:,}, {sizes[1]:,.0f} MB; both in memory",
        )
        columns = (
            Column("per_second", "packets/s per core"),
            Column("nanoseconds", "ns/packet", "{:.1f}"),
        )
        return Prepared(
            contenders, SamePackets(expected), about, columns=columns, inputs=(cut, whole)
        )


def capture_file(settings: Settings, packets: int, snaplen: int) -> Path:
    profile = replace(packet_profile(packets, settings.seed), snaplen=snaplen)
    usual = packet_profile(packets, settings.seed).snaplen
    whole = "-whole" if snaplen == WHOLE else "" if snaplen == usual else f"-{snaplen}"
    return made_once(
        settings.data / f"packets-{packets}-seed{settings.seed}{whole}.pcap",
        lambda path: generate(profile, path),
    )


EXPERIMENT = DecodeExperiment()
