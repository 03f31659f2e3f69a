"""Subscribers get every batch once, when it is complete."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import terascope
from terascope.diagnostic import StreamError
from terascope.operate.subscription import Subscription, start_of_last
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import RowFormat
from terascope.streaming.state.runs import Run, announced
from terascope.types import Type
from tests.stream.written_streams import READABLE, ROWS, WrittenStream

FORMATS: tuple[RowFormat, ...] = ("parquet", "csv", "ndjson")
NUMBERS = (Field("n", Type.INT),)


def rows_of(*numbers: int) -> list[tuple[object, ...]]:
    return [(number,) for number in numbers]


@pytest.fixture
def stream(tmp_path: Path) -> WrittenStream:
    """A stream of numbers that has its header."""
    made = WrittenStream(tmp_path / "n", "parquet", NUMBERS)
    made.header()
    return made


def numbers(subscription: Subscription) -> list[int]:
    return [row["n"] for row in subscription.rows()]


class Steps:
    """What happens at each wait of a subscription; after the last step the run is over."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps: Iterator[Callable[[], object]] = iter(steps)
        self.left = len(steps)

    def wait(self) -> None:
        self.left -= 1
        next(self.steps)()

    def is_over(self) -> bool:
        return self.left == 0

    def following(self, folder: Path, since_batch: int | None = None) -> Subscription:
        return Subscription(folder, since_batch=since_batch, is_over=self.is_over, wait=self.wait)


# ---- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_same_rows(tmp_path: Path, format: RowFormat) -> None:
    stream = WrittenStream(tmp_path, format)
    stream.header()
    stream.add(0, ROWS[:2], ROWS[2:])
    stream.add(1)
    stream.add(2, [], ROWS[:1])
    first, empty, last = Subscription(tmp_path, follow=False, from_start=True)
    assert first.to_pylist() == READABLE
    assert last.to_pylist() == READABLE[:1]
    assert empty.num_rows == 0
    assert first.schema == empty.schema == last.schema
    expected = [pa.int64(), pa.string(), pa.float64(), pa.string(), pa.bool_(), pa.string()]
    assert first.schema.types == expected


@pytest.mark.parametrize("format", FORMATS)
def test_one_column_with_nulls(tmp_path: Path, format: RowFormat) -> None:
    stream = WrittenStream(tmp_path, format, NUMBERS)
    stream.header()
    stream.add(0, [(1,), (None,), (3,)])
    assert [row["n"] for row in Subscription(tmp_path, follow=False, from_start=True).rows()] == [
        *(1, None, 3)
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_that_are_none(tmp_path: Path, format: RowFormat) -> None:
    stream = WrittenStream(tmp_path, format, (Field("f", Type.FLOAT), Field("n", Type.INT)))
    stream.header()
    stream.add(0, [(math.nan, 1), (math.inf, 2), (-math.inf, 3)])
    found = [row["f"] for row in Subscription(tmp_path, follow=False, from_start=True).rows()]
    if format == "ndjson":  # JSON has none of them
        assert found == [None, None, None]
    else:
        assert math.isnan(found[0])
        assert found[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize("format", FORMATS)
def test_a_long_value(tmp_path: Path, format: RowFormat) -> None:
    stream = WrittenStream(tmp_path, format, (Field("s", Type.STRING), Field("n", Type.INT)))
    stream.header()
    text = "x\n" * 1_000_000
    stream.add(0, [(text, 1), ("short", 2)])
    assert [row["s"] for row in Subscription(tmp_path, follow=False, from_start=True).rows()] == [
        *(text, "short")
    ]


# ---- where it begins -----------------------------------------------------------------------------


def test_from_the_start_since_a_batch_or_only_what_is_new(stream: WrittenStream) -> None:
    for number in range(4):
        stream.add(number, rows_of(number))
    assert numbers(Subscription(stream.folder, follow=False, from_start=True)) == [0, 1, 2, 3]
    assert numbers(Subscription(stream.folder, follow=False, since_batch=1)) == [2, 3]
    only_new = Subscription(stream.folder, follow=False)
    assert only_new.header is not None
    stream.add(4, rows_of(40, 41))
    assert numbers(only_new) == [40, 41]
    assert numbers(only_new) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(0, (3, 0)), (1, (1, 0)), (2, (0, 1)), (3, (0, 0)), (5, (-1, 1)), (6, (-1, 0)), (9, (-1, 0))],
)
def test_where_the_last_rows_begin(
    stream: WrittenStream, rows: int, expected: tuple[int, int]
) -> None:
    stream.add(0, rows_of(1, 2, 3))
    stream.add(1, rows_of(4, 5))
    stream.add(2, rows_of(6))
    stream.add(3)
    assert start_of_last(stream.folder, rows) == expected


# ---- following -----------------------------------------------------------------------------------


def test_a_manifest_that_grows_is_followed_to_the_end_of_the_run(tmp_path: Path) -> None:
    """Also one that is not there yet, and lines that are written in two pieces."""
    folder = tmp_path / "later"
    made: list[WrittenStream] = []
    torn = []

    def begin() -> None:
        made.append(WrittenStream(folder, "csv", NUMBERS))
        made[0].header()
        made[0].add(0, rows_of(1))

    def half() -> None:
        line = made[0].batch(1, rows_of(2))
        made[0].append(line[:-20])
        torn.append(line[-20:])

    def but_the_end() -> None:
        made[0].append(torn[0][:-1])

    def other_half() -> None:
        made[0].append("\n")
        made[0].add(2, rows_of(3))

    seen: list[tuple[int, int]] = []
    steps = Steps(lambda: None, begin, half, but_the_end, other_half)
    for _, table in steps.following(folder).batches():
        seen += [(steps.left, value) for value in table.column("n").to_pylist()]
    assert seen == [(3, 1), (0, 2), (0, 3)]


def test_a_new_header_changes_the_columns(stream: WrittenStream) -> None:
    stream.add(0, rows_of(1))
    stream.fields = (Field("n", Type.INT), Field("who", Type.STRING))
    stream.format = "ndjson"
    stream.header()
    stream.add(1, [(2, "me")])
    first, second = Subscription(stream.folder, follow=False, from_start=True)
    assert first.column_names == ["n"]
    assert second.to_pylist() == [{"n": 2, "who": "me"}]


def test_a_batch_that_is_written_again_comes_once(stream: WrittenStream) -> None:
    stream.add(0, rows_of(1))
    stream.add(1, rows_of(2))
    stream.add(1, rows_of(2))
    stream.add(2, rows_of(3))
    assert numbers(Subscription(stream.folder, follow=False, from_start=True)) == [1, 2, 3]


def test_results_that_are_begun_anew_are_read_anew(stream: WrittenStream) -> None:
    stream.add(0, rows_of(1))
    stream.add(1, rows_of(2))

    def begin_anew() -> None:
        stream.manifest.unlink()
        stream.header()
        stream.add(0, rows_of(7))

    assert numbers(Steps(begin_anew).following(stream.folder, since_batch=-1)) == [1, 2, 7]


def test_without_a_manifest_there_is_nothing(tmp_path: Path) -> None:
    assert list(Subscription(tmp_path, follow=False, from_start=True)) == []
    assert start_of_last(tmp_path, 5) == (-1, 0)


# ---- a run, by name ------------------------------------------------------------------------------


def test_subscribe_finds_the_running_set(
    stream: WrittenStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    streams = {"n": str(stream.folder)}
    run = Run(os.getpid(), 1, "n.gsql", str(tmp_path / "state"), str(tmp_path), streams=streams)
    stream.add(0, rows_of(1))
    with announced(run):
        given = terascope.subscribe("n", from_start=True)
        # It waits for more while the run lives: only the first is asked for.
        assert next(given.rows()) == {"n": 1}
    later = terascope.subscribe("n", run.checkpoint, follow=False, since_batch=-1)
    assert list(later.rows()) == [{"n": 1}]
    with pytest.raises(StreamError, match="no set is running"):
        terascope.subscribe("n")


# ---- mistakes ------------------------------------------------------------------------------------


def all_of(stream: WrittenStream) -> list[pa.Table]:
    return list(Subscription(stream.folder, follow=False, from_start=True))


def test_results_that_somebody_removed(stream: WrittenStream) -> None:
    stream.add(0, rows_of(1))
    (stream.folder / f"part-{1:032x}.parquet").unlink()
    with pytest.raises(StreamError, match=r"part-0*1\.parquet' is gone"):
        all_of(stream)


def test_results_that_are_not_what_the_manifest_says(stream: WrittenStream) -> None:
    stream.add(0, rows_of(1))
    text = stream.manifest.read_text().replace('"batch": 0, "rows": 1', '"batch": 0, "rows": 2')
    stream.manifest.write_text(text)
    with pytest.raises(StreamError, match="batch 0 of talkers has 1 rows, and its manifest says 2"):
        all_of(stream)
    (stream.folder / f"part-{1:032x}.parquet").write_bytes(b"moon")
    with pytest.raises(StreamError, match=r"cannot read .* as parquet"):
        all_of(stream)


@pytest.mark.parametrize("line", ["moon", "[]", "5", '{"batch": 1}', '{"fields": 3}'])
def test_a_line_that_is_no_entry(stream: WrittenStream, line: str) -> None:
    stream.append(line + "\n")
    with pytest.raises(StreamError, match="has a line that is no entry"):
        all_of(stream)


def test_batches_before_a_header(tmp_path: Path) -> None:
    stream = WrittenStream(tmp_path, "csv", NUMBERS)
    stream.add(0, rows_of(1))
    with pytest.raises(StreamError, match="batches before its header"):
        all_of(stream)


def test_headers_from_the_future(stream: WrittenStream) -> None:
    stream.header(version=2)
    with pytest.raises(StreamError, match="of version 2, and this Terascope reads version 1"):
        all_of(stream)


def test_a_format_that_is_not_read(stream: WrittenStream) -> None:
    stream.header(format="carrier pigeon")
    with pytest.raises(StreamError, match="carrier pigeon, which is not read"):
        all_of(stream)
