"""Declared error bounds: every registered aggregate that declares one keeps it, after merges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from terascope.functions.base import AggregateFunction, FunctionMistake
from terascope.functions.bound_groups import ORDERS, TrialGroup, argument_types
from terascope.functions.bound_trials import BoundedCall, allowed_failures, calls_of, excess
from terascope.functions.bounds import ErrorBound
from terascope.functions.laws import BOUND, bound_outcome, law_outcomes
from terascope.functions.registry import Functions
from terascope.functions.udaf import udaf
from terascope.functions.user import load_functions
from tests.settings import SOAK

AGGREGATES = Functions.builtin().aggregates
CALLS = calls_of(AGGREGATES.values())
SEEDS = 1000 if SOAK else 12
FIRST = 0 if SOAK else 5000


def call_of(text: str) -> BoundedCall:
    return next(call for call in CALLS if str(call) == text)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_declared_bound_holds_after_merges(call: BoundedCall) -> None:
    """In soaks, of 1,000 groups: always, or for 99 of 100 where the bound says so."""
    found = {seed: excess(call, seed) for seed in range(FIRST, FIRST + SEEDS)}
    broken = {seed: size for seed, size in found.items() if size > 1}
    most = 10 if SOAK else allowed_failures(call.bound.cases, SEEDS)
    assert len(broken) <= (most if call.bound.cases < 1 else 0), (str(call.bound), broken)


def test_every_kind_of_approximate_aggregate_is_tried() -> None:
    tried = {(call.aggregate.name, call.strategy) for call in CALLS}
    for name in ("approx_quantile", "hitters", "heavy_hitters", "top_k", "approx_count_distinct"):
        assert {s for n, s in tried if n == name} >= set(AGGREGATES[name].strategies)
    assert {"entropy", "approx_count_dups", "distinct_state"} <= {name for name, _ in tried}


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("approx_quantile(0.05) gk_lite", 0.005),
        ("approx_count_distinct hll", 1e-6),
        ("entropy", 0.01),
        ("hitters compress+adaptive", 1e-6),
    ],
)
def test_a_bound_that_is_too_small_is_noticed(
    text: str, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_of(text)
    small = replace(call.bound, most=most)
    monkeypatch.setattr(type(call.aggregate), "bound", lambda self, *parameters: small)
    found = bound_outcome(call, 1)
    assert found.verdict == "failed"
    assert "break: " in found.detail


def test_a_group_that_should_be_exact_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    call = call_of("approx_count_distinct fm")
    wide = replace(call.bound, exact_to=100_000)
    monkeypatch.setattr(type(call.aggregate), "bound", lambda self, *parameters: wide)
    assert bound_outcome(call, 1).verdict == "failed"


def test_bounds_as_sentences() -> None:
    assert str(call_of("approx_quantile(0.01) gk_lite").bound) == (
        "wrong by at most 1% of the number of values, in ranks"
    )
    assert str(call_of("approx_count_distinct fm").bound) == (
        "exact up to 64 different values in a group; wrong by at most 30% of the number of"
        " different values in 99 of 100 groups"
    )
    assert str(call_of("entropy").bound).endswith("at most 0.35 bits in 99 of 100 groups")
    assert "never below the exact value" in str(call_of("top_k(5) frequent_items").bound)


def test_excess() -> None:
    bound = ErrorBound(0.1, "x", values=0.75, exact_to=2)
    errors = np.array([0.0, 0.05, 0.05, 0.4])
    assert bound.excess(errors, 3) == pytest.approx(0.5)
    assert replace(bound, values=1.0).excess(errors, 3) == pytest.approx(4.0)
    assert bound.excess(errors, 2) == float("inf")
    assert bound.excess(np.array([np.inf]), 3) == float("inf")
    assert bound.excess(np.zeros(0), 3) == 0.0


def test_allowed_failures() -> None:
    assert allowed_failures(1.0, 1000) == 0
    assert allowed_failures(0.99, 40) == 3
    assert allowed_failures(0.99, 1000) == 21


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.__name__)
def test_orders_keep_all_values(order: Any) -> None:
    for count in (1, 2, 7, 100):
        values = np.arange(count)
        assert sorted(order(values, np.random.default_rng(1)).tolist()) == values.tolist()


def test_groups_are_of_all_sizes_and_the_same_for_a_seed() -> None:
    types = argument_types(AGGREGATES["entropy"])
    groups = [TrialGroup.of(types, np.random.default_rng(seed)) for seed in range(60)]
    again = [TrialGroup.of(types, np.random.default_rng(seed)) for seed in range(60)]
    assert [g.columns for g in groups] == [g.columns for g in again]
    assert min(map(len, groups)) < 20
    assert max(map(len, groups)) > 10_000
    assert len({g.types for g in groups}) == 5


# ---- aggregates of users -------------------------------------------------------------------------

FILE = '''
import pyarrow.compute as pc
from terascope import ErrorBound, udaf

@udaf(takes=("INT",), returns="FLOAT", error_bound=ErrorBound(MOST, "the mean"))
class rough_mean:
    """The mean, of sums that are rounded down to tens."""
    def initialize(self):
        return (0, 0)
    def iterate(self, state, values):
        return (state[0] + len(values), state[1] + pc.sum(values).as_py() // 10 * 10)
    def merge(self, left, right):
        return (left[0] + right[0], left[1] + right[1])
    def output(self, state):
        return state[1] / state[0] if state[0] else None
    def exact(self, values):
        return pc.mean(values).as_py()
'''


def rough_mean(folder: Path, most: float) -> AggregateFunction:
    file = folder / "rough.py"
    file.write_text(FILE.replace("MOST", str(most)))
    (made,) = load_functions(file)
    assert isinstance(made, AggregateFunction)
    return made


def test_a_users_bound_is_a_law(tmp_path: Path) -> None:
    fine, wrong = rough_mean(tmp_path, 2.0), rough_mean(tmp_path, 1e-7)
    verdicts = {outcome.law: outcome.verdict for outcome in law_outcomes(fine)}
    assert verdicts[BOUND] == "ok"
    assert "failed" not in verdicts.values()
    (found,) = (outcome for outcome in law_outcomes(wrong) if outcome.law == BOUND)
    assert found.verdict == "failed"
    assert "rough_mean: " in found.detail
    assert "wrong by at most 1e-05% of the mean" in found.detail


def test_a_users_bound_needs_the_exact_value() -> None:
    with pytest.raises(FunctionMistake, match="give it a method exact"):

        @udaf(takes=("INT",), returns="INT", error_bound=ErrorBound(0.1))
        class none:
            def initialize(self) -> int:
                return 0

            def iterate(self, state: int, values: pa.Array) -> int:
                return state

            def output(self, state: int) -> int:
                return state
