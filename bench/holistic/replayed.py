"""Real packets, again and again, as Parquet files.

In: a capture of ../shared/data, or where there is none generated packets of terascope.traffic. Out:
files of as many packets as are wanted: the second `time` and the minute `tb` of each, its addresses
as 32-bit numbers (of IPv6 a hash of as many bits: the paper's sketches are of 32 bits), ports,
length and time to live. The times are those of the capture, which begins anew when it is over, or
those of a link with as many packets a second as the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.experiment import Settings
from bench.harness import made_once
from bench.packets import READ_BYTES
from bench.shapes.captures import SHARED
from terascope.connectors.base import Column, ReadReport
from terascope.connectors.packets.fields import ALL_FIELDS
from terascope.connectors.registry import Interface, read_split
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate

CAPTURE: Final = SHARED / "showcase" / "ndpi42_rebased_s96.pcap"
FIELDS: Final = ("time", "srcIP", "destIP", "srcPort", "destPort", "len", "ttl")
ADDRESSES: Final = ("srcIP", "destIP")
EPOCH: Final = 60
START: Final = 1_600_000_020
"""A full minute."""
LINK_RATE: Final = 18_500
"""Packets a second of the paper's link in its high-volume run: 1.11 M a minute."""
HASH_PRIME: Final = 4_294_967_291
"""The largest prime of 32 bits."""
SYNTHETIC_PACKETS: Final = 200_000
WRITTEN: Final = 1 << 20
ROW_GROUP: Final = 1 << 17

Pace: TypeAlias = Literal["captured", "link"]
"""The times of the capture, or the rate of the paper's link."""


def has_capture() -> bool:
    return CAPTURE.exists()


def about_packets() -> str:
    """One line on where packets come from."""
    if has_capture():
        return f"packets of {CAPTURE.name}, replayed"
    return f"no ../shared/data/showcase/{CAPTURE.name}: generated packets of terascope.traffic"


@dataclass(frozen=True)
class Replayed:
    """Packets at a pace."""

    packets: int
    pace: Pace = "link"

    def path(self, settings: Settings) -> Path:
        """The file, made once."""
        source = CAPTURE.stem if has_capture() else f"synthetic-seed{settings.seed}"
        name = f"replayed-{source}-{self.packets}-{self.pace}.parquet"
        return made_once(settings.data / name, lambda path: self._write(path, settings))

    def _write(self, path: Path, settings: Settings) -> None:
        once = decoded_once(settings)
        captured = once.column("time").to_numpy()
        since = captured - captured.min()
        span = (int(since.max()) // EPOCH + 1) * EPOCH
        with pq.ParquetWriter(path, schema()) as writer:
            for first in range(0, self.packets, WRITTEN):
                number = np.arange(first, min(self.packets, first + WRITTEN))
                place, turn = number % len(since), number // len(since)
                at = since[place] + turn * span if self.pace == "captured" else number // LINK_RATE
                taken = once.take(pa.array(place))
                time = START + at
                columns = {"time": time, "tb": time // EPOCH}
                columns |= {name: taken.column(name) for name in FIELDS if name != "time"}
                writer.write_table(pa.table(columns, schema()), row_group_size=ROW_GROUP)


def schema() -> pa.Schema:
    others = [(name, pa.int64()) for name in FIELDS if name != "time"]
    return pa.schema([("time", pa.int64()), ("tb", pa.int64()), *others])


def decoded_once(settings: Settings) -> pa.Table:
    """The packets of the capture in order of time, decoded once."""
    if has_capture():
        file = settings.data / f"decoded-{CAPTURE.stem}.parquet"
        return pq.read_table(made_once(file, lambda path: decode(CAPTURE, path)))
    with TemporaryDirectory(prefix="terascope-bench-") as scratch:
        capture, file = Path(scratch) / "packets.pcap", Path(scratch) / "decoded.parquet"
        generate(Profile(packets=SYNTHETIC_PACKETS, seed=settings.seed), capture)
        decode(capture, file)
        return pq.read_table(file, memory_map=False)


def decode(capture: Path, output: Path) -> None:
    types = {field.name: field.type for field in ALL_FIELDS}
    columns = [Column(name, types[name]) for name in FIELDS]
    splits = Interface("packets", "pcap", str(capture)).splits(READ_BYTES)
    parts = [batch for split in splits for batch in read_split(split, columns, ReadReport())]
    table = pa.Table.from_batches([numbers_only(batch) for batch in parts])
    pq.write_table(table.sort_by("time"), output)


def numbers_only(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The packets of IP, with numbers for addresses and 0 for a port that is not there."""
    chosen = batch.filter(pc.is_valid(batch.column("srcIP")))
    columns = [
        address_numbers(chosen.column(name))
        if name in ADDRESSES
        else pc.fill_null(chosen.column(name).cast(pa.int64()), 0)
        for name in FIELDS
    ]
    return pa.RecordBatch.from_arrays(columns, list(FIELDS))


def address_numbers(column: pa.Array) -> pa.Array:
    """The 32 bits of an address of IPv4, a hash of the 128 bits of one of IPv6."""
    known = column.unique().to_pylist()
    numbers = [int.from_bytes(held[1:]) for held in known]
    coded = pa.array([n if n < 1 << 32 else n % HASH_PRIME for n in numbers], pa.int64())
    return coded.take(pc.index_in(column, pa.array(known, column.type)))
