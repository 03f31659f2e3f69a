from __future__ import annotations

import csv
import math
from itertools import chain
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import terascope.execute.results.parts as parts
from terascope.connectors.base import arrow_type
from terascope.diagnostic import OutputError
from terascope.execute.results.parts import PartWriter
from terascope.functions.slots import COUNT, COUNT_OF
from terascope.kernels.columns.dictionary import dictionary_for
from terascope.kernels.encode.text import readable
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.kernels.tables.slots import Shape
from terascope.plan.rel import Field
from terascope.types import INT_MAX, INT_MIN, Type, parse_ip
from tests.kernels.some_groups import Case, blocks_of, cases, dictionaries_for, same

ANY_FOLDER = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few rows are several pages and row groups."""
    monkeypatch.setattr(parts, "PAGE_ROWS", 5)
    monkeypatch.setattr(parts, "GROUP_BYTES", 900)


def ask(before: str, path: Path, after: str = "") -> duckdb.DuckDBPyRelation:
    found = duckdb.sql(f"{before} '{path}' {after}")
    assert found is not None
    return found


@ANY_FOLDER
@given(cases(most_partials=60))
@pytest.mark.usefixtures("small_pages")
def test_groups_read_back(tmp_path: Path, case: Case) -> None:
    partials = case.workers[0]
    dictionaries = dictionaries_for(case.types)
    with PartWriter(tmp_path, "held", case.fields.fields) as writer:
        blocks = iter(blocks_of(partials, case.shape, dictionaries))
        for block in blocks:
            writer.write_block(block, case.fields, dictionaries)
    table = pq.read_table(writer.path)
    assert table.schema.types == [arrow_type(f.type) for f in case.fields.fields]
    found = list(zip(*table.to_pydict().values(), strict=True))
    assert len(found) == writer.rows == len(partials)
    counts = [kind in (COUNT, COUNT_OF) for kind in case.shape.slots]
    for row, (key, values) in zip(found, partials, strict=True):
        slots = (0 if v is None and c else v for v, c in zip(values, counts, strict=True))
        assert same(row, (*key, *slots))


@ANY_FOLDER
@given(cases(), st.data())
def test_a_part_may_have_only_some_columns_of_groups(
    tmp_path: Path, case: Case, data: st.DataObject
) -> None:
    fields = case.fields.fields
    places = data.draw(st.permutations(range(len(fields))))[: data.draw(st.integers(1, 3))]
    dictionaries = dictionaries_for(case.types)
    with PartWriter(tmp_path, "held", [fields[p] for p in places], places) as some:
        for block in blocks_of(case.workers[0], case.shape, dictionaries):
            some.write_block(block, case.fields, dictionaries)
    with PartWriter(tmp_path, "held", fields) as every:
        for block in blocks_of(case.workers[0], case.shape, dictionaries):
            every.write_block(block, case.fields, dictionaries)
    whole = pq.read_table(every.path)
    assert repr(pq.read_table(some.path).to_pydict()) == repr(whole.select(places).to_pydict())


FIELDS = (
    Field("n", Type.LLONG),
    Field("a.b", Type.IP),
    Field("raw", Type.BINARY),
    Field('text, "q"', Type.STRING),
    Field("f", Type.FLOAT),
    Field("ok", Type.BOOL),
)
VALUES: dict[Type, st.SearchStrategy[object]] = {
    Type.LLONG: st.integers(INT_MIN, INT_MAX) | st.integers(0, 3),
    Type.IP: st.sampled_from([parse_ip(t) for t in ("10.0.0.1", "::1", "255.1.2.3")]),
    Type.BINARY: st.binary(max_size=20),
    Type.STRING: st.text(st.characters(codec="utf-8"), max_size=9),
    Type.FLOAT: st.floats(allow_nan=False),
    Type.BOOL: st.booleans(),
}


@st.composite
def batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    given_batches = []
    for rows in draw(st.lists(st.integers(0, 30), max_size=4)):
        columns = []
        for field in FIELDS:
            values = st.none() | VALUES[field.type] if draw(st.booleans()) else VALUES[field.type]
            column = pa.array(
                draw(st.lists(values, min_size=rows, max_size=rows)), arrow_type(field.type)
            )
            coded = field.type is not Type.BOOL and draw(st.booleans())
            columns.append(column.dictionary_encode() if coded else column)
        given_batches.append(pa.RecordBatch.from_arrays(columns, [f.name for f in FIELDS]))
    return given_batches


def written(batch: pa.RecordBatch) -> list[list[object]]:
    """What a file should have: addresses as text, raw bytes as they are."""
    columns = [
        c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns
    ]
    return [
        (column if f.type is Type.BINARY else readable(column, f.type)).to_pylist()
        for column, f in zip(columns, FIELDS, strict=True)
    ]


@ANY_FOLDER
@given(batches())
@pytest.mark.usefixtures("small_pages")
def test_batches_read_back_by_others(tmp_path: Path, given_batches: list[pa.RecordBatch]) -> None:
    with PartWriter(tmp_path, "parquet", FIELDS) as writer:
        for batch in given_batches:
            writer.write(batch)
    columns = zip(*map(written, given_batches), strict=True)
    wanted = [list(chain(*column)) for column in columns] or [[] for _ in FIELDS]
    table = pq.read_table(writer.path)
    assert [c.to_pylist() for c in table.columns] == wanted
    duck = ask("SELECT * FROM", writer.path)
    assert duck.columns == [f.name for f in FIELDS]
    assert [str(t) for t in duck.types] == [
        "BIGINT",
        "VARCHAR",
        "BLOB",
        "VARCHAR",
        "DOUBLE",
        "BOOLEAN",
    ]
    found = [list(c) for c in zip(*duck.fetchall(), strict=True)]
    assert found == [c for c in wanted if c]


def test_integers_of_every_width_read_back(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    blocks = [np.array([0]), np.array([5, 5]), np.arange(129), np.arange(128)[::-1]]
    blocks += [random.integers(-(2**w), 2**w, 300) for w in range(0, 63, 3)]
    blocks += [random.choice([INT_MIN, INT_MAX, 0, -1], 500), random.choice([0, 2**62], 333)]
    values = np.concatenate(blocks).astype(np.int64)
    with PartWriter(tmp_path, "parquet", FIELDS[:1]) as writer:
        for block in blocks:
            writer.write(pa.record_batch({"n": pa.array(block.astype(np.int64))}))
        writer.write(pa.record_batch({"n": pa.array(values)}))
    both = np.concatenate([values, values])
    assert np.array_equal(pq.read_table(writer.path)["n"].to_numpy(), both)
    found = ask("SELECT n FROM", writer.path).fetchnumpy()["n"]
    assert np.array_equal(found, both)


@pytest.mark.parametrize("values", [1, 2, 3, 200, 5_000, 70_000])
def test_dictionaries_of_every_width_read_back(tmp_path: Path, values: int) -> None:
    shape = Shape(1, (COUNT,))
    fields = GroupFields((Field("k", Type.STRING),), (Field("n", Type.LLONG),), shape, None)
    dictionary = dictionary_for(Type.STRING)
    words = pa.array([f"value {i}" for i in range(values)])
    random = np.random.default_rng(values)
    codes = dictionary.encode(words)[random.integers(0, values, 90_001)]
    rows = np.ones((len(codes), shape.stride), np.int64)
    rows[:, 1] = codes.astype(np.int64) << 32
    with PartWriter(tmp_path, "parquet", fields.fields) as writer:
        writer.write_block(Block.of(None, rows), fields, [dictionary])
    table = pq.read_table(writer.path)
    assert table["k"].combine_chunks().equals(dictionary.values(codes))
    counted = ask("SELECT k, sum(n)::BIGINT FROM", writer.path, "GROUP BY k").fetchall()
    wanted = dictionary.values(codes).value_counts().to_pylist()
    assert dict(counted) == {w["values"]: w["counts"] for w in wanted}


def test_readers_know_the_epochs_of_row_groups(tmp_path: Path) -> None:
    case = Case(Shape(0, (COUNT,)), (), [])
    with PartWriter(tmp_path, "parquet", case.fields.fields) as writer:
        for epoch in (-7, 3, None, 9):
            rows = np.ones((30_000, case.shape.stride), np.int64)
            writer.write_block(Block.of(epoch, rows), case.fields, [])
    statistics = pq.ParquetFile(writer.path).metadata.row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (-7, 9)
    for condition, count in (("= 3", 30_000), ("> 9", 0), ("IS NULL", 30_000), ("< 0", 30_000)):
        found = ask("SELECT count(*) FROM", writer.path, f"WHERE tb {condition}").fetchall()
        assert found == [(count,)]
    assert len(pq.read_table(writer.path, filters=[("tb", "<", 0)])) == 30_000


def test_csv_has_a_header_and_readable_cells(tmp_path: Path) -> None:
    column = pa.array([parse_ip("10.0.0.1"), None, parse_ip("10.0.0.1")]).dictionary_encode()
    text = pa.array(["a", "", None]).dictionary_encode()
    fields = (FIELDS[1], FIELDS[3], FIELDS[4])
    with PartWriter(tmp_path, "csv", fields) as writer:
        writer.write(pa.record_batch([column, text, pa.array([0.1, math.inf, None])],
                                     [f.name for f in fields]))  # fmt: skip
    assert writer.path.read_text() == ('a.b,"text, ""q""",f\n10.0.0.1,a,0.1\n,"",inf\n10.0.0.1,,\n')
    with writer.path.open(newline="") as file:
        assert len(list(csv.reader(file))) == 1 + writer.rows


def test_names_are_unique_and_failures_leave_nothing(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        with PartWriter(tmp_path, "parquet", FIELDS[:1]) as writer:
            pass
        names.add(writer.path)
        assert pq.read_table(writer.path).num_rows == 0
    assert set(tmp_path.iterdir()) == names
    with pytest.raises(KeyError), PartWriter(tmp_path, "parquet", FIELDS[:1]) as writer:
        raise KeyError
    assert set(tmp_path.iterdir()) == names
    with pytest.raises(OutputError, match="no such file or directory"):
        PartWriter(tmp_path / "nowhere", "csv", FIELDS)
