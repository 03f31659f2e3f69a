from __future__ import annotations

import datetime as dt
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.connectors.base import Column, Connector, Edge, ReadReport, Split
from terascope.connectors.tables.csv import CsvConnector
from terascope.connectors.tables.jsonlines import JsonConnector
from terascope.connectors.tables.parquet import ParquetConnector
from terascope.types import Type
from tests.connectors.table_reading import POSITION, WHOLE, columns, splits_of

PARQUET = ParquetConnector()
ROWS = 4000
READ = (*columns(t=Type.LLONG, v=Type.INT), POSITION)


def written(path: Path, times: list[int], group: int, statistics: bool = True) -> Path:
    values = np.arange(len(times)) * 7 % 1000
    table = pa.table({"t": pa.array(times, pa.int64()), "v": pa.array(values)})
    pq.write_table(table, path, row_group_size=group, write_statistics=statistics)
    return path


def read(split: Split, wanted: tuple[Column, ...], report: ReadReport) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for batch in PARQUET.read(split, wanted, report):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def check(path: Path, splits: list[Split], in_order: bool) -> None:
    """Each row once, counted once, and inside of the bounds of its split."""
    [unsplit] = splits_of(PARQUET, "x", [path], {}, WHOLE)
    for wanted in (READ, (*columns(v=Type.INT), POSITION)):
        whole, parts = ReadReport(), ReadReport()
        expected = read(unsplit, wanted, whole)
        found = []
        for split in splits:
            rows = read(split, wanted, parts)
            bound = split.bound("t")
            if wanted is READ and bound is not None:
                low, high = min(row[0] for row in rows), max(row[0] for row in rows)
                assert bound[0] <= low <= high <= bound[1]
                if not split.options:
                    assert bound == (low, high)
            if wanted is READ and (other := split.bound("v")) is not None:
                assert other == (min(row[1] for row in rows), max(row[1] for row in rows))
            found += rows
        assert (found if in_order else sorted(found, key=lambda row: row[-1])) == expected
        assert (parts.tuples, parts.bytes_read) == (whole.tuples, whole.bytes_read)
        assert parts.horizon == whole.horizon


def steady(count: int = ROWS) -> list[int]:
    return [k // 10 for k in range(count)]


def shuffled_inside(group: int) -> list[int]:
    times = steady()
    chance = random.Random(3)
    for start in range(0, len(times), group):
        part = times[start : start + group]
        chance.shuffle(part)
        times[start : start + group] = part
    return times


@pytest.mark.parametrize("group", [100, 333, 5000])
@pytest.mark.parametrize("step", [1, 7, 30, 1000])
def test_splits_with_edges_give_each_row_once(tmp_path: Path, group: int, step: int) -> None:
    files = [
        (written(tmp_path / "a.parquet", steady(), group), True),
        (written(tmp_path / "b.parquet", shuffled_inside(group), group), False),
        (written(tmp_path / "c.parquet", steady()[::-1], group), False),
        (written(tmp_path / "d.parquet", [k - 200 for k in steady()], group), True),
    ]
    for path, in_order in files:
        for target in (1, 600, 2_000, 9_000, WHOLE):
            check(path, splits_of(PARQUET, "x", [path], {}, target, Edge("t", step)), in_order)


@given(
    times=st.lists(st.integers(-50, 50), min_size=1, max_size=60),
    ordered=st.booleans(),
    group=st.integers(1, 20),
    step=st.integers(1, 30),
    target=st.integers(1, 2000),
)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_tables_are_cut_right(
    tmp_path: Path, times: list[int], ordered: bool, group: int, step: int, target: int
) -> None:
    path = written(tmp_path / "t.parquet", sorted(times) if ordered else times, group)
    check(path, splits_of(PARQUET, "x", [path], {}, target, Edge("t", step)), in_order=False)


def test_cuts_stand_on_edges_and_a_row_group_is_in_two_splits_at_most(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", steady(20_000), 1500)
    [whole] = splits_of(PARQUET, "x", [path], {}, WHOLE)
    footer = pq.ParquetFile(path).metadata
    size = sum(
        footer.row_group(g).column(k).total_compressed_size for g in range(14) for k in range(2)
    )
    splits = splits_of(PARQUET, "x", [path], {}, size // 5, Edge("t", 60))
    assert 4 <= len(splits) <= 10
    shared = 0
    for one, other in pairwise(splits):
        last, first = one.bound("t"), other.bound("t")
        assert last is not None
        assert first is not None
        assert last[1] // 60 < first[0] // 60
        assert other.start >= one.start
        assert other.start in (one.end, one.end - 1)
        shared += other.start < one.end
    assert shared > 2
    assert (splits[0].start, splits[-1].end) == (0, whole.end)
    for one, _, other in zip(splits, splits[1:], splits[2:], strict=False):
        assert one.end <= other.start


def test_row_groups_out_of_order_are_never_shared(tmp_path: Path) -> None:
    times = steady()[2000:] + steady()[:2000]
    path = written(tmp_path / "t.parquet", times, 100)
    plain = splits_of(PARQUET, "x", [path], {}, 2_000)
    assert len(plain) > 5
    assert splits_of(PARQUET, "x", [path], {}, 2_000, Edge("t", 7)) == plain
    for edge in (Edge("absent", 7), Edge("t", 0)):
        assert splits_of(PARQUET, "x", [path], {}, 2_000, edge) == plain


def test_epochs_longer_than_a_split_are_cut_between_row_groups(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", steady(), 100)
    splits = splits_of(PARQUET, "x", [path], {}, 2_000, Edge("t", 10**6))
    assert len(splits) > 5
    assert all(one.end == other.start for one, other in pairwise(splits))
    assert all(split.options == () for split in splits)


def test_only_whole_integers_in_their_own_units_have_bounds(tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([3, -4, 5], pa.int16()),
            "u": pa.array([1, 2**32 - 1, 7], pa.uint32()),
            "large": pa.array([1, 2**63, 7], pa.uint64()),
            "hole": pa.array([1, None, 3]),
            "x": pa.array([1.0, 2.0, 3.0]),
            "when": pa.array([dt.datetime(2020, 1, k) for k in (1, 2, 3)], pa.timestamp("us")),
            "s": pa.array(["1", "2", "3"]),
            "b": pa.array([True, False, True]),
            "nested": pa.array([{"i": 1}, {"i": 2}, {"i": 9}]),
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    [split] = splits_of(PARQUET, "x", [path], {}, WHOLE, Edge("when", 10))
    assert split.bounds == (("i", -4, 5), ("u", 1, 2**32 - 1))
    assert split.bound("when") is None
    clock = Column("i", Type.INT, clock="ms")
    rows = read(split, (clock,), ReadReport())
    assert (min(rows)[0], max(rows)[0]) == split.bound("i")


def test_a_column_has_bounds_in_the_splits_without_its_nulls(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([1, 2, None, 4, 5, 6])})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=2)
    splits = splits_of(PARQUET, "x", [path], {}, 1, Edge("t", 2))
    assert [split.bounds for split in splits] == [(("t", 1, 2),), (), (("t", 5, 6),)]


def test_without_statistics_there_are_no_bounds_and_no_edges(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", steady(), 100, statistics=False)
    splits = splits_of(PARQUET, "x", [path], {}, 2_000, Edge("t", 7))
    assert splits == splits_of(PARQUET, "x", [path], {}, 2_000)
    assert all(split.bounds == () for split in splits)


def test_files_without_rows_are_cut_too(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", [], 10)
    empty = tmp_path / "e.parquet"
    empty.write_bytes(b"")
    splits = splits_of(PARQUET, "x", [path, empty], {}, 100, Edge("t", 7))
    assert [(split.start, split.end, split.bounds) for split in splits] == [(0, 1, ()), (0, 0, ())]


@pytest.mark.parametrize(
    ("connector", "line"), [(CsvConnector(), "{},2\n"), (JsonConnector(), '{{"t": {}}}\n')]
)
def test_texts_have_no_bounds_and_are_cut_as_without_edges(
    tmp_path: Path, connector: Connector, line: str
) -> None:
    path = tmp_path / "t.txt"
    path.write_text("t,v\n" * (connector.kind == "csv") + "".join(map(line.format, range(500))))
    splits = splits_of(connector, "x", [path], {}, 400, Edge("t", 7))
    assert len(splits) > 5
    assert splits == splits_of(connector, "x", [path], {}, 400)
    assert all(split.bounds == () for split in splits)
