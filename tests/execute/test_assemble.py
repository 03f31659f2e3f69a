from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.connectors.base import arrow_type
from terascope.execute.results.parts import PartWriter
from terascope.execute.results.result_files import Format, sorted_table, write_table
from terascope.plan.rel import Field
from terascope.reference.rows import sort_key
from terascope.types import Type, parse_ip

FIELDS = (Field("a.b", Type.IP), Field("f", Type.FLOAT), Field("n", Type.LLONG))
HIDDEN = (Field("#place", Type.LLONG),)
VALUES: tuple[list[Any], ...] = (
    [None, parse_ip("9.0.0.1"), parse_ip("10.0.0.1"), parse_ip("::1")],
    [None, math.nan, math.inf, -math.inf, 0.5],
    [None, -1, 3],
)


def assemble(
    parts: Sequence[Path],
    path: Path,
    format: Format,
    fields: Sequence[Field],
    order: Sequence[tuple[str, bool]],
) -> int:
    return write_table(sorted_table(parts, fields, order), path, format, fields)


def parts_of(rows: list[tuple[Any, ...]], folder: Path, fields: tuple[Field, ...]) -> list[Path]:
    """Rows in parts of three."""
    paths = []
    for start in range(0, len(rows), 3):
        columns = list(zip(*rows[start : start + 3], strict=True))
        arrays = [pa.array(c, arrow_type(f.type)) for c, f in zip(columns, fields, strict=True)]
        with PartWriter(folder, "held", fields) as part:
            part.write(pa.RecordBatch.from_arrays(arrays, [f.name for f in fields]))
        paths.append(part.path)
    return paths


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(*(st.sampled_from(v) for v in VALUES)), max_size=25),
    st.permutations(FIELDS),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_rows_come_in_the_order_of_the_reference(
    tmp_path: Path,
    rows: list[tuple[Any, ...]],
    by: list[Field],
    down: tuple[bool, bool, bool],
) -> None:
    numbered = [(*row, i) for i, row in enumerate(rows)]
    order = [(f.name, d) for f, d in zip(by, down, strict=True)] + [("#place", False)]
    parts = parts_of(numbered, tmp_path, FIELDS + HIDDEN)
    path = tmp_path / "whole.ndjson"
    assert assemble(parts, path, "ndjson", (*FIELDS, *HIDDEN), order) == len(rows)
    wanted = sorted(numbered, key=lambda row: row[3])
    names = [f.name for f in (*FIELDS, *HIDDEN)]
    for name, descending in reversed(order):
        place = names.index(name)
        wanted.sort(key=lambda row, p=place: sort_key(row[p]), reverse=descending)  # type: ignore[misc]
    lines = path.read_text().splitlines()
    assert [json.loads(line)["#place"] for line in lines] == [row[3] for row in wanted]


ROWS: list[tuple[Any, ...]] = [
    (parse_ip("10.0.0.1"), 0.1, 3), (None, None, None), (parse_ip("::1"), math.nan, -1),
    (parse_ip("9.0.0.1"), 2.0, 0),
]  # fmt: skip


def test_addresses_are_sorted_as_addresses_and_written_as_text(tmp_path: Path) -> None:
    parts = parts_of(ROWS, tmp_path, FIELDS)
    assemble(parts, tmp_path / "x.csv", "csv", FIELDS, [("a.b", False)])
    assert (tmp_path / "x.csv").read_text() == (
        "a.b,f,n\n9.0.0.1,2.0,0\n10.0.0.1,0.1,3\n::1,nan,-1\n,,\n"
    )
    assemble(parts, tmp_path / "x.json", "json", FIELDS, [("a.b", True)])
    read = json.loads((tmp_path / "x.json").read_text())
    assert [row["a.b"] for row in read] == [None, "::1", "10.0.0.1", "9.0.0.1"]
    assemble(parts, tmp_path / "x.parquet", "parquet", FIELDS[:1], [("n", False)])
    table = pq.ParquetFile(tmp_path / "x.parquet").read()
    assert table.to_pydict() == {"a.b": ["::1", "9.0.0.1", "10.0.0.1", None]}


@pytest.mark.parametrize("format", ["csv", "json", "ndjson", "parquet"])
def test_no_parts_are_a_file_without_rows(tmp_path: Path, format: Format) -> None:
    path = tmp_path / f"none.{format}"
    assert assemble([], path, format, FIELDS, [("n", False)]) == 0
    if format == "parquet":
        assert pq.ParquetFile(path).read().num_rows == 0
    else:
        assert path.read_text() == {"csv": "a.b,f,n\n", "json": "[]\n", "ndjson": ""}[format]
