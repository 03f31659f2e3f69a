from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.partitioning.layout import read_layout
from terascope.partitioning.sets import parse_set
from terascope.pipeline import Bindings, compile_set
from terascope.splitting.follow import FollowedSplit
from terascope.splitting.rebalance import HashCounts, Rebalancer
from terascope.splitting.rule import SplitRule
from tests.agreement import local_answers
from tests.connectors.packet_bytes import Frame, ethernet, ipv4, pcap, tcp
from tests.partitioning.followed_splits import Died, dying, settings_for, split_on
from tests.partitioning.split_reading import (
    PACKET_COLUMNS,
    hashed,
    partitions_in,
    rows_of,
    split_into,
)

QUERIES = """
QUERY short: SELECT tb, srcIP, COUNT(*) AS n, SUM(len) AS b FROM TCP GROUP BY time/10 AS tb, srcIP;
QUERY whole: SELECT tb, srcIP, COUNT(*) AS n FROM TCP GROUP BY time/60 AS tb, srcIP;
QUERY crossing: SELECT tb, srcIP, COUNT(*) AS n FROM TCP GROUP BY time/90 AS tb, srcIP;
QUERY sliding: SELECT wend, srcIP, COUNT(*) AS n
FROM TCP [RANGE '30 sec' SLIDE '10 sec'] GROUP BY srcIP;
"""


def shifting(seconds: int = 300, each: int = 40) -> bytes:
    """Traffic whose busy hosts change every minute: a few networks at a time."""
    dice = random.Random(9)
    frames = []
    for second in range(seconds):
        busy = random.Random(second // 60).sample(range(200), 12)
        for k in range(each):
            host = dice.choice(busy) if dice.random() < 0.9 else dice.randrange(200)
            data = ethernet(ipv4(tcp(), source=f"10.0.0.{host}"))
            frames.append(Frame(data, 1_600_000_020 + second, k))
    return pcap(frames)


def answers(interfaces: list[Interface]) -> dict[str, list[tuple[object, ...]]]:
    bound = {one.name: one for one in interfaces}
    made = compile_set(Source(QUERIES, "q.gsql"), Bindings(bound))
    found = local_answers(made.plan, bound, 2)
    return {name: sorted(map(tuple, answer.rows), key=repr) for name, answer in found.items()}


def test_ranges_with_even_loads() -> None:
    counts = HashCounts()
    numbers = np.random.default_rng(1)
    counts.add((numbers.random(100_000) ** 3 * 2.0**64).astype(np.uint64))
    bounds = counts.even_loads(8)
    assert list(bounds) == sorted(bounds)
    assert counts.skew(bounds) < 1.2 < counts.skew(tuple((k + 1) << 61 for k in range(8)))
    assert counts.value_advice(8) == ""


def test_one_value_cannot_be_parted() -> None:
    counts = HashCounts()
    counts.add(np.full(9000, 1 << 63, np.uint64))
    counts.add(np.random.default_rng(1).integers(0, 1 << 63, 1000).astype(np.uint64))
    assert "moving the ranges does not part them" in counts.value_advice(4)
    assert counts.loads(counts.even_loads(4)).sum() == 10_000


def test_a_change_holds_from_an_edge_after_all_tuples() -> None:
    rebalancer = Rebalancer(60)
    rule = SplitRule.even(None, 4)
    hashes = (np.random.default_rng(1).random(5000) * 2.0**60).astype(np.uint64)
    rebalancer.see(hashes, np.arange(5000, dtype=np.int64) // 50)
    changed = rebalancer.decided(rule)
    assert changed.generations[-1].from_time == 120
    assert rebalancer.decided(changed) is changed  # not again before it holds
    numbers = changed.numbers(np.array([1 << 60, 1 << 60], np.uint64), np.array([119, 120]))
    assert numbers.tolist() == [0, 3]


def test_a_finished_split_with_even_loads(tmp_path: Path) -> None:
    (tmp_path / "t.pcap").write_bytes(shifting())
    source = f"e=pcap:{tmp_path / 't.pcap'}"
    interface, plain = split_into(tmp_path / "plain", source, "srcIP", 4)
    _, even = split_into(tmp_path / "even", source, "srcIP", 4, even=True)
    assert even.balance.skew < plain.balance.skew
    layout = read_layout(tmp_path / "even")
    assert layout is not None
    assert len(layout.generations) == 1
    assert answers(partitions_in(tmp_path / "even", "pcap", "e")) == answers([interface])


def follow_in_steps(tmp_path: Path, whole: bytes, die_at: str | None = None) -> Interface:
    source = tmp_path / "t.pcap"
    source.write_bytes(b"")
    settings = settings_for(f"e=pcap:{source}", "srcIP", 4, tmp_path / "p", edge=60)
    split: FollowedSplit | None = None
    for end in range(20_000, len(whole) + 20_000, 20_000):
        source.write_bytes(whole[:end])
        try:
            with dying(die_at or "planned", 2 if die_at and end % 100_000 == 0 else 1 << 30):
                split = split or FollowedSplit(settings)
                while split.step():
                    pass
        except Died:
            split = None
    split_on(settings)
    return settings.interface


@pytest.mark.parametrize("die_at", [None, "half written", "planned", "listed"])
def test_ranges_move_while_a_source_is_followed(
    tmp_path: Path, die_at: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terascope.splitting.rebalance.HOT", 1.05)
    monkeypatch.setattr("terascope.splitting.rebalance.FEWEST", 100)
    interface = follow_in_steps(tmp_path, shifting(), die_at)
    layout = read_layout(tmp_path / "p")
    assert layout is not None
    assert len(layout.generations) > 1
    assert layout.full_set == "srcIP, time/60"
    starts = [one.from_time or 0 for one in layout.generations]
    assert all(start % 60 == 0 for start in starts)
    assert starts == sorted(set(starts))
    rows = rows_of(interface)
    by = parse_set("srcIP", PACKET_COLUMNS)
    wanted: list[list[object]] = [[] for _ in range(4)]
    for row in rows:
        place = sum(start <= row["time"] for start in starts[1:])
        bounds = layout.generations[place].bounds
        wanted[sum(bound <= hashed(by, row) for bound in bounds[:-1])].append(row)
    parts = partitions_in(tmp_path / "p", "pcap", "e")
    assert [rows_of(part) for part in parts] == wanted
    assert answers(parts) == answers([interface])


def test_a_finished_split_with_an_edge(tmp_path: Path) -> None:
    (tmp_path / "t.pcap").write_bytes(shifting())
    interface, made = split_into(
        tmp_path / "p", f"e=pcap:{tmp_path / 't.pcap'}", "srcIP", 4, edge=60
    )
    assert sum(state.tuples for state in made.states) == len(rows_of(interface))
    assert answers(partitions_in(tmp_path / "p", "pcap", "e")) == answers([interface])
