"""Growing tables: only whole records are offered, and together they are what a batch reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import POSITION, Column, Edge
from terascope.connectors.live import LinkClock
from terascope.types import Type
from tests.connectors.live_reading import Run, batch_rows, live, read, replay

CLOCK = {"t": LinkClock("ts", "s")}
COLUMNS = (Column(POSITION, Type.LLONG), Column("ts", Type.LLONG), Column("text", Type.STRING))
CSV = b'ts,text\n5,plain\n6,"two\nlines"\n7,"a ""quote"""\r\n9,last\n'
JSON = b"".join(json.dumps({"ts": t, "text": f"n{t}"}).encode() + b"\n" for t in (5, 6, 8))


@pytest.mark.parametrize(
    ("kind", "content", "count"), [("csv", CSV, 4), ("json", JSON, 3)], ids=["csv", "json"]
)
def test_a_text_that_grows_byte_by_byte(
    tmp_path: Path, kind: str, content: bytes, count: int
) -> None:
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(b"")
    run = Run([f"t={kind}:{path}"], tmp_path / "journal", clocks=CLOCK)
    given = []
    for byte in content:
        with path.open("ab") as file:
            file.write(bytes([byte]))
        rows, report = read(run.step(), COLUMNS)
        assert not report.malformed
        given.append(len(rows))
    assert sorted(given, reverse=True)[: count + 1] == [1] * count + [0]
    expected, _ = batch_rows(run, COLUMNS)
    assert len(expected) == count
    assert read(run.all_splits, COLUMNS)[0] == expected
    times = [row[1] for row in expected]
    assert [split.bound("ts") for split in run.all_splits] == [(t, t) for t in times]
    assert run.offset.link("t").seen == {"ts": (times[0], times[-1])}


def test_a_last_line_without_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a.csv").write_text("ts,text\n1,x\n2,y")
    run = Run([f"t=csv:{folder}"], tmp_path / "journal", clocks=CLOCK)
    for _ in range(4):
        run.step()
        run.wall.pass_seconds(3)
    assert [row[1] for row in read(run.all_splits, COLUMNS)[0]] == [1]
    (folder / "b.csv").write_text("ts,text\n3,z\n4,w")
    run.step()
    run.step()
    assert [row[1] for row in read(run.all_splits, COLUMNS)[0]] == [1, 3, 2]
    run.settings = live(until_idle=True)
    run.reopen()
    run.step_until_ended()
    assert [row[1] for row in read(run.all_splits, COLUMNS)[0]] == [1, 3, 2, 4]


def test_until_idle_reads_what_a_batch_reads(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a.csv").write_bytes(CSV)
    (folder / "b.csv.gz").write_bytes(gzip.compress(CSV))
    (folder / "c.csv").write_bytes(b"")
    (folder / "d.csv").write_bytes(b"ts,text\n")
    (folder / "e.csv").write_bytes(CSV[:-1])
    run = Run([f"t=csv:{folder}"], tmp_path / "journal", live(until_idle=True), CLOCK)
    run.step_until_ended()
    expected, counted = batch_rows(run, COLUMNS)
    rows, report = read(run.all_splits, COLUMNS)
    assert sorted(rows) == sorted(expected)
    assert len(rows) == 12
    assert report.malformed == counted.malformed
    assert run.offset.link("t").seen == {"ts": (5, 9)}


def test_a_row_without_a_time_leaves_its_split_without_bounds(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(JSON)
    run = Run([f"t=json:{path}"], tmp_path / "journal", live(replay_limit_ns=None), clocks=CLOCK)
    run.step()
    assert run.offset.link("t").seen == {"ts": (5, 8)}
    assert run.offset.link("t").quiet_ns == run.wall.ns
    with path.open("ab") as file:
        file.write(b'{"text": "timeless"}\n')
    (split,) = run.step()
    assert split.bounds == ()
    assert run.offset.link("t").seen == {}
    with path.open("ab") as file:
        file.write(b'{"ts": 9}\n')
    run.step()
    assert run.offset.link("t").seen == {}, "once dropped, dropped"


def test_times_written_as_dates_and_sources_without_a_clock(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("ts,text\n2020-01-01T00:00:00Z,a\n2020-01-01T00:00:01Z,b\n")
    clocks = {"t": LinkClock("ts", "ms"), "u": None}
    run = Run([f"t=csv:{path}", f"u=csv:{path}"], tmp_path / "journal", clocks=clocks)
    splits = {split.interface: split for split in run.step()}
    assert splits["t"].bound("ts") == (1_577_836_800_000, 1_577_836_801_000)
    assert splits["u"].bounds == ()


def test_splits_end_with_epochs(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("ts,text\n" + "".join(f"{k // 10},row {k}\n" for k in range(1000)))
    edge = Edge("ts", 5)
    run = Run([f"t=csv:{path}"], tmp_path / "journal", live(split_bytes=800), CLOCK, edge)
    bounds = [split.bound("ts") or (0, 0) for split in run.step()]
    assert len(bounds) > 5
    assert all(after[0] % 5 == 0 for after in bounds[1:])
    assert read(run.all_splits, COLUMNS)[0] == batch_rows(run, COLUMNS)[0]


def test_a_missing_clock_stalls_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("when,text\n1,x\n")
    run = Run([f"t=csv:{path}"], tmp_path / "journal", clocks=CLOCK)
    assert run.step() == []
    assert "has no column 'ts'" in (run.links.states()[0].stalled or "")


def parquet(path: Path, rows: int, group: int, first: int = 0) -> None:
    times = [first + k // 10 for k in range(rows)]
    table = pa.table({"ts": pa.array(times, pa.int64()), "text": [f"row {k}" for k in range(rows)]})
    pq.write_table(table, path, row_group_size=group)


def test_parquet_is_offered_when_its_footer_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    parquet(tmp_path / "made", 100, 25)
    content = (tmp_path / "made").read_bytes()
    path = folder / "a.parquet"
    run = Run([f"t=parquet:{folder}"], tmp_path / "journal", clocks=CLOCK)
    for size in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert run.step() == []
    path.write_bytes(content)
    assert read(run.step(), COLUMNS)[0] == batch_rows(run, COLUMNS)[0]
    assert run.offset.link("t").seen == {"ts": (0, 9)}
    assert run.step() == []


def test_timestamps_of_parquet_are_read_for_their_bounds(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"ts": pa.array([5_000, 7_000], pa.timestamp("ms"))}), path)
    run = Run([f"t=parquet:{path}"], tmp_path / "journal", clocks=CLOCK)
    (split,) = run.step()
    assert split.bound("ts") == (5, 7)


@pytest.mark.parametrize("speed", ["1x", "max"])
def test_a_replay_of_parquet_reads_every_row_once(tmp_path: Path, speed: str) -> None:
    path = tmp_path / "rows.parquet"
    parquet(path, 1000, 300)
    run = Run([f"t=parquet:{path}"], tmp_path / "journal", replay(speed), CLOCK)
    run.step_until_ended(0.5)
    rows, _ = read(run.all_splits, COLUMNS)
    assert rows == batch_rows(run, COLUMNS)[0]
    if speed == "1x":
        spans = [split.bound("ts") or (0, 99) for split in run.all_splits]
        assert all(high == low for low, high in spans), "a second is the finest tick"
