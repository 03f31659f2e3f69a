"""Quantile states: every strategy keeps its bound, whatever the order, the split and the merges."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from terascope.sketches.base import Levels, Traffic, packed_states
from terascope.sketches.greenwald_khanna import STRATEGIES, merging_kind, quantile_kind
from terascope.sketches.kll import quantiles_of
from terascope.sketches.quantile_columns import Summaries
from tests.sketches.some_quantiles import (
    SMALL,
    SUMMARIES,
    check_entries,
    error,
    merged,
    one,
    orders,
    packed_by,
    packed_values,
)

# ---- the bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", SUMMARIES)
@pytest.mark.parametrize("order", orders(2))
def test_the_bound_holds_in_any_order(strategy: str, order: str) -> None:
    values = orders(6000)[order]
    numbers = np.zeros(len(values), np.int64)
    for eps, scratchpad in ((0.01, 2800), (0.05, SMALL), (0.001, 2800), (0.5, SMALL)):
        (state,) = packed_by(quantile_kind(eps, strategy, scratchpad), numbers, values, 1)
        held = quantiles_of(state)
        check_entries(held, eps)
        assert error(state, values) <= min(eps * len(values), held.error)
        assert held.error <= eps * len(values)
        ordered = np.sort(values)
        np.testing.assert_equal(held.values[[0, -1]], ordered[[0, -1]])
        if order in ("equal", "two values", "packet lengths") and scratchpad > SMALL:
            assert held.error == 0, "few values are counted"
        else:
            assert len(held.values) < max(6000 * 0.6, 8 / eps), "the summary is small"


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("order", orders(2))
def test_the_bound_holds_after_any_tree_of_merges(order: str, depth: int) -> None:
    eps, random = 0.02, np.random.default_rng(depth)
    values = orders(4000)[order]
    interleaved = random.integers(0, 3**depth, len(values))
    in_a_row = np.sort(interleaved)
    for parts, strategy in itertools.product((interleaved, in_a_row), SUMMARIES):
        kind = quantile_kind(eps, strategy, SMALL)
        states = packed_by(kind, parts, values, 3**depth)
        for _ in range(depth):
            random.shuffle(states)
            states = [merged(kind.high(), states[k : k + 3]) for k in range(0, len(states), 3)]
        check_entries(quantiles_of(states[0]), eps)
        assert error(states[0], values) <= eps * len(values)


def test_a_larger_eps_is_kept_over_merges() -> None:
    random = np.random.default_rng(3)
    values = random.normal(size=(40, 500))
    numbers = np.zeros(500, np.int64)
    coarse = [packed_by(quantile_kind(0.1), numbers, row, 1)[0] for row in values]
    state = merged(merging_kind(0.01).high(), coarse)
    assert error(state, values.ravel()) <= 0.1 * values.size
    assert quantiles_of(state).eps == 0.1
    assert len(quantiles_of(state).values) < 160, "it is compressed by its own eps"


@pytest.mark.parametrize("eps", [0.01, 0.05])
def test_summaries_stay_small_over_merges(eps: float) -> None:
    """In a tree of five levels, and one by one."""
    random = np.random.default_rng(3)
    leaves = packed_by(
        quantile_kind(eps), np.arange(1024).repeat(100), random.normal(size=102_400), 1024, 10_000
    )
    states = leaves[:32]
    while len(states) > 1:
        states = [merged(Summaries(eps), states[k : k + 2]) for k in range(0, len(states), 2)]
    column = Summaries(eps)
    for state in leaves:
        column.merge(np.zeros(1, np.int64), packed_states([state]))
    for state in (states[0], one(column.pack(np.zeros(1, np.int64)))):
        check_entries(quantiles_of(state), eps)
        assert len(quantiles_of(state).values) <= 4 / eps


def test_kll_keeps_its_bound_in_99_of_100_answers() -> None:
    eps, wrong, answers = 0.02, 0, 0
    for seed in range(40):
        values = np.random.default_rng(seed).normal(size=3000)
        parts = np.arange(3000) % 4
        states = packed_by(quantile_kind(eps, "kll"), parts, values, 4)
        state = merged(merging_kind(eps).high(), states)
        held = quantiles_of(state)
        assert 0 < held.error <= eps * len(values) + 1
        for percent in range(5, 100, 10):
            answers += 1
            wrong += error(state, values, (percent,)) > held.error if percent == 55 else 0
    assert wrong <= 0.01 * answers + 1


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_groups_of_all_sizes(strategy: str) -> None:
    """Groups of 1 to 2000 values, states that leave and states that stay."""
    random = np.random.default_rng(11)
    sizes = np.minimum(random.zipf(1.3, 300), 2000)
    numbers = np.repeat(np.arange(300), sizes)
    random.shuffle(numbers)
    values = random.integers(40, 1500, len(numbers))
    states = packed_by(quantile_kind(0.05, strategy, SMALL), numbers, values, 301, 5000)
    for number, size in enumerate(sizes):
        if size > 20:
            slack = 3 if strategy == "kll" else 1  # a sketch may miss its bound
            assert error(states[number], values[numbers == number]) <= slack * 0.05 * size
        else:
            assert error(states[number], values[numbers == number]) == 0
    assert quantiles_of(states[300]).count == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_merging_nothing_changes_nothing(strategy: str) -> None:
    kind = quantile_kind(0.05, strategy, SMALL)
    values = orders(3000)["random"]
    (state,) = packed_by(kind, np.zeros(3000, np.int64), values, 1)
    empty = one(kind.high().pack(np.zeros(1, np.int64)))
    assert quantiles_of(empty).percentile(50) is None
    assert merged(kind.high(), [empty]) == empty
    for states in ([state], [empty, state], [state, empty]):
        again = quantiles_of(merged(kind.high(), states))
        np.testing.assert_array_equal(again.values, quantiles_of(state).values)
        np.testing.assert_array_equal(again.upto, quantiles_of(state).upto)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_packing_leaves_states_as_they_are(strategy: str) -> None:
    kind = quantile_kind(0.05, strategy)
    random = np.random.default_rng(5)
    numbers, values = random.integers(0, 9, 900), random.integers(0, 99, 900)
    every = np.arange(9)
    for column in (kind.low(), kind.high()):
        column.iterate(numbers[:500], [values[:500]])
        assert column.pack(every).equals(column.pack(every))
        column.iterate(numbers[500:], [values[500:]])
        states = [one(column.pack(every[k : k + 1])) for k in every]
        assert column.pack(every).to_pylist() == states
        assert [quantiles_of(s).count for s in states] == np.bincount(numbers).tolist()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_dropped_states_are_empty_and_their_memory_is_used_again(strategy: str) -> None:
    kind = quantile_kind(0.05, strategy)
    numbers = np.arange(1000).repeat(20)
    values = np.random.default_rng(1).normal(size=len(numbers))
    for column in (kind.low(), kind.high()):
        column.iterate(numbers, [values])
        used = column.memory_bytes
        for _ in range(3):
            column.drop(np.arange(0, 1000, 2))
            states = column.pack(np.arange(1000)).to_pylist()
            assert [quantiles_of(s).count for s in states[:4]] == [0, 20, 0, 20]
            column.iterate(numbers[numbers % 2 == 0], [values[numbers % 2 == 0]])
        assert column.memory_bytes < 1.1 * used
        column.clear()
        assert quantiles_of(one(column.pack(np.zeros(1, np.int64)))).count == 0
        column.iterate(np.zeros(1, np.int64), [np.array([3])])  # integers now
        assert quantiles_of(one(column.pack(np.zeros(1, np.int64)))).values.tolist() == [3]


def test_small_groups_cost_little() -> None:
    numbers = np.arange(30_000).repeat(2)
    for strategy in SUMMARIES:
        low = quantile_kind(0.01, strategy).low()
        before = low.memory_bytes
        low.iterate(numbers, [numbers])
        assert (low.memory_bytes - before) / 30_000 < 60
        assert low.pack(np.arange(30_000)).nbytes / 30_000 < 30


def test_what_left_the_low_level_is_all_there_is() -> None:
    """A low level that leaves states gives every value once, merged states too."""
    values = orders(2000)["random"]
    for strategy in SUMMARIES:
        kind = quantile_kind(0.01, strategy, SMALL)
        low, high = kind.low(), kind.high()
        low.iterate(np.zeros(2000, np.int64), [values])
        low.merge(np.zeros(1, np.int64), kind.low().pack(np.zeros(1, np.int64)))
        low.merge(np.zeros(2, np.int64), packed_states([packed_values(values)] * 2))
        leaving = low.flushed()
        assert leaving is not None
        assert low.flushed() is None
        assert set(leaving[0].tolist()) == {0}
        high.merge(*leaving)
        high.merge(np.zeros(1, np.int64), low.pack(np.zeros(1, np.int64)))
        state = one(high.pack(np.zeros(1, np.int64)))
        assert error(state, np.tile(values, 3)) <= 0.01 * 6000


def test_large_counts_have_room() -> None:
    """Counts beyond 21 bits take wider entries."""
    state = packed_values(np.arange(50) % 5)
    for _ in range(20):
        state = merged(Summaries(0.01), [state, state])
    held = quantiles_of(state)
    assert held.count == 50 * 2**20
    assert held.percentile(60) == 2
    summary = packed_values(np.random.default_rng(2).normal(size=5000))
    for _ in range(16):
        summary = merged(Summaries(0.01), [summary, summary])
    assert quantiles_of(summary).error <= 0.01 * 5000 * 2**16
    check_entries(quantiles_of(summary), 0.01)


def test_the_strategy_suits_the_traffic() -> None:
    kind = quantile_kind(0.01)
    assert kind.choose is not None
    assert kind.strategy == kind.choose(Traffic(1e6, 1e4, 1.1)).strategy == "gk_lite"
    elsewhere = Levels(8.0, "8 cores send to one")
    apart = kind.choose(Traffic(1e6, 10, 1.1, elsewhere))
    assert (apart.strategy, apart.why) == (
        "gk_heavy",
        "100,000 tuples a group; 8 cores send to one: 96 ns a tuple, gk_lite 166",
    )
    assert kind.choose(Traffic(1e6, 10, 1.1)).strategy == "gk_lite", "the times add up"
    assert kind.choose(Traffic(1e6, 10, 1.1, Levels(2.0))).strategy == "gk_lite"
    assert kind.choose(Traffic(1e6, 1e6, 1.1, elsewhere)).strategy == "gk_lite"
    assert apart == kind
    assert apart.choose is None
    assert quantile_kind(0.01, "kll") != kind


def test_kinds_are_values_that_travel() -> None:
    kinds = [quantile_kind(eps, strategy) for eps in (0.1, 0.2) for strategy in ("", *STRATEGIES)]
    assert len({str(kind) for kind in kinds}) == 4, "summaries of any strategy are merged"
    for kind in (*kinds, merging_kind(0.1)):
        travelled = pickle.loads(pickle.dumps(kind))
        assert travelled == kind
        assert merged(travelled.high(), [packed_values(np.arange(3))])
    with pytest.raises(ValueError, match="at least 256 bytes, not 100"):
        quantile_kind(0.1, "gk_lite", 100).low()
