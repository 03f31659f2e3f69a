"""Replays: a trace at its own pace, faster, or as fast as can be."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.connectors.base import Column, Edge, Split
from terascope.connectors.file_identity import FILE_OPTION
from terascope.connectors.live import LinkClock, Speed
from terascope.connectors.live.journal import FILE_NAME
from terascope.diagnostic import SourceError
from terascope.types import Type
from tests.connectors.live_reading import PLACES, SECOND, Run, batch_rows, read, replay
from tests.connectors.packet_bytes import Frame, ethernet, ipv4, pcap, tcp

FRAME = ethernet(ipv4(tcp(payload=b"z" * 30)))
T0 = 1_600_000_000
COLUMNS = (Column("#pos", Type.LLONG), Column("ts", Type.LLONG))
WITH_LINK = (*PLACES, Column("interface", Type.STRING))


def trace(path: Path, seconds: float, per_second: int = 20, start: float = 0.0) -> Path:
    """Evenly spaced packets."""
    count = round(seconds * per_second)
    micros = [round((start + k / per_second) * 1e6) for k in range(count)]
    path.write_bytes(pcap([Frame(FRAME, T0 + m // 10**6, m % 10**6) for m in micros]))
    return path


def time_of(row: tuple[object, ...]) -> int:
    assert isinstance(row[1], int)
    return row[1]


def newest(run: Run) -> int:
    """The last time of the trace that was given."""
    return max(split.bound("timestamp")[1] for split in run.all_splits)  # type: ignore[index]


@pytest.mark.parametrize("factor", [1.0, 10.0, 0.5])
def test_a_paced_replay_follows_its_clock(tmp_path: Path, factor: float) -> None:
    path = trace(tmp_path / "trace.pcap", 30)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", replay(f"{factor}x"))
    run.step()
    elapsed = 0.0
    while not run.offset.ended:
        run.wall.pass_seconds(0.25)
        elapsed += 0.25
        run.step()
        clock = T0 * SECOND + round(min(elapsed * factor, 30) * SECOND)
        assert newest(run) <= clock
        assert newest(run) >= clock - 0.5 * factor * SECOND, "pieces are small enough"
    assert elapsed == pytest.approx(30 / factor, abs=0.3)
    assert read(run.all_splits)[0] == batch_rows(run)[0]
    assert len(run.all_splits) >= 15


def test_the_clock_of_the_offset_is_that_of_the_trace(tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.pcap", 10)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", replay("2x"))
    run.step()
    assert (run.offset.tick, run.offset.now_ns) == (T0, T0 * SECOND)
    run.wall.pass_seconds(2)
    run.step()
    assert run.offset.now_ns == (T0 + 4) * SECOND
    # The piece from 4.0 s on waits, so all before it is admitted.
    assert run.offset.link("eth0").quiet_ns == (T0 + 4) * SECOND
    assert newest(run) < (T0 + 4) * SECOND


def test_as_fast_as_can_be(tmp_path: Path) -> None:
    first = trace(tmp_path / "first.pcap", 20)
    second = trace(tmp_path / "second.pcap", 10, 5, 3.0)
    settings = replay("max", split_bytes=4000, most_bytes=9000)
    edge = Edge("time", 1)
    run = Run([f"a=pcap:{first}", f"b=pcap:{second}"], tmp_path / "journal", settings, edge=edge)
    given: list[tuple[object, ...]] = []
    all_rows = batch_rows(run, WITH_LINK)[0]
    while not run.offset.ended:
        batch = run.step()
        assert batch, "it never waits"
        given += read(batch, WITH_LINK)[0]
        rest = set(all_rows) - set(given)
        first_left = min(time_of(row) for row in rest) if rest else max(map(time_of, given))
        assert run.offset.now_ns == first_left // SECOND * SECOND
        assert {link.quiet_ns for link in run.offset.links.values()} == {run.offset.now_ns}
    assert len(run.given) > 5
    assert len(given) == len(set(given)) == len(all_rows) == 450
    starts = [split.bound("timestamp")[0] for split in run.all_splits]  # type: ignore[index]
    assert all(start % SECOND == 0 for start in starts), "splits end where seconds do"


def test_a_replay_is_of_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    trace(folder / "a.pcap", 2)
    (folder / "b.pcap.gz").write_bytes(gzip.compress(trace(tmp_path / "b", 2, 20, 2).read_bytes()))
    run = Run([f"eth0=pcap:{folder}"], tmp_path / "journal", replay("1x"))
    expected = batch_rows(run)[0]
    run.step()
    trace(folder / "c.pcap", 2, 20, 4)
    run.step()
    run.reopen()
    run.step_until_ended(0.5)
    assert read(run.all_splits)[0] == expected


def test_packed_files_are_paced_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap.gz"
    path.write_bytes(gzip.compress(trace(tmp_path / "trace.pcap", 6).read_bytes()))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", replay("1x"))
    rows = []
    for second in range(8):
        rows += read(run.step())[0]
        assert len(rows) == pytest.approx(min(second * 20, 120), abs=5)
        run.reopen()
        run.links.latest(run.offset)  # it learns from the offset how far the replay was
        run.wall.pass_seconds(1)
    assert run.offset.ended
    assert rows == batch_rows(run)[0]
    spool = tmp_path / "journal" / "spool" / "eth0"
    assert len(list(spool.iterdir())) == 1
    run.links.commit(run.offset)
    assert list(spool.iterdir()) == []


def test_a_damaged_packed_file_is_told_by_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap.gz"
    path.write_bytes(gzip.compress(trace(tmp_path / "trace.pcap", 6).read_bytes())[:-8])
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", replay("1x"))
    run.step_until_ended(1)
    expected, counted = batch_rows(run)
    rows, report = read(run.all_splits)
    assert (rows, report.malformed) == (expected, counted.malformed)
    assert counted.malformed


def without_identity(split: Split) -> tuple[tuple[str, str], ...]:
    return tuple(option for option in split.options if option[0] != FILE_OPTION)


def test_the_fastest_replay_has_the_splits_of_a_batch(tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.pcap", 60)
    edge = Edge("time", 10)
    settings = replay("max", split_bytes=10_000)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", settings, edge=edge)
    run.step_until_ended()
    (interface,) = run.interfaces()
    found = [replace(s, options=without_identity(s)) for s in run.all_splits]
    assert found == interface.splits(10_000, edge)
    assert len(run.all_splits) > 5


def test_a_restart_goes_on_where_the_replay_was(tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.pcap", 20)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", replay("1x"))
    for _ in range(12):
        run.step()
        run.wall.pass_seconds(0.5)
    assert run.offset.now_ns == (T0 + 5) * SECOND
    run.links.commit(run.offsets[-3])
    run.wall.pass_seconds(3600)
    run.reopen()
    run.step()
    assert newest(run) < (T0 + 6) * SECOND, "an hour on the wall is none of the trace"
    run.wall.pass_seconds(2)
    run.step()
    assert (T0 + 6.5) * SECOND < newest(run) < (T0 + 8) * SECOND
    run.step_until_ended(0.5)
    assert read(run.all_splits)[0] == batch_rows(run)[0]


def test_a_crash_while_a_replay_is_planned(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for k in range(4):
        trace(folder / f"{k}.pcap", 2, 20, 2.0 * k)
    run = Run([f"eth0=pcap:{folder}"], tmp_path / "journal", replay("max"))
    expected = batch_rows(run)[0]
    run.links.poll()
    journal = tmp_path / "journal" / FILE_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4 + 2
    for kept in range(len(lines)):
        journal.write_bytes(b"".join(lines[:kept]) + lines[kept][:5])
        again = Run(run.sources, run.folder, run.settings)
        again.step_until_ended()
        assert read(again.all_splits)[0] == expected, kept


def test_links_of_a_replay_share_one_clock(tmp_path: Path) -> None:
    early = trace(tmp_path / "early.pcap", 10)
    late = trace(tmp_path / "late.pcap", 10, 50, 5.0)
    run = Run([f"early=pcap:{early}", f"late=pcap:{late}"], tmp_path / "journal", replay("1x"))
    run.step()
    for _ in range(4):
        run.wall.pass_seconds(1)
        run.step()
    assert {split.interface for split in run.all_splits} == {"early"}
    assert run.offset.link("late").quiet_ns == (T0 + 4) * SECOND, "its first packet is yet to come"
    run.step_until_ended(0.5)
    assert len(read(run.all_splits)[0]) == 200 + 500


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_tables_are_paced_by_their_clock(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"rows.{kind}"
    times = [T0 * 1000 + k * 50 for k in range(200)]
    if kind == "csv":
        path.write_text("ts\n" + "".join(f"{t}\n" for t in times))
    else:
        path.write_text("".join(f'{{"ts": {t}}}\n' for t in times))
    clocks = {"t": LinkClock("ts", "ms")}
    run = Run([f"t={kind}:{path}"], tmp_path / "journal", replay("1x"), clocks)
    run.step()
    for elapsed in range(1, 8):
        run.wall.pass_seconds(1)
        run.step()
        given = [row[1] for row in read(run.all_splits, COLUMNS)[0]]
        assert elapsed * 20 - 5 <= len(given) <= elapsed * 20 + 1
    run.step_until_ended(0.5)
    assert read(run.all_splits, COLUMNS)[0] == batch_rows(run, COLUMNS)[0]


def test_without_a_clock_there_is_no_pace(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("ts\n1\n2\n")
    run = Run([f"t=csv:{path}"], tmp_path / "journal", replay("1x"))
    assert len(run.step()) == 1
    assert run.offset.ended


def test_a_replay_of_nothing_says_so_and_ends(tmp_path: Path) -> None:
    run = Run([f"eth0=pcap:{tmp_path}/nowhere"], tmp_path / "journal", replay("1x"))
    run.step()
    assert "no such file" in (run.links.states()[0].stalled or "")
    assert run.offset.ended


def test_speeds() -> None:
    assert Speed.parse(None) is None
    assert Speed.parse("max") == Speed(None)
    assert [str(Speed.parse(text)) for text in ("1x", "10X", "0.5x", "MAX")] == [
        "1x", "10x", "0.5x", "max",
    ]  # fmt: skip
    for text in ("", "x", "0x", "-1x", "10", "fast", "infx", "nanx"):
        with pytest.raises(SourceError, match="no speed"):
            Speed.parse(text)
