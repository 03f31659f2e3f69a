from __future__ import annotations

import gzip
import random
import struct
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.connectors.base import Edge, ReadReport, Split
from terascope.connectors.packets.connector import PacketConnector
from terascope.connectors.registry import Interface
from tests.connectors.packet_bytes import (
    WHOLE,
    Frame,
    Row,
    columns_named,
    described,
    enhanced,
    ethernet,
    ipv4,
    pcap,
    section,
    simple,
    udp,
)
from tests.connectors.table_reading import splits_of

SECOND = 1_600_000_000
NAMES = ("#pos", "time", "timestamp", "caplen", "len")
CONNECTOR = PacketConnector()
EDGES = [
    None,
    *(Edge("time", step) for step in (1, 3, 60, 10**6)),
    *(Edge("timestamp", step) for step in (1, 7 * 10**8, 10**9, 10**18, 1 << 62)),
]


def packet(k: int, payload: bytes = b"") -> bytes:
    return ethernet(ipv4(udp(payload=struct.pack(">I", k) + payload), 17))


def steady(count: int = 300, per_second: int = 10) -> bytes:
    return pcap(
        Frame(packet(k, b"y" * (k % 90)), SECOND + k // per_second, k % per_second * 90_000)
        for k in range(count)
    )


def disordered(count: int = 300) -> bytes:
    times = random.Random(5)
    return pcap(
        Frame(packet(k), SECOND + k // 7 + times.randrange(-4, 5), times.randrange(10**6))
        for k in range(count)
    )


def going_back() -> bytes:
    """A capture appended to an older one, as far as time goes."""
    frames = [Frame(packet(k), SECOND + (k % 100) // 5) for k in range(300)]
    return pcap(frames)


def blocks() -> bytes:
    """Sections, interfaces and packets without a time of their own, in no good order."""
    made = [section(), described()]
    for k in range(120):
        made.append(enhanced(packet(k), (SECOND + k // 3 - 5 * (k % 11 == 0)) * 10**6))
        if k % 4 == 0:
            made.append(simple(packet(k + 1000)))
        if k % 40 == 20:
            made.append(described(101, resolution=9))
            made.append(enhanced(packet(k)[14:], (SECOND + k // 3) * 10**9, 1))
        if k % 60 == 50:
            made += [section(">"), described(order=">")]
            made.append(enhanced(packet(k), (SECOND + k // 3) * 10**6, order=">"))
            made += [section(), described()]
    return b"".join(made)


def damaged() -> bytes:
    content = bytearray(steady(120))
    content[3000:3100] = b"\xff" * 100
    content[6000:6020] = b"\0" * 20
    return bytes(content)


FILES = {
    "steady": steady(),
    "disordered": disordered(),
    "going back": going_back(),
    "blocks": blocks(),
    "damaged": damaged(),
    "no packets": pcap([]),
}


def rows_of(split: Split) -> list[Row]:
    report = ReadReport()
    batches = CONNECTOR.read(split, columns_named(NAMES), report)
    return [row for batch in batches for row in batch.to_pylist()]


def check(path: Path, whole: Sequence[Row], splits: Sequence[Split]) -> None:
    """Each row once and in order, and the bounds of every split are those of its rows."""
    found: list[Row] = []
    for split in splits:
        rows = rows_of(split)
        found += rows
        told = {
            name: (min(row[name] for row in rows), max(row[name] for row in rows))
            for name in ("time", "timestamp")
            if rows
        }
        assert {name: (low, high) for name, low, high in split.bounds} == told
    assert found == whole
    assert all(one.end == other.start for one, other in pairwise(splits))
    assert (splits[0].start, splits[-1].end) == (0, path.stat().st_size)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "trace"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", FILES)
def test_splits_with_edges_give_each_packet_once_and_know_their_times(
    tmp_path: Path, name: str
) -> None:
    path = written(tmp_path, FILES[name])
    [unsplit] = splits_of(CONNECTOR, "e", [path], {}, WHOLE)
    whole = rows_of(unsplit)
    assert bool(whole) == (name != "no packets")
    check(path, whole, [unsplit])
    for target in (1, 50, 400, 1_000, 3_000, 9_000):
        for edge in EDGES:
            check(path, whole, splits_of(CONNECTOR, "e", [path], {}, target, edge))


@given(
    times=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 999_999)), max_size=60),
    target=st.integers(1, 3000),
    step=st.integers(1, 20),
)
@settings(max_examples=60, deadline=None)
def test_random_times_are_cut_right(times: list[tuple[int, int]], target: int, step: int) -> None:
    frames = [Frame(packet(k), SECOND + s, part) for k, (s, part) in enumerate(times)]
    ticks = [enhanced(packet(k), (SECOND + s) * 10**6 + p) for k, (s, p) in enumerate(times)]
    for content in (pcap(frames), section() + described() + b"".join(ticks)):
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder), content)
            whole = [
                row
                for split in splits_of(CONNECTOR, "e", [path], {}, WHOLE)
                for row in rows_of(split)
            ]
            check(path, whole, splits_of(CONNECTOR, "e", [path], {}, target, Edge("time", step)))


@pytest.mark.parametrize(
    ("edge", "unit"), [(Edge("time", 3), 1), (Edge("timestamp", 3 * 10**9), 10**9)]
)
def test_cuts_stand_on_edges_when_epochs_are_short(tmp_path: Path, edge: Edge, unit: int) -> None:
    path = written(tmp_path, steady(3000))
    target = 12_000  # an epoch has some 4 kB
    splits = splits_of(CONNECTOR, "e", [path], {}, target, edge)
    assert len(splits) > 10
    for one, other in pairwise(splits):
        last, first = one.bound(edge.column), other.bound(edge.column)
        assert last is not None
        assert first is not None
        assert last[1] // (3 * unit) < first[0] // (3 * unit)
        assert target / 2 <= one.end - one.start < target


def test_epochs_longer_than_a_split_are_cut_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path, steady(3000))
    target = 12_000
    splits = splits_of(CONNECTOR, "e", [path], {}, target, Edge("time", 10**9))
    sizes = [split.end - split.start for split in splits[:-1]]
    assert len(sizes) > 5
    assert all(1.5 * target <= size < 1.5 * target + 200 for size in sizes)


def test_edges_of_what_is_no_clock_are_not_looked_for(tmp_path: Path) -> None:
    path = written(tmp_path, steady())
    plain = splits_of(CONNECTOR, "e", [path], {}, 3_000)
    assert len(plain) > 3
    for edge in (Edge("len", 10), Edge("time", 0), Edge("time", 1 << 62)):
        assert splits_of(CONNECTOR, "e", [path], {}, 3_000, edge) == plain


def test_gzip_files_have_no_bounds(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(steady()))
    [split] = splits_of(CONNECTOR, "e", [path], {}, 100, Edge("time", 1))
    assert split.bounds == ()
    assert split.bound("time") is None


def test_an_interface_passes_the_edge_on(tmp_path: Path) -> None:
    path = written(tmp_path, steady())
    edge = Edge("time", 3)
    found = Interface("e", "pcap", str(path)).splits(4_000, edge)
    assert found == splits_of(CONNECTOR, "e", [path], {}, 4_000, edge)
    assert found != Interface("e", "pcap", str(path)).splits(4_000)
