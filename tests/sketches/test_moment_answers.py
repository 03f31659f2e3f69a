"""Variances, sums and means of columns of states: the same as those of the states one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from terascope.functions.aggregates.spread import (
    PopulationDeviation,
    PopulationVariance,
    SampleDeviation,
    SampleVariance,
    Spread,
)
from terascope.functions.aggregates.total import Average, AverageOfPositives, Sum
from terascope.machine_code import INTEGER, WORD, column, compiled_for
from terascope.sketches.float_moments import FLOAT_MOMENTS, FLOAT_SUM, POSITIVE_SUM
from terascope.sketches.long_numbers import rounded_number, rounded_quotient
from terascope.sketches.moments import INTEGER_MOMENTS
from tests.sketches.state_laws import damaged, same_column, same_outcome

SIZES = np.concatenate([np.repeat(np.arange(1, 6), 60), [40, 1000], np.zeros(3, np.int64)])
FLOATS = {
    "ordinary": lambda rng, n: rng.normal(0, 1e3, n),
    "all": lambda rng, n: rng.integers(0, 2**64, n, np.uint64).view(np.float64),
    "whole": lambda rng, n: rng.integers(-3, 4, n).astype(np.float64),
    "largest": lambda rng, n: rng.choice([1.7e308, -1.7e308, 1.0, 0.0], n),
    "smallest": lambda rng, n: rng.choice([5e-324, -5e-324, 1e-310, -0.0, 2e-162, 3e-154], n),
    "near": lambda rng, n: 1e15 + rng.random(n),
}
INTEGERS = {
    "lengths": (40, 1500),
    "clocks": (1_700_000_000_000_000_000, 1_700_000_001_000_000_000),
    "middle": (-(2**26), 2**26),
    "all": (-(2**63), 2**63 - 1),
}
SPREADS = (SampleVariance(), PopulationVariance(), SampleDeviation(), PopulationDeviation())


def states(kind: Any, values: Any) -> list[bytes]:
    held = kind.low()
    held.iterate(np.repeat(np.arange(len(SIZES)), SIZES), [values])
    return [bytes(state) for state in held.pack(np.arange(len(SIZES))).to_pylist()]


@pytest.mark.parametrize("aggregate", SPREADS, ids=lambda a: a.name)
@pytest.mark.parametrize("case", FLOATS)
def test_spreads_of_floats(case: str, aggregate: Spread) -> None:
    values = FLOATS[case](np.random.default_rng(1), SIZES.sum())
    held = states(FLOAT_MOMENTS, values)
    same_column(held, aggregate.finish_state, aggregate.finish_states)


@pytest.mark.parametrize("aggregate", SPREADS, ids=lambda a: a.name)
@pytest.mark.parametrize("case", INTEGERS)
def test_spreads_of_integers(case: str, aggregate: Spread) -> None:
    values = np.random.default_rng(2).integers(*INTEGERS[case], SIZES.sum())
    values[::3] = values[0]
    held = states(INTEGER_MOMENTS, values)
    same_column(held, aggregate.finish_state, aggregate.finish_states)


@pytest.mark.parametrize("case", FLOATS)
def test_sums_and_means(case: str) -> None:
    values = FLOATS[case](np.random.default_rng(3), SIZES.sum())
    for kind in (FLOAT_SUM, FLOAT_MOMENTS):
        held = states(kind, values)
        for aggregate in (Sum(), Average(), AverageOfPositives()):
            same_column(held, aggregate.finish_state, aggregate.finish_states)
    positive = states(POSITIVE_SUM, values)
    same_column(positive, AverageOfPositives().finish_state, AverageOfPositives().finish_states)


def test_counts_of_more_than_32_bits() -> None:
    for kind, value in ((INTEGER_MOMENTS, np.array([3, 5, 2**40])), (FLOAT_MOMENTS, np.ones(3))):
        state = kind.low()
        zero = np.zeros(3, np.int64)
        state.iterate(zero, [value])
        for _ in range(40):
            state.merge(zero[:1], state.pack(zero[:1]))
        held = [bytes(state.pack(zero[:1])[0].as_py())]
        same_column(held, SampleVariance().finish_state, SampleVariance().finish_states)


def test_damaged_states_are_refused_as_single_ones_are() -> None:
    rng = np.random.default_rng(4)
    integers = rng.integers(-(2**40), 2**40, SIZES.sum())
    for kind, values in (
        (INTEGER_MOMENTS, integers),
        (INTEGER_MOMENTS, integers << 20),
        (FLOAT_MOMENTS, integers / 7.0),
    ):
        held = states(kind, values)
        for state in (held[0], held[70], held[-4], held[-1]):
            for wrong in damaged(state, rng, 40):
                for aggregate in (SampleVariance(), PopulationDeviation(), Sum(), Average()):
                    one, whole = aggregate.finish_state, aggregate.finish_states
                    same_outcome(state if aggregate in SPREADS else held[0], wrong, one, whole)


# ---- rounding ------------------------------------------------------------------------------------


@compiled_for(column(np.uint64), INTEGER, WORD, INTEGER)
def quotient(number: Any, digits: Any, divisor: Any, exponent: Any) -> Any:
    return rounded_quotient(number, digits, divisor, exponent)


@compiled_for(column(np.uint64), INTEGER, INTEGER)
def nearest(number: Any, digits: Any, exponent: Any) -> Any:
    return rounded_number(number, digits, exponent)


def digits_of(number: int) -> Any:
    count = (number.bit_length() + 31) // 32
    return np.array([number >> 32 * k & 0xFFFFFFFF for k in range(count)], np.uint64)


def test_quotients_are_those_of_python() -> None:
    """Of numbers of all lengths, and of such as lie halfway between two FLOATs, or next to it."""
    rng = np.random.default_rng(5)

    def drawn(most: int) -> int:
        return int.from_bytes(rng.bytes(most // 8 + 1), "little") >> int(rng.integers(0, most + 7))

    for _ in range(4000):
        divisor = min(max(1, drawn(64)), 2**64 - 1)
        halfway = (2 * (2**52 + drawn(52)) + 1) << int(rng.integers(0, 60))
        for number in (drawn(300), halfway * divisor, halfway * divisor + int(rng.integers(-1, 2))):
            held = digits_of(number)
            assert quotient(held, len(held), divisor, 0) == number / divisor
            assert nearest(held, len(held), 0) == float(number)


def test_quotients_too_large_and_too_small() -> None:
    one = digits_of(1)
    assert quotient(one, 1, 1, 1024) == math.inf
    assert quotient(one, 1, 3, -1010) == 1 / (3 * 2**1010)
    assert math.isnan(quotient(one, 1, 3, -1030))
    assert nearest(digits_of(2**1024 - 1), 32, 0) == math.inf
    assert nearest(digits_of(3), 1, -1074) == 1.5e-323
