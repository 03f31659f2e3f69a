"""approx_quantile and what is extracted from its states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from terascope.functions.aggregates.quantiles import ApproxQuantile
from terascope.functions.base import TypeMistake, ValueMistake
from terascope.functions.registry import Functions
from terascope.sketches.base import packed_states
from terascope.sketches.greenwald_khanna import STRATEGIES
from terascope.types import Type

FUNCTIONS = Functions.builtin()
AGGREGATE = ApproxQuantile()
FIRST = np.zeros(1, np.int64)


def call(name: str, *args: Any) -> Any:
    function = FUNCTIONS.scalar(name)
    assert function is not None
    return function(*args)


def exact(values: list[Any], *parameters: Any) -> bytes:
    """The state of the reference interpreter."""
    state = AGGREGATE.zero(*parameters)
    for value in values:
        state = AGGREGATE.reduce(state, value)
    found = AGGREGATE.finish(state)
    assert found is not None
    return found


def kept(values: list[Any], type_: Type, *parameters: Any) -> bytes:
    """The state of the columns that the aggregate declares."""
    kind = AGGREGATE.state((type_,), parameters)
    assert kind is not None
    low, high = kind.low(), kind.high()
    if kind.from_states:
        high.merge(np.zeros(len(values), np.int64), packed_states(values))
    else:
        low.iterate(np.zeros(len(values), np.int64), [np.array(values)])
        leaving = low.flushed()
        if leaving is not None:
            high.merge(*leaving)
        high.merge(FIRST, low.pack(FIRST))
    found = AGGREGATE.finish_state(high.pack(FIRST)[0].as_py())
    assert found is not None
    return found


def test_percentiles_are_those_of_the_exact_aggregate() -> None:
    percentile = FUNCTIONS.aggregate("percentile")
    assert percentile is not None
    values = [40, 1500, 40, 52, 7, -3, 40, 1500, 99]
    state = exact(values)
    for percent in (0, 1, 11.2, 25, 50, 66, 90, 100):
        runs = percentile.zero()
        for value in values:
            runs = percentile.reduce(runs, value)
        found = call("percentile_of", state, percent)
        assert found == percentile.finish(runs, percent)
        assert isinstance(found, float)
        assert found == call("percentile_fcn", state, percent)


@pytest.mark.parametrize("strategy", ["", *STRATEGIES])
def test_columns_agree_with_the_reference_within_the_bound(strategy: str) -> None:
    values = np.random.default_rng(3).exponential(size=3000).tolist()
    whole, state = exact(values), kept(values, Type.FLOAT, 0.02, strategy)
    assert call("quantile_count", state) == call("quantile_count", whole) == 3000
    assert call("quantile_error", whole) == 0
    assert 0 < call("quantile_error", state) <= 0.02 * 3000 + 1
    slack = 2 if strategy == "kll" else 1
    for percent in (0, 5, 50, 95, 100):
        rank = call("quantile_rank", whole, call("percentile_of", state, percent))
        assert rank == pytest.approx(percent / 100, abs=slack * 0.02 + 1 / 3000)
    assert call("quantile_distance", state, whole) <= slack * 0.02 + 1 / 3000


def test_states_are_merged() -> None:
    values = np.random.default_rng(3).integers(0, 50, 300).tolist()
    parts = [exact(values[k : k + 50]) for k in range(0, 300, 50)]
    for state in (exact(parts), kept(parts, Type.BINARY)):
        assert call("quantile_count", state) == 300
        assert call("quantile_distance", state, exact(values)) == 0
    sketches = [kept(values[k::2], Type.INT, 0.05, "kll") for k in (0, 1)]
    assert call("quantile_count", kept(sketches, Type.BINARY)) == 300


def test_change_between_two_states() -> None:
    before, after = exact([1, 2, 3, 4]), exact([3, 4, 5, 6])
    assert call("quantile_distance", before, after) == 0.5
    assert call("quantile_distance", before, before) == 0
    assert call("quantile_rank", before, 2) == 0.5
    assert call("quantile_rank", before, 2.5) == 0.5
    assert call("quantile_rank", exact([1.5, math.nan]), math.nan) == 1


def test_nothing_is_null() -> None:
    assert AGGREGATE.finish(AGGREGATE.zero()) is None
    assert AGGREGATE.finish_state(None) is None
    kind = AGGREGATE.state((Type.INT,), ())
    assert kind is not None
    empty = kind.high().pack(FIRST)[0].as_py()
    assert AGGREGATE.finish_state(empty) is None
    assert call("percentile_of", None, 50) is None
    assert call("percentile_of", empty, 50) is None
    assert call("quantile_rank", empty, 50) is None
    assert call("quantile_count", empty) == 0
    assert call("quantile_distance", empty, exact([1])) is None


@pytest.mark.parametrize("eps", [0, 2, -0.1, 0.51, math.nan, "x", True])
def test_an_eps_that_cannot_be(eps: Any) -> None:
    with pytest.raises(ValueMistake, match=f"takes an eps between 0, .* and 0.5, not {eps}$"):
        AGGREGATE.zero(eps)
    with pytest.raises(ValueMistake):
        AGGREGATE.state((Type.INT,), (eps,))


def test_parameters() -> None:
    assert AGGREGATE.zero() == AGGREGATE.zero(0.01) == AGGREGATE.zero(0.01, "")
    kinds = [AGGREGATE.state((Type.INT,), (0.1, strategy)) for strategy in STRATEGIES]
    assert [kind.strategy for kind in kinds if kind] == list(STRATEGIES)
    with pytest.raises(ValueMistake, match="no strategy 'best'; it has gk_lite, gk_heavy"):
        AGGREGATE.zero(0.1, "best")
    assert AGGREGATE.type_rule((Type.UINT,)) is Type.BINARY
    with pytest.raises(TypeMistake, match="a number, or a state of approx_quantile, not STRING"):
        AGGREGATE.type_rule((Type.STRING,))


def test_bad_input_of_extractors() -> None:
    with pytest.raises(ValueMistake, match="a number between 0 and 100, not 120"):
        call("percentile_of", exact([1]), 120)
    check = FUNCTIONS.scalars["percentile_of"].check_constants
    assert check is not None
    check((None, None))
    with pytest.raises(ValueMistake, match="a number between 0 and 100, not 120"):
        check((None, 120))
    for name, more in (("percentile_of", (5,)), ("quantile_count", ()), ("kll_bytes", ())):
        with pytest.raises(ValueMistake, match=f"{name}: the bytes are no .*state"):
            call(name, b"TQ\1 no state at all", *more)
    with pytest.raises(ValueMistake, match="approx_quantile: the bytes are no state"):
        AGGREGATE.finish(AGGREGATE.reduce(AGGREGATE.zero(), b"TQ"))
    summary = kept(np.random.default_rng(1).normal(size=2000).tolist(), Type.FLOAT)
    with pytest.raises(ValueMistake, match="cannot become a KLL sketch"):
        call("kll_bytes", summary)
