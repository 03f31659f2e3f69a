"""How many tuples there are is told from sizes and beginnings."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.registry import Interface
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate

PACKETS = 5000


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extent") / "trace.pcap"
    generate(Profile(packets=PACKETS, seed=1), path)
    return path


def about(kind: str, location: object) -> float:
    return Interface("one", kind, str(location)).estimated_tuples()


def near(number: float) -> object:
    return pytest.approx(number, rel=0.5)


def test_captures(capture: Path, tmp_path: Path) -> None:
    assert about("pcap", capture) == near(PACKETS)
    packed = tmp_path / "trace.pcap.gz"
    packed.write_bytes(gzip.compress(capture.read_bytes()))
    assert about("pcap", packed) == near(PACKETS)


@pytest.mark.parametrize("order", ["little", "big"])
def test_pcapng(order: Literal["little", "big"], tmp_path: Path) -> None:
    def block(kind: int, body: bytes) -> bytes:
        length = (12 + len(body)).to_bytes(4, order)
        return kind.to_bytes(4, order) + length + body + length

    section = (0x1A2B3C4D).to_bytes(4, order) + bytes(12)
    packet = block(6, bytes(20 + 64))
    path = tmp_path / "trace.pcapng"
    path.write_bytes(block(0x0A0D0D0A, section) + 3000 * packet)
    assert about("pcap", path) == pytest.approx(3000, rel=0.01)


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("a,b\n" + "1234,5678\n" * 40_000)
    assert about("csv", path) == pytest.approx(40_000, rel=0.01)
    packed = tmp_path / "some.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(b'{"a": %d}\n' % i for i in range(30_000))))
    assert about("json", packed) == near(30_000)


def test_folders_and_parquet(tmp_path: Path) -> None:
    for i in range(20):
        pq.write_table(pa.table({"a": range(1000)}), tmp_path / f"{i:02}.parquet")
    assert about("parquet", tmp_path) == pytest.approx(20_000, rel=0.01)


def test_files_that_tell_nothing_are_no_mistake_here(tmp_path: Path) -> None:
    """Whoever reads them says what is wrong."""
    for content in (b"", b"no capture", b"\x1f\x8bcut short", b"\x0a\x0d\x0d\x0a" + bytes(40)):
        path = tmp_path / "odd.pcap"
        path.write_bytes(content)
        assert 0.0 <= about("pcap", path) <= 2.0
    assert about("parquet", path) <= 2.0
    assert about("pcap", tmp_path / "missing.pcap") == 0.0
