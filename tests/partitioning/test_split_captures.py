from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import OutputError, SourceError
from terascope.splitting import outputs
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.connectors.packet_bytes import (
    Frame,
    block,
    described,
    enhanced,
    ethernet,
    ipv4,
    ipv6,
    obsolete,
    pcap,
    section,
    simple,
    tcp,
    udp,
)
from tests.partitioning.split_reading import (
    SHARED,
    assert_split,
    partitions_in,
    rows_and_report,
    rows_of,
    split_into,
)

SETS = (
    "srcIP",
    "srcIP & 0xFFFFFFF0, destIP",
    "prefix(srcIP, 20, 40)",
    "prefix(destIP, 8)",
    "srcPort/16, protocol",
    "srcMAC, vlan",
    "srcIP, destIP, srcPort, destPort",
    "SYN",
    "len % 7",
)
CAPTURES = sorted(
    str(path.relative_to(SHARED))
    for folder in ("attack", "edge", "netflow")
    for path in (SHARED / folder).glob("*.pcap*")
)


def random_frame(dice: random.Random) -> bytes:
    source, destination = (f"10.0.{dice.randrange(3)}.{dice.randrange(9)}" for _ in "12")
    transport = dice.choice(
        [tcp(dice.randrange(99), 80), udp(dice.randrange(99), 53), bytes(dice.randrange(9))]
    )
    if dice.random() < 0.3:
        six = [f"2001:db8:{dice.randrange(3)}::{dice.randrange(9)}" for _ in "12"]
        data = ethernet(ipv6(transport, source=six[0], destination=six[1]), 0x86DD)
    elif dice.random() < 0.8:
        protocol = 17 if len(transport) == 8 else 6
        data = ethernet(ipv4(transport, protocol, source=source, destination=destination))
    else:
        data = dice.randbytes(dice.randrange(1, 60))
    return data[: dice.randrange(1, len(data) + 1)] if dice.random() < 0.2 else data


def random_capture(dice: random.Random) -> bytes:
    magic = dice.choice([0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34])
    parts = 10**9 if magic == 0xA1B23C4D else 10**6
    frames = []
    for k in range(dice.randrange(60)):
        data = random_frame(dice)
        wire = len(data) + dice.choice([0, 0, 100])
        frames.append(Frame(data, 1_600_000_000 + k // 7, dice.randrange(parts), wire))
    link = dice.choice([1, 1, 101, 113])
    return pcap(frames, link=link, order=dice.choice("<>"), magic=magic)


def random_pcapng(dice: random.Random, is_plain: bool = False) -> bytes:
    """`is_plain`: with enhanced packets of known interfaces only, as all programs read them."""
    made = []
    for _ in range(dice.randrange(1, 3)):
        order = dice.choice("<>")
        made.append(section(order))
        declared = 0
        for k in range(dice.randrange(40)):
            what = dice.random()
            data = random_frame(dice)
            if is_plain and what >= 0.15 and declared:
                number = dice.randrange(declared)
                made.append(enhanced(data, 10**9 + k, number, order=order))
            elif what < 0.15 or not declared:
                resolution = dice.choice([None, 6, 9, 3, 0x8A])
                shift = dice.choice([None, 5])
                made.append(
                    described(
                        dice.choice([1, 101, 113]), resolution=resolution, shift=shift, order=order
                    )
                )
                declared += 1
            elif what < 0.25:
                made.append(simple(data, order=order))
            elif what < 0.3:
                made.append(obsolete(data, 10**9 + k, dice.randrange(declared), order=order))
            elif what < 0.35:
                made.append(block(5, bytes(8), order))
            else:
                number = dice.randrange(declared + (dice.random() < 0.1))
                made.append(enhanced(data, 10**9 + k, number, order=order))
    return b"".join(made)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 1 << 30),
    by=st.sampled_from(SETS),
    count=st.sampled_from([1, 2, 3, 8, 100]),
    ng=st.booleans(),
)
def test_random_captures(tmp_path: Path, seed: int, by: str, count: int, ng: bool) -> None:
    dice = random.Random(seed)
    folder = tmp_path / "captures"
    shutil.rmtree(tmp_path, ignore_errors=True)
    folder.mkdir(parents=True)
    for k in range(dice.randrange(1, 3)):
        content = random_pcapng(dice) if ng else random_capture(dice)
        (folder / f"{k}.pcap").write_bytes(content)
    source, splitter = split_into(tmp_path / "parts", f"e=pcap:{folder}", by, count)
    assert_split(tmp_path / "parts", source, by, count)
    original = rows_and_report(source)[1].malformed
    parts = [
        rows_and_report(p)[1].malformed for p in partitions_in(tmp_path / "parts", "pcap", "e")
    ]
    # A packet that is malformed at some layer is in a partition, all else is counted.
    for why, number in original.items():
        kept = sum(one[why] for one in parts)
        assert kept + splitter.left_out.get(why, 0) == number, why


@pytest.mark.parametrize("capture", CAPTURES)
def test_real_captures(tmp_path: Path, capture: str) -> None:
    source, _ = split_into(tmp_path / "p", f"e=pcap:{SHARED / capture}", "srcIP, destPort", 3)
    assert_split(tmp_path / "p", source, "srcIP, destPort", 3)


@pytest.mark.skipif(not CAPTURES, reason="no captures at shared/data")
def test_a_folder_of_pcap_pcapng_and_gzip(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for capture in (
        "edge/pcpp_sll.pcap",
        "edge/pcpp_many_interfaces-1.pcapng",
        "edge/tenzir_vlan.pcap.gz",
        "edge/zeek_tcp_ssh-dups.pcap",
    ):
        shutil.copy(SHARED / capture, folder)
    source, _ = split_into(tmp_path / "p", f"e=pcap:{folder}", "srcIP & 0xFFFFFF00", 4)
    assert_split(tmp_path / "p", source, "srcIP & 0xFFFFFF00", 4)


def test_in_turn(tmp_path: Path) -> None:
    generate(Profile(packets=1000, seed=1), tmp_path / "t.pcap")
    source, _ = split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", None, 3)
    assert_split(tmp_path / "p", source, None, 3)
    assert json.loads((tmp_path / "p/partitions.json").read_text())["by"] == ""


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    generate(Profile(packets=5000, seed=2), tmp_path / "t.pcap")
    for name in "ab":
        split_into(tmp_path / name, f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 5)
    for path in sorted((tmp_path / "a").rglob("*")):
        if path.is_file():
            other = tmp_path / "b" / path.relative_to(tmp_path / "a")
            assert path.read_bytes() == other.read_bytes()


def test_a_thousand_partitions_with_few_open_files(tmp_path: Path) -> None:
    generate(Profile(packets=20_000, seed=3), tmp_path / "t.pcap")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 256), limits[1]))
    try:
        by = "srcIP, destIP, srcPort"
        source, splitter = split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", by, 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert sum(state.tuples for state in splitter.states) == 20_000
    assert_split(tmp_path / "p", source, by, 1000)


def test_packets_longer_than_a_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "LARGEST_BUFFER", 300)
    monkeypatch.setattr(outputs, "SMALLEST_BUFFER", 100)
    dice = random.Random(4)
    frames = [
        ethernet(
            ipv4(tcp(payload=dice.randbytes(dice.choice([0, 9, 500]))), source=f"10.0.0.{k % 7}")
        )
        for k in range(300)
    ]
    (tmp_path / "t.pcap").write_bytes(pcap(frames))
    source, _ = split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 3)
    assert_split(tmp_path / "p", source, "srcIP", 3)


def test_damage_is_counted_and_in_no_partition(tmp_path: Path) -> None:
    frames = [ethernet(ipv4(tcp(payload=bytes(40)), source=f"10.0.0.{k}")) for k in range(40)]
    whole = pcap(frames)
    damaged = whole[:1000] + b"\xff" * 300 + whole[1300:-7]
    (tmp_path / "t.pcap").write_bytes(damaged)
    source, splitter = split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 2)
    assert_split(tmp_path / "p", source, "srcIP", 2)
    assert splitter.left_out == {"damaged record": 1, "truncated record": 1}


def test_no_packets(tmp_path: Path) -> None:
    (tmp_path / "t.pcap").write_bytes(pcap([]))
    source, _ = split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 2)
    assert_split(tmp_path / "p", source, "srcIP", 2)


def test_a_partition_without_packets_is_a_valid_capture(tmp_path: Path) -> None:
    frames = [ethernet(ipv4(tcp()))] * 5
    (tmp_path / "t.pcap").write_bytes(pcap(frames))
    split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 3)
    sizes = [len(rows_of(part)) for part in partitions_in(tmp_path / "p", "pcap", "e")]
    assert sorted(sizes) == [0, 0, 5]
    assert all((tmp_path / f"p/p00{k}/00000.pcap").stat().st_size >= 24 for k in range(3))


def test_nanoseconds_and_bytes_are_kept(tmp_path: Path) -> None:
    data = ethernet(ipv4(tcp()))
    content = pcap([Frame(data, 5, 999_999_999)], magic=0xA1B23C4D, order=">")
    (tmp_path / "t.pcap").write_bytes(content)
    split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 1)
    assert (tmp_path / "p/p000/00000.pcap").read_bytes() == content


def test_what_is_not_a_capture(tmp_path: Path) -> None:
    (tmp_path / "t.pcap").write_bytes(b"no capture at all, and long enough")
    with pytest.raises(SourceError, match="not a capture"):
        split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 2)
    assert not (tmp_path / "p").exists()


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(Profile(packets=20_000, seed=3), tmp_path / "t.pcap")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="cannot write"):
            split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "p").exists()


def test_files_of_others_stay(tmp_path: Path) -> None:
    generate(Profile(packets=100, seed=3), tmp_path / "t.pcap")
    (tmp_path / "p").mkdir()
    (tmp_path / "p/mine").write_text("x")
    with pytest.raises(OutputError, match="is not empty"):
        split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 2)
    assert (tmp_path / "p/mine").read_text() == "x"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("ng", [False, True])
def test_as_tshark_reads_them(tmp_path: Path, ng: bool) -> None:
    dice = random.Random(5)
    path = tmp_path / "t.pcap"
    path.write_bytes(random_pcapng(dice, is_plain=True) if ng else random_capture(dice))
    split_into(tmp_path / "p", f"e=pcap:{path}", "srcIP", 3)
    parts = sorted((tmp_path / "p").glob("p*/*"))
    assert sorted(line for part in parts for line in told(part)) == sorted(told(path))


def told(path: Path) -> list[str]:
    fields = "frame.time_epoch frame.len frame.cap_len frame.protocols".split()
    flags = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-r", str(path), "-T", "fields", *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_hosts_have_partitions_that_follow_one_another(tmp_path: Path) -> None:
    from dataclasses import replace

    from terascope.partitioning.sets import parse_set
    from terascope.splitting.finished import split_finished
    from terascope.splitting.rule import SplitRule
    from terascope.splitting.splitter import SplitSettings

    generate(Profile(packets=100, seed=3), tmp_path / "t.pcap")
    interface = parse_interface(f"e=pcap:{tmp_path / 't.pcap'}")
    rule = SplitRule.even(parse_set("srcIP", interface.columns), 5)
    made = SplitSettings(interface, interface.columns, rule, tmp_path / "p", ("a", "b"))
    split_finished(made)
    held = [part.partition for part in partitions_in(tmp_path / "p", "pcap", "e")]
    assert [one.host for one in held if one is not None] == ["a", "a", "a", "b", "b"]
    assert replace(made, hosts=()).host(3) == ""


def test_a_time_beyond_32_bits(tmp_path: Path) -> None:
    content = section() + described(resolution=9) + enhanced(ethernet(ipv4(tcp())), 1 << 62)
    (tmp_path / "t.pcapng").write_bytes(content)
    source, _ = split_into(tmp_path / "p", f"e=pcap:{tmp_path / 't.pcapng'}", "srcIP", 2)
    found = assert_split(tmp_path / "p", source, "srcIP", 2)
    assert [row["timestamp"] for rows in found for row in rows] == [1 << 62]
