"""The functions of distinct states and entropy, and the values that states of engines give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from terascope.functions.aggregates.distinct import (
    ApproxCountDistinct,
    ApproxCountDups,
    DistinctState,
    Entropy,
)
from terascope.functions.aggregates.in_order import Percentile
from terascope.functions.aggregates.running import MovingAverage
from terascope.functions.base import AggregateFunction, ValueMistake
from terascope.functions.registry import Functions
from terascope.functions.vector_dictionary import vector_of
from terascope.types import Type

FUNCTIONS = Functions.builtin()


def scalar(name: str, *args: Any) -> Any:
    found = FUNCTIONS.scalar(name)
    assert found is not None
    return found(*args)


def plain(aggregate: AggregateFunction, values: list[Any], *parameters: Any) -> Any:
    state = aggregate.zero(*parameters[: aggregate.state_parameters])
    for value in values:
        state = aggregate.reduce(state, value)
    return aggregate.finish(state, *parameters[aggregate.state_parameters :])


def kept(aggregate: AggregateFunction, type_: Type, values: list[Any], *parameters: Any) -> Any:
    """The value of a column of states."""
    given = parameters[: aggregate.state_parameters]
    kind = aggregate.state((type_,), given)
    assert kind is not None
    column = kind.low()
    column.iterate(np.zeros(len(values), np.int64), [vector_of(values, type_)])
    packed = column.pack(np.zeros(1, np.int64))[0].as_py()
    return aggregate.finish_state(packed, *parameters[aggregate.state_parameters :])


@pytest.mark.parametrize("strategy", ["", "hll", "theta", "fm"])
def test_counts_are_near(strategy: str) -> None:
    values = [k % 5000 for k in range(20000)]
    assert plain(ApproxCountDistinct(), values, strategy) == 5000
    found = kept(ApproxCountDistinct(), Type.INT, values, strategy)
    assert found == pytest.approx(5000, rel=0.3 if strategy == "fm" else 0.05)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueMistake, match="no strategy 'hyper'; it has hll, theta, fm"):
        ApproxCountDistinct().zero("hyper")


def test_dups() -> None:
    values = ["a", "b", "a", "a"]
    assert kept(ApproxCountDups(), Type.STRING, values) == 2
    assert plain(ApproxCountDups(), values) == 2
    assert ApproxCountDups().finish_state(None) == 0


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (Type.INT, [1, 2, 3, 2, 1]),
        (Type.FLOAT, [0.5, -0.0, 0.0]),
        (Type.STRING, ["a", "b", "b"]),
        (Type.IP, [b"\4\12\0\0\1", b"\4\12\0\0\2"]),
    ],
    ids=lambda x: str(x)[:12],
)
def test_the_reference_gives_the_state_that_engines_give(type_: Type, values: list[Any]) -> None:
    assert plain(DistinctState(), values) == kept(DistinctState(), type_, values)


def test_states_are_values() -> None:
    left, right = (plain(DistinctState(), list(v)) for v in (range(10), range(5, 30)))
    assert scalar("distinct_of", left) == 10
    assert scalar("distinct_of", scalar("distinct_union", left, right)) == 30
    assert scalar("distinct_of", scalar("distinct_intersection", left, right)) == 5
    assert scalar("distinct_of", scalar("distinct_difference", left, right)) == 5
    assert scalar("distinct_jaccard", left, right) == pytest.approx(5 / 30)
    sketch = scalar("distinct_bytes", left)
    assert scalar("distinct_of", scalar("distinct_from_bytes", sketch)) == 10
    merged = plain(DistinctState(), [left, right])
    assert scalar("distinct_of", merged) == 30
    assert DistinctState().state((Type.BINARY,), ()) != DistinctState().state((Type.INT,), ())
    assert plain(DistinctState(), []) is None


@pytest.mark.parametrize("name", ["distinct_of", "distinct_union", "distinct_jaccard"])
def test_other_bytes_are_refused(name: str) -> None:
    args = [b"no state"] * (1 if name == "distinct_of" else 2)
    with pytest.raises(ValueMistake, match=f"{name}: these 8 bytes are not a state"):
        scalar(name, *args)


@pytest.mark.parametrize("sketch", [b"", b"\1\3\3", b"\2\1\7\14", b"anything at all"])
def test_bytes_that_are_no_sketch(sketch: bytes) -> None:
    with pytest.raises(ValueMistake, match="no sketch of distinct values"):
        scalar("distinct_from_bytes", sketch)


def test_entropy() -> None:
    assert plain(Entropy(), ["a"] * 7) == 0.0
    assert plain(Entropy(), ["a", "b", "c", "d"] * 3) == 2.0
    assert plain(Entropy(), []) is None
    few = [k % 1000 for k in range(4321)]
    assert kept(Entropy(), Type.INT, few) == pytest.approx(plain(Entropy(), few), abs=1e-9)
    many = [int(x) for x in np.random.default_rng(1).zipf(1.2, 30000) % 10**6]
    assert len(set(many)) > 1024
    assert kept(Entropy(), Type.INT, many) == pytest.approx(plain(Entropy(), many), abs=0.35)
    assert math.isclose(plain(Entropy(), [1, 1, 2]), 0.9182958340544896)


def test_percentiles_of_states_are_those_of_values() -> None:
    values = [float("nan"), 2.5, -0.0, 7.0, -3.0]
    for percent in (0, 20, 50, 80, 100):
        found = kept(Percentile(), Type.FLOAT, values, percent)
        assert repr(found) == repr(plain(Percentile(), values, percent))
    with pytest.raises(ValueMistake, match="between 0 and 100, not 120"):
        Percentile().finish_state(None, 120)


def test_moving_averages() -> None:
    aggregate = MovingAverage()
    state = aggregate.zero(2)
    assert aggregate.finish(state) is None
    state = aggregate.next_epoch(aggregate.reduce(aggregate.reduce(state, 10), 20))
    state = aggregate.reduce(state, 60)
    assert aggregate.finish(state) == 30.0
    state = aggregate.next_epoch(state)
    assert aggregate.finish(state) == 60.0
    with pytest.raises(ValueMistake, match="moving_avg takes a number of epochs"):
        aggregate.zero(0)
