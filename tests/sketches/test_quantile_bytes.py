"""Quantile states as bytes: FLOATs in their order, sketches beside summaries, damage; answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from terascope.sketches.base import StateColumn
from terascope.sketches.greenwald_khanna import STRATEGIES, merging_kind, quantile_kind
from terascope.sketches.kll import quantiles_of
from terascope.sketches.quantile_columns import Summaries
from terascope.sketches.quantile_reading import read_quantiles
from tests.sketches.some_quantiles import Values, merged, one, packed_by, packed_values


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
