"""Followed files that are rotated, overwritten or cut back: every row once, and what is lost is
counted.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import Column, FileFault
from terascope.types import Type
from tests.connectors.live_reading import Run, live, read

WANTED = (Column("a", Type.INT),)


def rows_of(run: Run) -> list[int]:
    return [row[0] for row in read(run.all_splits, WANTED)[0]]  # type: ignore[misc]


def append(path: Path, *values: int) -> None:
    with path.open("a") as file:
        if not file.tell():
            file.write("a\n")
        file.writelines(f"{value}\n" for value in values)


@pytest.mark.parametrize("place", ["t.csv", ""], ids=["file", "folder"])
@pytest.mark.parametrize("rotated", ["t.csv.1", "t-1.csv"])
def test_a_rotated_log_is_read_to_its_end(tmp_path: Path, place: str, rotated: str) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    path = logs / "t.csv"
    append(path, 1, 2)
    run = Run([f"e=csv:{logs / place}"], tmp_path / "links", live())
    run.step()
    append(path, 3, 4)  # not seen before it is renamed
    path.rename(logs / rotated)
    append(path, 5)
    run.step()
    run.reopen()
    append(path, 6)
    run.step()
    _, report = read(run.all_splits, WANTED)
    assert sorted(rows_of(run)) == [1, 2, 3, 4, 5, 6]
    assert not report.malformed
    assert run.links.states()[0].stalled is None


def test_a_log_that_is_copied_and_truncated_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    append(path, *range(10, 40))
    run = Run([f"e=csv:{path}"], tmp_path / "links", live())
    run.step()
    assert rows_of(run) == list(range(10, 40))
    before = len(run.all_splits)
    path.write_text("")
    append(path, 50, 51)
    run.step()
    run.step()
    rows, report = read(run.all_splits[before:], WANTED)
    assert [row[0] for row in rows] == [50, 51]
    assert not report.malformed


def test_a_file_overwritten_before_it_is_read_is_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    append(path, *range(100))
    run = Run([f"e=csv:{path}"], tmp_path / "links", live())
    (split,) = run.step()
    size = path.stat().st_size
    fresh = tmp_path / "fresh"
    append(fresh, *range(1000, 1200))
    fresh.replace(path)
    rows, report = read([split], WANTED)
    assert rows == []
    assert report.malformed == {FileFault.REPLACED.value: 1}
    assert report.skipped == {FileFault.REPLACED.value: size}
    assert report.files == {str(path): FileFault.REPLACED.value}
    rows, report = read(run.step(), WANTED)
    assert [row[0] for row in rows] == list(range(1000, 1200))


def test_a_damaged_parquet_file_of_a_folder_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b", "c"):
        pq.write_table(pa.table({"a": [1, 2]}), folder / f"{name}.parquet")
    bad = folder / "b.parquet"
    bad.write_bytes(bad.read_bytes()[:-20])
    run = Run([f"e=parquet:{folder}"], tmp_path / "links", live(until_idle=True))
    run.step_until_ended(1.0, most=20)
    rows, report = read(run.all_splits, WANTED)
    assert [row[0] for row in rows] == [1, 2, 1, 2]
    assert report.malformed == {FileFault.NOT_PARQUET.value: 1}
    assert report.files == {str(bad): FileFault.NOT_PARQUET.value}
