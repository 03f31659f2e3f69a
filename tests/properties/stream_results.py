"""What a stream delivered: the rows of all batches that the manifests of its queries name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from terascope.streaming.state.manifest import DeliveredBatch, Header, ManifestReader
from terascope.streaming.state.row_files import read_rows
from terascope.streaming.state.state import Seen
from tests.agreement import Answers
from tests.oracle.compare import assert_same_rows
from tests.properties.declared_orders import assert_in_order, declared_orders
from tests.properties.stream_cases import StreamCase

EMPTY: Final = "empty file"
"""How a file without tuples is counted."""


def assert_delivered(expected: Answers, folder: Path, case: StreamCase) -> None:
    """The folder of results has the rows that were expected, each as often, in every order that is
    declared of them, and no other files.

    Raises:
        AssertionError: it has not; with the seed, the query and the whole set.
    """
    orders = declared_orders(case.compiled)
    for name, answer in expected.items():
        try:
            rows = rows_of(folder / name)
            assert_same_rows(answer.rows, rows, answer.fields)
            names = [f.name for f in answer.fields]
            assert_in_order(rows, names, orders[name], "over all batches")
        except AssertionError as mistake:
            raise AssertionError(
                f"seed {case.seed}, {name}: {mistake}\n"
                f"{case.stops}, tasks {case.tasks}, portion {case.portion}\n{case.text}"
            ) from None


def assert_counted(case: StreamCase, seen: Mapping[str, Seen]) -> None:
    """Every tuple of the files was read once, none was late, none malformed: in = used.

    Raises:
        AssertionError: some were not read, or twice.
    """
    assert seen, "no source was read"
    for name, one in seen.items():
        there = sum(tuples_in(path) for path in case.interfaces[name].files)
        told = f"seed {case.seed}, {name}"
        assert (one.tuples, one.late) == (there, 0), told
        assert set(one.malformed) <= {EMPTY}, told


def tuples_in(path: Path) -> int:
    """Of a file of a case: a line each, but for the header of a CSV file."""
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    lines = len(path.read_text(encoding="utf-8").splitlines())
    return lines - (path.suffix == ".csv")


def rows_of(folder: Path) -> list[tuple[object, ...]]:
    """The rows of one query."""
    header: Header | None = None
    batches: list[int] = []
    rows: list[tuple[object, ...]] = []
    files = {"manifest.jsonl"}
    for entry in ManifestReader(folder).new():
        match entry:
            case Header():
                assert header in (None, entry), "the columns have changed"
                header = entry
            case DeliveredBatch():
                assert header is not None
                batches.append(entry.number)
                for file in entry.files:
                    table = read_rows(folder / file.name, header.format, header.fields)
                    assert table.num_rows == file.rows
                    rows += zip(*(c.to_pylist() for c in table.columns), strict=True)
                    files.add(file.name)
    assert batches == sorted(set(batches)), f"batches come twice or go back: {batches}"
    assert {path.name for path in folder.iterdir()} == files, "files that nobody needs"
    return rows
