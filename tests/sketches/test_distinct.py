"""Distinct counts: estimates within their bounds, bytes that DataSketches reads, set operations."""

from __future__ import annotations

import contextlib
from typing import Any

import datasketches
import numpy as np
import pytest

from terascope.sketches.base import StateKind, packed_states
from terascope.sketches.distinct import (
    KINDS,
    distinct_estimate,
    intersected,
    jaccard,
    subtracted,
    tuples_seen,
    united,
)
from terascope.sketches.entropy import ENTROPY_KIND, entropy_of, exact_entropy
from terascope.sketches.hll import HLL_KIND
from terascope.sketches.theta import SKETCH, THETA_KIND
from terascope.types import Type
from tests.sketches.state_laws import argument, states_of

SIZES = (0, 1, 2, 3, 7, 8, 9, 60, 64, 65, 200, 256, 257, 300, 1000, 5000, 20000)
BOUND = {"hll": 0.05, "theta": 0.05, "fm": 0.30}
"""Three standard errors."""


def state_of(kind: StateKind, values: Any) -> bytes:
    column = kind.low()
    column.iterate(np.zeros(len(values), np.int64), [np.asarray(values)])
    (packed,) = column.pack(np.zeros(1, np.int64)).to_pylist()
    return bytes(packed)


@pytest.mark.parametrize("name", KINDS)
def test_any_split_merges_to_the_whole(name: str) -> None:
    rng = np.random.default_rng(1)
    kind = KINDS[name]
    numbers = np.repeat(np.arange(len(SIZES)), np.array(SIZES))
    values = np.concatenate([np.arange(size) * 31 + 7 for size in SIZES])
    again = rng.integers(0, len(values), 5000)
    numbers = np.concatenate([numbers, numbers[again]])
    values = np.concatenate([values, values[again]])
    rows = [(int(v),) for v in values]
    states = states_of(kind, (Type.INT,), numbers, rows, len(SIZES), rng)
    for size, state in zip(SIZES, states, strict=True):
        found = distinct_estimate(state)
        if size <= 64:
            assert round(found) == size
        assert abs(found - size) <= BOUND[name] * size + 0.5
    assert [tuples_seen(s) for s in states] == np.bincount(numbers, minlength=len(SIZES)).tolist()
    whole = kind.low()
    whole.iterate(numbers, [values])
    assert whole.pack(np.arange(len(SIZES))).to_pylist() == states, "the same set, the same bytes"


@pytest.mark.parametrize("name", KINDS)
def test_bounds_over_seeds(name: str) -> None:
    """At least 99% of the estimates lie within three standard errors."""
    errors = []
    for seed in range(200):
        values = np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, 3000)
        errors.append(abs(distinct_estimate(state_of(KINDS[name], values)) / 3000 - 1))
    assert np.mean(np.array(errors) <= BOUND[name]) >= 0.99


@pytest.mark.parametrize("size", SIZES)
def test_hll_is_that_of_datasketches(size: int) -> None:
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
    for value in range(size):
        sketch.update(value)
    held = state_of(HLL_KIND, np.arange(size))[SKETCH:]
    if size >= 1000:
        assert held[40:] == sketch.serialize_compact()[40:], "the registers are the same"
    ours = datasketches.hll_sketch.deserialize(held)
    assert ours.get_estimate() == pytest.approx(sketch.get_estimate(), rel=0.02)
    both = datasketches.hll_union(12)
    both.update(sketch)
    both.update(ours)
    assert both.get_estimate() == pytest.approx(ours.get_estimate(), rel=0.01)


@pytest.mark.parametrize("size", SIZES)
def test_theta_is_that_of_datasketches(size: int) -> None:
    sketch = datasketches.update_theta_sketch(12)
    for value in range(size):
        sketch.update(value)
    sketch.trim()
    ours = datasketches.compact_theta_sketch.deserialize(
        state_of(THETA_KIND, np.arange(size))[SKETCH:]
    )
    smaller = min(ours.theta64, sketch.theta64)
    assert {h for h in ours if h < smaller} == {h for h in sketch if h < smaller}
    assert ours.get_estimate() == pytest.approx(sketch.get_estimate(), rel=0.06)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (Type.STRING, ["a", "bb", "a", "a long text of many letters", "é"]),
        (Type.FLOAT, [0.0, -0.0, 1.5, float("nan"), -float("nan")]),
    ],
)
def test_hashes_of_text_and_floats_are_those_of_datasketches(
    type_: Type, values: list[Any]
) -> None:
    column = THETA_KIND.low()
    column.iterate(np.zeros(5, np.int64), [argument(type_, values)])
    state = column.pack(np.zeros(1, np.int64))[0].as_py()
    sketch = datasketches.update_theta_sketch(12)
    for value in values:
        sketch.update(value)
    assert set(datasketches.compact_theta_sketch.deserialize(state[SKETCH:])) == set(sketch)


def test_addresses_are_values_by_their_bytes() -> None:
    addresses = [bytes([4, 10, 0, k // 250, k % 250]) for k in range(2000)]
    column = HLL_KIND.low()
    for at in range(0, 2000, 500):
        some = [*addresses[at : at + 500], *addresses[:100]]
        column.iterate(np.zeros(600, np.int64), [argument(Type.IP, some)])
    estimate = distinct_estimate(column.pack(np.zeros(1, np.int64))[0].as_py())
    assert estimate == pytest.approx(2000, rel=0.05)


@pytest.mark.parametrize("size", [10, 30000])
def test_set_operations(size: int) -> None:
    left = state_of(THETA_KIND, np.arange(size))
    right = state_of(THETA_KIND, np.arange(size // 2, size // 2 * 3))
    near = 0.09 * size if size > 4096 else 1e-9
    assert distinct_estimate(united(left, right)) == pytest.approx(size * 1.5, abs=near)
    assert distinct_estimate(intersected(left, right)) == pytest.approx(size * 0.5, abs=near)
    assert distinct_estimate(subtracted(left, right)) == pytest.approx(size * 0.5, abs=near)
    assert jaccard(left, right) == pytest.approx(1 / 3, abs=0.03)
    column = THETA_KIND.high()
    column.merge(np.zeros(2, np.int64), packed_states([left, intersected(left, right)]))
    (merged,) = column.pack(np.zeros(1, np.int64)).to_pylist()
    assert distinct_estimate(merged) == pytest.approx(size, abs=near)


def test_hll_has_no_set_operations() -> None:
    state = state_of(HLL_KIND, np.arange(9))
    with pytest.raises(ValueError, match="distinct_state"):
        united(state, state)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [0, 5, 50, 6000])
def test_damaged_states_are_refused(name: str, size: int) -> None:
    kind = KINDS[name]
    whole = state_of(kind, np.arange(size))
    cuts = sorted({*range(min(len(whole), 60)), len(whole) - 1})
    for state in [whole[:cut] for cut in cuts] + [b"TQ\1\0" + whole[4:], whole + b"\0"]:
        with pytest.raises(ValueError, match="bytes are"):
            kind.high().merge(np.zeros(1, np.int64), packed_states([state]))
        with pytest.raises(ValueError, match="bytes are"):
            distinct_estimate(state)
    rng = np.random.default_rng(2)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.integers(4, min(len(damaged), 60))] = int(rng.integers(0, 256))
        with contextlib.suppress(ValueError):
            kind.high().merge(np.zeros(1, np.int64), packed_states([bytes(damaged)]))


@pytest.mark.parametrize("name", KINDS)
def test_dropped_states_begin_anew(name: str) -> None:
    column = KINDS[name].low()
    for _ in range(3):
        column.iterate(np.arange(9000) % 2, [np.arange(9000)])
        before = column.memory_bytes
        column.drop(np.array([0, 1]))
        assert column.pack(np.array([0])).equals(KINDS[name].high().pack(np.array([0])))
    column.iterate(np.zeros(3, np.int64), [np.array([1, 2, 2])])
    assert round(distinct_estimate(column.pack(np.array([0]))[0].as_py())) == 2
    assert column.memory_bytes <= 1.1 * before


@pytest.mark.parametrize("name", KINDS)
def test_small_groups_take_little_memory(name: str) -> None:
    groups = 200_000
    numbers = np.random.default_rng(3).integers(0, groups, 2 * groups)
    column = KINDS[name].low()
    column.iterate(numbers, [np.arange(2 * groups)])
    assert column.memory_bytes / groups < 130


# ---- entropy -------------------------------------------------------------------------------------


def entropy_values(seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    rng = np.random.default_rng(seed)
    drawn = (rng.integers(0, 2**40, 3000), rng.zipf(1.2, 9000) % 10**9, rng.integers(0, 2000, 9000))
    return drawn[seed % 3] + seed * 10**12


def exact(values: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    return exact_entropy(np.unique(values, return_counts=True)[1].tolist())


def test_entropy_of_any_split() -> None:
    sizes = (0, 1, 2, 100, 1024, 1025, 4000)
    rng = np.random.default_rng(4)
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    drawn = np.concatenate([np.arange(size) // 2 for size in sizes])
    rows = [(int(v),) for v in drawn]
    states = states_of(ENTROPY_KIND, (Type.INT,), numbers, rows, len(sizes), rng)
    for group, state in enumerate(states):
        values = drawn[numbers == group]
        found = entropy_of(state)
        if not len(values):
            assert found is None
        else:
            assert found == pytest.approx(exact(values), abs=1e-9 if sizes[group] <= 2048 else 0.35)


def test_entropy_is_within_its_bound() -> None:
    errors = []
    for seed in range(150):
        values = entropy_values(seed)
        errors.append(abs((entropy_of(state_of(ENTROPY_KIND, values)) or 0) - exact(values)))
    assert np.mean(np.array(errors) <= 0.35) >= 0.99
    assert np.std(errors) < 0.12


def test_damaged_states_of_entropy_are_refused() -> None:
    for size in (0, 3, 3000):
        whole = state_of(ENTROPY_KIND, np.arange(size))
        cuts = {*range(min(len(whole), 40)), len(whole) - 8}
        for state in [whole[:cut] for cut in cuts] + [whole + b"\0"]:
            with pytest.raises(ValueError, match="bytes are"):
                ENTROPY_KIND.high().merge(np.zeros(1, np.int64), packed_states([state]))
            with pytest.raises(ValueError, match="bytes are"):
                entropy_of(state)
