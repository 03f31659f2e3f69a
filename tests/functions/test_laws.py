"""Laws of every registered function: a new one is tested by being in the registry."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.functions.base import AggregateFunction, Scalar, TypeMistake, ValueMistake
from terascope.functions.registry import Functions
from terascope.functions.states import decode_state, encode_state
from terascope.functions.values import holds
from terascope.types import Type
from tests.functions.travel import dumps
from tests.functions.values import BY_TYPE, MODEST
from tests.settings import SOAK

FUNCTIONS = Functions.builtin()
AGGREGATES = sorted(set(FUNCTIONS.aggregates.values()), key=lambda a: a.name)
SCALARS = sorted(set(FUNCTIONS.scalars.values()), key=lambda s: s.name)
TYPES = tuple(BY_TYPE)


def takes(function: AggregateFunction | Scalar, types: tuple[Type, ...]) -> bool:
    try:
        function.type_rule(types)
    except TypeMistake:
        return False
    return True


@cache
def argument_types(function: AggregateFunction | Scalar) -> tuple[tuple[Type, ...], ...]:
    """Every list of argument types the function takes, of up to three arguments."""
    if isinstance(function, AggregateFunction):
        counts = [0, 1] if function.takes_star else [function.arity]
    else:
        counts = [0, 1, 2, 3]
    lists = (types for count in counts for types in itertools.product(TYPES, repeat=count))
    return tuple(types for types in lists if takes(function, types))


def agrees(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        close = math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-6)
        return close or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


def parameters(aggregate: AggregateFunction) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    cut = aggregate.state_parameters
    return aggregate.example_parameters[:cut], aggregate.example_parameters[cut:]


def reduced(aggregate: AggregateFunction, tuples: list[tuple[Any, ...]]) -> Any:
    state = aggregate.zero(*parameters(aggregate)[0])
    for args in tuples:
        state = aggregate.reduce(state, *args)
    return state


def finished(aggregate: AggregateFunction, state: Any) -> Any:
    return aggregate.finish(state, *parameters(aggregate)[1])


# ---- aggregates ----------------------------------------------------------------------------------


def takes_states(aggregate: AggregateFunction, types: tuple[Type, ...]) -> bool:
    """Whether arguments of these types are packed states of the aggregate itself."""
    kind_of = getattr(aggregate, "state", None)
    kind = kind_of(types, parameters(aggregate)[0]) if kind_of else None
    return kind is not None and kind.from_states


def packed(aggregate: AggregateFunction, values: list[object]) -> object:
    """The state of some integers, as bytes."""
    return finished(aggregate, reduced(aggregate, [(value,) for value in values]))


@st.composite
def cut_tuples(
    draw: st.DrawFn, aggregate: AggregateFunction
) -> tuple[Type, list[list[tuple[Any, ...]]]]:
    """Tuples that suit the aggregate, cut into parts. A last integer column is in order where order
    matters, as a clock is.
    """
    shapes = [
        types
        for types in argument_types(aggregate)
        if aggregate.arity == 1 or not takes_states(aggregate, types)
    ]
    types = draw(st.sampled_from(shapes))
    drawn = [MODEST[t] for t in types]
    if takes_states(aggregate, types):
        drawn = [st.lists(MODEST[Type.INT], min_size=1).map(lambda v: packed(aggregate, v))]
    tuples = draw(st.lists(st.tuples(*drawn), max_size=24))
    if aggregate.ordered and len(types) > 1 and types[-1].is_integer:
        tuples.sort(key=lambda row: row[-1])
    cuts = sorted(draw(st.lists(st.integers(0, len(tuples)), max_size=4)))
    edges = [0, *cuts, len(tuples)]
    return aggregate.type_rule(types), [tuples[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.name)
@settings(
    max_examples=40 if SOAK else 20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data())
def test_any_split_merges_to_the_whole(aggregate: AggregateFunction, data: st.DataObject) -> None:
    type_, parts = data.draw(cut_tuples(aggregate))
    whole = finished(aggregate, reduced(aggregate, [row for part in parts for row in part]))
    assert holds(whole, type_)
    states = [reduced(aggregate, part) for part in parts]
    if not aggregate.ordered:
        states = data.draw(st.permutations(states))
    while len(states) > 1:
        at = data.draw(st.integers(0, len(states) - 2))
        states[at : at + 2] = [aggregate.merge(states[at], states[at + 1])]
    assert agrees(finished(aggregate, states[0]), whole)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_zero_changes_nothing_and_states_are_values(
    aggregate: AggregateFunction, data: st.DataObject
) -> None:
    _, parts = data.draw(cut_tuples(aggregate))
    rows = [row for part in parts for row in part]
    state = reduced(aggregate, rows)
    frozen = pickle.dumps(state)
    zero = aggregate.zero(*parameters(aggregate)[0])
    assert aggregate.merge(state, zero) == state
    assert aggregate.merge(zero, state) == state
    travelled = pickle.loads(frozen)
    assert agrees(finished(aggregate, travelled), finished(aggregate, state))
    if rows:
        aggregate.reduce(state, *rows[0])
        aggregate.merge(state, state)
        aggregate.next_epoch(state)
    assert pickle.dumps(state) == frozen, "the state was changed in place"
    told = json.loads(json.dumps(encode_state(aggregate, state)))
    assert decode_state(aggregate, told, trusted=False) == state


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.name)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_state_that_went_on_takes_a_part_reduced_apart(
    aggregate: AggregateFunction, data: st.DataObject
) -> None:
    """Under CLOSING_WHEN an epoch's tuples may be reduced apart and merged into what is kept."""
    _, parts = data.draw(cut_tuples(aggregate))
    early, late = parts[0], [row for part in parts[1:] for row in part]
    kept = aggregate.next_epoch(reduced(aggregate, early))
    straight = kept
    for row in late:
        straight = aggregate.reduce(straight, *row)
    merged = aggregate.merge(kept, reduced(aggregate, late))
    assert agrees(finished(aggregate, merged), finished(aggregate, straight))


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.name)
def test_labels(aggregate: AggregateFunction) -> None:
    wanted = aggregate.state_parameters + aggregate.finish_parameters
    assert len(aggregate.example_parameters) == wanted
    assert aggregate.name == aggregate.name.lower()
    assert aggregate.doc
    empty = finished(aggregate, aggregate.zero(*parameters(aggregate)[0]))
    assert empty is None or empty == 0, "no tuple gives NULL, or 0 for what counts"
    assert argument_types(aggregate)
    # the binder hands over the types of the constants as well
    types = next(t for t in argument_types(aggregate) if len(t) == aggregate.arity)
    assert aggregate.type_rule((*types, *(Type.INT,) * wanted)) is aggregate.type_rule(types)


# ---- scalars -------------------------------------------------------------------------------------


def unified(scalar: Scalar, types: tuple[Type, ...]) -> bool:
    """Whether arguments that are cast to one type before the call are of one type here."""
    start = scalar.unified_from
    return start is None or len(set(types[start:])) == 1


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: s.name)
@settings(
    max_examples=40 if SOAK else 20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data())
def test_a_scalar_gives_a_value_of_its_type(scalar: Scalar, data: st.DataObject) -> None:
    shapes = [t for t in argument_types(scalar) if unified(scalar, t)]
    types = data.draw(st.sampled_from(shapes))
    args = [data.draw(st.none() | BY_TYPE[t]) for t in types]
    try:
        result = scalar(*args)
    except ValueMistake:
        return  # an overflow, a broken pattern, a file that is not there
    assert holds(result, scalar.type_rule(types)), f"{scalar.name}{tuple(args)} = {result!r}"
    if scalar.strict and None in args:
        assert result is None
    assert repr(scalar(*args)) == repr(result), "the same arguments gave another value"


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: s.name)
def test_no_argument_list_breaks_a_type_rule(scalar: Scalar) -> None:
    """Any types either have a result or a message: no other exception, no sentence."""
    messages, accepted = [], 0
    for count in range(4):
        for types in itertools.product((*TYPES, Type.NULL), repeat=count):
            try:
                assert isinstance(scalar.type_rule(types), Type)
                accepted += 1
            except TypeMistake as mistake:
                messages.append(str(mistake))
    assert accepted
    assert all(m and not m.endswith(".") for m in messages)


@pytest.mark.parametrize("name", sorted({*FUNCTIONS.scalars, *FUNCTIONS.aggregates}))
def test_functions_travel_to_workers(name: str) -> None:
    function = FUNCTIONS.scalar(name) or FUNCTIONS.aggregate(name)
    travelled = pickle.loads(dumps(function))
    assert travelled == function
    assert travelled.type_rule is not None
