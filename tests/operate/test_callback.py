"""A function that is called with the rows of every batch, and what it has taken is kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from terascope.diagnostic import StreamError
from terascope.operate.subscription import (
    REMOVED,
    CallbackSink,
    Retention,
    Subscription,
    removed_until,
    start_of_last,
)
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import GrowingResult
from terascope.types import Type
from tests.stream.written_streams import WrittenStream

FIELDS = (Field("n", Type.UINT),)


class Taking:
    """Stores what it is called with, and fails when told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, list[int]]] = []
        self.fail_at: tuple[str, int] | None = None

    def __call__(self, query: str, batch: int, rows: pa.Table, /) -> None:
        self.calls.append((query, batch, rows.column("n").to_pylist()))
        if (query, batch) == self.fail_at:
            self.fail_at = None
            raise ConnectionError("gone before it could say that it is done")


class Remembering(Taking):
    """Knows from its own store what it has."""

    def last(self, query: str, /) -> int | None:
        return max((b for q, b, _ in self.calls if q == query), default=None)


@pytest.fixture
def streams(tmp_path: Path) -> dict[str, WrittenStream]:
    found = {name: WrittenStream(tmp_path / name, "parquet", FIELDS) for name in ("a", "b/c")}
    for stream in found.values():
        stream.header()
    return found


def sink(callback: Taking, streams: Mapping[str, WrittenStream], keep: bool = True) -> CallbackSink:
    folders = {name: stream.folder for name, stream in streams.items()}
    notes = streams["a"].folder.parent / "notes"
    return CallbackSink(callback, folders, notes, keep)


def test_batches_come_in_order_and_once(streams: dict[str, WrittenStream]) -> None:
    streams["a"].add(0, [(1,)])
    streams["b/c"].add(1, [(5,), (6,)])
    streams["a"].add(2, [(2,)])
    taking = Taking()
    ours = sink(taking, streams)
    assert ours.deliver(2) == 3
    assert taking.calls == [("a", 0, [1]), ("b/c", 1, [5, 6]), ("a", 2, [2])]
    assert ours.deliver(2) == 0
    streams["b/c"].add(3, [(7,)])
    assert ours.deliver(3) == 1
    assert sink(taking, streams).deliver(3) == 0, "another process knows what was taken"


def test_a_batch_that_is_not_acknowledged_comes_again(streams: dict[str, WrittenStream]) -> None:
    for number in range(3):
        streams["a"].add(number, [(number,)])
    taking = Taking()
    taking.fail_at = ("a", 1)
    with pytest.raises(ConnectionError):
        sink(taking, streams).deliver(2)
    sink(taking, streams).deliver(2)
    assert taking.calls == [("a", 0, [0]), ("a", 1, [1]), ("a", 1, [1]), ("a", 2, [2])]


def test_one_that_remembers_gets_every_batch_once(streams: dict[str, WrittenStream]) -> None:
    for number in range(3):
        streams["a"].add(number, [(number,)])
    taking = Remembering()
    taking.fail_at = ("a", 1)
    with pytest.raises(ConnectionError):
        sink(taking, streams).deliver(2)
    sink(taking, streams).deliver(2)
    assert taking.calls == [("a", n, [n]) for n in range(3)]
    assert not (streams["a"].folder.parent / "notes").exists()


# ---- what was taken need not stay ----------------------------------------------------------------


def test_old_files_go_when_they_are_acknowledged(streams: dict[str, WrittenStream]) -> None:
    stream = streams["a"]
    for number in range(105):
        stream.add(number, [(number,)])
    ours = sink(Taking(), streams, keep=False)
    ours.deliver(104)
    assert removed_until(stream.folder) == 4
    assert len(list(stream.folder.glob("*.parquet"))) == 100
    given = Subscription(stream.folder, follow=False, from_start=True).batches()
    assert [batch.number for batch, _ in given] == list(range(5, 105))
    assert start_of_last(stream.folder, 1000) == (-1, 0)
    GrowingResult(stream.folder, "a", "parquet", FIELDS).sweep()
    assert removed_until(stream.folder) == 4, "a restart forgets nothing of it"
    assert sink(Taking(), streams).deliver(104) == 0
    with pytest.raises(StreamError, match="has rows of a up to batch -1, and those up to batch 4"):
        sink(Remembering(), streams)


def test_nothing_goes_that_is_new_or_somebodys(streams: dict[str, WrittenStream]) -> None:
    stream = streams["a"]
    for number in range(6):
        stream.add(number, [(number,)])
    keeping = Retention(stream.folder, kept=2)
    assert keeping.remove(acknowledged=-1, newest=5) == 0
    assert keeping.remove(acknowledged=1, newest=5) == 2
    assert keeping.remove(acknowledged=5, newest=5) == 2
    assert sorted(int(row["n"]) for row in rows_of(stream.folder)) == [4, 5]
    assert (stream.folder / REMOVED).exists()
    for number in range(6):
        streams["b/c"].add(number, [(number,)])
    sink(Taking(), {"a": streams["b/c"]}).deliver(500)
    assert not (streams["b/c"].folder / REMOVED).exists()


def test_a_file_that_somebody_removed_is_told(streams: dict[str, WrittenStream]) -> None:
    stream = streams["a"]
    for number in range(3):
        stream.add(number, [(number,)])
    Retention(stream.folder, kept=0).remove(acknowledged=0, newest=2)
    for path in stream.folder.glob("*.parquet"):
        path.unlink()
    with pytest.raises(StreamError, match="is gone: somebody removed results"):
        rows_of(stream.folder)


def rows_of(folder: Path) -> list[dict[str, int]]:
    return list(Subscription(folder, follow=False, from_start=True).rows())
