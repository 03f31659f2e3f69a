"""Growing captures: only whole records are offered, and together they are what a batch reads."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from tests.connectors.live_reading import Run, batch_rows, live, read
from tests.connectors.packet_bytes import (
    Frame,
    described,
    enhanced,
    ethernet,
    ipv4,
    pcap,
    section,
    simple,
    tcp,
)

FRAME = ethernet(ipv4(tcp(payload=b"x" * 5)))


def small_pcap(count: int = 4) -> bytes:
    return pcap([Frame(FRAME, 1_600_000_000 + k, k * 1000) for k in range(count)])


def small_pcapng() -> bytes:
    return b"".join(
        (
            section(),
            described(resolution=9),
            enhanced(FRAME, 1_600_000_000_000_000_000),
            described(resolution=6),
            enhanced(FRAME, 1_600_000_001_000_000, 1),
            simple(FRAME),
            section(),
            described(resolution=9),
            enhanced(FRAME, 1_600_000_002_000_000_000),
        )
    )


@pytest.mark.parametrize("content", [small_pcap(), small_pcapng()], ids=["pcap", "pcapng"])
def test_a_capture_that_grows_byte_by_byte(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(b"")
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    counts = []
    for byte in content:
        with path.open("ab") as file:
            file.write(bytes([byte]))
        rows, report = read(run.step())
        assert not report.malformed
        counts.append(len(rows))
    expected, _ = batch_rows(run)
    assert len(expected) == 4
    assert set(counts) == {0, 1}, "each record is offered by itself, when its last byte is there"
    assert counts[-1] == 1
    assert read(run.all_splits)[0] == expected
    for split in run.all_splits:
        times = [row[1] for row in read([split])[0]]
        assert split.bound("timestamp") == (min(times), max(times))  # type: ignore[type-var]


def test_pieces_of_any_size_are_what_a_batch_reads(tmp_path: Path) -> None:
    content = small_pcap(200)
    for seed in range(5):
        chance = random.Random(seed)
        path = tmp_path / f"trace{seed}.pcap"
        run = Run([f"eth0=pcap:{path}"], tmp_path / f"journal{seed}", live(split_bytes=1000))
        at = 0
        while at < len(content):
            step = chance.randrange(1, 3000)
            with path.open("ab") as file:
                file.write(content[at : at + step])
            at += step
            run.step()
            if chance.random() < 0.3:
                run.links.commit(run.offset)
                run.reopen()
        expected, _ = batch_rows(run)
        rows, report = read(run.all_splits)
        assert rows == expected, f"seed {seed}"
        assert not report.malformed


def test_damage_waits_until_records_follow(tmp_path: Path) -> None:
    good = small_pcap(20)
    content = good[:900] + b"\xff" * 40 + small_pcap(40)[24:]
    path = tmp_path / "trace.pcap"
    path.write_bytes(b"")
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal", live(until_idle=True))
    for at in range(0, len(content), 37):
        with path.open("ab") as file:
            file.write(content[at : at + 37])
        run.step()
    run.step_until_ended()
    expected, counted = batch_rows(run)
    rows, report = read(run.all_splits)
    assert rows == expected
    assert report.malformed == counted.malformed
    assert any("damaged" in reason for reason in report.malformed)


def test_a_torn_record_counts_only_when_idle_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(small_pcap()[:-3])
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    for _ in range(5):
        run.step()
        run.wall.pass_seconds(60)
    rows, report = read(run.all_splits)
    assert (len(rows), dict(report.malformed)) == (3, {})
    assert not run.offset.ended
    ending = Run([f"eth0=pcap:{path}"], tmp_path / "journal2", live(until_idle=True))
    ending.step_until_ended()
    rows, report = read(ending.all_splits)
    assert (len(rows), dict(report.malformed)) == (3, {"truncated record": 1})


def test_a_directory_with_late_files_numbers_them_as_they_come(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "b.pcap").write_bytes(small_pcap())
    (folder / "c.pcap").write_bytes(small_pcap())
    run = Run([f"eth0=pcap:{folder}"], tmp_path / "journal")
    batch = [s for one in run.interfaces() for s in one.splits(1 << 40)]
    assert [(s.path, s.ordinal) for s in run.step()] == [(s.path, s.ordinal) for s in batch]
    (folder / "a.pcap").write_bytes(small_pcap())
    (folder / "ignored.txt").write_text("not of this kind")
    assert [(Path(s.path).name, s.ordinal) for s in run.step()] == [("a.pcap", 2)]
    run.reopen()
    (folder / "d.pcap").write_bytes(small_pcap())
    assert [(Path(s.path).name, s.ordinal) for s in run.step()] == [("d.pcap", 3)]
    assert run.links.states()[0].files == 4


def test_a_place_where_nothing_is_yet(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    run = Run([f"eth0=pcap:{folder}", f"eth1=pcap:{folder}/*.cap"], tmp_path / "journal")
    assert run.step() == []
    folder.mkdir()
    assert run.step() == []
    assert [state.stalled for state in run.links.states()] == [None, None]
    (folder / "x.cap").write_bytes(small_pcap())
    assert [split.interface for split in run.step()] == ["eth0", "eth1"]


def test_gzip_is_offered_when_it_is_complete(tmp_path: Path) -> None:
    packed = gzip.compress(small_pcap())
    path = tmp_path / "trace.pcap.gz"
    path.write_bytes(packed[:-9])
    run = Run([f"eth0=pcap:{path}"], tmp_path / "journal")
    assert [run.step(), run.step(), run.step()] == [[], [], []]
    path.write_bytes(packed)
    assert run.step() == [], "its size has only just changed"
    (split,) = run.step()
    rows, report = read([split])
    assert (len(rows), dict(report.malformed)) == (4, {})
    assert split.bound("time") == (1_600_000_000, 1_600_000_003)
    with path.open("ab") as file:
        file.write(packed)
    run.step()
    assert "has grown since" in (run.links.states()[0].stalled or "")


def test_files_that_are_no_captures_are_counted_as_a_batch_counts_them(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "a.pcap").write_bytes(b"no capture at all, but long enough for a header")
    (folder / "b.pcap").write_bytes(b"")
    (folder / "c.pcap").write_bytes(small_pcap())
    run = Run([f"eth0=pcap:{folder}"], tmp_path / "journal", live(until_idle=True))
    run.step_until_ended()
    expected, counted = batch_rows(run)
    rows, report = read(run.all_splits)
    assert (rows, report.malformed) == (expected, counted.malformed)
    assert len(rows) == 4
    assert run.offset.link("eth0").seen["time"] == (1_600_000_000, 1_600_000_003)


def test_a_file_that_vanishes_stalls_its_link_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pcap", tmp_path / "second.pcap"
    first.write_bytes(small_pcap())
    second.write_bytes(small_pcap(2))
    run = Run(
        [f"a=pcap:{first}", f"b=pcap:{second}"], tmp_path / "journal", live(replay_limit_ns=None)
    )
    assert len(run.step()) == 2
    first.unlink()
    second.write_bytes(small_pcap(3))
    run.wall.pass_seconds(5)
    assert [split.interface for split in run.step()] == ["b"]
    gone, fine = run.links.states()
    assert "is gone" in (gone.stalled or "")
    assert fine.stalled is None
    quiet = {name: link.quiet_ns for name, link in run.offset.links.items()}
    assert quiet == {"a": run.wall.ns - 5 * 10**9, "b": run.wall.ns}
    first.write_bytes(small_pcap(1))  # another file: it is read from its beginning
    assert [split.interface for split in run.step()] == ["a"]
    first.write_bytes(small_pcap(5))
    assert [split.interface for split in run.step()] == ["a"]
    assert run.links.states()[0].stalled is None


def test_read_files_of_a_directory_may_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.pcap").write_bytes(small_pcap())
    run = Run([f"eth0=pcap:{folder}"], tmp_path / "journal")
    run.step()
    (folder / "a.pcap").unlink()
    run.step()
    assert "is gone" in (run.links.states()[0].stalled or ""), "a batch may still read it"
    run.links.commit(run.offset)
    run.step()
    assert run.links.states()[0].stalled is None
    (folder / "a.pcap").write_bytes(small_pcap())
    assert [split.ordinal for split in run.step()] == [2], "another file of that name"
