"""When tables and trees change: how much must be saved, for how many slices, how long after the
last.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.config import Config
from terascope.functions import slots
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot
from terascope.physical.rules.grow_trees import decided, families
from terascope.plan.build import call
from terascope.plan.expr import Col, Lit
from terascope.streaming.heartbeat import Heartbeat
from terascope.streaming.replan import replanning
from terascope.streaming.replan.replanning import THREAD, Replanner, together
from terascope.streaming.replan.samples import TupleSample
from terascope.streaming.replan.tree_choice import (
    Choosing,
    Comparison,
    Patience,
    connected,
)
from terascope.streaming.replan.tree_plans import (
    AggregateFamily,
    PlannedSharing,
    families_of,
    grafted,
    in_force,
)
from terascope.types import Type
from tests.settings import config_with
from tests.sharing.known_statistics import KnownStatistics

RULES = config_with(replan_core=float("inf"))
MODES = [
    config_with(share_trees="time"),
    config_with(share_trees="operations", tree_memory=1 << 20, tree_leaves="free"),
]
ALL_MODES = [
    *MODES,
    config_with(share_trees="operations", tree_memory=1 << 20),
    config_with(share_trees="operations", tree_memory=50_000),
]
COUNT = Slot("n", slots.COUNT, None, Type.LLONG)
PAIRS = ("ac", "ad", "cd", "bc", "bd")


# ---- patience ------------------------------------------------------------------------------------


def test_three_slices_one_after_the_other() -> None:
    patience = Patience(RULES, changed=0.0)
    for _ in range(2):
        patience.note("f", 0.2)
        assert patience.due(1000.0) == []
    patience.note("f", 0.2)
    assert patience.due(1000.0) == ["f"]


def test_a_slice_without_gain_begins_the_count_anew() -> None:
    patience = Patience(RULES, changed=0.0)
    for gain in (0.2, 0.2, 0.1, 0.2, 0.2):
        patience.note("f", gain)
    assert patience.due(1000.0) == []
    patience.note("f", 0.2)
    assert patience.due(1000.0) == ["f"]


def test_the_gain_must_be_more_than_the_limit() -> None:
    patience = Patience(RULES, changed=0.0)
    patience.note("f", 0.15, slices=3)
    assert patience.due(1000.0) == []
    patience.note("f", float(np.nextafter(0.15, 1.0)), slices=3)
    assert patience.due(1000.0) == ["f"]


def test_a_minute_after_the_last_change() -> None:
    patience = Patience(RULES, changed=100.0)
    patience.note("f", 0.5, slices=3)
    assert patience.due(float(np.nextafter(160.0, 0.0))) == []
    assert patience.due(160.0) == ["f"]
    patience.change(["f"], 160.0)
    patience.note("f", 0.5, slices=2)
    assert patience.due(500.0) == [], "slices count from the change on"
    patience.note("f", 0.5)
    assert patience.due(219.0) == []
    assert patience.due(220.0) == ["f"]


def test_families_wait_for_the_same_minute_and_count_for_themselves() -> None:
    patience = Patience(RULES, changed=0.0)
    patience.note("f", 0.5, slices=3)
    patience.note("g", 0.5, slices=2)
    assert patience.due(60.0) == ["f"]
    patience.change(["f"], 60.0)
    patience.note("g", 0.5)
    assert patience.due(100.0) == []
    assert patience.due(120.0) == ["g"]


# ---- costs ---------------------------------------------------------------------------------------


def column(name: str) -> Col:
    return Col(name, Type.LLONG)


def plan_of(keys: Sequence[str]) -> LowPlan:
    """Aggregations by these columns, a letter each."""
    epoch = call("/", column("ts"), Lit(100, Type.LLONG))
    queries = tuple(
        LowAggregate(
            f"q_{some}",
            ("left",),
            (),
            (),
            (("tb", epoch), *((letter, column(letter)) for letter in some)),
            0,
            (COUNT,),
        )
        for some in keys
    )
    return LowPlan((), (), queries, compiled=False)


def read_of(keys: Sequence[str]) -> SourceRead:
    return SourceRead("left", (), (), None, (), low=plan_of(keys))


def family_of(keys: Sequence[str]) -> AggregateFamily:
    (found,) = families_of("left", plan_of(keys))
    return found


def known(**groups: float) -> KnownStatistics:
    return KnownStatistics(10_000.0, {frozenset({name}): g for name, g in groups.items()})


IDS = family_of(PAIRS).ids
FIRST = known(a=4, b=3000, c=3, d=3)
SECOND = known(a=3000, b=4, c=3, d=3)
EITHER = known(a=50, b=60, c=70, d=80)


@dataclass(frozen=True)
class AllAlike:
    """Traffic of which every aggregation takes all."""

    statistics: KnownStatistics

    def __call__(self, conditions: frozenset[str]) -> tuple[KnownStatistics, float]:
        assert len(conditions) == 1
        return self.statistics, 3.0


def choosing(
    traffic: KnownStatistics, mode: Config, family: AggregateFamily | None = None
) -> Choosing:
    return Choosing("left", family or family_of(PAIRS), AllAlike(traffic), mode)


def better(traffic: KnownStatistics, mode: Config, present: PlannedSharing | None) -> Comparison:
    return Choosing("left", family_of(PAIRS), AllAlike(traffic), mode).compared(present)


def attributes(shared: PlannedSharing) -> set[frozenset[str]]:
    return {node.attributes for one in shared.trees for node in one.tree.nodes}


@pytest.mark.parametrize("mode", ALL_MODES, ids=lambda m: f"{m.share_trees} {m.tree_leaves}")
def test_the_cost_of_a_planned_tree_is_what_its_plan_says(mode: Config) -> None:
    """In each of three pieces."""
    family = family_of(PAIRS)
    for statistics in (FIRST, SECOND):
        made = choosing(statistics, mode)
        found = decided("left", family.members, statistics, mode)
        best, flat = (made.cost(one, IDS) for one in (made.best(), PlannedSharing()))
        # Tables that nothing was decided about have all the memory they want.
        assert best == pytest.approx(min(3 * found.cost, flat))
        assert mode.tree_memory == 50_000 or best < flat


@pytest.mark.parametrize("mode", ALL_MODES, ids=lambda m: f"{m.share_trees} {m.tree_leaves}")
def test_the_best_tree_gains_nothing_over_itself(mode: Config) -> None:
    best = better(FIRST, mode, None).best
    again = better(FIRST, mode, best)
    assert again.gain == pytest.approx(0.0)
    assert again.best.trees == best.trees


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.share_trees)
def test_skew_that_changes_place_makes_another_tree_better(mode: Config) -> None:
    start = better(FIRST, mode, None)
    assert start.gain > 0.15
    assert frozenset("acd") in attributes(start.best)
    after = better(SECOND, mode, start.best)
    assert after.gain > 0.15
    assert frozenset("bcd") in attributes(after.best)
    assert frozenset("acd") not in attributes(after.best)


sizes = st.sampled_from([2.0, 5.0, 40.0, 700.0, 9000.0])


@settings(max_examples=40, deadline=None)
@given(st.tuples(sizes, sizes, sizes, sizes), st.tuples(sizes, sizes, sizes, sizes))
def test_costs_agree_with_plans_for_any_traffic(
    before: tuple[float, ...], after: tuple[float, ...]
) -> None:
    """What is said of a plan is what was planned; and of that of other traffic, that it is no
    better than the best one of this by more than such a search may miss.
    """
    mode = MODES[0]
    own = known(**dict(zip("abcd", before, strict=True)))
    old = choosing(own, mode).best()
    if old.trees:
        found = decided("left", family_of(PAIRS).members, own, mode)
        assert choosing(own, mode).cost(old, IDS) == pytest.approx(3 * found.cost)
    other = choosing(known(**dict(zip("abcd", after, strict=True))), mode)
    assert other.cost(old, IDS) > 0.8 * other.cost(other.best(), IDS)


# ---- different conditions ------------------------------------------------------------------------


def rivals_of(*keys: str) -> AggregateFamily:
    """Aggregations by these columns, each with a condition of its own."""
    flat = plan_of(keys)
    predicates = tuple(call("<", column("v"), Lit(n, Type.LLONG)) for n in range(len(keys)))
    queries = tuple(
        replace(query, name=f"{query.name}_{n}", signature=(n,))
        for n, query in enumerate(flat.queries)
        if isinstance(query, LowAggregate)
    )
    (found,) = families_of("left", replace(flat, predicates=predicates, queries=queries))
    return found


@dataclass(frozen=True)
class Overlapping:
    """Traffic of which every condition takes so many tuples, and any two the same or none."""

    tuples: float
    same: bool
    groups: float = 40.0

    def __call__(self, conditions: frozenset[str]) -> tuple[KnownStatistics, float]:
        number = self.tuples * (1 if self.same else len(conditions))
        every = (frozenset(some) for size in range(1, 5) for some in combinations("abcd", size))
        return KnownStatistics(number, dict.fromkeys(every, self.groups)), 2.0


@pytest.mark.parametrize(
    "mode", [*MODES, config_with(share_trees="never")], ids=lambda m: m.share_trees
)
def test_rivals_have_one_table_where_they_want_the_same_tuples(mode: Config) -> None:
    family, rules = rivals_of("abcd", "dcba", "abdc"), mode
    same = Choosing("left", family, Overlapping(5000, same=True), rules)
    assert same.best() == PlannedSharing((tuple(sorted(family.ids)),))
    others = Choosing("left", family, Overlapping(5000, same=False), rules)
    assert others.best().is_nothing
    apart = Choosing("left", family, same.traffic, rules.changed(share_tables="never"))
    assert apart.best().tables == ()


def test_rivals_leave_their_table_when_they_want_other_tuples() -> None:
    family, rules = rivals_of("abcd", "dcba", "abdc"), MODES[1]
    same, others = Overlapping(5000, same=True), Overlapping(5000, same=False)
    begun = Choosing("left", family, same, rules).compared(None)
    assert begun.gain == pytest.approx(2 / 3), "one look-up instead of three"
    assert Choosing("left", family, same, rules).compared(begun.best).gain == 0.0
    assert Choosing("left", family, others, rules).compared(begun.best).gain == 0.0, (
        "none is looked up more"
    )
    timed = MODES[0]
    assert Choosing("left", family, others, timed).compared(begun.best).gain > 0.15
    assert Choosing("left", family, others, timed).compared(begun.best).best.is_nothing


def test_keys_that_may_overflow_do_not_ride_along() -> None:
    """Of tuples that others want nobody computes them."""
    family = rivals_of("ab", "ac", "bc", "ad")
    huge = call("*", column("a"), column("b"))
    risky = replace(family.members[0], keys=(family.members[0].keys[0], ("k", huge)))
    shares = dict.fromkeys((query.name for query in family.members), 1.0)
    found = [*families((risky, *family.members[1:]), shares).values()]
    assert [len(members) for members in found] == [1, 3]


@given(st.lists(st.frozensets(st.sampled_from("abcdefgh"), min_size=1), max_size=6))
def test_parts_are_as_small_as_can_be(parts: list[frozenset[str]]) -> None:
    found = connected("abcdefgh", parts)
    assert sorted(one for some in found for one in some) == list("abcdefgh")
    for part in parts:
        assert sum(bool(part & some) for some in found) == 1
    lone = set("abcdefgh").difference(*parts)
    assert lone <= {next(iter(some)) for some in found if len(some) == 1}


def test_those_who_share_nothing_with_each_other_change_when_it_is_their_time(
    tmp_path: Path,
) -> None:
    clock = Clock()
    family = family_of(PAIRS)
    first, second = frozenset(family.ids[:2]), frozenset(family.ids[2:])
    tables = (tuple(family.ids[:2]), tuple(family.ids[2:]))
    gains = iter([(0.5, 0.1), (0.5, 0.5), (0.5, 0.5), (0.0, 0.5)])

    def judged(_: Choosing, present: PlannedSharing | None) -> Comparison:
        pair = zip((first, second), next(gains), strict=True)
        costs = {part: (100.0, 100.0 * (1 - gain)) for part, gain in pair}
        return Comparison(present or PlannedSharing(), PlannedSharing(tables), costs)

    with (
        patch.object(Choosing, "compared", judged),
        patch.object(replanning, "tree_of", lambda low: None),  # their keys are different
    ):
        made = replanner(tmp_path, clock)
        clock.now += 1000.0
        for epoch in range(4):
            made.ingest([], [sample(epoch, "a")])
        assert made.trees.number == 1
        assert made.trees.shared[family.key].tables == tables[:1], "three slices, for these alone"
        assert made.trees.shared[family.key].gain == 0.5
        clock.now += 1000.0
        made.ingest([], [sample(4, "a")])
        assert made.trees.number == 2
        assert made.trees.shared[family.key].tables == tables


# ---- from samples to trees -----------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def replanner(folder: Path, clock: Clock, rules: Config = RULES) -> Replanner:
    return Replanner([read_of(PAIRS)], folder, rules, clock, lambda work: work())


def sample(epoch: int, few: str, count: int = 2000) -> TupleSample:
    """Of an epoch in which one of a and b has few values, the other one many."""
    random = np.random.default_rng(epoch)
    many = {"a": "b", "b": "a"}[few]
    keys = {
        few: random.integers(0, 4, count),
        many: random.integers(0, 3000, count),
        "c": random.integers(0, 3, count),
        "d": random.integers(0, 3, count),
    }
    epochs = np.full(count, epoch, np.int64)
    prints = {name: vector.astype(np.uint32) for name, vector in keys.items()}
    return TupleSample(family_of(PAIRS).key, 1.0, epochs, prints)


def test_trees_change_a_minute_and_three_slices_after_the_last_time(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    for epoch in range(10):
        clock.now = 1000.0 + 5 * epoch
        made.ingest([], [sample(epoch, "a")])
    assert made.trees.number == 0, "the beginning counts as a plan like any other"
    clock.now = 1060.0
    made.ingest([], [sample(10, "a")])
    assert made.trees.number == 1
    assert made.trees.since == 1060.0
    assert in_force(tmp_path) == made.trees
    for epoch in range(11, 14):
        clock.now += 100.0
        made.ingest([], [sample(epoch, "b")])
    assert made.trees.number == 1, "two slices of the other traffic are over"
    made.ingest([], [sample(14, "b")])
    assert made.trees.number == 2
    made.ingest([], [sample(epoch, "b") for epoch in range(15, 30)])
    assert made.trees.number == 2, "the best tree is in force"


def test_a_slice_is_judged_once_and_when_it_is_over(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    clock.now += 1000.0
    for _ in range(5):
        made.ingest([], [sample(7, "a")])
    for epoch in (8, 7, 7, 8):
        made.ingest([], [sample(epoch, "a")])
    assert made.trees.number == 0, "only one slice is over"
    made.ingest([], [sample(9, "a")])
    assert made.trees.number == 0
    made.ingest([], [sample(10, "a")])
    assert made.trees.number == 1


def test_slices_of_few_tuples_are_judged_together(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock, RULES.changed(replan_least_tuples=5 * 1000))
    clock.now += 1000.0
    for epoch in range(5):
        made.ingest([], [sample(epoch, "a", count=1000)])
    assert made.trees.number == 0, "four slices are over, of too few tuples"
    made.ingest([], [sample(5, "a", count=1000)])
    assert made.trees.number == 1, "five are three at least"


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 20))
def test_slices_are_put_together_in_order_and_none_is_lost(sizes: list[int], least: int) -> None:
    slices = [[TupleSample("f", 1.0, np.zeros(size, np.int64), {})] for size in sizes]
    enough, rest = together(slices, least)
    assert [one for some in enough for one in some] + rest == slices
    for some in enough:
        assert sum(len(piece) for (piece,) in some) >= least
        assert sum(len(piece) for (piece,) in some[:-1]) < least
    assert sum(len(piece) for (piece,) in rest) < least


def test_a_run_goes_on_with_the_trees_it_had(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    clock.now += 1000.0
    made.ingest([], [sample(epoch, "a") for epoch in range(5)])
    later = replanner(tmp_path, clock)
    assert later.trees == made.trees
    clock.now += 59.0
    later.ingest([], [sample(epoch, "b") for epoch in range(5, 10)])
    assert later.trees.number == 1, "the minute is that of the change"
    other = Replanner([read_of(("ac", "ad", "cd"))], tmp_path, RULES, clock, lambda work: work())
    assert other.trees.shared == {}, "of another family nothing is known"


def test_nothing_changes_after_the_end(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    clock.now += 1000.0
    made.close()
    made.ingest([], [sample(epoch, "a") for epoch in range(5)])
    assert made.trees.number == 0
    assert in_force(tmp_path) is None


def test_planning_takes_a_small_part_of_the_time(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(
        tmp_path, clock, config_with(replan_slices=1, replan_seconds=0.0, replan_core=1e-9)
    )
    made.ingest([], [sample(epoch, "a") for epoch in range(2)])
    assert made.trees.number == 1
    clock.now += 100.0
    made.ingest([], [sample(epoch, "b") for epoch in range(2, 9)])
    assert made.trees.number == 1, "it must rest"


def test_batches_do_not_wait_for_plans(tmp_path: Path) -> None:
    clock = Clock()
    made = Replanner([read_of(PAIRS)], tmp_path, RULES, clock)
    clock.now += 1000.0
    made.ingest([], [sample(epoch, "a") for epoch in range(5)])
    (thread,) = [one for one in threading.enumerate() if one.name == THREAD]
    thread.join(60.0)
    assert made.trees.number == 1


def test_off_means_off(tmp_path: Path) -> None:
    made = replanner(tmp_path, Clock(), config_with(share_trees="never"))
    assert not made.wants_samples
    assert made.status() == ()


def test_probes_are_counted_for_the_trees_in_force(tmp_path: Path) -> None:
    clock = Clock()
    made = replanner(tmp_path, clock)
    made.ingest([beat(made, [100] * 5, trees=0)], [])
    (told,) = made.status()
    assert told.probes_per_tuple == 5.0
    assert told.tree == ()
    assert told.since == 1000.0
    clock.now += 60.0
    made.ingest([], [sample(epoch, "a") for epoch in range(4)])
    (told,) = made.status()
    assert told.probes_per_tuple is None, "not counted yet"
    assert told.since == 1060.0
    assert told.gain > 0.15
    assert told.intermediate == 1
    made.ingest(
        [beat(made, [100] * 5, trees=0)], []
    )  # a batch that was at work when trees were changed
    assert made.status()[0].probes_per_tuple is None
    made.ingest([beat(made, [9, 9, 9, 100, 100, 100]), beat(made, [7] * 5, "right")], [])
    assert made.status()[0].probes_per_tuple == 3.27


def beat(made: Replanner, probes: list[int], read: str = "left", trees: int = 1) -> Heartbeat:
    names = [f"q_{keys}" for keys in PAIRS]
    counters = {"tuples": 100, "passed": [100] * 5, "probes": probes}
    low = grafted("left", plan_of(PAIRS), made.trees.shared, RULES.tree_leaves).low
    inner = [node.name for node in low.inner][: len(probes) - len(names)]
    return Heartbeat(0, {}, counters, names, [], 0, inner=inner, trees=trees, read=read)


def test_when_no_intermediate_aggregate_pays_any_more_there_is_none() -> None:
    before = better(FIRST, MODES[0], None).best
    unique = known(a=9000, b=9000, c=9000, d=9000)
    after = better(unique, MODES[0], before)
    assert after.best.is_nothing
    assert after.gain > 0.15
