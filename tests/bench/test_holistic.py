"""The experiments of paper 1: data, costs by level, answers, and what they say about them."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from bench.experiment import Outcome, Prepared, Settings
from bench.holistic import peer_accuracy, replayed
from bench.holistic.contenders import NULL, LevelContender, level
from bench.holistic.generated import LENGTHS, SHORTEST, Generated
from bench.holistic.gsql_costs import BY_PAIR, gsql_cost, gsql_of
from bench.holistic.hitter_answers import RANKS, distances, top_five, weights_of, wrong_hitters
from bench.holistic.hitters import CONTENDERS, hitter_udaf, kind_of
from bench.holistic.level_costs import LevelClock, Udaf, level_cost
from bench.holistic.peer_engines import DATASKETCHES, DUCKDB_NAME
from bench.holistic.quantiles import quantile_udaf, wrong_quantiles
from bench.holistic.replayed import Replayed, address_numbers
from bench.holistic.udaf_peers import CORE
from bench.registry import find_experiment
from bench.trees.asked import WRONG

pytestmark = pytest.mark.bench

SCALE = 0.002


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(scale=SCALE, data=tmp_path_factory.mktemp("udafs"))


@pytest.fixture(scope="module", autouse=True)
def no_capture() -> Iterator[None]:
    """Generated packets, wherever the tests run: few, and the same everywhere."""
    patch = pytest.MonkeyPatch()
    patch.setattr(replayed, "CAPTURE", Path("no-such-capture.pcap"))
    patch.setattr(replayed, "SYNTHETIC_PACKETS", 3_000)
    yield
    patch.undo()


def prepared_experiment(name: str, settings: Settings) -> Prepared:
    return find_experiment(name).prepare(settings, lambda line: None)


def outcomes_of(prepared: Prepared, folder: Path, only: tuple[str, ...] = ()) -> list[Outcome]:
    """One run of each contender, in this process."""
    found = []
    for contender in prepared.contenders:
        if only and contender.name not in only:
            continue
        output = folder / contender.name
        output.mkdir()
        running = contender.start(1)
        outcome = Outcome(contender.name, [1.0], [running.run(output)])
        running.close()
        prepared.check.look(outcome, output)
        found.append(outcome)
    prepared.check.judge(found)
    return found


def said(prepared: Prepared, outcomes: list[Outcome]) -> str:
    """What is printed; the picture is drawn, too."""
    assert prepared.conclude is not None
    assert prepared.draw is not None
    prepared.draw(Figure(), outcomes)
    text = io.StringIO()
    console = Console(width=300, file=text)
    for part in prepared.conclude(outcomes):
        console.print(part)
    return text.getvalue()


# ---- data ----------------------------------------------------------------------------------------


def test_generated_traffic_is_that_of_the_paper(settings: Settings) -> None:
    table = pq.read_table(Generated(100, LENGTHS).path(Settings(scale=0.05, data=settings.data)))
    lengths = table.column("len").to_numpy()
    assert lengths.min() >= SHORTEST
    assert lengths.mean() == pytest.approx(782, rel=0.01)
    assert len(np.unique(lengths)) == LENGTHS
    groups = np.bincount(table.column("srcIP").to_numpy())
    assert len(groups) == 100
    assert groups.max() < 1.2 * groups.mean()


def test_skewed_traffic_has_few_large_groups(settings: Settings) -> None:
    table = pq.read_table(Generated(1_000, 120, skewed=True).path(settings))
    groups = np.sort(np.bincount(table.column("srcIP").to_numpy()))[::-1]
    assert groups[:30].sum() > 0.4 * groups.sum()


def test_ports_and_addresses_are_the_same_values(settings: Settings) -> None:
    table = pq.read_table(Generated(100, 120).path(settings), columns=["destIP", "destPort"])
    pairs = table.group_by(["destIP", "destPort"]).aggregate([])
    assert pairs.num_rows == len(set(table.column("destIP").to_pylist())) <= 120
    ports = table.column("destPort").to_numpy()
    assert ports.max() - ports.min() < 120


def test_intervals_have_as_many_tuples_each(settings: Settings) -> None:
    table = pq.read_table(Generated(10, 10, intervals=3).path(settings), columns=["tb"])
    assert set(Counter(table.column("tb").to_pylist()).values()) == {settings.count(3_100_000)}


def test_packets_are_replayed_from_the_beginning(settings: Settings) -> None:
    once = replayed.decoded_once(settings)
    again = pq.read_table(Replayed(2 * once.num_rows).path(settings))
    for name in ("srcIP", "destIP", "len"):
        values = again.column(name).to_numpy()
        assert np.array_equal(values[: once.num_rows], once.column(name).to_numpy())
        assert np.array_equal(values[once.num_rows :], once.column(name).to_numpy())
    captured = pq.read_table(Replayed(2 * once.num_rows, "captured").path(settings))
    times = captured.column("time").to_numpy()
    assert (np.diff(times) >= 0).all()
    assert times[once.num_rows] % replayed.EPOCH == times[0] % replayed.EPOCH


def test_addresses_have_32_bits() -> None:
    long = b"\6" + bytes(range(16))
    found = address_numbers(pa.array([b"\4\1\2\3\4", long, b"\4\1\2\3\4"], pa.binary())).to_pylist()
    assert found[0] == found[2] == 0x01020304
    assert 0 <= found[1] < 1 << 32


# ---- costs ---------------------------------------------------------------------------------------


def test_a_clock_counts_for_the_inner_part() -> None:
    clock = LevelClock()
    with clock.on("table"), clock.on("high states"):
        sum(range(2_000_000))
    assert clock.spent["high states"] > 20 * clock.spent["table"]


def test_states_that_go_up_are_counted(settings: Settings) -> None:
    path = Generated(100, LENGTHS).path(settings)
    alone = level_cost(path, [hitter_udaf("high_only")])
    buffered = level_cost(path, [hitter_udaf("compress+adaptive")])
    assert alone.sent_bytes > 2 * buffered.sent_bytes > 0
    assert level_cost(path, [hitter_udaf(NULL)]).sent_bytes == 0


def test_wrong_answers_are_seen(settings: Settings) -> None:
    path = Generated(100, LENGTHS).path(settings)
    quantile, hitter = (quantile_udaf("alg1_lite", "len"),), (hitter_udaf("compress+adaptive"),)
    quantiles = level_cost(path, quantile).groups
    assert wrong_quantiles(quantiles, path, quantile)[WRONG] == 0
    assert wrong_quantiles(shifted(quantiles), path, quantile)[WRONG] > 0
    hitters = level_cost(path, hitter).groups
    assert wrong_hitters(hitters, path, hitter)[WRONG] == 0
    assert wrong_hitters(shifted(hitters), path, hitter)[WRONG] > 0


def shifted(groups: pa.Table) -> pa.Table:
    """Every group has the state of another."""
    states = groups.column("u0").to_pylist()
    moved = pa.array([*states[1:], states[0]], groups.schema.field("u0").type)
    return groups.set_column(groups.schema.get_field_index("u0"), "u0", moved)


def test_ranks_of_the_top() -> None:
    assert distances([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).tolist() == [5, 0, 0, 0]
    assert distances([2, 1, 5, 4, 9], [1, 2, 3, 4, 5]).tolist() == [1, 2, 1, 1]
    assert distances([], [1]).tolist() == [0, 0, 0, 1]


def test_exact_states_have_the_true_top(settings: Settings) -> None:
    path = Generated(10, 10).path(settings)
    udaf = hitter_udaf("compress+adaptive")
    found = top_five(level_cost(path, [udaf]).groups, path, (udaf,))
    assert found == {"correct": 100.0, "off by one": 0, "off by more": 0, "missed": 0, WRONG: 0}
    ids, weights = weights_of(path, udaf)(0, 3)
    assert (np.diff(weights) <= 0).all()
    assert len(set(ids.tolist())) == len(ids) == 10


@pytest.mark.parametrize("contender", [c for c in CONTENDERS if c != NULL])
def test_contenders_are_the_strategies_of_the_aggregate(contender: str) -> None:
    from terascope.functions.aggregates.hitters import state_kind
    from terascope.sketches.hitter_ids import IdKind

    ours, theirs = kind_of(contender), state_kind(IdKind.INTEGER, contender)
    numbers = np.arange(400) % 3
    arguments = (np.arange(400) % 90, np.full(400, 7))
    for one, other in ((ours.low(), theirs.low()), (ours.high(), theirs.high())):
        one.iterate(numbers, arguments)
        other.iterate(numbers, arguments)
        assert one.pack(np.arange(3)).equals(other.pack(np.arange(3)))


def test_a_query_of_users_has_a_cost(settings: Settings) -> None:
    path = Replayed(5_000).path(settings)
    table = pq.read_table(path, columns=["tb", "srcIP", "destIP"])
    cost = gsql_cost(path, gsql_of("SUM(len) AS s", BY_PAIR))
    assert cost.groups == table.group_by(["tb", "srcIP", "destIP"]).aggregate([]).num_rows
    assert cost.total > 0


# ---- experiments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table3-quantiles", ["alg2_heavy", "11.8 + 0.129 = 11.9", "cheapest first"]),
        ("fig4-quantiles", ["10,000 groups, large", "1,436 values", "high_only"]),
        ("fig5-6-sketches", ["Figure 6, skewed", "buffer+direct", "bytes that go up"]),
        ("fig7-real", ["four heavy hitters", "hash+adaptive", "cheapest"]),
        ("fig8-groups", ["30,000 groups", "low_sketch"]),
        ("fig9-10-adaptive", ["adaptive_256", "Figure 10"]),
        ("fig11-accuracy", ["off by more", "most misses on uniform traffic", "adaptive 14%"]),
    ],
)
def test_costs_of_levels(name: str, words: list[str], settings: Settings, tmp_path: Path) -> None:
    prepared = prepared_experiment(name, settings)
    names = [contender.name for contender in prepared.contenders]
    assert names[:3] == ["null", "high_only", "low_sketch"]
    outcomes = outcomes_of(prepared, tmp_path)
    assert [o.contender for o in outcomes if not o.checked] == []
    contender = prepared.contenders[-1]
    assert isinstance(contender, LevelContender)
    point = contender.points[0].name
    costs = {o.contender: level(o, point, "total") for o in outcomes}
    assert all(cost is None or cost > 0 for cost in costs.values())
    text = said(prepared, outcomes)
    for word in words:
        assert word in text


def test_accuracy_has_no_mean_over_kinds_of_traffic(settings: Settings, tmp_path: Path) -> None:
    """It would hide the traffic on which much is missed behind that on which nothing is."""
    prepared = prepared_experiment("fig11-accuracy", settings)
    contender = prepared.contenders[-1]
    assert isinstance(contender, LevelContender)
    hard, easy = contender.points[0].name, contender.points[2].name
    figures = {f"{hard}: {kind}": 25.0 for kind in RANKS[:-1]} | {f"{hard}: missed": 43.0}
    figures |= {f"{easy}: {kind}": 0.0 for kind in RANKS}
    text = said(prepared, [Outcome("adaptive", [1.0], [figures])])
    assert "most misses on uniform traffic: adaptive 43.0%" in text
    assert "21.5" not in text


def test_traffic(settings: Settings, tmp_path: Path) -> None:
    prepared = prepared_experiment("fig2-3-traffic", settings)
    outcomes = outcomes_of(prepared, tmp_path)
    assert all(o.checked for o in outcomes)
    assert outcomes[0].figure("groups up to 1000000") == 100
    text = said(prepared, outcomes)
    assert "1,110,000" in text
    assert "as captured" in text


def test_peers(settings: Settings, tmp_path: Path) -> None:
    """Those that need no Spark; what Spark answers is SQL of the same form."""
    prepared = prepared_experiment("udaf-peers", settings)
    assert [c.name for c in prepared.contenders][:3] == ["terascope", "spark", "spark_kll"]
    outcomes = outcomes_of(prepared, tmp_path, (DUCKDB_NAME, DATASKETCHES, CORE))
    assert [o.remark for o in outcomes] == ["", "", ""]
    assert all(o.checked for o in outcomes)
    text = said(prepared, outcomes)
    assert "percentile and heavy hitters" in text
    assert "10k_groups-hitters" in text


def test_errors_of_peers() -> None:
    held = np.repeat([1, 2, 3, 4, 5, 6], [9, 8, 7, 6, 5, 1])
    assert peer_accuracy.missed_share(held, [1, 2, 3, 4, 5]) == 0
    assert peer_accuracy.missed_share(held, [1, 2, 3, 4, 6]) == pytest.approx(0.2)
    assert peer_accuracy.missed_share(held, json.dumps([{"id": "1", "estimate": 9}])) == 0.8
    assert peer_accuracy.missed_share(held, [{"item": 1, "count": 9}]) == pytest.approx(0.8)
    values = np.arange(1, 101)
    error = partial(peer_accuracy.percentile_error, values)
    assert error(50) == error(51) == error(50.5) == 0
    assert error(60) == pytest.approx(0.09)
    assert error(40) == pytest.approx(0.09)


def test_a_udaf_without_a_state_is_a_sum(settings: Settings) -> None:
    path = Generated(10, 10).path(settings)
    groups = level_cost(path, [Udaf(("len",))]).groups
    total = int(pq.read_table(path, columns=["len"]).column("len").to_numpy().sum())
    assert sum(groups.column("u0").to_pylist()) == total
