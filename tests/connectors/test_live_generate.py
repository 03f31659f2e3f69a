"""Generated traffic as a live source: due by the clock, the same after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.live.journal import FILE_NAME
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source, SourceError
from terascope.pipeline import Bindings, compile_set
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.connectors.live_reading import SECOND, Run, live, read, replay

NOW = 1_700_000_000


def times(run: Run) -> list[int]:
    return [row[1] for row in read(run.all_splits)[0]]  # type: ignore[misc]


def whole_trace(path: Path, **profile: float) -> list[int]:
    """What `terascope generate` writes."""
    report = generate(Profile(start_time=float(NOW), **profile), path)  # type: ignore[arg-type]
    rows: list[int] = []
    for file in report.files:
        splits = parse_interface(f"x=pcap:{file}").splits(1 << 40)
        rows += [row[1] for row in read(splits)[0]]  # type: ignore[misc]
    return rows


def test_packets_come_with_the_time(tmp_path: Path) -> None:
    run = Run(["gen=generate:rate=200,duration=6"], tmp_path / "journal")
    rows = []
    for _ in range(9):
        rows += read(run.step())[0]
        newest = max((row[1] for row in rows), default=0)  # type: ignore[type-var]
        assert newest <= run.wall.ns  # type: ignore[operator]
        if rows and not run.offset.ended:
            assert newest > run.wall.ns - SECOND  # type: ignore[operator]
            assert run.offset.link("gen").quiet_ns == run.wall.ns
        run.wall.pass_seconds(1)
    assert run.offset.ended
    assert [row[1] for row in rows] == whole_trace(tmp_path / "x.pcap", rate=200, duration=6)


def test_a_restart_makes_the_same_traffic(tmp_path: Path) -> None:
    run = Run(["gen=generate:rate=200,duration=8,seed=3"], tmp_path / "journal")
    rows = []
    for k in range(12):
        splits = run.step()
        rows += read(splits)[0]
        run.reopen()
        again = run.links.splits(*run.offsets[-2:])
        assert again == splits
        if k % 3 == 2:
            run.links.commit(run.offset)
        run.wall.pass_seconds(0.9)
    expected = whole_trace(tmp_path / "x.pcap", rate=200, duration=8, seed=3)
    assert [row[1] for row in rows] == expected


def test_a_crash_while_the_journal_is_written(tmp_path: Path) -> None:
    run = Run(["gen=generate:rate=200,duration=5,links=2"], tmp_path / "journal")
    run.links.poll()
    journal = tmp_path / "journal" / FILE_NAME
    run.wall.pass_seconds(3)
    run.links.poll()
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 3 * 2
    for kept in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:kept]) + lines[kept][:9])
        run.reopen()
        run.links.poll()
        again = journal.read_bytes().splitlines(keepends=True)
        assert again == lines, "the same seconds, and each of them once"


def test_the_spool_is_emptied(tmp_path: Path) -> None:
    run = Run(["gen=generate:rate=100"], tmp_path / "journal")
    spool = tmp_path / "journal" / "spool" / "gen"
    run.step()
    for _ in range(5):
        run.wall.pass_seconds(1)
        run.step()
    assert len(list(spool.iterdir())) == 5
    run.links.commit(run.offsets[-2])
    assert [str(path) for path in spool.iterdir()] == [run.given[-1][0].path]
    assert read(run.given[-1])[0]
    run.links.commit(run.offset)
    assert list(spool.iterdir()) == []


def test_several_links_and_one_of_them(tmp_path: Path) -> None:
    words = "rate=300,duration=4,links=2"
    sources = [f"both=generate:{words}", f"one=generate:{words},link=1"]
    run = Run(sources, tmp_path / "journal", live())
    for _ in range(6):
        run.step()
        run.wall.pass_seconds(1)
    mine = [split for split in run.all_splits if split.interface == "one"]
    both = [split for split in run.all_splits if split.interface == "both"]
    assert sorted(split.ordinal for split in both) == list(range(8))
    assert [split.ordinal for split in mine] == list(range(4))
    second = [split for split in both if split.ordinal % 2 == 1]
    assert [row[1] for row in read(mine)[0]] == [row[1] for row in read(second)[0]]
    expected = whole_trace(tmp_path / "x.pcap", rate=300, duration=4, links=2)
    assert sorted(row[1] for row in read(both)[0]) == sorted(expected)  # type: ignore[type-var]


@pytest.mark.parametrize(("speed", "seconds"), [("10x", 0.1), ("max", 0.0)])
def test_replayed_faster(tmp_path: Path, speed: str, seconds: float) -> None:
    source = f"gen=generate:rate=200,duration=30,start_time={NOW}"
    run = Run([source], tmp_path / "journal", replay(speed, most_bytes=400_000))
    steps = quiet = 0
    while not run.offset.ended:
        rows = read(run.step())[0]
        assert run.links.states()[0].backlog_splits < 200, "it does not run far ahead"
        assert not [row for row in rows if row[1] < quiet], "older than a quiet time"  # type: ignore[operator]
        quiet = run.offset.link("gen").quiet_ns or 0
        run.wall.pass_seconds(seconds)
        steps += 1
    assert quiet >= (NOW + 29) * SECOND
    if seconds:
        assert steps == pytest.approx(30, abs=2)
    assert times(run) == whole_trace(tmp_path / "x.pcap", rate=200, duration=30)


def test_a_scenario_of_endless_traffic_starts_soon(tmp_path: Path) -> None:
    run = Run(["gen=generate:rate=100,scenario=syn_flood,intensity=5"], tmp_path / "journal")
    counts = []
    for _ in range(20):
        run.wall.pass_seconds(1)
        counts.append(len(read(run.step())[0]))
    assert sum(counts[12:18]) > 3 * sum(counts[2:8])
    assert not run.offset.ended


def test_it_is_a_packet_source_and_only_live() -> None:
    interface = parse_interface("gen=generate:rate=1k")
    assert parse_interface("generate:rate=10").name == "generate"
    text = Source("QUERY q: SELECT tb, COUNT(*) AS n FROM gen.TCP GROUP BY time/10 AS tb;")
    assert "gen" in str(compile_set(text, Bindings({"gen": interface})).plan)
    with pytest.raises(SourceError, match="live source; for a batch write it to a file"):
        interface.splits(1 << 20)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("speed=3", "unknown word 'speed'"),
        ("rate", "not NAME=VALUE"),
        ("rate=many", "not a number"),
        ("rate=-1", "rate must be more than 0"),
        ("scenario=nothing", "unknown scenario"),
        ("victim=10.0.0.1", "write scenario=NAME before"),
        ("links=2,link=2", "has no link=2"),
    ],
)
def test_mistakes_are_told_when_the_source_is_bound(words: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        parse_interface(f"gen=generate:{words}")
