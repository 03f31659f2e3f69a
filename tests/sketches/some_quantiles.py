"""Values in hard orders, states made of them, and how wrong the answers of a state are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from terascope.sketches.base import Packed, StateColumn, StateKind, packed_states
from terascope.sketches.greenwald_khanna import quantile_kind
from terascope.sketches.kll import quantiles_of
from terascope.sketches.quantile_reading import Quantiles

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


def packed_values(values: Values) -> bytes:
    return packed_by(quantile_kind(0.01), np.zeros(len(values), np.int64), values, 1)[0]
