"""Quantile states: every strategy keeps its bound, whatever the order, the split and the merges."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from terascope.sketches.base import Packed, StateColumn, StateKind, Traffic, packed_states
from terascope.sketches.greenwald_khanna import STRATEGIES, merging_kind, quantile_kind
from terascope.sketches.kll import quantiles_of
from terascope.sketches.quantile_columns import Summaries
from terascope.sketches.quantile_reading import Quantiles, read_quantiles

Values = NDArray[Any]

SUMMARIES = ["gk_lite", "gk_heavy", "gk_medium"]
SMALL = 256
"""The bytes of a scratchpad that is soon full."""


def orders(n: int) -> dict[str, Values]:
    """Values in orders that are hard on a summary."""
    random = np.random.default_rng(7)
    up = np.arange(n)
    zigzag = np.empty(n, np.int64)
    zigzag[0::2], zigzag[1::2] = up[: (n + 1) // 2], up[::-1][: n // 2]
    return {
        "sorted": up,
        "reversed": up[::-1].copy(),
        "zigzag": zigzag,
        "from the middle": np.argsort(np.abs(up - n // 2), kind="stable"),
        "equal": np.full(n, 5),
        "two values": (up % 3 == 0).astype(np.int64),
        "random": random.permutation(n),
        "packet lengths": random.choice([40, 52, 576, 1420, 1500], n) + random.integers(0, 3, n),
        "skewed": (random.pareto(0.7, n) * 10).astype(np.int64),
        "wide": random.integers(-(2**63), 2**63 - 1, n),
        "floats": random.normal(size=n),
        "few floats": np.where(random.random(n) < 0.3, np.nan, np.round(random.normal(size=n), 1)),
    }


def error(state: bytes, values: Values, percents: tuple[float, ...] = (0, 1, 50, 99, 100)) -> int:
    """By how many ranks the worst of some answers is wrong. NaN is the largest."""
    held = quantiles_of(state)
    ordered = np.sort(values)
    assert held.count == len(values)
    worst = 0
    for percent in (*percents, *range(3, 100, 7)):
        rank = max(1, math.ceil(percent / 100 * len(values)))
        found = np.array([held.percentile(percent)]).astype(values.dtype)
        first, last = (int(np.searchsorted(ordered, found, side)[0]) for side in ("left", "right"))
        assert first < last, f"{found} is none of the values"
        worst = max(worst, first + 1 - rank, rank - last)
    return worst


def packed_by(
    kind: StateKind, numbers: Values, values: Values, states: int, batch: int = 700
) -> list[bytes]:
    """States of the low level, as they leave it, merged by the high level."""
    low, high = kind.low(), kind.high()
    for start in range(0, len(values), batch):
        low.iterate(numbers[start : start + batch], [values[start : start + batch]])
        leaving = low.flushed()
        if leaving is not None:
            high.merge(*leaving)
    every = np.arange(states)
    high.merge(every, low.pack(every))
    assert high.flushed() is None
    return [bytes(state) for state in high.pack(every).to_pylist()]


def merged(column: StateColumn, states: list[bytes]) -> bytes:
    """All states in one."""
    column.merge(np.zeros(len(states), np.int64), packed_states(states))
    return one(column.pack(np.zeros(1, np.int64)))


def one(packed: Packed) -> bytes:
    (state,) = packed.to_pylist()
    return bytes(state)


def check_entries(held: Quantiles, eps: float) -> None:
    """The invariant of a summary; its ends are exact."""
    before = np.concatenate([[0], held.upto[:-1]])
    hidden = held.below - before
    assert (hidden + held.unsure + 1 <= max(1, math.floor(2 * eps * held.count))).all()
    assert hidden[0] == held.unsure[0] == held.unsure[-1] == 0
    assert (held.upto > held.below).all()
    assert (held.values[1:] > held.values[:-1])[:-1].all()


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


def packed_values(values: Values) -> bytes:
    return packed_by(quantile_kind(0.01), np.zeros(len(values), np.int64), values, 1)[0]


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
    apart = kind.choose(Traffic(1e6, 10, 1.1, shares_core=False))
    assert (apart.strategy, apart.why) == (
        "gk_heavy",
        "100000 tuples a group are summarised before they are sent",
    )
    assert kind.choose(Traffic(1e6, 1e6, 1.1, shares_core=False)).strategy == "gk_lite"
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


# ---- FLOATs, damage ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_floats_have_their_order(strategy: str) -> None:
    values = np.array([-0.0, math.nan, -math.inf, 0.0, 1e-320, -5.5, math.inf, -math.nan, 2.0])
    (state,) = packed_by(quantile_kind(0.01, strategy), np.zeros(9, np.int64), values, 1)
    held = quantiles_of(state)
    found = [held.percentile(100 * (rank - 0.5) / 9) for rank in range(1, 10)]
    assert repr(found) == "[-inf, -5.5, 0.0, 0.0, 1e-320, 2.0, inf, nan, nan]"
    np.testing.assert_array_equal(held.ranks(np.array([-6.0, 0.0, math.nan])), [1, 4, 9])


def test_kll_counts_nans_beside_the_sketch() -> None:
    values = np.append(np.random.default_rng(1).normal(size=400), [math.nan] * 100)
    (state,) = packed_by(quantile_kind(0.05, "kll"), np.zeros(500, np.int64), values, 1)
    assert state[:2] == b"TK"
    assert quantiles_of(state).count == 500
    assert math.isnan(quantiles_of(state).percentile(81) or 0)
    assert quantiles_of(state).percentile(79) < 10  # type: ignore[operator]


def test_integers_and_floats_are_not_merged() -> None:
    whole, real = packed_values(np.arange(3)), packed_values(np.arange(3) / 2)
    with pytest.raises(ValueError, match="FLOATs and a state of integers"):
        merged(Summaries(0.01), [whole, real])
    column = Summaries(0.01)
    column.iterate(np.zeros(1, np.int64), [np.array([1])])
    with pytest.raises(ValueError, match="FLOATs and a state of integers"):
        column.iterate(np.zeros(1, np.int64), [np.array([1.5])])


def test_a_summary_and_a_sketch_are_not_merged() -> None:
    values = np.random.default_rng(1).normal(size=2000)
    zeros = np.zeros(2000, np.int64)
    (sketch,) = packed_by(quantile_kind(0.05, "kll"), zeros, values, 1)
    (summary,) = packed_by(quantile_kind(0.05), zeros, values, 1)
    with pytest.raises(ValueError, match="cannot become a KLL sketch"):
        merged(merging_kind(0.05).high(), [sketch, summary])
    exact = packed_values(values[:30])
    assert quantiles_of(merged(merging_kind(0.05).high(), [exact, sketch, exact])).count == 2060


def damaged(state: bytes, seed: int) -> list[bytes]:
    """The state cut short, and with bytes changed."""
    random = np.random.default_rng(seed)
    cut = [state[:k] for k in {*range(min(len(state), 40)), len(state) - 1}]
    changed = []
    for place in {*range(min(len(state), 60)), *random.integers(0, len(state), 60).tolist()}:
        made = bytearray(state)
        made[place] ^= int(random.integers(1, 256))
        changed.append(bytes(made))
    return [*cut, *changed, state + b"\0", b"", b"T", b"TQ\2" + state[3:], b"TX" + state[2:]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_damaged_bytes_are_refused_or_read(strategy: str) -> None:
    """Never a crash: what is no state is a ValueError, and what is read can be merged."""
    random = np.random.default_rng(4)
    for values in (random.normal(size=1000), np.arange(5), random.integers(0, 9, 900)):
        kind = quantile_kind(0.05, strategy)
        (state,) = packed_by(kind, np.zeros(len(values), np.int64), values, 1)
        raw = one(_filled(kind.low(), values[:5]).pack(np.zeros(1, np.int64)))
        for bad in (*damaged(state, 1), *damaged(raw, 2)):
            try:
                quantiles_of(bad).percentile(50)
            except ValueError:
                with pytest.raises(ValueError, match="damaged"):
                    merged(kind.high(), [bad])
            else:
                assert merged(merging_kind(0.05).high(), [bad])
    for bad in (state[:-1], b"", b"T"):
        with pytest.raises(ValueError, match="damaged"):
            quantiles_of(bad)


def _filled(column: StateColumn, values: Values) -> StateColumn:
    column.iterate(np.zeros(len(values), np.int64), [values])
    return column


def test_ranks_and_distance() -> None:
    held = read_quantiles(packed_values(np.array([1, 2, 2, 5])))
    np.testing.assert_array_equal(held.ranks(np.array([0, 1, 2, 3, 5, 9])), [0, 1, 3, 3, 4, 4])
    assert held.distance(held) == 0
    assert held.distance(read_quantiles(packed_values(np.array([7])))) == 1
    assert held.distance(read_quantiles(packed_values(np.array([2, 2, 2, 2])))) == 0.25
    random = np.random.default_rng(9)
    left, right = random.normal(size=4000), random.normal(0.5, size=4000)
    places = np.concatenate([left, right])
    exact = np.abs(
        np.searchsorted(np.sort(left), places, "right")
        - np.searchsorted(np.sort(right), places, "right")
    ).max()
    found = read_quantiles(packed_values(left)).distance(read_quantiles(packed_values(right)))
    assert found == pytest.approx(exact / 4000, abs=0.02)
    ranks = read_quantiles(packed_values(left)).ranks(places)
    assert np.abs(ranks - np.searchsorted(np.sort(left), places, "right")).max() <= 0.01 * 4000
