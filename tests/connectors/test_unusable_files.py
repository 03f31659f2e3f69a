"""Files that are not what their source says: an error when they are named, counted and named when
they stand in a folder.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import MOST_NAMED, Column, FileFault, ReadReport
from terascope.connectors.registry import parse_interface, read_split
from terascope.diagnostic import SourceError
from terascope.types import Type
from tests.connectors.packet_bytes import ethernet, ipv4, pcap, section, tcp

PACKETS = pcap([ethernet(ipv4(tcp(payload=b"x")))] * 3)
GARBAGE = b"this is no capture at all, but a text of some length"
COLUMNS = {"pcap": Column("time", Type.UINT), "parquet": Column("a", Type.INT)}
COLUMNS |= {"csv": COLUMNS["parquet"], "json": COLUMNS["parquet"]}


def parquet_bytes(folder: Path) -> bytes:
    pq.write_table(pa.table({"a": [1, 2, 3]}), folder / "whole")
    content = (folder / "whole").read_bytes()
    (folder / "whole").unlink()
    return content


def read(source: str) -> ReadReport:
    interface = parse_interface(source)
    report = ReadReport()
    for split in interface.splits(1 << 20):
        assert sum(b.num_rows for b in read_split(split, [COLUMNS[split.kind]], report)) >= 0
    return report


BAD = {
    "text": ("pcap", GARBAGE, FileFault.NOT_A_CAPTURE),
    "packed-text": ("pcap", gzip.compress(GARBAGE), FileFault.NOT_A_CAPTURE),
    "short": ("pcap", PACKETS[:11], FileFault.CUT_HEADER),
    "empty": ("pcap", b"", FileFault.EMPTY),
    "pcapng-garbage": ("pcap", section()[:8] + GARBAGE, FileFault.NOT_A_CAPTURE),
    "gzip-garbage": ("pcap", b"\x1f\x8b" + GARBAGE, FileFault.DAMAGED_GZIP),
    "csv-in-parquet": ("parquet", b"a\n1\n2\n", FileFault.NOT_PARQUET),
    "empty-parquet": ("parquet", b"", FileFault.EMPTY),
    "binary-csv": ("csv", b"\xff\xfe\x00a,\xff\n1\n", FileFault.BAD_HEADER),
}


@pytest.mark.parametrize(("kind", "content", "fault"), BAD.values(), ids=BAD)
def test_a_named_file_is_an_error_and_one_of_a_folder_is_counted_and_named(
    tmp_path: Path, kind: str, content: bytes, fault: FileFault
) -> None:
    bad = tmp_path / f"m.{kind}"
    bad.write_bytes(content)
    with pytest.raises(SourceError, match=r"^[^\n]*m\.[^\n]*$") as raised:
        read(f"{kind}:{bad}")
    assert fault is FileFault.BAD_HEADER or fault.value in str(raised.value)
    whole = {"pcap": PACKETS, "parquet": parquet_bytes(tmp_path), "csv": b"a\n1\n2\n3\n"}[kind]
    for name in ("a", "z"):
        (tmp_path / f"{name}.{kind}").write_bytes(whole)
    report = read(f"{kind}:{tmp_path}")
    assert report.tuples == 6
    assert report.malformed == {fault.value: 1}
    assert report.files == {str(bad): fault.value}
    assert parse_interface(f"{kind}:{tmp_path}").columns


@pytest.mark.parametrize("kind", ["pcap", "csv", "json", "parquet"])
def test_a_file_that_cannot_be_opened(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening is made to fail as it does without permission: tests may run as root."""
    whole = {"pcap": PACKETS, "parquet": parquet_bytes(tmp_path), "csv": b"a\n1\n2\n3\n"}
    content = whole.get(kind, b'{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    good, bad = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    good.write_bytes(content)
    bad.write_bytes(content)
    really_open = Path.open

    def refusing(path: Path, *args: object, **kwargs: object) -> object:
        if path == bad:
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(SourceError, match=r"(?i)permission denied"):
        read(f"{kind}:{bad}")
    report = read(f"{kind}:{tmp_path}")
    assert report.tuples == 3
    assert report.malformed == {FileFault.UNREADABLE.value: 1}
    assert report.files == {str(bad): FileFault.UNREADABLE.value}


def test_a_gzip_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(pcap([ethernet(ipv4(tcp(payload=os.urandom(500))))] * 100))
    (tmp_path / "a.pcap.gz").write_bytes(packed[: len(packed) // 2])
    report = read(f"pcap:{tmp_path / 'a.pcap.gz'}")
    assert 0 < report.tuples < 100
    assert report.files == {str(tmp_path / "a.pcap.gz"): FileFault.DAMAGED_GZIP.value}
    for kind, content in (("csv", "a\n" + "1\n" * 10_000), ("json", '{"a": 1}\n' * 10_000)):
        packed = gzip.compress(content.encode())
        path = tmp_path / f"t.{kind}.gz"
        path.write_bytes(packed[:-12])
        report = read(f"{kind}:{path}")
        assert report.malformed[FileFault.DAMAGED_GZIP.value] == 1
        assert report.files == {str(path): FileFault.DAMAGED_GZIP.value}


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.pcap")
    with pytest.raises(SourceError, match="is a pipe or a device"):
        read(f"pcap:{tmp_path / 'p.pcap'}")
    with pytest.raises(SourceError, match="holds no file ending in"):
        read(f"pcap:{tmp_path}")


def test_a_file_that_goes_away_after_planning_is_counted(tmp_path: Path) -> None:
    for kind, content in (("pcap", PACKETS), ("csv", b"a\n1\n"), ("json", b'{"a": 1}\n')):
        path = tmp_path / f"t.{kind}"
        path.write_bytes(content)
        (split,) = parse_interface(f"{kind}:{path}").splits(1 << 20)
        path.unlink()
        report = ReadReport()
        assert list(read_split(split, [COLUMNS[kind]], report)) == []
        assert report.files == {str(path): FileFault.REPLACED.value}


def test_no_more_than_some_files_are_named(tmp_path: Path) -> None:
    for number in range(3 * MOST_NAMED):
        (tmp_path / f"{number:03}.pcap").write_bytes(GARBAGE)
    report = read(f"pcap:{tmp_path}")
    assert report.malformed == {FileFault.NOT_A_CAPTURE.value: 3 * MOST_NAMED}
    assert len(report.files) == MOST_NAMED
