"""Files of results: complete, exact, readable by others."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.diagnostic import OutputError
from terascope.execute.results.result_files import Format
from terascope.functions.base import Value, ValueMistake
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import spark_type
from terascope.spark.write import preview, to_arrow_table, write_output
from terascope.types import INT_MIN, Type, parse_ip

pytestmark = pytest.mark.spark

FIELDS = (
    Field("n", Type.LLONG),
    Field("a.b", Type.IP),
    Field("raw", Type.BINARY),
    Field('text, "q"', Type.STRING),
    Field("f", Type.FLOAT),
    Field("ok", Type.BOOL),
)
ROWS: list[tuple[Value, ...]] = [
    (1, parse_ip("10.0.0.1"), b"\x00\xff", "plain", 0.1, True),
    (2, parse_ip("2001:db8::1"), b"", 'a "quoted", text', 1e300, False),
    (3, None, None, None, None, None),
    (INT_MIN, parse_ip("255.255.255.255"), b"abc", "", -0.0, True),
    (5, parse_ip("fe80::1:0:0:2"), b"\n", "line\nbreak \\ \x01 é€𝄞", 123456789.123456789, False),
]
TEXT = ["10.0.0.1", "2001:db8::1", None, "255.255.255.255", "fe80::1:0:0:2"]


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> DataFrame:
    columns = zip(*ROWS, strict=True)
    schema = ", ".join(
        f"`{f.name.replace('`', '')}` {spark_type(f.type).simpleString()}" for f in FIELDS
    )
    df = spark.createDataFrame(list(zip(*columns, strict=True)), schema)
    return df.repartitionByRange(3, "n").orderBy(F.col("n"))


ORDERED = sorted(range(len(ROWS)), key=lambda i: ROWS[i][0])


def test_csv_reads_back(answers: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    assert write_output(answers, path, "csv", FIELDS) == len(ROWS)
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == [f.name for f in FIELDS]
    assert len(lines) == len(ROWS)
    for line, i in zip(lines, ORDERED, strict=True):
        n, _, raw, text, number, ok = ROWS[i]
        assert line[0] == str(n)
        assert line[1] == (TEXT[i] or "")
        assert line[2] == (raw.hex() if raw is not None else "")
        assert line[3] == (text or "")
        assert line[4] == (repr(number) if number is not None else "")
        assert line[5] == ("" if ok is None else str(ok).lower())
    assert '""' in path.read_text(encoding="utf-8").splitlines()[1], "an empty text is no NULL"


@pytest.mark.parametrize("format", ["json", "ndjson"])
def test_json_reads_back(answers: DataFrame, tmp_path: Path, format: Format) -> None:
    path = tmp_path / f"out.{format}"
    assert write_output(answers, path, format, FIELDS) == len(ROWS)
    content = path.read_text(encoding="utf-8")
    read = json.loads(content) if format == "json" else list(map(json.loads, content.splitlines()))
    for found, i in zip(read, ORDERED, strict=True):
        n, _, raw, text, number, ok = ROWS[i]
        assert list(found) == [f.name for f in FIELDS]
        assert list(found.values()) == [
            n, TEXT[i], raw.hex() if raw is not None else None, text, number, ok
        ]  # fmt: skip


def test_parquet_reads_back(answers: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    assert write_output(answers, path, "parquet", FIELDS) == len(ROWS)
    table = pq.read_table(path)
    assert table.schema.names == [f.name for f in FIELDS]
    assert table.column("a.b").to_pylist() == [TEXT[i] for i in ORDERED]
    assert table.column("raw").to_pylist() == [ROWS[i][2] for i in ORDERED]
    assert table.column("f").to_pylist() == [ROWS[i][4] for i in ORDERED]


@pytest.mark.parametrize("format", ["csv", "json", "ndjson", "parquet"])
def test_no_rows_are_a_file_too(answers: DataFrame, tmp_path: Path, format: Format) -> None:
    path = tmp_path / f"none.{format}"
    assert write_output(answers.filter(F.lit(False)), path, format, FIELDS) == 0
    if format == "csv":
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1
    elif format == "json":
        assert json.loads(path.read_text(encoding="utf-8")) == []
    elif format == "ndjson":
        assert path.read_text(encoding="utf-8") == ""
    else:
        assert pq.read_table(path).num_rows == 0


def test_a_failure_leaves_the_old_file_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old", encoding="utf-8")
    failing = spark.range(10).select((F.lit(2**62) * F.col("id")).alias("n"))
    with pytest.raises(ValueMistake, match="integer overflow in \\*"):
        write_output(failing, path, "csv", FIELDS[:1])
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_a_folder_that_is_not_there_is_one_clear_line(answers: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "out.csv"
    with pytest.raises(OutputError) as raised:
        write_output(answers, path, "csv", FIELDS)
    assert str(raised.value) == f"cannot write '{path}': no such file or directory"


def test_tables_for_terminals(answers: DataFrame) -> None:
    table = to_arrow_table(answers, FIELDS)
    assert table.column("a.b").to_pylist() == [TEXT[i] for i in ORDERED]
    assert table.column("raw").to_pylist()[-1] == "0a"
    assert preview(answers, FIELDS, 2).column("n").to_pylist() == [INT_MIN, 1]
    assert preview(answers.filter(F.lit(False)), FIELDS, 2).num_rows == 0
    assert table.schema.field("f").type == pa.float64()
    assert not any(math.isnan(v) for v in table.column("f").to_pylist() if v is not None)
