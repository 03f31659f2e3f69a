"""The experiments of paper 4: their streams, what they measure, what they say about it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console, RenderableType

from bench.experiment import Outcome, Settings
from bench.registry import find_experiment
from bench.trees import evictions, zipf
from bench.trees.asked import WRONG, NothingWrong
from bench.trees.streams import EPOCHS, Stream, has_stream, stream_of, write
from terascope.low.table_policies import POLICIES

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


# ---- all of them ---------------------------------------------------------------------------------


def test_what_is_wrong_is_said() -> None:
    right, wrong = outcome_of("right", {WRONG: 0.0}), outcome_of("wrong", {WRONG: 2.0})
    NothingWrong("lost tuples").judge([right, wrong])
    assert right.checked
    assert not wrong.checked
    assert wrong.remark == "2 lost tuples"


@pytest.mark.parametrize("name", ["fig2-zipf", "fig3-evictions"])
def test_experiments_are_registered(name: str, settings: Settings) -> None:
    prepared = find_experiment(name).prepare(settings, lambda line: None)
    names = [c.name for c in prepared.contenders]
    assert len(names) == len(set(names)) > 0
    assert any(n.startswith("real") for n in [*names, *prepared.absent])
