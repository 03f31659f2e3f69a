"""When the strategies of states change in a running set, and what decides them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from terascope.config import Config
from terascope.execute.grouping.table_states import TableStates
from terascope.functions.slots import COUNT, state_slot
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot
from terascope.physical.rules.choose_strategies import levels_of, on_levels
from terascope.plan.build import call
from terascope.plan.expr import Col, Lit
from terascope.sketches.base import Levels, Traffic
from terascope.sketches.greenwald_khanna import quantile_kind
from terascope.streaming.replan.replanning import Replanner
from terascope.streaming.replan.samples import TupleSample
from terascope.streaming.replan.strategies import slice_traffic, with_chosen
from terascope.streaming.replan.tree_plans import PlannedTraffic, choices_of, in_force
from terascope.types import Type
from tests.functions.travel import dumps
from tests.settings import config_with

APART = config_with(low_cores_per_high=8.0, replan_core=float("inf"))


def column(name: str) -> Col:
    return Col(name, Type.LLONG)


def plan_of(strategy: str = "") -> LowPlan:
    epoch = call("/", column("ts"), Lit(100, Type.LLONG))
    state = Slot("mid", state_slot(quantile_kind(0.01, strategy)), column("v"), Type.BINARY)
    count = Slot("n", COUNT, None, Type.LLONG)
    keys = (("tb", epoch), ("a", column("a")))
    query = LowAggregate("q", ("left",), (), (), keys, 0, (count, state))
    return LowPlan((), (), (query,), compiled=False)


def strategy_of(low: LowPlan) -> str:
    (query,) = low.aggregations
    state = query.slots[1].kind.state
    assert state is not None
    return state.strategy if state.choose is None else "open"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def replanner(folder: Path, clock: Clock, config: Config = APART, strategy: str = "") -> Replanner:
    read = SourceRead("left", (), (), None, (), low=plan_of(strategy))
    return Replanner([read], folder, config, clock, lambda work: work())


def sample(epoch: int, groups: int, count: int = 4000) -> TupleSample:
    (family,) = choices_of("left", plan_of())
    keys = np.random.default_rng(epoch).integers(0, groups, count).astype(np.uint32)
    return TupleSample(family.key, 1.0, np.full(count, epoch, np.int64), {"a": keys})


def test_a_choice_is_made_a_minute_and_three_slices_after_the_last(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    assert made.wants_samples
    for epoch in range(6):
        made.ingest([], [sample(epoch, 2)])
    (told,) = made.strategies()
    assert (told.strategy, told.tuples, told.groups) == ("", 4000.0, 2.0)
    clock.now += 60.0
    made.ingest([], [sample(6, 2)])
    (told,) = made.strategies()
    assert (told.query, told.state, told.strategy) == ("q", "mid", "gk_heavy")
    assert told.why == (
        "2,000 tuples a group; 8 cores read for each that merges (low_cores_per_high):"
        " 96 ns a tuple, gk_lite 166"
    )
    assert told.since == clock.now
    assert in_force(tmp_path) == made.trees
    clock.now += 1000.0
    for epoch in range(7, 10):
        made.ingest([], [sample(epoch, 3000)])
    assert made.strategies()[0].strategy == "gk_heavy", "two slices of the other traffic are over"
    made.ingest([], [sample(10, 3000)])
    assert made.strategies()[0].strategy == "gk_lite"
    assert made.trees.number == 2
    made.ingest([], [sample(epoch, 3000) for epoch in range(11, 30)])
    assert made.trees.number == 2, "the best strategy is in force"


def test_the_traffic_in_force_decides_in_tasks_and_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    clock.now += 100.0
    made.ingest([], [sample(epoch, 2) for epoch in range(5)])
    levels = levels_of(APART)
    assert strategy_of(with_chosen("left", plan_of(), made.trees.traffic, levels)) == "gk_heavy"
    assert strategy_of(with_chosen("left", plan_of(), made.trees.traffic, Levels())) == "gk_lite"
    assert strategy_of(with_chosen("right", plan_of(), made.trees.traffic, levels)) == "open"
    later = replanner(tmp_path, clock)
    assert later.trees == made.trees
    other = replanner(tmp_path, clock, strategy="gk_medium")
    assert other.trees.traffic == {}, "the query names a strategy now"
    assert not other.wants_samples
    assert other.strategies() == ()


def test_heartbeats_count_what_samples_miss() -> None:
    (query,) = plan_of().aggregations
    whole = slice_traffic(query, [sample(1, 40)], 0)
    assert (whole.tuples, round(whole.groups)) == (4000.0, 40)
    assert whole.exponent < 0.3
    missed = slice_traffic(query, [sample(1, 40)], 40_000)
    assert missed.tuples == 40_000
    assert missed.groups == pytest.approx(40, abs=1)
    thin = slice_traffic(query, [replace(sample(1, 40), chance=0.1)], 0)
    assert thin.tuples == pytest.approx(40_000)


def test_levels() -> None:
    assert levels_of(config_with(master="local[4]")).shares_core
    cluster = levels_of(config_with(master="spark://host:7077"))
    assert cluster.shares_core
    assert "executors" in cluster.why
    apart = levels_of(config_with(low_cores_per_high=4.0))
    assert apart.low_cores == 4.0
    assert apart.cost(10.0, 5.0) == 20.0, "the high level is busier"
    assert apart.cost(30.0, 5.0) == 30.0
    assert Levels().cost(10.0, 5.0) == 15.0


def test_a_choice_left_to_tasks_knows_the_levels() -> None:
    informed = pickle.loads(dumps(on_levels(plan_of(), Levels(8.0))))
    (query,) = informed.aggregations
    states = TableStates(query.slots, TaskDictionaries())
    rows = np.arange(10_000, dtype=np.int32)
    states.decide([np.zeros(10_000, np.int32)], rows)
    (own,) = states._slots.values()
    assert own.kind.strategy == "gk_heavy"
    assert quantile_kind(0.01).choose is not None
    assert PlannedTraffic(1e4, 1.0, 0.0).on(Levels(8.0)) == Traffic(1e4, 1.0, 0.0, Levels(8.0))
