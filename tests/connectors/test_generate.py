"""The synthetic traffic is what it says it is, read back from the bytes by independent means."""

from __future__ import annotations

import gzip
import ipaddress
import shutil
import struct
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from terascope.traffic.profile import Profile, ProfileError, Scenario
from terascope.traffic.trace import generate, link_files

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
START = 1_700_000_000
QUIET = Profile(rate=3000, duration=10, seed=11)


@dataclass(frozen=True)
class Packet:
    timestamp: int
    version: int
    source: str
    destination: str
    protocol: int
    length: int
    wirelen: int
    caplen: int
    ttl: int
    sport: int | None
    dport: int | None
    flags: int
    seq: int
    ack: int
    data: bytes
    checksums_good: bool


def folded(data: bytes) -> int:
    """The one's-complement sum of 16-bit words: 0xFFFF when they include a good checksum."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def read_pcap(path: Path) -> Iterator[Packet]:
    content = path.read_bytes()
    magic, major, minor, _, _, _, link_type = struct.unpack_from("<IHHiIII", content)
    assert (magic, major, minor, link_type) == (0xA1B23C4D, 2, 4, 1)
    at = 24
    while at < len(content):
        seconds, nanoseconds, caplen, wirelen = struct.unpack_from("<IIII", content, at)
        assert nanoseconds < 1_000_000_000
        frame = content[at + 16 : at + 16 + caplen]
        assert len(frame) == caplen
        at += 16 + caplen
        yield decode(seconds * 1_000_000_000 + nanoseconds, frame, wirelen)


def decode(timestamp: int, frame: bytes, wirelen: int) -> Packet:
    kind = int.from_bytes(frame[12:14], "big")
    ip = frame[14:]
    if kind == 0x0800:
        assert ip[0] == 0x45
        version, protocol, ttl = 4, ip[9], ip[8]
        length = int.from_bytes(ip[2:4], "big")
        addresses, above = ip[12:20], ip[20:length]
        good = folded(ip[:20]) == 0xFFFF
    else:
        assert (kind, ip[0] >> 4) == (0x86DD, 6)
        version, protocol, ttl = 6, ip[6], ip[7]
        length = int.from_bytes(ip[4:6], "big") + 40
        addresses, above = ip[8:40], ip[40:length]
        good = True
    half = len(addresses) // 2
    source, destination = (
        str(ipaddress.ip_address(a)) for a in (addresses[:half], addresses[half:])
    )
    if wirelen == len(frame):
        pseudo = b"" if protocol == 1 else addresses + struct.pack(">II", len(above), protocol)
        good = good and folded(pseudo + above) == 0xFFFF
    sport = dport = None
    flags = seq = ack = 0
    data = above[8:]
    if protocol in (6, 17):
        sport, dport = struct.unpack_from(">HH", above)
    if protocol == 6:
        seq, ack = struct.unpack_from(">II", above, 4)
        flags = above[13]
        data = above[(above[12] >> 4) * 4 :]
    return Packet(
        timestamp, version, source, destination, protocol, length, wirelen, len(frame), ttl,
        sport, dport, flags, seq, ack, data, good,
    )  # fmt: skip


@pytest.fixture(scope="module")
def quiet_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quiet") / "quiet.pcap"
    report = generate(QUIET, path)
    assert report.files == (path,)
    return path


@pytest.fixture(scope="module")
def quiet(quiet_file: Path) -> list[Packet]:
    return list(read_pcap(quiet_file))


def generated(tmp_path: Path, profile: Profile) -> list[Packet]:
    generate(profile, tmp_path / "trace.pcap")
    return list(read_pcap(tmp_path / "trace.pcap"))


def syns(packets: list[Packet], victim: str) -> list[Packet]:
    return [p for p in packets if p.destination == victim and p.flags & (SYN | ACK) == SYN]


def matched(syn_packets: list[Packet], packets: list[Packet]) -> int:
    """How many SYNs have a SYN-ACK that acknowledges them (dissertation, section 5.6.3)."""
    answers = {
        (p.destination, p.dport, p.source, p.sport, p.ack)
        for p in packets
        if p.flags & (SYN | ACK) == SYN | ACK
    }
    return sum(
        (p.source, p.sport, p.destination, p.dport, p.seq + 1) in answers for p in syn_packets
    )


# ---- reproducible, complete, in order


def test_the_seed_decides_the_bytes(tmp_path: Path, quiet_file: Path) -> None:
    for name, seed in (("same", 11), ("other", 12)):
        generate(Profile(rate=3000, duration=10, seed=seed), tmp_path / name)
    assert (tmp_path / "same").read_bytes() == quiet_file.read_bytes()
    assert (tmp_path / "other").read_bytes() != quiet_file.read_bytes()


def test_times_increase_and_fill_the_duration(quiet: list[Packet]) -> None:
    times = [p.timestamp for p in quiet]
    assert times == sorted(times)
    assert START * 10**9 <= times[0] < (START + 0.5) * 10**9
    assert (START + 9.5) * 10**9 < times[-1] < (START + 10) * 10**9
    assert any(t % 1000 for t in times), "timestamps are finer than microseconds"
    assert len(quiet) == pytest.approx(30_000, rel=0.15)


def test_a_number_of_packets_is_exact(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    profile = Profile(packets=12_345, duration=5, scenarios=(Scenario("syn_flood"),))
    report = generate(
        profile, tmp_path / "n.pcap", progress=lambda done, total: seen.append((done, total))
    )
    packets = list(read_pcap(tmp_path / "n.pcap"))
    assert sum(report.counts) == len(packets) == 12_345
    assert packets[-1].timestamp / 1e9 - START == pytest.approx(5, rel=0.2)
    assert report.bytes == (tmp_path / "n.pcap").stat().st_size
    assert seen[-1] == (12_345, 12_345)


def test_chunks_join_without_a_seam(tmp_path: Path) -> None:
    """More packets than one chunk holds: in order, and the rate does not drop at the seams."""
    profile = Profile(packets=600_000, rate=400_000, seed=3, burstiness=0, snaplen=54)
    generate(profile, tmp_path / "t.parquet")
    times = pq.read_table(tmp_path / "t.parquet", columns=["timestamp"])["timestamp"].to_numpy()
    assert len(times) == 600_000
    assert (np.diff(times) >= 0).all()
    per_tenth = np.bincount((times - START * 10**9) // 10**8)[5:-1]
    assert per_tenth.min() > 0.8 * per_tenth.max()


# ---- frames


def test_checksums_and_lengths_are_right(quiet: list[Packet]) -> None:
    assert all(p.checksums_good for p in quiet)
    assert all(p.wirelen == p.caplen == p.length + 14 for p in quiet)
    kinds = Counter((p.version, p.protocol) for p in quiet)
    assert set(kinds) - {(6, 58)} == {(4, 6), (4, 17), (4, 1), (6, 6), (6, 17)}
    v6 = sum(count for (version, _), count in kinds.items() if version == 6) / len(quiet)
    assert v6 == pytest.approx(0.1, abs=0.05)
    assert all(30 < p.ttl < 128 for p in quiet)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("scenario", ["quiet", "syn_flood", "port_scan", "amplification"])
def test_tshark_finds_nothing_malformed(tmp_path: Path, scenario: str) -> None:
    path = tmp_path / "t.pcap"
    report = generate(Profile(packets=8000, rate=1500, scenarios=(Scenario(scenario),)), path)
    wanted = ["frame.number", "_ws.malformed", "_ws.expert.group", "dns.qry.name", "http.host"]
    done = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields"]
        + [f"-o{p}.check_checksum:TRUE" for p in ("ip", "tcp", "udp")]
        + [word for field in wanted for word in ("-e", field)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == sum(report.counts)
    checksum_group, malformed_group = str(0x01000000), str(0x07000000)
    for _, malformed, groups, _, _ in rows:
        assert not malformed
        assert not {checksum_group, malformed_group} & set(groups.split(","))
    assert {name.split(".", 2)[2] for *_, name, _ in rows if name} == {"example.net"}
    assert any(host for *_, host in rows)


def test_snaplen_cuts_what_is_captured_only(tmp_path: Path, quiet: list[Packet]) -> None:
    cut = generated(tmp_path, Profile(rate=3000, duration=10, seed=11, snaplen=96))
    assert [(p.timestamp, p.wirelen, p.seq) for p in cut] == [
        (p.timestamp, p.wirelen, p.seq) for p in quiet
    ]
    assert all(p.caplen == min(96, p.wirelen) for p in cut)
    assert all(c.data == q.data[: len(c.data)] for c, q in zip(cut, quiet, strict=True))


# ---- conversations


def connections(packets: list[Packet]) -> dict[tuple[object, ...], list[Packet]]:
    """TCP packets by connection, named by its client's end; only those whose SYN was seen."""
    found: dict[tuple[object, ...], list[Packet]] = {}
    for p in packets:
        if p.protocol != 6:
            continue
        mine = (p.source, p.sport, p.destination, p.dport)
        theirs = (p.destination, p.dport, p.source, p.sport)
        if p.flags & (SYN | ACK) == SYN:
            found.setdefault(mine, [])
        key = mine if mine in found else theirs
        if key in found:
            found[key].append(p)
    return found


def test_handshakes_match(quiet: list[Packet]) -> None:
    before_the_end = [
        p for p in quiet if p.flags & (SYN | ACK) == SYN and p.timestamp < (START + 9) * 10**9
    ]
    assert len(before_the_end) > 500
    assert matched(before_the_end, quiet) / len(before_the_end) > 0.95
    delays = []
    for packets in connections(quiet).values():
        if len(packets) < 3 or packets[1].flags != SYN | ACK:
            continue
        syn, answer, final = packets[:3]
        assert answer.ack == (syn.seq + 1) & 0xFFFFFFFF
        assert (final.flags & ~PSH, final.seq) == (ACK, answer.ack)
        assert final.ack == (answer.seq + 1) & 0xFFFFFFFF
        delays.append((answer.timestamp - syn.timestamp) / 1e6)
    assert len(delays) > 500
    assert min(delays) >= 1
    assert max(delays) <= 200
    assert 10 < np.median(delays) < 50


def test_data_advances_without_gaps(quiet: list[Packet]) -> None:
    """In each direction, bytes sent for the first time are one gapless run of numbers."""
    checked = 0
    for packets in connections(quiet).values():
        next_seq: dict[str, int] = {}
        for p in packets:
            used = len(p.data) + bool(p.flags & SYN) + bool(p.flags & FIN)
            if not used or p.flags & RST:
                continue
            expected = next_seq.setdefault(p.source, p.seq)
            ahead = (p.seq - expected) & 0xFFFFFFFF
            assert ahead == 0 or ahead > 1 << 31, "a gap"
            if ahead == 0:
                next_seq[p.source] = (p.seq + used) & 0xFFFFFFFF
            checked += 1
        peers = {p.source: p.destination for p in packets}
        for p in packets:
            if p.flags & ACK and not p.flags & RST and peers[p.source] in next_seq:
                behind = (next_seq[peers[p.source]] - p.ack) & 0xFFFFFFFF
                assert behind < 1 << 31, "acknowledges what was never sent"
    assert checked > 5000


def test_retransmissions_repeat_number_and_bytes(tmp_path: Path) -> None:
    for rate in (0.0, 0.05):
        packets = generated(tmp_path, Profile(packets=20_000, retransmission_rate=rate))
        first: dict[tuple[object, ...], bytes] = {}
        again = total = 0
        for p in packets:
            if p.protocol == 6 and p.data:
                key = (p.source, p.sport, p.destination, p.dport, p.seq)
                again += key in first
                assert first.setdefault(key, p.data) == p.data
                total += 1
        assert again / total == pytest.approx(rate, abs=0.015)


def test_connections_end_with_fin_or_rst(quiet: list[Packet]) -> None:
    ends: Counter[str] = Counter()
    for packets in connections(quiet).values():
        if packets[0].timestamp > (START + 4) * 10**9 or len(packets) < 5:
            continue
        flags = [p.flags for p in packets]
        if any(f & RST for f in flags):
            assert flags[-1] & RST
            ends["rst"] += 1
        else:
            ends["fin" if sum(bool(f & FIN) for f in flags) == 2 else "open"] += 1
    assert ends["fin"] > 0.9 * ends.total()
    assert ends["rst"] > 0


def test_payloads(quiet: list[Packet]) -> None:
    requests = [p.data for p in quiet if p.dport == 80 and p.data.startswith(b"GET /")]
    assert len(requests) > 50
    for data in requests:
        first, host, *_ = data.split(b"\r\n")
        assert first.endswith(b" HTTP/1.1")
        assert host.startswith(b"Host: ")
        assert len(host) > 8
        assert data.endswith(b"\r\n\r\n")
    asked = {(p.source, p.sport, p.data[:2]): p.data for p in quiet if p.dport == 53}
    answers = [p for p in quiet if p.protocol == 17 and p.sport == 53]
    assert len(answers) > 300
    paired = [p for p in answers if (p.destination, p.dport, p.data[:2]) in asked]
    assert len(paired) > 0.9 * len(answers)
    for p in paired:
        question = asked[p.destination, p.dport, p.data[:2]]
        assert p.data[12 : len(question)] == question[12:]
        assert (p.data[2] & 0x80, question[2] & 0x80) == (0x80, 0)


# ---- popularity


def zipf_exponent(counts: Counter[object]) -> float:
    """The slope of the rank-frequency curve in logarithms, without its noisy far end."""
    ordered = np.sort(np.array(list(counts.values())))[::-1]
    ranks = np.unique(np.geomspace(1, len(ordered) * 0.6, 60).astype(int))
    return -float(np.polyfit(np.log(ranks), np.log(ordered[ranks - 1]), 1)[0])


@pytest.mark.parametrize(
    ("source", "pair", "four"), [(0.85, 0.67, 0.48), (0.7, 0.5, 0.3), (0.95, 0.8, 0.6)]
)
def test_popularity_follows_the_exponents(
    tmp_path: Path, source: float, pair: float, four: float
) -> None:
    profile = Profile(
        packets=250_000, source_exponent=source, pair_exponent=pair, tuple_exponent=four
    )
    generate(profile, tmp_path / "z.parquet")
    names = ["srcIP", "destIP", "srcPort", "destPort"]
    table = pq.read_table(tmp_path / "z.parquet", columns=names)
    columns = [table[name].to_pylist() for name in names]
    assert zipf_exponent(Counter(columns[0])) == pytest.approx(source, abs=0.1)
    assert zipf_exponent(Counter(zip(*columns[:2], strict=True))) == pytest.approx(pair, abs=0.1)
    assert zipf_exponent(Counter(zip(*columns, strict=True))) == pytest.approx(four, abs=0.1)


def test_the_rate_swings_and_bursts(tmp_path: Path) -> None:
    def per_second(**settings: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        generate(
            Profile(rate=2000, duration=60, **settings),  # type: ignore[arg-type]
            tmp_path / "r.parquet",
        )
        times = pq.read_table(tmp_path / "r.parquet", columns=["time"])["time"].to_numpy()
        return np.bincount(times - START)

    smooth = per_second(diurnal_amplitude=0.0, burstiness=0.0)
    bursty = per_second(diurnal_amplitude=0.0, burstiness=0.8)
    swinging = per_second(diurnal_amplitude=0.8, diurnal_period=60.0, burstiness=0.0)
    assert bursty.std() > 2 * smooth.std()
    assert swinging.max() > 3 * swinging.min()
    for counts in (smooth, bursty, swinging):
        assert counts.mean() == pytest.approx(2000, rel=0.1)


# ---- scenarios


def scenario(name: str, **settings: object) -> Profile:
    return Profile(
        rate=3000,
        duration=12,
        seed=11,
        scenarios=(Scenario(name, start=4, duration=4, **settings),),  # type: ignore[arg-type]
    )


def inside(packets: list[Packet]) -> list[Packet]:
    return [p for p in packets if (START + 4) * 10**9 <= p.timestamp < (START + 8) * 10**9]


@pytest.mark.parametrize("victim", ["198.18.0.50", "192.0.2.77", "2001:db8::53"])
def test_syn_flood(tmp_path: Path, victim: str) -> None:
    report = generate(scenario("syn_flood", victim=victim, intensity=0.3), tmp_path / "f.pcap")
    packets = list(read_pcap(tmp_path / "f.pcap"))
    flood = syns(packets, victim)
    during = syns(inside(packets), victim)
    assert len(during) == pytest.approx(0.3 * 3000 * 4, rel=0.15)
    assert len(flood) - len(during) < 0.05 * len(during), "only in its interval"
    assert len({p.source for p in during}) > 0.95 * len(during), "spoofed sources"
    assert matched(during, packets) < 0.05 * len(during)
    (done,) = report.scenarios
    assert (done.name, done.victim) == ("syn_flood", victim)
    assert (done.start, done.end) == (START + 4, START + 8)


def test_scenario_traffic_is_added_to_the_quiet_traffic(
    tmp_path: Path, quiet: list[Packet]
) -> None:
    settings = Profile(
        rate=3000, duration=10, seed=11, scenarios=(Scenario("syn_flood", victim="192.0.2.1"),)
    )
    both = generated(tmp_path, settings)
    assert [p for p in both if p.destination != "192.0.2.1"] == quiet
    assert len(both) > len(quiet)


def test_the_default_victim_depends_on_the_seed(tmp_path: Path) -> None:
    victims = set()
    for seed in range(4):
        profile = Profile(packets=1000, seed=seed, scenarios=(Scenario("syn_flood"),))
        (done,) = generate(profile, tmp_path / "v.pcap").scenarios
        victims.add(done.victim)
    assert len(victims) >= 3


def test_port_scan(tmp_path: Path) -> None:
    report = generate(scenario("port_scan"), tmp_path / "s.pcap")
    (done,) = report.scenarios
    packets = list(read_pcap(tmp_path / "s.pcap"))
    probes = [p for p in packets if p.source == done.attacker and p.flags == SYN]
    assert {p.destination for p in probes} == {done.victim}
    assert len({p.dport for p in probes}) > 0.9 * len(probes) > 400
    answers = Counter(p.flags for p in packets if p.destination == done.attacker)
    assert answers[RST | ACK] > 0.9 * len(probes)
    assert 0 < answers[SYN | ACK] < 0.1 * len(probes)


def test_amplification(tmp_path: Path) -> None:
    report = generate(scenario("amplification"), tmp_path / "a.pcap")
    (done,) = report.scenarios
    packets = list(read_pcap(tmp_path / "a.pcap"))
    large = [
        p for p in packets if p.destination == done.victim and p.sport == 53 and p.length > 1000
    ]
    assert len(large) == pytest.approx(0.4 * 3000 * 4, rel=0.2)
    assert all(p.checksums_good for p in large)
    assert len({p.source for p in large}) > 200
    assert not any(p.source == done.victim and p.dport == 53 for p in packets)
    at_rest = sum(p.sport == 53 and p.length > 1000 for p in packets) - len(large)
    assert at_rest == 0


def test_flash_crowd_is_legitimate(tmp_path: Path) -> None:
    report = generate(scenario("flash_crowd"), tmp_path / "c.pcap")
    (done,) = report.scenarios
    packets = list(read_pcap(tmp_path / "c.pcap"))
    arrivals = syns(inside(packets), done.victim)
    assert len(arrivals) > 500
    assert matched(arrivals, packets) > 0.98 * len(arrivals)
    assert len({p.source for p in arrivals}) > 0.2 * len(arrivals)
    by_end = defaultdict(list)
    for p in packets:
        by_end[p.source, p.sport].append(p.flags)
    finished = sum(any(f & FIN for f in by_end[p.source, p.sport]) for p in arrivals)
    assert finished > 0.95 * len(arrivals)


# ---- outputs


@pytest.mark.parametrize("snaplen", [65535, 80])
def test_parquet_holds_the_same_packets(tmp_path: Path, snaplen: int) -> None:
    profile = Profile(
        packets=15_000, seed=4, snaplen=snaplen, scenarios=(Scenario("syn_flood", "2001:db8::9"),)
    )
    generate(profile, tmp_path / "p.pcap")
    report = generate(profile, tmp_path / "p.parquet")
    assert sum(report.counts) == 15_000
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    for row, p in zip(rows, read_pcap(tmp_path / "p.pcap"), strict=True):
        tcp = p.protocol == 6
        assert row["time"] == p.timestamp // 10**9
        assert (row["timestamp"], row["ipversion"]) == (p.timestamp, p.version)
        assert (row["srcIP"], row["destIP"]) == (p.source, p.destination)
        assert (row["protocol"], row["ttl"]) == (p.protocol, p.ttl)
        assert (row["len"], row["wirelen"], row["caplen"]) == (p.length, p.wirelen, p.caplen)
        assert (row["srcPort"], row["destPort"]) == (p.sport, p.dport)
        assert row["flags"] == (p.flags if tcp else None)
        assert row["sequence_number"] == (p.seq if tcp else None)
        assert row["ack_number"] == (p.ack if tcp else None)


def test_links_share_the_flows(tmp_path: Path, quiet: list[Packet]) -> None:
    report = generate(Profile(rate=3000, duration=10, seed=11, links=3), tmp_path / "l.pcap")
    assert report.files == link_files(tmp_path / "l.pcap", 3)
    assert [path.name for path in report.files] == ["l-0.pcap", "l-1.pcap", "l-2.pcap"]
    links = [list(read_pcap(path)) for path in report.files]
    assert tuple(map(len, links)) == report.counts
    assert min(report.counts) > 0.2 * len(quiet)
    merged = sorted((p for link in links for p in link), key=lambda p: p.timestamp)
    assert Counter(merged) == Counter(quiet)
    owners = defaultdict(set)
    for number, packets in enumerate(links):
        for p in packets:
            if p.protocol == 6:
                owners[frozenset([(p.source, p.sport), (p.destination, p.dport)])].add(number)
    shared = sum(len(numbers) > 1 for numbers in owners.values())
    assert shared <= 0.001 * len(owners), "a flow stays on its link"


def test_gzip_is_reproducible(tmp_path: Path) -> None:
    profile = Profile(packets=2000)
    for name in ("a.pcap.gz", "b.pcap.gz", "c.pcap"):
        generate(profile, tmp_path / name)
    assert (tmp_path / "a.pcap.gz").read_bytes() == (tmp_path / "b.pcap.gz").read_bytes()
    assert (
        gzip.decompress((tmp_path / "a.pcap.gz").read_bytes()) == (tmp_path / "c.pcap").read_bytes()
    )


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.pcap"
    path.write_bytes(b"precious")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(Profile(packets=1000), path, progress=stop)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError):
        generate(Profile(packets=1000), tmp_path / "missing" / "x.pcap")


@pytest.mark.parametrize("settings", [
    {"packets": 1}, {"packets": 500, "hosts": 1, "servers": 1}, {"packets": 500, "mean_flow": 2},
    {"rate": 0.5, "duration": 2}, {"packets": 3000, "udp_share": 1.0, "icmp_share": 0.0},
    {"packets": 3000, "udp_share": 0.0, "icmp_share": 1.0}, {"packets": 3000, "ipv6_share": 1.0},
    {"packets": 3000, "retransmission_rate": 1.0}, {"packets": 3000, "rst_rate": 0.9},
    {"packets": 3000, "tuple_exponent": 0.0, "pair_exponent": 0.0, "source_exponent": 0.0},
])  # fmt: skip
def test_extreme_settings(tmp_path: Path, settings: dict[str, float]) -> None:
    packets = generated(tmp_path, Profile(**settings))  # type: ignore[arg-type]
    if "packets" in settings:
        assert len(packets) == settings["packets"]
    assert all(p.checksums_good for p in packets)
    if settings.get("ipv6_share") == 1.0:
        assert all(p.version == 6 for p in packets)
    if settings.get("udp_share") == 1.0:
        assert all(p.protocol == 17 for p in packets)
    if settings.get("icmp_share") == 1.0:
        assert {(p.version, p.protocol) for p in packets} == {(4, 1), (6, 58)}


@pytest.mark.parametrize(("settings", "message"), [
    ({"packets": 1, "rate": 1.0, "duration": 1.0}, "at most two"),
    ({"packets": 0}, "packets must be more than 0"),
    ({"udp_share": 1.0}, "udp_share and icmp_share must not exceed 1"),
    ({"udp_share": 1.5}, "udp_share must lie between 0 and 1"),
    ({"pair_exponent": 1.0}, "pair_exponent"),
    ({"hosts": 0}, "hosts must lie between"),
    ({"rate": float("nan")}, "rate must be a finite number"),
    ({"start_time": 4e9, "duration": 1e9}, "2106"),
])  # fmt: skip
def test_bad_settings_are_explained(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        Profile(**settings)  # type: ignore[arg-type]


def test_bad_scenarios_are_explained() -> None:
    with pytest.raises(ProfileError, match="unknown scenario 'flood', choose one of quiet, syn_fl"):
        Scenario("flood")
    with pytest.raises(ProfileError, match="'nobody' is not an IP address"):
        Scenario("syn_flood", victim="nobody")
