"""Every aggregate that splits: sub-aggregates of any parts, merged in any order, are the whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.functions.base import (
    AggregateFunction,
    AggregatePart,
    Apply,
    Constant,
    Decomposition,
    Place,
    Term,
    TypeMistake,
    Value,
    ValueMistake,
)
from terascope.functions.registry import Functions
from terascope.functions.values import compare
from terascope.types import INT_MAX, INT_MIN, Type
from tests.settings import SOAK

FUNCTIONS = Functions.builtin()
small = st.integers(-9, 9)
wide = st.integers(INT_MIN, INT_MAX)
VALUES = {
    Type.INT: st.none() | small | st.integers(-(2**40), 2**40),
    Type.UINT: st.none() | st.integers(0, 2**32),
    Type.LLONG: st.none() | small | wide,
    Type.ULLONG: st.none() | st.integers(0, INT_MAX),
    Type.FLOAT: st.none() | st.integers(-(2**20), 2**20).map(lambda n: n / 4),
    Type.BOOL: st.none() | st.booleans(),
    Type.STRING: st.none() | st.text("ab", max_size=2),
    Type.IP: st.none() | st.sampled_from([bytes([4, 10, 0, 0, i]) for i in range(3)]),
}


def takes(aggregate: AggregateFunction, type_: Type) -> bool:
    try:
        aggregate.type_rule((type_,))
    except TypeMistake:
        return False
    return aggregate.arity == 1


CASES = [
    (aggregate, type_, finer)
    for aggregate in dict.fromkeys(FUNCTIONS.aggregates.values())
    for type_ in VALUES
    for finer in (False, True)
    if takes(aggregate, type_) and aggregate.split((type_,), finer) is not None
]


def reduced(aggregate: AggregateFunction, values: Sequence[Value]) -> Value:
    given = aggregate.state_parameters
    state = aggregate.zero(*aggregate.example_parameters[:given])
    for value in values:
        if not (aggregate.skips_null and value is None):
            state = aggregate.reduce(state, value)
    return aggregate.finish(state, *aggregate.example_parameters[given:])


def evaluated(term: Term, places: Sequence[Value]) -> Value:
    match term:
        case Place(number):
            return places[number]
        case Constant(value):
            return value
        case Apply(function, terms):
            return function(*(evaluated(t, places) for t in terms))


def merged(part: AggregatePart, groups: Sequence[Sequence[Value]]) -> Value:
    if len(part.subs) > 1:
        return merged_jointly(part, groups)
    ((sub, (over,)),) = part.subs
    partials = [reduced(sub, [evaluated(over, (v,)) for v in group]) for group in groups]
    return reduced(part.merge, partials)


def merged_jointly(part: AggregatePart, groups: Sequence[Sequence[Value]]) -> Value:
    """Every value is a partial group of its own: so partials have values of one range each."""
    state = part.merge.zero()
    for value in (v for group in groups for v in group if v is not None):
        row = [reduced(sub, [evaluated(over[0], (value,))]) for sub, over in part.subs]
        state = part.merge.reduce(state, *row)
    return part.merge.finish(state)


def from_parts(made: Decomposition, groups: Sequence[Sequence[Value]]) -> Value:
    value = evaluated(made.finish, [merged(part, groups) for part in made.parts])
    return made.of_nothing if value is None else value


def test_the_usual_aggregates_split_and_the_holistic_ones_do_not() -> None:
    split = {aggregate.name for aggregate, _, _ in CASES}
    usual = {"count", "sum", "min", "max", "avg", "or_aggr", "and_aggr", "xor_aggr"}
    moving = {"moving_sum", "moving_avg", "moving_sum_exp"}
    assert split == usual | moving | {"posavg", "running_count", "running_sum"}


@pytest.mark.parametrize(
    ("aggregate", "type_", "finer"),
    CASES,
    ids=lambda x: getattr(x, "name", None) or ("finer" if x is True else "same"),
)
@settings(
    max_examples=40 if SOAK else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
@given(data=st.data())
def test_the_whole_is_made_of_its_parts(
    aggregate: AggregateFunction, type_: Type, finer: bool, data: st.DataObject
) -> None:
    groups = data.draw(st.lists(st.lists(VALUES[type_], max_size=4), max_size=4))
    if not finer:
        # One low group for each group asked for; the low level itself may still send up partials.
        groups = [[value for group in groups for value in group]]
    made = aggregate.split((type_,), finer)
    assert made is not None
    whole = [value for group in groups for value in group]
    try:
        expected = reduced(aggregate, whole)
    except ValueMistake:
        with pytest.raises(ValueMistake):
            from_parts(made, groups)
        return
    found = from_parts(made, data.draw(st.permutations(groups)))
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12)
    elif expected is None or found is None:
        assert expected is found
    else:
        assert compare(expected, found) == 0


def test_the_sum_of_a_part_may_overflow_when_the_whole_does_not() -> None:
    total = FUNCTIONS.aggregates["sum"]
    made = total.split((Type.LLONG,), True)
    assert made is not None
    assert from_parts(made, [[INT_MAX, 5], [-7, -1]]) == INT_MAX - 3
    with pytest.raises(ValueMistake, match="overflow"):
        from_parts(made, [[INT_MAX, 5], [-1]])


def test_the_mean_of_nanosecond_clocks_does_not_overflow() -> None:
    mean = FUNCTIONS.aggregates["avg"]
    made = mean.split((Type.ULLONG,), False)
    assert made is not None
    now = 1_700_000_000_000_000_000
    assert from_parts(made, [[now] * 20, [now + 10] * 20]) == pytest.approx(now + 5, rel=1e-15)
