from __future__ import annotations

import gzip
import os
import random
import struct
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.connectors.base import ReadReport
from terascope.connectors.packets import connector
from terascope.connectors.packets.connector import PacketConnector
from tests.connectors.packet_bytes import (
    WHOLE,
    Frame,
    columns_named,
    described,
    enhanced,
    ethernet,
    ipv4,
    pcap,
    read_rows,
    section,
    simple,
    udp,
)
from tests.connectors.table_reading import splits_of

SECOND = 1_600_000_000
FEW = ("#pos", "timestamp", "len", "data", "#layers")


def packet(k: int, payload: bytes = b"") -> bytes:
    return ethernet(ipv4(udp(payload=struct.pack(">I", k) + payload), 17))


INNER = pcap([packet(k) for k in range(40)])
"""A capture that other captures carry: as a whole, cut, and as bare record headers."""


def carrier() -> bytes:
    frames = [Frame(packet(k), SECOND + k, k) for k in range(5)]
    frames += [Frame(packet(9, INNER), SECOND + 6, 1), Frame(packet(10, INNER[24:]), SECOND + 7)]
    frames += [Frame(packet(11, INNER[30:]), SECOND + 8), Frame(packet(12), SECOND + 9)]
    return pcap(frames)


def carrier_ng() -> bytes:
    inner = section() + described() + b"".join(enhanced(packet(k), k) for k in range(6))
    return (
        section(">")
        + described(order=">")
        + enhanced(packet(1), SECOND * 10**6, order=">")
        + enhanced(packet(2, inner), SECOND * 10**6 + 1, order=">")
        + described(101, resolution=9, order=">")
        + enhanced(packet(3)[14:], SECOND * 10**9 + 2, 1, order=">")
        + simple(packet(4), order=">")
        + section()
        + described(resolution=0x80 | 20)
        + enhanced(packet(5, inner), SECOND << 20)
        + simple(packet(6))
        + enhanced(packet(7), (SECOND + 1) << 20)
    )


def damaged() -> bytes:
    content = bytearray(pcap([packet(k, b"payload") for k in range(60)]))
    step = 16 + len(packet(0, b"payload"))
    struct.pack_into("<I", content, 24 + 20 * step + 8, 0xFFFFFFF0)
    content[24 + 40 * step : 24 + 40 * step + 16] = b"\0" * 16
    return bytes(content)


FILES = {"pcap": carrier(), "pcapng": carrier_ng(), "damaged": damaged()}


@pytest.mark.parametrize("name", FILES)
def test_splits_of_any_size_give_each_packet_once(tmp_path: Path, name: str) -> None:
    content = FILES[name]
    whole, unsplit = read_rows(tmp_path, content, FEW)
    counts = set()
    for target in [*range(1, 130, 3), *range(130, len(content) + 2, 97)]:
        rows, report = read_rows(tmp_path, content, FEW, target)
        assert rows == whole, target
        assert report.malformed == unsplit.malformed
        assert report.bytes_read == unsplit.bytes_read == len(content)
        assert report.horizon == unsplit.horizon
        counts.add(len(splits_of(PacketConnector(), "e", [tmp_path / "trace"], {}, target)))
    assert len(counts) > 5


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("window", [1, 17, 64, 300])
def test_the_size_of_the_window_changes_nothing(
    tmp_path: Path, name: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, unslid = read_rows(tmp_path, FILES[name], FEW)
    monkeypatch.setattr("terascope.connectors.packets.memory.WINDOW_BYTES", window)
    monkeypatch.setattr("terascope.connectors.packets.memory.LOOKAHEAD_BYTES", window)
    for content in (FILES[name], gzip.compress(FILES[name])):
        for target in (WHOLE, 500):
            rows, report = read_rows(tmp_path, content, FEW, target)
            assert rows == whole
            assert report.malformed == unslid.malformed


def test_payloads_are_never_taken_for_records(tmp_path: Path) -> None:
    rows, report = read_rows(tmp_path, carrier(), FEW, 200)
    assert len(rows) == 9
    assert not report.malformed
    rows, report = read_rows(tmp_path, carrier_ng(), FEW, 50)
    assert len(rows) == 7
    assert not report.malformed


def test_splits_are_contiguous_and_near_their_target(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pcap(packet(k, b"y" * (k % 700)) for k in range(3000)))
    splits = splits_of(PacketConnector(), "e", [path], {"speed": "1"}, 50_000)
    assert splits[0].start == 0
    assert splits[-1].end == path.stat().st_size
    assert all(one.end == other.start for one, other in pairwise(splits))
    assert all(50_000 <= split.end - split.start < 51_000 for split in splits[1:-1])
    assert all(split.options == (("speed", "1"),) for split in splits)


@given(
    sizes=st.lists(st.integers(0, 300), max_size=60),
    target=st.integers(1, 3000),
    flips=st.lists(st.tuples(st.integers(24, 20_000), st.integers(0, 255)), max_size=6),
)
@settings(max_examples=80, deadline=None)
def test_random_files_with_random_damage_split_alike(
    sizes: list[int], target: int, flips: list[tuple[int, int]]
) -> None:
    content = bytearray(pcap(random.Random(size).randbytes(size) for size in sizes))
    for at, value in flips:
        if at < len(content):
            content[at] = value
    with tempfile.TemporaryDirectory() as folder:
        whole, unsplit = read_rows(Path(folder), bytes(content), FEW)
        rows, report = read_rows(Path(folder), bytes(content), FEW, target)
    assert rows == whole
    assert report.malformed == unsplit.malformed


@given(
    blocks=st.lists(st.integers(0, 5), max_size=40),
    target=st.integers(1, 2000),
    flips=st.lists(st.tuples(st.integers(28, 4000), st.integers(0, 255)), max_size=4),
)
@settings(max_examples=80, deadline=None)
def test_random_pcapng_files_with_random_damage_split_alike(
    blocks: list[int], target: int, flips: list[tuple[int, int]]
) -> None:
    made = {
        0: section(),
        1: described(),
        2: described(101, resolution=9),
        3: enhanced(packet(3), SECOND * 10**6),
        4: simple(packet(4)),
        5: enhanced(packet(5)[14:], SECOND * 10**9, 1),
    }
    content = bytearray(section() + described() + b"".join(made[kind] for kind in blocks))
    for at, value in flips:
        if at < len(content):
            content[at] = value
    with tempfile.TemporaryDirectory() as folder:
        whole, unsplit = read_rows(Path(folder), bytes(content), FEW)
        rows, report = read_rows(Path(folder), bytes(content), FEW, target)
    assert rows == whole
    assert report.malformed == unsplit.malformed


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_truncation_at_every_byte_gives_all_whole_records(tmp_path: Path, name: str) -> None:
    content = FILES[name][:900]
    whole, _ = read_rows(tmp_path, FILES[name], ("#pos", "caplen"))
    ends = [row["#pos"] for row in whole[1:]] + [len(FILES[name])]
    for size in range(1, len(content)):
        rows, report = read_rows(tmp_path, content[:size], ("#pos", "caplen"))
        complete = [row for row in whole if row["#pos"] + 16 + row["caplen"] <= size]
        if name == "pcapng":  # a block ends after its packet, and other blocks stand between
            assert rows == whole[: len(rows)]
            assert sum(end <= size for end in ends) <= len(rows) <= len(complete)
        else:
            assert rows == complete
        reasons = Counter(report.malformed)
        assert sum(reasons.values()) <= 1
        assert set(reasons) <= {"truncated record", "truncated file header"}
        if size < 24:
            assert reasons == {"truncated file header": 1}


def corrupt(content: bytes, record: int, step: int, field: int, value: int) -> bytes:
    changed = bytearray(content)
    struct.pack_into("<I", changed, 24 + record * step + field, value)
    return bytes(changed)


@pytest.mark.parametrize("value", [0xFFFFFFFF, 300_000, 70_000, 5_000, 100])
@pytest.mark.parametrize("record", [0, 10, 38, 39])
def test_a_record_with_a_wrong_length_costs_that_record_alone(
    tmp_path: Path, value: int, record: int
) -> None:
    step = 16 + len(packet(0))
    content = corrupt(pcap([packet(k) for k in range(40)]), record, step, 8, value)
    rows, report = read_rows(tmp_path, content, ("#pos",))
    assert [row["#pos"] for row in rows] == [24 + k * step for k in range(40) if k != record]
    if record == 39:
        assert sum(report.malformed.values()) == 1
    else:
        assert report.malformed == {"damaged record": 1}
        assert report.skipped == {"damaged record": step}


def test_a_damaged_stretch_is_stepped_over(tmp_path: Path) -> None:
    step = 16 + len(packet(0))
    content = bytearray(pcap([packet(k) for k in range(40)]))
    content[24 + 5 * step : 24 + 15 * step] = random.Random(3).randbytes(10 * step)
    rows, report = read_rows(tmp_path, bytes(content), ("#pos",))
    assert [row["#pos"] for row in rows] == [24 + k * step for k in range(40) if not 5 <= k < 15]
    assert report.malformed == {"damaged record": 1}
    assert report.skipped == {"damaged record": 10 * step}
    content[24 + 5 * step : 24 + 15 * step] = b""
    content[24 + 5 * step : 24 + 5 * step] = b"\0" * 5_000_000  # longer than a window
    rows, report = read_rows(tmp_path, bytes(content), ("#pos",))
    assert len(rows) == 30
    assert report.malformed == {"damaged record": 1}
    assert report.skipped == {"damaged record": 5000000}


def test_garbage_after_the_header_is_one_damage(tmp_path: Path) -> None:
    content = pcap([]) + random.Random(1).randbytes(100_000)
    rows, report = read_rows(tmp_path, content)
    assert len(rows) <= 1
    assert 1 <= sum(report.malformed.values()) <= 2
    rows, report = read_rows(tmp_path, pcap([]) + b"\0" * 100_000)
    assert rows == []
    assert report.malformed == {"damaged record": 1}
    assert report.skipped == {"damaged record": 100000}


def test_damaged_pcapng_blocks_are_stepped_over(tmp_path: Path) -> None:
    head = section() + described()
    step = len(enhanced(packet(0), 0))
    content = bytearray(head + b"".join(enhanced(packet(k), k) for k in range(30)))
    for value in (0, 8, 13, 1 << 30, step + 4, 200_000):
        broken = content.copy()
        struct.pack_into("<I", broken, len(head) + 7 * step + 4, value)
        rows, report = read_rows(tmp_path, bytes(broken), ("#pos",))
        assert [row["#pos"] for row in rows] == [
            len(head) + k * step for k in range(30) if k != 7
        ], value
        assert report.malformed == {"damaged record": 1}
        assert report.skipped == {"damaged record": step}


def test_odd_but_whole_records_are_kept(tmp_path: Path) -> None:
    """More captured than sent, no bytes at all."""
    frames = [Frame(packet(k), SECOND, wirelen=3) for k in range(10)]
    rows, _ = read_rows(tmp_path, pcap(frames, snap=20))
    assert len(rows) == 10
    frames = [Frame(b"", SECOND + k) for k in range(10)]
    rows, report = read_rows(tmp_path, pcap(frames))
    assert [row["caplen"] for row in rows] == [0] * 10
    assert report.malformed == {"truncated link header": 10}
    frames = [Frame(packet(1), SECOND, wirelen=0xF0000000), Frame(packet(2), SECOND)]
    rows, _ = read_rows(tmp_path, pcap(frames))
    assert [row["wirelen"] for row in rows] == [0xF0000000, len(packet(2))]


def test_time_may_go_backwards(tmp_path: Path) -> None:
    frames = [Frame(packet(k), SECOND - k * 100_000) for k in range(10)]
    rows, report = read_rows(tmp_path, pcap(frames))
    assert [row["time"] for row in rows] == [SECOND - k * 100_000 for k in range(10)]
    assert report.horizon["time"] == SECOND


@given(content=st.binary(max_size=3000), order=st.sampled_from("<>"))
@settings(max_examples=150, deadline=None)
def test_any_bytes_after_a_header_are_survived(content: bytes, order: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for head in (pcap([], order=order), section(order) + described(order=order)):
            _, report = read_rows(Path(folder), head + content)
            assert report.bytes_read == len(head + content)


@given(
    data=st.binary(max_size=200), link=st.sampled_from([0, 1, 9, 12, 50, 51, 104, 113, 229, 276])
)
@settings(max_examples=300, deadline=None)
def test_any_frame_is_survived(data: bytes, link: int) -> None:
    shapes = [
        data,
        ethernet(data),
        ethernet(data, 0x86DD),
        ethernet(ipv4(data)),
        ethernet(data, 0x8847),
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows, report = read_rows(Path(folder), pcap(shapes, link=link), target=WHOLE)
        assert len(rows) == len(shapes)
        assert sum(report.malformed.values()) <= len(shapes)


@pytest.mark.parametrize(
    ("magic", "most"), [(0xA1B2C3D4, 999_999), (0xA1B23C4D, 999_999_999)], ids=["us", "ns"]
)
@pytest.mark.parametrize("odd", [1, 1 << 20, 0xFFFFFFFF])
def test_a_fraction_of_more_than_a_second_is_no_time(
    tmp_path: Path, magic: int, most: int, odd: int
) -> None:
    """The packet is counted, and no other packet is lost or gets another time, however split."""
    fractions = [most, min(most + odd, 0xFFFFFFFF), 0, most + 1, most]
    frames = [Frame(packet(k), SECOND + k, fraction) for k, fraction in enumerate(fractions * 4)]
    content = pcap(frames, magic=magic)
    for target in (1, 500, 1 << 30):
        (tmp_path / "t.pcap").write_bytes(content)
        connector = PacketConnector()
        report = ReadReport()
        times: list[int] = []
        for split in splits_of(connector, "e", [tmp_path / "t.pcap"], {}, target):
            for batch in connector.read(split, columns_named(("timestamp",)), report):
                times += batch.column(0).to_pylist()
        unit = 1000 if most == 999_999 else 1
        good = [(k, f) for k, f in enumerate(fractions * 4) if f <= most]
        assert times == [(SECOND + k) * 10**9 + f * unit for k, f in good]
        assert report.malformed == {"timestamp out of range": len(frames) - len(good)}
        assert report.tuples + sum(report.malformed.values()) == len(frames)


def test_a_file_that_changed_is_cut_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the records of a file begin is remembered, for as long as the file stays as it is."""
    monkeypatch.setattr(connector, "UNSETTLED", -1)  # a file that was just written, too
    path = tmp_path / "a.pcap"

    def write(sizes: list[int], time: int) -> None:
        path.write_bytes(pcap([packet(k, b"x" * size) for k, size in enumerate(sizes)]))
        os.utime(path, (time, time))

    def ranges() -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in splits_of(PacketConnector(), "a", [path], {}, 300)]

    write([10] * 20 + [100] * 20, SECOND)
    first = ranges()
    walks = connector.known_parts.cache_info().misses
    assert ranges() == first
    assert connector.known_parts.cache_info().misses == walks
    write([100] * 20 + [10] * 20, SECOND + 1)  # as long as before
    second = ranges()
    assert second != first
    assert second[-1][1] == first[-1][1]
