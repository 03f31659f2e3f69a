"""Parts whose rows overlap are merged in the order of their rows; what is in order stays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from terascope.connectors.base import arrow_type
from terascope.execute.results.parts import Part, PartWriter
from terascope.execute.results.result_files import Extent, in_sequence
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import RowFormat
from terascope.streaming.state.row_files import read_rows, reordered
from terascope.types import Type

FIELDS = (
    Field("tb", Type.LLONG),
    Field("s", Type.STRING),
    Field("f", Type.FLOAT),
    Field("ip", Type.IP),
    Field("other", Type.LLONG),
)
Row = tuple[int | None, str | None, float | None, bytes | None, int | None]
START = 1_700_000_000_000_000_000
"""Nanoseconds, which differ by less than a float can tell."""


def row(tb: int | None, other: int | None, text: str | None = None) -> Row:
    return tb, text, None if tb is None else tb / 3, b"\x04\x0a\x00\x00\x01", other


def part(folder: Path, format: RowFormat, rows: Sequence[Row], ordered: KeptOrder) -> Part:
    arrays = [pa.array([r[i] for r in rows], arrow_type(f.type)) for i, f in enumerate(FIELDS)]
    with PartWriter(folder, format, FIELDS, ordered=ordered) as writer:
        writer.write(pa.RecordBatch.from_arrays(arrays, [f.name for f in FIELDS]))
        path, count = writer.close()
        return Part("q", path, count, writer.extents)


@pytest.mark.parametrize("format", get_args(RowFormat))
@pytest.mark.parametrize("down", [False, True])
def test_merged_rows_are_the_same_and_in_order(
    format: RowFormat, down: bool, tmp_path: Path
) -> None:
    rng = random.Random(7)
    texts = ["a\nb", 'say "x"', "", "\\n", "é,\r\n\"'", None]
    rows = [row(START + rng.randrange(40), 0, rng.choice(texts)) for _ in range(200)]
    ordered: KeptOrder = (("tb", down),)
    parts = [part(tmp_path, format, rows[i::3], ordered) for i in range(3)]
    assert in_sequence(parts) is None
    before = [read_rows(p.path, format, FIELDS) for p in parts]
    made = reordered(parts, format, FIELDS, ordered)
    found = read_rows(made.path, format, FIELDS).to_pylist()
    assert made.rows == len(rows) == len(found)
    values = [r["tb"] for r in found]
    assert values == sorted(values, reverse=down)
    expected = pa.concat_tables(before).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_rows_that_lack_a_side_are_woven_in(tmp_path: Path) -> None:
    """Of an outer join: both columns rise, though neither is in every row."""
    rng = random.Random(3)
    rows = []
    for now in range(100):
        kind = rng.choice(["both", "left", "right"])
        rows.append(row(now if kind != "right" else None, now + 3 if kind != "left" else None))
    rng.shuffle(rows)
    ordered: KeptOrder = (("tb", False), ("other", False))
    made = reordered([part(tmp_path, "parquet", rows, ordered)], "parquet", FIELDS, ordered)
    found = read_rows(made.path, "parquet", FIELDS)
    for name in ("tb", "other"):
        values = [v for v in found.column(name).to_pylist() if v is not None]
        assert values == sorted(values)
    assert found.num_rows == 100


def test_parts_that_follow_each_other_are_only_put_in_sequence(tmp_path: Path) -> None:
    ordered: KeptOrder = (("tb", False),)
    spans = [(7, 9), (1, 3), (3, 7)]
    parts = [part(tmp_path, "csv", [row(a, 0), row(None, 0), row(b, 0)], ordered) for a, b in spans]
    placed = in_sequence(parts)
    assert placed is not None
    assert [p.extents[0].low for p in placed] == [1, 3, 7]
    again = [Part.of(p.to_json()) for p in placed]
    assert again == placed


def test_a_part_knows_whether_its_own_rows_are_in_order(tmp_path: Path) -> None:
    ordered: KeptOrder = (("tb", True),)
    falling = part(tmp_path, "csv", [row(5, 0), row(5, 0), row(2, 0)], ordered)
    assert falling.extents == (Extent(-5, -2, True),)
    mixed = part(tmp_path, "csv", [row(5, 0), row(2, 0), row(3, 0)], ordered)
    assert mixed.extents == (Extent(-5, -2, False),)
    assert in_sequence([mixed]) is None
