"""A file of a batch that becomes another one while it is read is an error that names it; one that
is appended to, touched by nobody, or copied to another machine is none.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import POSITION, Column, ReadReport, Split
from terascope.connectors.registry import parse_interface, read_split, versioned
from terascope.diagnostic import Source, SourceError
from terascope.pipeline import Bindings, compile_set
from terascope.types import Type
from tests.agreement import WITHOUT_COMPILING
from tests.connectors.packet_bytes import Frame, ethernet, ipv4, pcap, tcp
from tests.execute.low_engine import low_rows

FRAME = ethernet(ipv4(tcp(payload=b"x" * 400)))
COLUMNS = [Column(POSITION, Type.LLONG)]


def write(path: Path, first: int, count: int = 2000) -> None:
    """A valid file of its kind, in place."""
    match path.suffix:
        case ".pcap":
            path.write_bytes(pcap([Frame(FRAME, first + k, 0) for k in range(count)]))
        case ".csv":
            path.write_text("t,a\n" + "".join(f"{first + k},1\n" for k in range(count)))
        case ".json":
            path.write_text("".join(f'{{"t": {first + k}}}\n' for k in range(count)))
        case _:
            table = pa.table({"t": list(range(first, first + count))})
            pq.write_table(table, path, row_group_size=100)


def overwritten(path: Path) -> None:
    write(path, 500_000)


def replaced(path: Path) -> None:
    """Renamed into place, with the size and the ends of the first one."""
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    other = path.with_name("other")
    other.write_bytes(held)
    os.utime(other, ns=(0, 0))
    other.replace(path)


def middle_changed(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(0, 12_345))


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def splits_of(path: Path) -> list[Split]:
    return versioned(parse_interface(f"{path.suffix[1:]}:{path}").splits(1 << 12))


@pytest.mark.parametrize("change", [overwritten, middle_changed, cut_short])
@pytest.mark.parametrize("kind", ["pcap", "csv", "json", "parquet"])
@pytest.mark.parametrize("begun", [False, True])
def test_another_file_at_the_path_is_an_error(
    kind: str, change: Callable[[Path], None], begun: bool, tmp_path: Path
) -> None:
    path = tmp_path / f"f.{kind}"
    write(path, 100_000)
    splits = splits_of(path)
    assert len(splits) > 1 or kind == "parquet"
    batches = read_split(splits[0], COLUMNS, ReadReport())
    if begun:
        assert next(batches).num_rows
    change(path)
    with pytest.raises(SourceError, match=rf"f\.{kind}' was overwritten, replaced or cut short"):
        list(batches)


def test_a_file_that_was_replaced_while_it_was_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    write(path, 100_000)
    batches = read_split(splits_of(path)[0], COLUMNS, ReadReport())
    assert next(batches).num_rows
    replaced(path)
    with pytest.raises(SourceError, match="was overwritten"):
        list(batches)


@pytest.mark.parametrize("kind", ["pcap", "csv", "json"])
def test_what_is_appended_is_not_read_and_no_mistake(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{kind}"
    write(path, 100_000)
    splits = splits_of(path)
    with path.open("ab") as file:
        file.write(path.read_bytes()[-10_000:])
    report = ReadReport()
    rows = sum(b.num_rows for split in splits for b in read_split(split, COLUMNS, report))
    assert rows == 2000


def test_a_copy_elsewhere_is_the_same_file_and_one_that_is_gone_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.csv"
    write(path, 100_000)
    splits = splits_of(path)
    shutil.copy(path, tmp_path / "copy")
    path.unlink()
    report = ReadReport()
    assert list(read_split(splits[0], COLUMNS, report)) == []
    assert list(report.files) == [str(path)]
    (tmp_path / "copy").rename(path)
    with pytest.raises(SourceError, match="was overwritten"):
        list(read_split(splits[0], COLUMNS, ReadReport()))
    monkeypatch.setattr(platform, "node", lambda: "another machine")
    rows = sum(b.num_rows for split in splits for b in read_split(split, COLUMNS, ReadReport()))
    assert rows == 2000


def test_a_batch_is_planned_with_what_its_files_are(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    write(path, 100_000)
    interface = parse_interface(f"f=csv:{path}")
    text = "PROTOCOL P (t UINT increasing, a INT); SELECT t, COUNT(*) AS n FROM f.P GROUP BY t"
    job = compile_set(Source(text), Bindings({"f": interface}, config=WITHOUT_COMPILING)).job()
    write(path, 700_000)
    with pytest.raises(SourceError, match=r"f\.csv' was overwritten"):
        low_rows(job, 2, tmp_path)
