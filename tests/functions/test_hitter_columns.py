"""The lists of many states at once are those of each alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from terascope.functions.aggregates.hitters import HeavyHitters, TopK
from terascope.functions.base import ValueMistake
from terascope.functions.vector_dictionary import vector_of
from terascope.types import Type

VALUES: dict[Type, Callable[[int], Any]] = {
    Type.INT: lambda n: int(n) - 5 if n % 3 else int(n) << 40,
    Type.UINT: lambda n: int(n),
    Type.IP: lambda n: b"\4\n\0\0" + bytes([n]) if n % 4 else b"\6" + bytes([n] * 16),
    Type.STRING: lambda n: f'"{n}" é',
    Type.FLOAT: lambda n: float(n) / 3,
    Type.BOOL: lambda n: bool(n % 2),
}


@pytest.mark.parametrize(
    ("aggregate", "strategy"),
    [(HeavyHitters(), ""), (HeavyHitters(), "compress+adaptive(20)"), (TopK(), "")],
    ids=["heavy_hitters", "sketches", "top_k"],
)
@pytest.mark.parametrize("type_", VALUES, ids=lambda t: t.value)
def test_lists_of_a_column(aggregate: HeavyHitters, strategy: str, type_: Type) -> None:
    rng = np.random.default_rng(1)
    kind = aggregate.state((type_, Type.UINT), (strategy,))
    assert kind is not None
    sizes = np.array([0, 1, 2, 7, 40, 40, 3000])
    numbers = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    drawn = [VALUES[type_](n) for n in rng.zipf(1.4, len(numbers)) % 100]
    weights = np.where(rng.random(len(numbers)) < 0.05, 1 << 40, rng.integers(0, 4, len(numbers)))
    low, high = kind.low(), kind.high()
    low.iterate(numbers, [vector_of(drawn, type_), weights])
    full = low.flushed()
    if full is not None:
        high.merge(*full)
    every = np.arange(len(sizes))
    high.merge(every, low.pack(every))
    states = high.pack(every).to_pylist()
    column = pa.array([None, *states, None], pa.binary())
    for k in (1, 3, 100):
        found = aggregate.finish_states(column, k)
        assert found is not None
        one_by_one = [aggregate.finish_state(state, k) for state in (None, *states, None)]
        assert found.to_pylist() == one_by_one


def test_bytes_that_are_no_state_are_refused() -> None:
    for damaged in (b"", b"no state", b"nothing of the sort, but long enough"):
        with pytest.raises(ValueMistake, match="heavy_hitters: "):
            HeavyHitters().finish_states(pa.array([damaged]), 3)
