"""Aggregates whose parts are states: the sub-aggregate next to the source, the super-aggregate that
merges, and the value of the merged state (paper 1, 3.2).

In: a call of an aggregate that keeps a `StateKind` (terascope.sketches.base). Out: the way it
splits. Nobody names these three in a query: a split plan has them, and its text shows them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from terascope.functions.aggregates.folding import Collecting, Runs, items
from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    AggregatePart,
    Apply,
    Decomposition,
    Place,
    Scalar,
    Value,
)
from terascope.functions.slots import SlotKind, state_slot
from terascope.functions.vector_dictionary import vector_of
from terascope.sketches.base import FORCED, StateKind, packed_states
from terascope.sketches.values import set_kind, set_values
from terascope.types import Type


def label_of(kind: StateKind) -> str:
    """The kind, with the strategy that a query names."""
    return f"{kind.name}: {kind.strategy}" if kind.why == FORCED else kind.name


class PartialState(Collecting):
    """The state of the tuples of one group, packed: a sub-aggregate."""

    internal = True
    cheap = True
    skips_null = True

    def __init__(self, kind: StateKind, types: tuple[Type, ...]) -> None:
        # By the kind, and the strategy that a query names: calls that keep the same state share it.
        self.name = f"state[{label_of(kind)}]"  # type: ignore[misc]
        self.arity = len(types)  # type: ignore[misc]
        self.kind_of_state = kind
        self._types = types

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return Type.BINARY

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return state_slot(self.kind_of_state)

    def finish(self, state: Runs, *parameters: Value) -> bytes | None:
        tuples = list(items(state))
        if not tuples:
            return None
        columns = [[one] for one in tuples] if self.arity == 1 else tuples
        states = self.kind_of_state.low()
        numbers = np.zeros(len(columns), np.int64)
        if self.kind_of_state.from_states:
            states.merge(numbers, packed_states([one[0] for one in columns]))
        else:
            turned = zip(*columns, strict=True)
            arguments = [vector_of(c, t) for c, t in zip(turned, self._types, strict=True)]
            states.iterate(numbers, arguments)
        merged = self.kind_of_state.high()
        full = states.flushed()
        if full is not None:
            merged.merge(np.zeros(len(full[0]), np.int64), full[1])
        merged.merge(np.zeros(1, np.int64), states.pack(np.zeros(1, np.int64)))
        (packed,) = merged.pack(np.zeros(1, np.int64)).to_pylist()
        return bytes(packed)


class MergedState(Collecting):
    """The state that packed states make together: a super-aggregate."""

    internal = True
    cheap = True
    keeps_one = True

    def __init__(self, kind: StateKind) -> None:
        self.name = f"merge[{label_of(kind)}]"  # type: ignore[misc]
        self._kind = kind

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return Type.BINARY

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return state_slot(self._kind.merging)

    def finish(self, state: Runs, *parameters: Value) -> bytes | None:
        states = list(items(state))
        return merged_bytes(self._kind, states) if states else None


def merged_bytes(kind: StateKind, states: Sequence[bytes]) -> bytes:
    """The packed state that packed states of one kind make together."""
    column = kind.high()
    column.merge(np.zeros(len(states), np.int64), packed_states(states))
    (packed,) = column.pack(np.zeros(1, np.int64)).to_pylist()
    return bytes(packed)


def state_parts(
    function: AggregateFunction,
    kind: StateKind,
    types: tuple[Type, ...],
    result: Type,
    parameters: tuple[Value, ...],
) -> Decomposition:
    """The split of a call that keeps states. `types`: of the arguments, and of the places of tuples
    behind them; `parameters`: all constants of the call.
    """
    if not function.finishes_with_all:
        parameters = parameters[function.state_parameters :]
    sub = PartialState(kind, types), tuple(map(Place, range(len(types))))
    part = AggregatePart((sub,), MergedState(kind))
    finish = state_value(function, result, parameters)
    return Decomposition((part,), Apply(finish, (FIRST,)) if finish is not None else FIRST)


def distinct_parts(
    function: AggregateFunction, type: Type, result: Type, parameters: tuple[Value, ...]
) -> Decomposition:
    """The split of a call over the set of different values: a group keeps the set."""
    kind = set_kind(type)
    part = AggregatePart(((PartialState(kind, (type,)), (FIRST,)),), MergedState(kind))
    return Decomposition((part,), Apply(distinct_value(function, result, parameters), (FIRST,)))


def distinct_value(
    function: AggregateFunction, result: Type, parameters: tuple[Value, ...]
) -> Scalar:
    """The function from a packed set to the value of an aggregate over its values."""
    given = function.state_parameters
    text = ", ".join([result.label, *map(repr, parameters)])

    def evaluate(packed: bytes | None) -> Value:
        state = function.zero(*parameters[:given])
        for value in () if packed is None else set_values(packed):
            state = function.reduce(state, value)
        return function.finish(state, *parameters[given:])

    return Scalar(
        f"{function.name}_of_set[{text}]",
        lambda _: result,
        evaluate,
        strict=False,
        cost_ns=1000,
        of_states=True,
        doc=f"{function.name} over the different values of a set",
    )


def state_value(
    function: AggregateFunction, result: Type, parameters: tuple[Value, ...]
) -> Scalar | None:
    """The function from a packed state to the value of a call; None when the state is the value."""
    if type(function).finish_state is AggregateFunction.finish_state:
        return None
    text = ", ".join([result.label, *map(repr, parameters)])

    def evaluate(packed: bytes | None) -> Value:
        return function.finish_state(packed, *parameters)

    def evaluate_column(packed: pa.Array) -> pa.Array | None:
        return function.finish_states(packed, *parameters)

    return Scalar(
        f"{function.name}_of_state[{text}]",
        lambda _: result,
        evaluate,
        strict=False,
        cost_ns=1000,
        of_states=True,
        columns=evaluate_column,
        doc=f"the value of a state of {function.name}",
    )
