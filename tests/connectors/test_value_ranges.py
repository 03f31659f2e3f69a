"""Unsigned types mean what they say, whatever kind of file a value comes from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.registry import KINDS
from terascope.types import Type
from tests.connectors.table_reading import columns, read_all, written


@pytest.mark.parametrize(
    ("type", "good", "bad"),
    [
        (Type.UINT, [0, 2**32 - 1], {-1: "negative", 2**32: "more than 4294967295"}),
        (Type.ULLONG, [0, 2**63 - 1], {-1: "negative", -(2**63): "negative"}),
        (Type.INT, [-1, 2**32], {}),
    ],
)
def test_unsigned_columns_hold_what_they_say(
    tmp_path: Path, type: Type, good: list[int], bad: dict[int, str]
) -> None:
    """The same values are malformed in a CSV, a JSON and a Parquet file, for the same reason."""
    values = [*good, *bad, *good]
    csv = written(tmp_path / "t.csv", "a\n" + "".join(f"{v}\n" for v in values))
    json = written(tmp_path / "t.json", "".join(f'{{"a": {v}}}\n' for v in values))
    pq.write_table(pa.table({"a": pa.array(values, pa.int64())}), tmp_path / "t.parquet")
    floats = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": pa.array(values, pa.decimal128(20, 0))}), floats)
    files = {"csv": csv, "json": json, "parquet": tmp_path / "t.parquet"}
    for kind, path in [*files.items(), ("parquet", floats)]:
        seen = read_all(KINDS[kind], [path], columns(a=type))
        assert [row[0] for row in seen.rows] == [*good, *good], kind
        reasons = sorted(seen.malformed.elements())
        assert len(reasons) == len(bad)
        assert all(any(why in r for r in reasons) for why in bad.values()), reasons
