from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from terascope.connectors.base import Column, FileFault, ReadReport
from terascope.connectors.packets.connector import PacketConnector
from terascope.connectors.packets.fields import ALIASES, FIELDS, LAYER_BITS, PROTOCOLS
from terascope.diagnostic import SourceError
from terascope.types import Type
from tests.connectors.packet_bytes import (
    ALL_NAMES,
    WHOLE,
    Frame,
    block,
    columns_named,
    described,
    enhanced,
    ethernet,
    ipv4,
    ipv6,
    obsolete,
    pcap,
    read_rows,
    read_table,
    section,
    simple,
    tcp,
    udp,
)
from tests.connectors.table_reading import splits_of

PACKET = ethernet(ipv4(tcp(payload=b"x")))
SECOND = 1_600_000_000
CLOCKS = ("time", "timestamp")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1), (0xA1B2CD34, 1000)]
)
def test_pcap_byte_orders_and_resolutions(
    tmp_path: Path, order: str, magic: int, unit: int
) -> None:
    frames = [Frame(PACKET, SECOND + k, 999_990 + k) for k in range(5)]
    rows, report = read_rows(tmp_path, pcap(frames, order=order, magic=magic))
    assert [row["timestamp"] for row in rows] == [
        (SECOND + k) * 10**9 + (999_990 + k) * unit for k in range(5)
    ]
    assert [row["time"] for row in rows] == [SECOND + k for k in range(5)]
    assert [row["destPort"] for row in rows] == [80] * 5
    assert not report.malformed


def test_the_upper_half_of_the_seconds_is_not_negative(tmp_path: Path) -> None:
    rows, _ = read_rows(tmp_path, pcap([Frame(PACKET, 0xFFFFFFFF, 5)]))
    assert rows[0]["timestamp"] == 0xFFFFFFFF * 10**9 + 5000


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_blocks_sections_and_interfaces(tmp_path: Path, order: str) -> None:
    other = ">" if order == "<" else "<"
    raw = ipv4(udp(), 17)
    content = b"".join(
        [
            section(order),
            described(1, order=order),
            described(101, resolution=9, order=order),
            enhanced(PACKET, SECOND * 10**6 + 7, 0, order=order),
            block(5, b"statistics!!", order),
            enhanced(raw, SECOND * 10**9 + 8, 1, order=order),
            obsolete(PACKET, SECOND * 10**6 + 9, 0, order),
            simple(PACKET, order=order),
            section(other),
            described(229, resolution=0, order=other),
            enhanced(ipv6(tcp()), SECOND + 1, 0, order=other),
        ]
    )
    rows, report = read_rows(tmp_path, content)
    assert not report.malformed
    assert [row["timestamp"] for row in rows] == [
        SECOND * 10**9 + 7000,
        SECOND * 10**9 + 8,
        SECOND * 10**9 + 9000,
        SECOND * 10**9 + 9000,  # a simple packet has no time of its own
        (SECOND + 1) * 10**9,
    ]
    assert [row["protocol"] for row in rows] == [6, 17, 6, 6, 6]
    assert [row["ipversion"] for row in rows] == [4, 4, 4, 4, 6]
    assert report.horizon == {"time": SECOND + 1, "timestamp": (SECOND + 1) * 10**9}
    assert report.bytes_read == len(content)


@pytest.mark.parametrize(
    "resolution", [0, 1, 3, 6, 9, 10, 12, 0x80, 0x81, 0x8A, 0x94, 0x9F, 0xA0, 0xA1]
)
@pytest.mark.parametrize("shift", [None, 0, 3600, -3600])
def test_pcapng_clocks(tmp_path: Path, resolution: int, shift: int | None) -> None:
    power = resolution & 0x7F
    unit: int = 2**power if resolution & 0x80 else 10**power
    ticks = min(SECOND * unit + unit * 2 // 3, 2**64 - 1)
    rows, report = read_rows(
        tmp_path,
        section() + described(resolution=resolution, shift=shift) + enhanced(PACKET, ticks),
        CLOCKS,
    )
    expected = (ticks * 10**9) // unit + (shift or 0) * 10**9
    assert not report.malformed
    assert rows == [{"time": expected // 10**9, "timestamp": expected}]


@pytest.mark.parametrize("resolution", [15, 19, 20, 127, 0xB0, 0xBF, 0xC0, 0xD0, 0xFF])
def test_pcapng_clocks_finer_than_time_itself(tmp_path: Path, resolution: int) -> None:
    power = resolution & 0x7F
    unit: int = 2**power if resolution & 0x80 else 10**power
    ticks = 2**64 - 12345
    content = section() + described(resolution=resolution) + enhanced(PACKET, ticks)
    rows, _ = read_rows(tmp_path, content, CLOCKS)
    assert rows[0]["timestamp"] == (ticks * 10**9) // unit


def test_pcapng_times_that_cannot_be(tmp_path: Path) -> None:
    content = (
        section()
        + described()
        + described(resolution=0)
        + described(shift=-(2**63))
        + enhanced(PACKET, SECOND * 10**6)
        + enhanced(PACKET, 2**64 - 1, 0)
        + enhanced(PACKET, 2**63, 1)
        + enhanced(PACKET, SECOND * 10**6, 2)
        + enhanced(PACKET, SECOND * 10**6, 77)
    )
    rows, report = read_rows(tmp_path, content)
    assert [row["time"] for row in rows] == [SECOND] * 2
    assert report.malformed == {"timestamp out of range": 3, "packet of an undeclared interface": 1}
    assert rows[1]["srcIP"] is None


def test_pcapng_simple_packets_are_cut_by_the_snap_length(tmp_path: Path) -> None:
    content = section() + described(snap=54) + simple(PACKET[:54], wirelen=1500)
    rows, report = read_rows(tmp_path, content)
    assert [(row["caplen"], row["wirelen"]) for row in rows] == [(54, 1500)]
    assert not report.malformed


def test_pcapng_blocks_that_lie_about_their_packet(tmp_path: Path) -> None:
    content = (
        section()
        + described()
        + enhanced(PACKET, 5, caplen=5000)
        + block(6, b"\0" * 8)
        + block(3, b"")
        + enhanced(PACKET, 6)
    )
    rows, report = read_rows(tmp_path, content)
    assert len(rows) == 1
    assert report.malformed == {"bad packet block": 3}


def test_gzip_is_told_by_its_magic(tmp_path: Path) -> None:
    content = pcap([PACKET] * 50)
    plain, _ = read_rows(tmp_path, content)
    packed = gzip.compress(content)
    rows, report = read_rows(tmp_path, packed)
    assert rows == plain
    assert report.bytes_read == len(packed)
    members = gzip.compress(content[:100]) + gzip.compress(content[100:]) + b"\0" * 9
    rows, report = read_rows(tmp_path, members)
    assert rows == plain
    assert not report.malformed


def test_damaged_gzip_gives_what_came_before(tmp_path: Path) -> None:
    packets = [ethernet(ipv4(udp(payload=struct.pack(">I", k) * 9), 17)) for k in range(3000)]
    packed = gzip.compress(pcap(packets), 1)
    rows, report = read_rows(tmp_path, packed[: len(packed) // 2], ("UDP_data",))
    assert 500 < len(rows) < 3000
    assert [row["UDP_data"] for row in rows] == [struct.pack(">I", k) * 9 for k in range(len(rows))]
    assert report.malformed["damaged gzip stream"] == 1
    broken = packed[: len(packed) // 2] + b"\xff" * 40 + packed[len(packed) // 2 :]
    rows, report = read_rows(tmp_path, broken, ("UDP_data",))
    assert len(rows) > 500
    assert report.malformed["damaged gzip stream"] == 1


def test_gzip_files_are_one_split(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(pcap([PACKET] * 5000)))
    assert len(splits_of(PacketConnector(), "e", [path], {}, 10)) == 1


def test_what_is_no_capture_is_malformed_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "readme.pcap"
    connector = PacketConnector()
    assert connector.columns([path], {})
    for content in (b"hello world, this is text", b"\x00", b"\xa1\xb2\x00", gzip.compress(b"no")):
        path.write_bytes(content)
        (split,) = splits_of(connector, "e", [path], {}, 5)
        report = ReadReport()
        assert list(connector.read(split, [Column("time", Type.UINT)], report)) == []
        assert report.malformed == {FileFault.NOT_A_CAPTURE: 1}
        assert report.tuples == 0
    with pytest.raises(SourceError, match="cannot read"):
        splits_of(connector, "e", [tmp_path / "absent"], {}, WHOLE)


def test_an_empty_file_has_no_packets(tmp_path: Path) -> None:
    for content in (b"", gzip.compress(b"")):
        rows, report = read_rows(tmp_path, content)
        assert rows == []
        assert report.malformed == {"empty file": 1}
        assert report.horizon == {}
    rows, report = read_rows(tmp_path, pcap([]))
    assert rows == []
    assert not report.malformed


def test_only_the_columns_asked_for_in_their_order_and_under_the_names_given(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pcap([PACKET] * 3))
    table, _ = read_table(path, ["dstPort", "FYN", "bytes", "dstIP"])
    assert table.column_names == ["dstPort", "FYN", "bytes", "dstIP"]
    assert table.to_pylist()[0] == {
        "dstPort": 80, "FYN": False, "bytes": 41, "dstIP": b"\x04\xc0\xa8\x01\x02",
    }  # fmt: skip
    whole, _ = read_table(path)
    for name in ALL_NAMES:
        alone, _ = read_table(path, [name])
        assert alone.column(0).equals(whole.column(name)), name
    connector = PacketConnector()
    [split] = splits_of(connector, "e", [path], {}, WHOLE)
    assert [batch.num_rows for batch in connector.read(split, [], ReadReport())] == [3]


def test_unknown_and_ill_typed_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pcap([PACKET]))
    connector = PacketConnector()
    [split] = splits_of(connector, "e", [path], {}, WHOLE)
    with pytest.raises(SourceError, match="no field 'colour'"):
        list(connector.read(split, [Column("colour", Type.UINT)], ReadReport()))
    with pytest.raises(SourceError, match="'srcIP' is IP, not UINT"):
        list(connector.read(split, [Column("srcIP", Type.UINT)], ReadReport()))


def test_position_tells_files_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(pcap([PACKET] * 2))
    second.write_bytes(pcap([PACKET] * 2))
    connector = PacketConnector()
    found = [
        batch.column(0).to_pylist()
        for split in splits_of(connector, "e", [first, second], {}, WHOLE)
        for batch in connector.read(split, columns_named(["#pos"]), ReadReport())
    ]
    step = 16 + len(PACKET)
    assert found == [[24, 24 + step], [(1 << 40) + 24, (1 << 40) + 24 + step]]


def test_batches_are_bounded_and_hold_all_packets(tmp_path: Path) -> None:
    count = 150_000
    path = tmp_path / "trace"
    path.write_bytes(pcap(PACKET[:54] for _ in range(count)))
    connector = PacketConnector()
    report = ReadReport()
    [split] = splits_of(connector, "e", [path], {}, WHOLE)
    sizes = [batch.num_rows for batch in connector.read(split, columns_named(["len"]), report)]
    assert sizes == [65536, 65536, count - 2 * 65536]
    assert report.tuples == count
    assert report.bytes_read == path.stat().st_size


def test_payload_columns_bound_the_batch(tmp_path: Path) -> None:
    packet = ethernet(ipv4(udp(payload=b"p" * 60_000), 17))
    path = tmp_path / "trace"
    path.write_bytes(pcap([packet] * 1300))
    connector = PacketConnector()
    [split] = splits_of(connector, "e", [path], {}, WHOLE)
    batches = list(connector.read(split, columns_named(["UDP_data"]), ReadReport()))
    assert len(batches) > 1
    assert sum(batch.num_rows for batch in batches) == 1300
    assert max(batch.nbytes for batch in batches) < 1 << 26


def test_the_catalogue_is_consistent() -> None:
    assert set(PROTOCOLS) == set(LAYER_BITS)
    assert sum(LAYER_BITS.values()) == 2 ** len(LAYER_BITS) - 1
    assert set(ALIASES.values()) <= set(FIELDS)
    assert not set(ALIASES) & set(FIELDS)
    for fields in PROTOCOLS.values():
        assert [f.clock for f in fields[:2]] == ["s", "ns"]
        assert [f.name for f in fields if f.clock] == ["time", "timestamp"]
    columns = PacketConnector().columns([], {})
    assert [column.name for column in columns] == list(FIELDS)
