"""ULLONG columns with all of their 64 bits, written as text and as Parquet without Spark."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.execute.results.parts import PartWriter
from terascope.kernels.encode.text import csv_lines, json_lines
from terascope.physical.delivery import PartFormat
from terascope.plan.rel import Field
from terascope.streaming.state.row_files import read_rows
from terascope.types import BIAS, Type

NUMBERS = [0, 2**63 - 1, None, 2**63, 2**64 - 1, 2**63]
HELD = pa.array([None if n is None else n - BIAS for n in NUMBERS], pa.int64())
FIELDS = (Field("id", Type.WIDE), Field("n", Type.ULLONG))
COUNTS = pa.array(range(6), pa.int64())


def test_lines() -> None:
    types = [f.type for f in FIELDS]
    cells = ["" if n is None else str(n) for n in NUMBERS]
    wanted = "".join(f"{cell},{n}\n" for n, cell in enumerate(cells))
    assert csv_lines([HELD, COUNTS], types).decode() == wanted
    objects = "".join(f'{{"id": {cell or "null"}, "n": {n}}}\n' for n, cell in enumerate(cells))
    assert json_lines(["id", "n"], [HELD, COUNTS], types).decode() == objects
    coded = HELD.dictionary_encode()
    assert csv_lines([coded, COUNTS], types).decode() == wanted


@pytest.mark.parametrize("format", ["parquet", "csv", "ndjson"])
def test_parts_are_read_back(tmp_path: Path, format: PartFormat) -> None:
    writer = PartWriter(tmp_path, format, FIELDS)
    batch = pa.RecordBatch.from_arrays([HELD, COUNTS], ["id", "n"])
    writer.write(batch)
    writer.write(batch.slice(2))
    path, rows = writer.close()
    assert rows == 10
    assert format != "held"
    table = read_rows(path, format, FIELDS)
    assert table.schema.types == [pa.uint64(), pa.int64()]
    assert table.column("id").to_pylist() == [*NUMBERS, *NUMBERS[2:]]
    if format == "parquet":
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT max(id), min(id), typeof(max(id)) FROM '{path}'")
            assert found.fetchall() == [(2**64 - 1, 0, "UBIGINT")]


def test_held_parts_stay_as_they_are_held(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path, "held", FIELDS)
    writer.write(pa.RecordBatch.from_arrays([HELD, COUNTS], ["id", "n"]))
    path, _ = writer.close()
    assert pq.read_table(path).column("id").combine_chunks().equals(HELD)
