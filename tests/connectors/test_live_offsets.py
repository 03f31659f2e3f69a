"""Offsets of live sources: heartbeats, quiet links, restarts, and a journal that stays small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.connectors.base import Edge
from terascope.connectors.dataframe import DataFrameInterface
from terascope.connectors.live import LinkClock, Links, LiveSettings, Offset
from terascope.connectors.live.journal import FILE_NAME
from terascope.diagnostic import SourceError
from tests.connectors.live_reading import SECOND, START, Run, Wall, batch_rows, live, read
from tests.connectors.packet_bytes import Frame, ethernet, ipv4, pcap, tcp

FRAME = ethernet(ipv4(tcp(payload=b"y" * 30)))
RECORD = 16 + len(FRAME)
NOW = 1_700_000_000
HEADER = pcap([])


def records(*seconds: int) -> bytes:
    return pcap([Frame(FRAME, second, 0) for second in seconds])[len(HEADER) :]


def growing(folder: Path, name: str = "eth0") -> Path:
    path = folder / f"{name}.pcap"
    path.write_bytes(HEADER)
    return path


def add(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_silence_moves_the_offset_once_a_heartbeat(tmp_path: Path) -> None:
    run = Run([f"eth0=pcap:{growing(tmp_path)}"], tmp_path / "journal", live(replay_limit_ns=None))
    run.step()
    assert (run.offset.tick, run.offset.now_ns) == (NOW, NOW * SECOND)
    for _ in range(3):
        run.wall.pass_seconds(0.3)
        before = run.offset
        run.step()
        assert run.offset == before
    run.wall.pass_seconds(0.3)
    run.step()
    assert run.offset.tick == NOW + 1
    assert run.offset.link("eth0").quiet_ns == (NOW + 1) * SECOND
    assert run.given == [[]] * 5


def test_asked_twice_it_says_the_same(tmp_path: Path) -> None:
    """But for when what it gives arrived: that is when it was asked."""
    path = growing(tmp_path)
    add(path, records(NOW - 5))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    start = run.offset
    run.step()
    run.wall.pass_seconds(0.4)
    run.links.poll()
    again = run.links.latest(start)
    assert again.arrived_ns == run.offset.arrived_ns + 400_000_000
    assert replace(again, arrived_ns=run.offset.arrived_ns) == run.offset
    assert run.links.latest(run.offset) == run.offset


def test_without_heartbeats_only_data_moves_the_offset(tmp_path: Path) -> None:
    path = growing(tmp_path)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", live(heartbeat_ns=0))
    run.step()
    run.wall.pass_seconds(100)
    run.step()
    assert run.offset == run.offsets[0]
    add(path, records(NOW))
    run.step()
    assert run.offset.tick == 0
    assert run.offset.link("eth0").count == 1
    assert run.offset.link("eth0").quiet_ns is None


def test_a_backlog_keeps_a_link_from_being_quiet(tmp_path: Path) -> None:
    path = growing(tmp_path)
    settings = live(split_bytes=RECORD, most_bytes=RECORD)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", settings)
    run.step()
    add(path, records(NOW + 1, NOW + 2, NOW + 3))
    run.wall.pass_seconds(10)
    quiet = []
    for _ in range(3):
        assert len(run.step()) == 1
        quiet.append(run.offset.link("eth0").quiet_ns)
    # Everything older than the first that waits is admitted; with none waiting, than the look.
    assert quiet == [(NOW + 2) * SECOND, (NOW + 3) * SECOND, (NOW + 10) * SECOND]


def test_old_data_do_not_take_back_what_was_said(tmp_path: Path) -> None:
    path = growing(tmp_path)
    settings = live(split_bytes=RECORD, most_bytes=RECORD, replay_limit_ns=None)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", settings)
    run.step()
    add(path, records(NOW - 100, NOW - 99))
    run.wall.pass_seconds(2)
    run.step()
    assert run.offset.link("eth0").quiet_ns == NOW * SECOND


def test_the_time_is_taken_before_the_look(tmp_path: Path) -> None:
    path = growing(tmp_path)

    class Passing(Wall):
        """Time goes by whenever somebody asks for it."""

        def __call__(self) -> int:
            self.ns += 2 * SECOND
            return self.ns

    wall = Passing()
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", live(replay_limit_ns=None), wall=wall)
    run.step()
    assert run.offset.link("eth0").quiet_ns == (NOW + 2) * SECOND
    assert wall.ns > (NOW + 2) * SECOND


def test_something_torn_holds_the_link_back_while_it_is_written(tmp_path: Path) -> None:
    path = growing(tmp_path)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", live(replay_limit_ns=None))
    run.step()
    add(path, records(NOW)[:-1])
    for _ in range(4):
        run.wall.pass_seconds(3)
        run.step()
    assert run.offset.link("eth0").quiet_ns == NOW * SECOND
    run.wall.pass_seconds(3)
    run.step()
    assert run.offset.link("eth0").quiet_ns == (NOW + 15) * SECOND, "it was given up"
    assert "last record is not complete" in (run.links.states()[0].stalled or "")
    add(path, records(NOW)[-1:])
    assert len(run.step()) == 1
    assert run.links.states()[0].stalled is None


def test_a_clock_that_is_set_back_stands(tmp_path: Path) -> None:
    run = Run([f"eth0=pcap:{growing(tmp_path)}"], tmp_path / "journal")
    run.step()
    before = run.offset
    run.wall.pass_seconds(-50)
    run.step()
    run.reopen()
    run.step()
    assert run.offset == before


def test_two_links_are_admitted_by_time_under_the_limit(tmp_path: Path) -> None:
    slow, fast = growing(tmp_path, "slow"), growing(tmp_path, "fast")
    add(slow, records(*range(NOW, NOW + 100, 10)))
    add(fast, records(*range(NOW, NOW + 100)))
    settings = live(split_bytes=RECORD, most_bytes=12 * RECORD)
    run = Run([f"slow=pcap:{slow}", f"fast=pcap:{fast}"], tmp_path / "journal", settings)
    while run.step():
        highs = [link.seen["time"][1] for link in run.offset.links.values() if link.seen]
        assert max(highs) - min(highs) <= 10, "no link runs ahead"
    sizes = [len(batch) for batch in run.given[:-1]]
    assert max(sizes) <= 13
    assert len(sizes) > 8
    for batch in run.given:
        starts = [(split.bound("time") or (0, 0))[0] for split in batch]
        assert starts == sorted(starts)
    assert len(read(run.all_splits)[0]) == 110


def test_one_split_is_admitted_however_large(tmp_path: Path) -> None:
    path = growing(tmp_path)
    add(path, records(NOW, NOW + 1))
    settings = live(split_bytes=RECORD, most_bytes=1)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", settings)
    assert [len(run.step()) for _ in range(3)] == [1, 1, 0]


def test_a_restart_gives_the_same_splits_and_goes_on(tmp_path: Path) -> None:
    path = growing(tmp_path)
    settings = live(split_bytes=3 * RECORD, until_idle=True)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", settings)
    for second in range(0, 40, 4):
        add(path, records(*range(NOW + second, NOW + second + 4)))
        run.step()
    old = list(zip(run.offsets, run.offsets[1:], strict=False))
    before = [run.links.splits(*pair) for pair in old]
    assert sum(map(len, before)) >= 10
    add(path, records(NOW + 50))
    run.reopen()
    assert [run.links.splits(*pair) for pair in old] == before
    run.step_until_ended()
    assert read(run.all_splits)[0] == batch_rows(run)[0]
    assert len(batch_rows(run)[0]) == 41


def test_what_was_found_but_not_admitted_is_found_after_a_restart(tmp_path: Path) -> None:
    path = growing(tmp_path)
    add(path, records(NOW, NOW + 1, NOW + 2))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    run.links.poll()
    run.reopen()
    assert run.links.states()[0].backlog_splits == 1
    assert len(read(run.step())[0]) == 3
    assert run.links.states()[0].backlog_bytes == 0


def test_without_a_look_there_is_what_the_journal_has(tmp_path: Path) -> None:
    path = growing(tmp_path)
    add(path, records(NOW - 100))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    run.links.poll()
    run.reopen()
    offset = run.links.latest(run.links.initial())
    assert (offset.link("eth0").count, offset.tick) == (1, 0)
    assert offset.link("eth0").quiet_ns is None, "nobody has looked"


def test_a_line_torn_by_a_crash_was_never_written(tmp_path: Path) -> None:
    path = growing(tmp_path)
    add(path, records(NOW))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    run.step()
    journal = tmp_path / "journal" / FILE_NAME
    whole = journal.read_bytes()
    add(path, records(NOW + 1))
    run.links.poll()
    journal.write_bytes(journal.read_bytes()[: len(whole) + 20])
    run.reopen()
    assert len(read(run.step())[0]) == 1
    assert read(run.all_splits)[0] == batch_rows(run)[0]
    run.reopen()
    assert run.step() == []


def test_commit_keeps_the_journal_small(tmp_path: Path) -> None:
    path = growing(tmp_path)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    journal = tmp_path / "journal" / FILE_NAME
    largest = 0
    for k in range(400):
        add(path, records(NOW + k))
        run.step()
        run.links.commit(run.offset)
        largest = max(largest, len(journal.read_bytes().splitlines()))
    assert run.offset.link("eth0").count == 400
    assert largest < 150
    run.reopen()
    assert run.links.splits(run.offset, run.offset) == []
    add(path, records(NOW + 400))
    assert len(read(run.step())[0]) == 1
    assert run.offset.link("eth0").count == 401
    assert run.offset.link("eth0").seen["time"] == (NOW, NOW + 400)
    with pytest.raises(SourceError, match="forgotten"):
        run.links.splits(run.offsets[0], run.offset)


def test_committing_again_or_less_changes_nothing(tmp_path: Path) -> None:
    path = growing(tmp_path)
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    for k in range(5):
        add(path, records(NOW + k))
        run.step()
    run.links.commit(run.offsets[4])
    run.links.commit(run.offsets[2])
    run.links.commit(run.offsets[4])
    assert run.links.splits(*run.offsets[4:6]) == run.given[4]


def test_a_deleted_journal_is_told(tmp_path: Path) -> None:
    path = growing(tmp_path)
    add(path, records(NOW))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    run.step()
    (tmp_path / "journal" / FILE_NAME).unlink()
    run.reopen()
    with pytest.raises(SourceError, match="was it deleted"):
        run.links.splits(*run.offsets)


def test_offsets_survive_json(tmp_path: Path) -> None:
    path = growing(tmp_path)
    add(path, records(NOW))
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    run.step()
    assert run.offset.link("eth0").seen
    assert Offset.from_json(json.loads(json.dumps(run.offset.to_json()))) == run.offset


def test_a_bad_interface_never_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = growing(tmp_path, "bad"), growing(tmp_path, "good")
    add(good, records(NOW))
    run = Run([f"bad=pcap:{bad}", f"good=pcap:{good}"], tmp_path / "journal")
    stat = Path.stat

    def broken(path: Path, **how: bool) -> object:
        if path.name == "bad.pcap":
            raise PermissionError(13, "Permission denied")
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", broken)
    assert [split.interface for split in run.step()] == ["good"]
    assert "Permission denied" in (run.links.states()[0].stalled or "")


def test_what_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    odd = DataFrameInterface("df", "dataframe", "df")
    with pytest.raises(SourceError, match="cannot be followed"):
        Links([odd], {}, None, LiveSettings(), tmp_path)


@pytest.mark.parametrize("kind", ["pcap", "csv"])
@pytest.mark.parametrize("edge", [None, Edge("time", 60)])
def test_a_micro_batch_reads_no_more_than_its_limit(
    tmp_path: Path, kind: str, edge: Edge | None
) -> None:
    """Also when splits would be larger than that: by default they are ten times the limit."""
    limit = 400_000
    path = tmp_path / f"t.{kind}"
    if kind == "pcap":
        frame = ethernet(ipv4(tcp(payload=b"x" * 400)))
        path.write_bytes(pcap([Frame(frame, START + k // 20, 0) for k in range(5000)]))
    else:
        rows = "".join(f"{START + k // 200},{'x' * 20}\n" for k in range(60_000))
        path.write_text("time,text\n" + rows)
    clock = LinkClock("time", "s")
    run = Run(
        [f"e={kind}:{path}"], tmp_path / "links", live(most_bytes=limit, until_idle=True),
        {"e": clock}, edge,
    )  # fmt: skip
    run.step_until_ended()
    sizes = [sum(split.end - split.start for split in batch) for batch in run.given]
    assert sum(sizes) == path.stat().st_size
    assert max(sizes) <= limit + 1000  # a split ends with a record
    assert len([size for size in sizes if size]) >= path.stat().st_size // limit
