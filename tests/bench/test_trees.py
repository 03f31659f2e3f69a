"""The experiments of paper 4: their streams, what they measure, what they say about it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console, RenderableType

from bench.experiment import Outcome, Settings
from bench.registry import find_experiment
from bench.trees import evictions, memory, speedup, zipf
from bench.trees.asked import WRONG, NothingWrong
from bench.trees.execution import executed, statistics_of
from bench.trees.streams import EPOCHS, Stream, has_stream, stream_of, write
from terascope.kernels.tables.table_policies import POLICIES
from terascope.sharing.cost import HashOperations
from terascope.sharing.model import Node, Tree, flat_tree
from terascope.sharing.plan import Planned
from tests.sharing.known_statistics import KnownStatistics

pytestmark = pytest.mark.bench

SCALE = 0.05


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(scale=SCALE, data=tmp_path_factory.mktemp("streams"))


@pytest.fixture(scope="module")
def generated(settings: Settings) -> Stream:
    return stream_of("generated", settings)


def outcome_of(name: str, figures: dict[str, float]) -> Outcome:
    return Outcome(name, [1.0], [figures])


def text_of(parts: list[RenderableType]) -> str:
    text = io.StringIO()
    console = Console(width=200, file=text)
    for part in parts:
        console.print(part)
    return text.getvalue()


# ---- streams -------------------------------------------------------------------------------------


def test_a_row_group_is_an_epoch(tmp_path: Path) -> None:
    epochs = np.repeat([3, 4, 6], [5, 1, 2])
    write(tmp_path / "s.parquet", epochs, {"a": np.arange(8)})
    stream = Stream("s", tmp_path / "s.parquet")
    assert (stream.epochs, stream.records, stream.attributes) == (3, 8, ("a",))
    assert [stream.epoch(number)["a"].tolist() for number in range(3)] == [
        [0, 1, 2, 3, 4],
        [5],
        [6, 7],
    ]


@pytest.mark.parametrize("name", ["zipf", "uniform", "generated", "real"])
def test_streams_have_thirteen_attributes(name: str, settings: Settings) -> None:
    if not has_stream(name):
        pytest.skip("no real connections here")
    stream = stream_of(name, settings)
    assert len(stream.attributes) == 13
    assert stream.epochs == (3 if name == "real" else EPOCHS)
    counts = [len(stream.epoch(number)["srcPort"]) for number in range(stream.epochs)]
    assert sum(counts) == stream.records
    assert min(counts) > 0.7 * stream.records / stream.epochs


# ---- fig2-zipf -----------------------------------------------------------------------------------


def test_generated_records_have_the_exponents_of_the_paper(generated: Stream) -> None:
    found = dict(zipf.Skewed("generated", generated).figures())
    assert found[WRONG] == 0
    for keys, paper in zipf.PAPER.items():
        assert found[zipf.exponent(keys)] == pytest.approx(paper, abs=0.1)
    outcome = outcome_of("generated", found)
    for keys in zipf.KEY_SETS:
        ranks, often = zipf.curve(outcome, keys)
        assert ranks[0] == 1
        assert ranks[-1] == found[zipf.groups(keys)]
        assert often == sorted(often, reverse=True)
    assert "0.85" in text_of(zipf.tables([outcome]))


# ---- fig3-evictions ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zipf 0.67", "uniform"])
def test_tables_evict_what_is_predicted_for_independent_draws(name: str) -> None:
    found = dict(evictions.Evicting(name, 150_000, 3).figures())
    assert found[WRONG] == 0
    outcome = outcome_of(name, found)
    for policy in POLICIES:
        assert evictions.off(outcome, evictions.predicted(policy), policy) < 0.02
        rates = [found[evictions.rate(policy, part)] for part in evictions.PARTS]
        assert rates == sorted(rates, reverse=True)
    assert found[evictions.rate("lru", 1.0)] == 0
    assert evictions.off(outcome, evictions.WORKING_SET, "lru") < 0.02


def test_real_connections_need_the_working_set(settings: Settings) -> None:
    """They come in bursts: a model that takes them for independent is far off."""
    if not has_stream("real"):
        pytest.skip("no real connections here")
    stream = stream_of("real", settings)
    outcome = outcome_of(
        "real src", dict(evictions.Evicting("real src", 0, 1, stream, "src").figures())
    )
    assert evictions.off(outcome, evictions.WORKING_SET, "lru") < 0.02
    assert evictions.off(outcome, evictions.predicted("lru"), "lru") > 0.1


def test_tables_and_panels_for_every_stream() -> None:
    figures = dict(evictions.Evicting("uniform", 20_000, 3).figures())
    outcomes = [outcome_of(name, figures) for name in ("one", "two")]
    text = text_of(evictions.tables(outcomes))
    assert text.count("evicted of a tuple") == 2
    assert f"{figures[evictions.rate('lemma 7.1', 0.2)]:.3f}" in text
    picture = pytest.importorskip("matplotlib.figure").Figure()
    evictions.draw(picture, outcomes)
    assert sum(axes.get_visible() for axes in picture.axes) == 2


# ---- fig4-memory, fig5-speedup -------------------------------------------------------------------

FEW = ("srcIP", "dstPort", "protocol", "tos", "tcp_flags")


@pytest.fixture(scope="module")
def narrow(generated: Stream, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """Five attributes of generated flow records."""
    path = tmp_path_factory.mktemp("narrow") / "narrow.parquet"
    epochs = [generated.epoch(number) for number in range(generated.epochs)]
    numbers = np.repeat(np.arange(len(epochs)), [len(epoch["tos"]) for epoch in epochs])
    columns = {name: np.concatenate([epoch[name] for epoch in epochs]) for name in FEW}
    write(path, numbers, columns)
    return Stream("narrow", path)


def test_a_flat_tree_takes_a_look_up_for_each_query_and_tuple(narrow: Stream) -> None:
    statistics = statistics_of(narrow)
    flat = flat_tree(memory.pair_queries(FEW))
    made = executed(narrow, flat, "lru", statistics)
    assert made.total == made.during == 10 * statistics.tuples
    assert made.lost == 0


@pytest.mark.parametrize("allocation", memory.ALLOCATIONS)
def test_hash_operations_are_what_is_predicted(
    narrow: Stream, allocation: memory.Allocation
) -> None:
    buckets = (300, 100_000)
    found = dict(memory.Planning(allocation, narrow, buckets, buckets).figures())
    assert found[WRONG] == 0
    outcome = outcome_of(f"{allocation} narrow", found)
    for number in buckets:
        assert found[f"measured {number}"] <= found["flat"]
        assert memory.off(outcome, number) == pytest.approx(0, abs=0.1)
        said, seen = (found[f"{what} during {number}"] for what in ("predicted", "measured"))
        assert said == pytest.approx(seen, rel=0.15)
    assert found["nodes 100000"] > 0


def plan_costing(total: float, buckets: float) -> Planned:
    tree = Tree((Node(frozenset("ab"), None, False, buckets), Node(frozenset("a"), 0, True, 0.0)))
    cost = HashOperations(total, 0.0, 0.0, (total, total))
    return Planned(tree, cost, cost, 0.0, tree)


def test_laws_that_plans_break_are_counted() -> None:
    statistics = KnownStatistics(1e6, {frozenset("a"): 10.0, frozenset("b"): 10.0})
    falling = [plan_costing(20.0, 50.0), plan_costing(10.0, 100.0), plan_costing(10.0, 100.0)]
    assert memory.broken_laws(falling, statistics) == 0
    assert memory.broken_laws([*falling, plan_costing(11.0, 100.0)], statistics) == 1
    assert memory.broken_laws([*falling, plan_costing(10.0, 120.0)], statistics) == 1


def test_the_report_of_fig4_has_both_plans_beside_each_other() -> None:
    figures = {WRONG: 0.0}
    for number in (10_000, 5_000_000):
        figures |= {f"predicted {number}": 9.0e6, f"predicted during {number}": 4.0e6}
        figures |= {f"measured {number}": 10.0e6, f"measured during {number}": 5.0e6}
    outcomes = [
        outcome_of("fptas zipf", figures),
        outcome_of("slc zipf", {name: 2 * value for name, value in figures.items()}),
    ]
    text = text_of(memory.tables(outcomes))
    assert "-10.0%" in text
    assert "FPTAS takes 50% fewer at 5,000,000 buckets" in text
    picture = pytest.importorskip("matplotlib.figure").Figure()
    memory.draw(picture, outcomes)
    assert len(picture.axes) == 3


def test_sets_of_queries_differ_and_are_the_same_again(generated: Stream) -> None:
    some = speedup.SomeQueries(20, generated, 1)
    sets = some.query_sets()
    assert len({frozenset(queries) for queries in sets}) == speedup.SETS
    assert all(len(set(queries)) == 20 for queries in sets)
    assert some.query_sets() == sets
    assert len(speedup.SomeQueries(78, generated, 1).query_sets()) == 1


def test_reductions_are_parts_of_what_slc_takes() -> None:
    figures = {WRONG: 0.0}
    for number in speedup.BUCKETS:
        figures[speedup.cost("fptas", "planned", number, 0)] = 30.0
        figures[speedup.cost("slc", "planned", number, 0)] = 40.0
    outcome = outcome_of("20 queries", figures)
    assert speedup.reductions(outcome, "planned", 50_000) == [0.25]
    assert speedup.reductions(outcome, "measured", 50_000) == []
    assert "25%" in text_of(speedup.tables([outcome]))
    picture = pytest.importorskip("matplotlib.figure").Figure()
    speedup.draw(picture, [outcome])
    assert len(picture.axes) == 1


# ---- all of them ---------------------------------------------------------------------------------


def test_what_is_wrong_is_said() -> None:
    right, wrong = outcome_of("right", {WRONG: 0.0}), outcome_of("wrong", {WRONG: 2.0})
    NothingWrong("lost tuples").judge([right, wrong])
    assert right.checked
    assert not wrong.checked
    assert wrong.remark == "2 lost tuples"


@pytest.mark.parametrize("name", ["fig2-zipf", "fig3-evictions", "fig4-memory", "fig5-speedup"])
def test_experiments_are_registered(name: str, settings: Settings) -> None:
    prepared = find_experiment(name).prepare(settings, lambda line: None)
    names = [c.name for c in prepared.contenders]
    assert len(names) == len(set(names)) > 0
    streams = " ".join([*names, *prepared.absent])
    assert ("real" in streams) == (name != "fig5-speedup")
