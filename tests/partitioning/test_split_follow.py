from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from terascope.diagnostic import OutputError, SourceError
from terascope.partitioning.layout import read_layout
from terascope.splitting.follow import FollowedSplit
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.connectors.packet_bytes import described, enhanced, ethernet, ipv4, section, simple, tcp
from tests.partitioning.followed_splits import POINTS, Died, dying, settings_for, split_on
from tests.partitioning.split_reading import assert_split, partitions_in, rows_of, split_into

BY = "srcIP, destPort"


def trace(folder: Path, packets: int = 4000) -> bytes:
    generate(Profile(packets=packets, seed=8), folder / "whole.pcap")
    return (folder / "whole.pcap").read_bytes()


def lines(rows: int) -> bytes:
    text = [f"{k},u{k % 17},10.0.0.{k % 5}" for k in range(rows)]
    return "\n".join(["time,user,ip", *text, ""]).encode()


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The bytes of the partitions, the files of each one behind the other."""
    return {
        str(part.relative_to(folder)): b"".join(p.read_bytes() for p in sorted(part.iterdir()))
        for part in sorted(folder.glob("p*"))
        if part.is_dir()
    }


def grown(path: Path, whole: bytes, steps: int, dice: random.Random) -> list[int]:
    """Lengths at which a file is looked at while it grows: anywhere, also inside of a record."""
    return [*sorted(dice.randrange(len(whole)) for _ in range(steps)), len(whole)]


def test_a_growing_capture_is_split_as_a_finished_one(tmp_path: Path) -> None:
    whole, source = trace(tmp_path), tmp_path / "t.pcap"
    settings = settings_for(f"e=pcap:{source}", BY, 3, tmp_path / "p")
    source.write_bytes(b"")
    split = FollowedSplit(settings)
    for end in grown(source, whole, 6, random.Random(1)):
        source.write_bytes(whole[:end])
        while split.step():
            pass
    split.close()
    split_into(tmp_path / "once", f"e=pcap:{source}", BY, 3)
    assert bytes_of(tmp_path / "p") == bytes_of(tmp_path / "once")
    layout = read_layout(tmp_path / "p")
    assert layout is not None
    assert sum(one.tuples for one in layout.partitions) == 4000


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ["pcap", "csv"])
def test_a_split_that_dies_again_and_again(tmp_path: Path, kind: str, point: str) -> None:
    dice = random.Random(f"{kind} {point}")
    source = tmp_path / f"t.{kind}"
    whole = trace(tmp_path) if kind == "pcap" else lines(3000)
    by = BY if kind == "pcap" else "user"
    # Whole lines first: they say what the types are.
    ends = [whole.find(b"\n", 300) + 1, *grown(source, whole, 8, dice)]
    deaths = 0
    for end in ends:
        source.write_bytes(whole[: max(end, ends[0])])
        try:
            with dying(point, dice.randrange(1, 3)):
                split_on(settings_for(f"t={kind}:{source}", by, 3, tmp_path / "p"))
        except Died:
            deaths += 1
        if kind == "pcap":  # nothing that a reader has seen is ever taken back
            seen = bytes_of(tmp_path / "p")
            for name, before in seen.items():
                assert bytes_of(tmp_path / "p")[name].startswith(before)
    assert deaths or (kind, point) in {("pcap", "published"), ("csv", "written"), ("csv", "forced")}
    split_on(settings_for(f"t={kind}:{source}", by, 3, tmp_path / "p"))
    interface = settings_for(f"t={kind}:{source}", by, 3, tmp_path / "p").interface
    assert_split(tmp_path / "p", interface, by, 3)
    if kind == "pcap":
        split_into(tmp_path / "once", f"t=pcap:{source}", by, 3)
        once = bytes_of(tmp_path / "once")
        assert {name: some for name, some in bytes_of(tmp_path / "p").items() if some} == {
            name: some for name, some in once.items() if len(some) > 24
        }


@pytest.mark.parametrize("point", ["planned:2", "half written:3", "committed:1", "forced:1"])
def test_kill_minus_nine(tmp_path: Path, point: str) -> None:
    whole, source = trace(tmp_path), tmp_path / "t.pcap"
    source.write_bytes(whole[: len(whole) // 2])
    program = Path(__file__).with_name("followed_splits.py")
    command = [
        sys.executable,
        str(program),
        f"e=pcap:{source}",
        BY,
        "3",
        str(tmp_path / "p"),
        point,
    ]
    root = str(Path(__file__).resolve().parents[2])
    died = subprocess.run(command, env={"PYTHONPATH": root, "PATH": ""}, check=False)
    assert died.returncode == -signal.SIGKILL
    source.write_bytes(whole)
    split_on(settings_for(f"e=pcap:{source}", BY, 3, tmp_path / "p"))
    interface = settings_for(f"e=pcap:{source}", BY, 3, tmp_path / "p").interface
    assert_split(tmp_path / "p", interface, BY, 3)


def test_a_folder_of_captures_and_pcapng(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    settings = settings_for(f"e=pcap:{folder}", "srcIP", 2, tmp_path / "p")
    split = FollowedSplit(settings)
    blocks = [section(), described(), described(101, resolution=9)]
    for k in range(60):
        frame = ethernet(ipv4(tcp(), source=f"10.0.0.{k % 7}"))
        raw = ipv4(tcp(), source=f"10.0.1.{k % 7}")
        blocks.append(
            (enhanced(frame, 10**15 + k), enhanced(raw, 10**18 + k, 1), simple(frame))[k % 3]
        )
        if k == 30:
            blocks.append(described(113))
    for k in range(0, len(blocks), 5):
        (folder / "a.pcapng").write_bytes(b"".join(blocks[: k + 5]))
        while split.step():
            pass
    (folder / "b.pcap").write_bytes(trace(tmp_path, 200))
    while split.step():
        pass
    split.close()
    assert_split(tmp_path / "p", settings.interface, "srcIP", 2)


def test_in_turn_goes_on_with_the_next_partition(tmp_path: Path) -> None:
    whole, source = trace(tmp_path, 1000), tmp_path / "t.pcap"
    for end in (len(whole) // 3, len(whole)):
        source.write_bytes(whole[:end])
        split_on(settings_for(f"e=pcap:{source}", None, 3, tmp_path / "p"))
    interface = settings_for(f"e=pcap:{source}", None, 3, tmp_path / "p").interface
    assert_split(tmp_path / "p", interface, None, 3)


def test_tables_can_be_bound_before_they_have_rows(tmp_path: Path) -> None:
    source = tmp_path / "log.csv"
    source.write_bytes(lines(1)[:20])
    split = FollowedSplit(settings_for(f"log=csv:{source}", "user", 2, tmp_path / "p"))
    for part in partitions_in(tmp_path / "p", "parquet", "log"):
        assert [column.name for column in part.columns] == ["time", "user", "ip"]
        assert rows_of(part) == []
    source.write_bytes(lines(100))
    while split.step():
        pass
    split.close()
    assert_split(tmp_path / "p", split.splitter.settings.interface, "user", 2)
    assert all(pq.read_metadata(path) for path in (tmp_path / "p").glob("p*/*.parquet"))


def test_another_split_of_the_folder(tmp_path: Path) -> None:
    source = tmp_path / "t.pcap"
    source.write_bytes(trace(tmp_path, 100))
    split_on(settings_for(f"e=pcap:{source}", "srcIP", 2, tmp_path / "p"))
    for by, count in (("destIP", 2), ("srcIP", 3)):
        with pytest.raises(SourceError, match="was split otherwise"):
            split_on(settings_for(f"e=pcap:{source}", by, count, tmp_path / "p"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("mine")
    with pytest.raises(OutputError, match="is not empty"):
        split_on(settings_for(f"e=pcap:{source}", "srcIP", 2, tmp_path / "other"))
