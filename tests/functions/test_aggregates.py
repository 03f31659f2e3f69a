from __future__ import annotations

import functools
import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terascope.functions.aggregates.folding import Runs, items, join
from terascope.functions.base import AggregateFunction, TypeMistake, Value, ValueMistake
from terascope.functions.registry import Functions
from terascope.types import INT_MAX, Type


def aggregate(name: str) -> AggregateFunction:
    found = Functions.builtin().aggregate(name)
    assert found is not None
    return found


def value_of(name: str, rows: list[Any], *parameters: Value) -> Value:
    function = aggregate(name)
    state = function.zero(*parameters[: function.state_parameters])
    for row in rows:
        args = row if isinstance(row, tuple) else (row,)
        state = function.reduce(state, *args)
    return function.finish(state, *parameters[function.state_parameters :])


def epochs(name: str, batches: list[list[Any]], *parameters: Value) -> list[Value]:
    """What a running aggregate gives at the end of each epoch."""
    function = aggregate(name)
    cut = function.state_parameters
    state, rows = function.zero(*parameters[:cut]), []
    for batch in batches:
        for row in batch:
            state = function.reduce(state, *(row if isinstance(row, tuple) else (row,)))
        rows.append(function.finish(state, *parameters[cut:]))
        state = function.next_epoch(state)
    return rows


@pytest.mark.parametrize(
    ("name", "rows", "parameters", "expected"),
    [
        ("count", [(), ()], (), 2),
        ("sum", [1, 2, -5], (), -2),
        ("sum", [], (), None),
        ("sum", [INT_MAX, 1, -1], (), INT_MAX),
        ("avg", [1, 2], (), 1.5),
        ("posavg", [-1.0, 0.0, 3.0], (), 1.5),
        ("posavg", [-1.0], (), None),
        ("min", [2.0, math.nan, 1.0], (), 1.0),
        ("max", [b"\4\0\0\0\2", b"\6" + bytes(16)], (), b"\6" + bytes(16)),
        ("max", ["B", "a"], (), "a"),
        ("first", [3, 1, 2], (), 3),
        ("last", [3, 1, 2], (), 2),
        ("var", [1, 2, 3, 4], (), 5 / 3),
        ("var_pop", [1, 2, 3, 4], (), 1.25),
        ("stddev", [2, 4], (), math.sqrt(2)),
        ("stddev_pop", [2, 4], (), 1.0),
        ("variance", [7], (), None),
        ("stddev_pop", [7], (), 0.0),
        ("median", [4, 1, 3, 2], (), 2),
        ("median_of", [3, 1, 2], (), 2),
        ("percentile", list(range(1, 21)), (95,), 19),
        ("percentile", list(range(1, 101)), (0,), 1),
        ("percentile", [5], (100,), 5),
        ("quantile_of", list(range(1, 11)), (0.25,), 3),
        ("count_distinct", ["a", "b", "a"], (), 2),
        ("count_distinct", [math.nan, -math.nan, 0.0, -0.0], (), 2),
        ("count_dups", [7, 8, 7, 7], (), 2),
        ("sum_of_dups", [], (), 0),
        ("or_aggr", [0x02, 0x10], (), 0x12),
        ("and_aggr", [0x12, 0x10], (), 0x10),
        ("xor_aggr", [5, 3, 5], (), 3),
        ("or_aggr", [False, True], (), True),
        ("xor_aggr", [True, True], (), False),
        ("or_aggr", [], (), None),
        ("count_diff", ["a", "a", "b", "a"], (), 3),
        ("cat_aggr", [(",", "a"), (";", "b"), (";", "")], (), "a;b;"),
        ("cat_aggr", [], (), None),
        ("running_array_aggr", [3, 1, 2], (), "3,1,2"),
        ("running_sum_max", [5, -7, 4], (), 5),
        ("moving_sum", [1, 2], (3,), 3),
        ("time_avg", [(10, 60), (20, 90)], (60,), 15.0),
        ("time_avg", [(10, 75), (20, 90)], (60,), (10 * 15 + 20 * 30) / 45),
    ],
)
def test_meaning(name: str, rows: list[Any], parameters: tuple[Value, ...], expected: Any) -> None:
    result = value_of(name, rows, *parameters)
    assert type(result) is type(expected)
    assert result == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_running_aggregates_go_on() -> None:
    assert epochs("count_dups", [[1, 2], [2], [], [1]]) == [0, 1, 1, 2]
    assert epochs("running_sum", [[1, 2], [], [4]]) == [3, 3, 7]
    assert epochs("running_sum_max", [[5, -3], [-1], [], [9]]) == [5, 2, 1, 10]
    assert epochs("moving_sum", [[1], [2], [3], [], [], []], 2) == [1, 3, 5, 3, 0, 0]
    assert epochs("moving_sum_exp", [[8], [4], [], []], 3, 0.5) == [8.0, 8.0, 4.0, 1.0]
    assert epochs("first", [[3], [4]]) == [3, 3]
    assert epochs("running_array_aggr", [[1], [2, 3]]) == ["1", "1,2,3"]


def test_time_average_carries_the_last_value_over() -> None:
    batches = [[(10, 30)], [(20, 90)], [], [(0, 180)]]
    assert epochs("time_avg", batches, 60) == [10.0, 15.0, 20.0, 0.0]


def test_overflow_of_a_sum() -> None:
    with pytest.raises(ValueMistake, match="integer overflow in SUM"):
        value_of("sum", [INT_MAX, 1])


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("percentile", (101,), "percentile takes a number between 0 and 100, not 101"),
        ("quantile_of", (95,), "quantile_of takes a number between 0 and 1, not 95"),
        ("percentile", ("95",), "percentile takes a number between 0 and 100, not 95"),
        ("moving_sum", (0,), "moving_sum takes a number of epochs of at least 1, not 0"),
        ("moving_sum_exp", (3, "x"), "moving_sum_exp takes a number as alpha, not x"),
        ("time_avg", (1.5,), "time_avg takes a window of at least 1, not 1.5"),
    ],
)
def test_bad_constants_show_on_an_empty_state(
    name: str, parameters: tuple[Value, ...], message: str
) -> None:
    with pytest.raises(ValueMistake) as caught:
        value_of(name, [], *parameters)
    assert str(caught.value) == message


def test_types() -> None:
    assert aggregate("sum").type_rule((Type.UINT,)) is Type.ULLONG
    assert aggregate("sum").type_rule((Type.INT,)) is Type.LLONG
    assert aggregate("sum").type_rule((Type.FLOAT,)) is Type.FLOAT
    assert aggregate("max").type_rule((Type.IP,)) is Type.IP
    assert aggregate("or_aggr").type_rule((Type.BOOL,)) is Type.BOOL
    assert aggregate("median").type_rule((Type.UINT,)) is Type.UINT
    with pytest.raises(TypeMistake) as caught:
        aggregate("sum").type_rule((Type.BOOL,))
    assert str(caught.value) == "sum takes a number, not BOOL; write CAST(... AS INT)"


def test_labels_of_the_dissertation() -> None:
    """5.4.2: counts and sums are rescaled, duplicates, extremes and bits need whole groups."""
    sampling = {n: aggregate(n).sampling for n in ("count", "sum", "avg", "count_dups", "min")}
    assert sampling == {
        "count": "rescale",
        "sum": "rescale",
        "avg": "keep",
        "count_dups": "none",
        "min": "none",
    }
    assert aggregate("or_aggr").sampling == "none"
    assert aggregate("sum_of_dups").running
    assert not aggregate("count").running


@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=40))
def test_variance_of_large_offsets_stays_right(values: list[int]) -> None:
    """A clock in nanoseconds: sums of squares, and FLOATs of the values, would lose the digits."""
    shifted = [v + 17 * 10**17 for v in values]
    expected = statistics.variance(values)
    assert value_of("var_samp", shifted) == pytest.approx(expected, rel=1e-9)
    function = aggregate("var_samp")
    parts = [function.reduce(function.zero(), v) for v in shifted]
    merged = functools.reduce(function.merge, parts)
    assert function.finish(merged) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(-50, 50), min_size=1), st.integers(0, 100))
def test_percentile_by_definition(values: list[int], percent: int) -> None:
    result = value_of("percentile", values, percent)
    rank = max(1, math.ceil(percent / 100.0 * len(values)))
    assert sum(v < result for v in values) < rank <= sum(v <= result for v in values)


def test_runs_stay_few_and_in_order() -> None:
    runs: Runs = ()
    for item in range(1000):
        runs = join(runs, ((item,),))
        assert len(runs) <= 11
    assert list(items(runs)) == list(range(1000))
