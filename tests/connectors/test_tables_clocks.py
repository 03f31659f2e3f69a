"""Times in files: ticks, fractions of ticks, dates, in CSV, JSON lines and Parquet."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import Column, ReadReport
from terascope.connectors.registry import Interface, read_split
from terascope.types import Type

SECOND = 1_442_018_818
MOMENT = "2015-09-12T00:46:58.771Z"


def read(kind: str, path: Path, unit: str) -> tuple[list[int | None], ReadReport]:
    report = ReadReport()
    values: list[int | None] = []
    for split in Interface("i", kind, str(path)).splits(1 << 20):
        for batch in read_split(split, [Column("t", Type.ULLONG, unit)], report):
            values += batch.column(0).to_pylist()
    return values, report


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("s", SECOND), ("ms", SECOND * 1000 + 771), ("ns", SECOND * 10**9 + 771_000_000)],
)
def test_dates_become_ticks(unit: str, expected: int, tmp_path: Path) -> None:
    csv = tmp_path / "t.csv"
    csv.write_text(f"t\n{MOMENT}\n{MOMENT.replace('T', ' ')}\n")
    lines = tmp_path / "t.json"
    lines.write_text(json.dumps({"t": MOMENT}) + "\n" + json.dumps({"t": MOMENT}) + "\n")
    parquet = tmp_path / "t.parquet"
    moment = datetime.fromisoformat(MOMENT).astimezone(UTC)
    pq.write_table(pa.table({"t": pa.array([moment, moment], pa.timestamp("us", "UTC"))}), parquet)
    for kind, path in (("csv", csv), ("json", lines), ("parquet", parquet)):
        values, report = read(kind, path, unit)
        assert values == [expected, expected], kind
        assert not report.malformed


def test_forms_may_be_mixed_and_what_is_no_time_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "t\n60\n61.9\n1970-01-01T00:01:02\n1970-01-01T01:01:03+01:00\nnoon\n-0.5\n1970-01-02\n"
    )
    values, report = read("csv", path, "s")
    assert values == [60, 61, 62, 63, 86400]
    assert report.malformed == {
        "column 't': not a time: neither a number nor a date and time": 1,
        "column 't': negative, and declared unsigned": 1,
    }


def test_fractions_of_a_typed_column_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": [1.9, 0.1, None]}), path)
    assert read("parquet", path, "s")[0] == [1, 0, None]


def test_a_column_that_is_no_clock_stays_strict(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("t\n61.9\n")
    report = ReadReport()
    (split,) = Interface("i", "csv", str(path)).splits(1 << 20)
    assert sum(b.num_rows for b in read_split(split, [Column("t", Type.UINT)], report)) == 0
    assert report.malformed == {"column 't': not an integer": 1}
