"""Percentiles of columns of quantile states: the same as those of the states one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from terascope.functions.aggregates.quantiles import ApproxQuantile
from terascope.functions.base import Value
from terascope.functions.registry import Functions
from terascope.machine_code import INTEGER, compiled_for, output
from terascope.sketches.greenwald_khanna import STRATEGIES, exact_state, quantile_kind
from terascope.sketches.quantile_answers import percentile_column
from terascope.sketches.selection import room_for_parts, selected
from tests.sketches.some_quantiles import orders, packed_by
from tests.sketches.state_laws import damaged, same_column, same_outcome

PERCENTILE_OF = Functions.builtin().scalar("percentile_of")
SIZES = np.array([0, 1, 1, 2, 3, 7, 30, 300, 3000, 9000])


def states(strategy: str, values: Any) -> list[bytes]:
    """States of groups of several sizes, of which the first is empty."""
    numbers = np.repeat(np.arange(len(SIZES)), SIZES)[: len(values)]
    return packed_by(quantile_kind(0.01, strategy), numbers, values, len(SIZES))


def one(percent: float) -> Any:
    assert PERCENTILE_OF is not None
    return lambda state: None if state is None else PERCENTILE_OF.evaluate(state, percent)


def whole(percent: Value) -> Any:
    assert PERCENTILE_OF is not None
    assert PERCENTILE_OF.columns is not None
    return lambda packed: PERCENTILE_OF.columns(packed, pa.repeat(pa.scalar(percent), len(packed)))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("order", ["wide", "packet lengths", "few floats", "sorted", "floats"])
def test_percentiles_are_those_of_single_states(strategy: str, order: str) -> None:
    held = states(strategy, orders(int(SIZES.sum()))[order])
    for percent in (0, 3, 50.0, 97.5, 100):
        same_column(held, one(percent), partial(percentile_column, percent=percent))
    same_column(held, ApproxQuantile().finish_state, ApproxQuantile().finish_states)


def test_all_floats_have_their_order() -> None:
    values = [-0.0, 0.0, -1e300, 5e-324, -5e-324, float("inf"), float("-inf"), float("nan"), 1.5]
    held = [exact_state(values, 0.01), exact_state(values[:1], 0.5), exact_state([3], 0.1)]
    for percent in range(0, 101, 4):
        same_column(held, one(percent), partial(percentile_column, percent=percent))


def test_no_column_for_percentages_that_differ_or_make_no_sense() -> None:
    held = pa.array([exact_state([1, 2], 0.01)] * 2, pa.binary())
    assert PERCENTILE_OF is not None
    assert PERCENTILE_OF.columns is not None
    assert whole(50)(held).to_pylist() == [1.0, 1.0]
    assert whole(50.0)(held).to_pylist() == [1.0, 1.0]
    assert PERCENTILE_OF.columns(held, pa.array([50, 60])) is None
    assert PERCENTILE_OF.columns(held, pa.array([50, None])) is None
    assert whole(101)(held) is None


def test_damaged_states_are_refused_as_single_ones_are() -> None:
    rng = np.random.default_rng(5)
    for strategy in STRATEGIES:
        for state in states(strategy, orders(int(SIZES.sum()))["packet lengths"])[1:9]:
            for wrong in damaged(state, rng, 30):
                same_outcome(state, wrong, one(50), whole(50))


@compiled_for(output(np.int64), INTEGER, output(np.int64))
def select(values: Any, place: Any, counts: Any) -> Any:
    return selected(values, len(values), place, counts)


def test_selection() -> None:
    """Of equal values, of few and many, and of such as need many rounds."""
    rng = np.random.default_rng(3)
    cases = [
        np.zeros(500), np.arange(3000), np.arange(3000)[::-1], rng.integers(0, 9, 999),
        rng.integers(-(2**63), 2**63 - 1, 2000), np.array([-(2**63), 2**63 - 1] * 40),
        np.array([2**k - 1 for k in range(64)] * 9), np.arange(24), np.arange(25), np.array([7]),
    ]  # fmt: skip
    for values in cases:
        ordered = np.sort(values.astype(np.int64))
        for place in {0, 1, len(values) // 3, len(values) - 2, len(values) - 1} - {-1}:
            if place < len(values):
                scratch = rng.permutation(values.astype(np.int64))
                assert select(scratch, place, room_for_parts()) == ordered[place]
