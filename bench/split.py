"""`split`: how many packets one core deals out to partitions in a second.

One process reads a capture from memory and writes the captures of all partitions; what is told is
the number of packets, and of bytes, by seconds of processor time. Beside it the same file is copied
as it is: the roofline, for a splitter reads and writes every byte once, too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from bench.decode import capture_file
from bench.experiment import Column, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.set50 import PACKETS
from terascope.connectors.registry import Interface
from terascope.partitioning.layout import read_layout
from terascope.partitioning.sets import parse_set
from terascope.splitting.finished import split_finished
from terascope.splitting.rule import SplitRule
from terascope.splitting.splitter import SplitSettings

SNAPLEN = 80
"""Headers alone, as splitting hardware is given."""
COPIED = 1 << 20
PAIR = "srcIP, destIP"
SPLITS: dict[str, tuple[str | None, int]] = {
    "srcIP, 8 partitions": ("srcIP", 8),
    "srcIP, destIP, 8 partitions": (PAIR, 8),
    "subnet and destIP, 8 partitions": ("srcIP & 0xFFFFFFF0, destIP", 8),
    "ports and addresses, 8 partitions": ("srcIP, destIP, srcPort, destPort", 8),
    "srcIP, destIP, 2 partitions": (PAIR, 2),
    "srcIP, destIP, 100 partitions": (PAIR, 100),
    "srcIP, destIP, 1000 partitions": (PAIR, 1000),
    "in turn, 8 partitions": (None, 8),
}


@dataclass(frozen=True)
class SplitOnce:
    """Splits a capture, in one thread."""

    capture: Path
    by: str | None
    count: int
    name: str
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Splitting:
        del cores  # one
        return Splitting(self)


@dataclass(frozen=True)
class Splitting:
    contender: SplitOnce

    def warm(self) -> None:
        """Compiles at its first full run, which does not count."""

    def run(self, output: Path) -> Figures:
        what = self.contender
        interface = Interface("link", "pcap", str(what.capture))
        set = None if what.by is None else parse_set(what.by, interface.columns)
        rule = SplitRule.even(set, what.count)
        output.mkdir(parents=True, exist_ok=True)
        began = time.process_time()
        split_finished(SplitSettings(interface, interface.columns, rule, output / "parts"))
        return figures_of(what.capture, time.process_time() - began, tuples_in(output / "parts"))

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class CopyOnce:
    """Copies a capture as it is."""

    capture: Path
    packets: int
    name: str = "copied as it is"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Copying:
        del cores
        return Copying(self)


@dataclass(frozen=True)
class Copying:
    contender: CopyOnce

    def warm(self) -> None:
        """Nothing to do."""

    def run(self, output: Path) -> Figures:
        output.mkdir(parents=True, exist_ok=True)
        room = bytearray(COPIED)
        began = time.process_time()
        with (
            self.contender.capture.open("rb", buffering=0) as source,
            (output / "copy").open("wb", buffering=0) as target,
        ):
            while got := source.readinto(room):
                target.write(memoryview(room)[:got])
        spent = time.process_time() - began
        return figures_of(self.contender.capture, spent, self.contender.packets)

    def close(self) -> None:
        """Nothing is open."""


def figures_of(capture: Path, spent: float, packets: int) -> Figures:
    return {
        "rows": packets,
        "per_second": packets / spent,
        "nanoseconds": spent / packets * 1e9,
        "mb_per_second": capture.stat().st_size / spent / 1e6,
    }


def tuples_in(folder: Path) -> int:
    layout = read_layout(folder)
    assert layout is not None
    return sum(one.tuples for one in layout.partitions)


@dataclass(frozen=True)
class AllPackets:
    """Every split has all packets."""

    packets: int

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0]["rows"])

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            outcome.checked = outcome.rows == self.packets
            if not outcome.checked:
                outcome.remark = f"{outcome.rows} packets of {self.packets:,}"


@dataclass(frozen=True)
class SplitExperiment:
    name: str = "split"
    title: str = "packets per second and core, from a capture to partitions"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        capture = capture_file(settings, packets, SNAPLEN)
        splits = [SplitOnce(capture, by, count, name) for name, (by, count) in SPLITS.items()]
        contenders: tuple[Contender, ...] = (*splits, CopyOnce(capture, packets))
        size = capture.stat().st_size / 2**20
        about = (f"{packets:,} packets cut at {SNAPLEN} bytes, {size:,.0f} MB, in memory",)
        columns = (
            Column("per_second", "packets/s per core"),
            Column("nanoseconds", "ns/packet", "{:.1f}"),
            Column("mb_per_second", "MB/s"),
        )
        return Prepared(contenders, AllPackets(packets), about, columns=columns, inputs=(capture,))


EXPERIMENT = SplitExperiment()
