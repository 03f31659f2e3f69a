"""FIRST, LAST, MIN and MAX of columns of states: the same as those of the states one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from terascope.functions.aggregates.folding import Maximum, Minimum
from terascope.functions.aggregates.in_order import First, Last
from terascope.sketches.extreme_answers import extreme_column
from terascope.sketches.extremes import extreme_value
from terascope.types import Type
from tests.sketches.state_laws import argument, damaged, outcome, same_column
from tests.sketches.test_exact_states import values

TYPES = [Type.INT, Type.WIDE, Type.FLOAT, Type.BOOL, Type.STRING, Type.IP, Type.BINARY]
STATES = 40


def states(aggregate: Any, type_: Type, numbered: bool = True) -> list[bytes]:
    """States of which every third has seen nothing."""
    rng = np.random.default_rng(1)
    numbers = np.flatnonzero(np.arange(STATES) % 3).repeat(4)
    arguments = [argument(type_, values(type_, len(numbers), rng))]
    if aggregate.ordered:
        names = ["", "eth0", "wlan-long-name"]
        interfaces = [names[k] for k in rng.integers(0, 3, len(numbers))]
        arguments.append(
            np.zeros(len(numbers), np.int64) if numbered else argument(Type.STRING, interfaces)
        )
        arguments.append(np.arange(len(numbers)))
    held = aggregate.state((type_,), ()).low()
    held.iterate(numbers, arguments)
    return [bytes(state) for state in held.pack(np.arange(STATES)).to_pylist()]


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("type_", TYPES, ids=lambda t: t.name)
def test_first_and_last(type_: Type, numbered: bool) -> None:
    for aggregate in (First(), Last()):
        held = states(aggregate, type_, numbered)
        same_column(held, aggregate.finish_state, aggregate.finish_states)
        same_column(held[1:3], aggregate.finish_state, aggregate.finish_states)


@pytest.mark.parametrize("type_", [Type.STRING, Type.IP, Type.BINARY], ids=lambda t: t.name)
def test_min_and_max(type_: Type) -> None:
    for aggregate in (Minimum(), Maximum()):
        held = states(aggregate, type_)
        same_column(held, aggregate.finish_state, aggregate.finish_states)


def test_zeros_and_nans_of_first_stay_as_they_are() -> None:
    held = First().state((Type.FLOAT,), ())
    assert held is not None
    column, every = held.low(), np.arange(3)
    column.iterate(every, [np.array([-0.0, np.nan, np.inf]), np.zeros(3, np.int64), every])
    same_column(column.pack(every).to_pylist(), First().finish_state, First().finish_states)


def test_damaged_states_have_no_column() -> None:
    """The engine then reads states one by one, and the damaged one is refused."""
    rng = np.random.default_rng(2)
    refused = 0
    for aggregate, type_ in ((First(), Type.INT), (Last(), Type.STRING), (Minimum(), Type.STRING)):
        state = states(aggregate, type_, numbered=False)[4]
        for wrong in damaged(state, rng, 200):
            found = extreme_column(pa.array([wrong], pa.binary()))
            text = outcome(lambda held=wrong: extreme_value(held))  # type: ignore[misc]
            if found is None:
                assert "Error" in text
                refused += 1
            else:
                assert repr(found[0].as_py()) == text
    assert refused > 100


def test_values_of_two_forms_have_no_column() -> None:
    mixed = [states(First(), type_)[1] for type_ in (Type.INT, Type.FLOAT)]
    assert extreme_column(pa.array(mixed, pa.binary())) is None
    assert extreme_column(pa.array(mixed[:1], pa.binary())) is not None
