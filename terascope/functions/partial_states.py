"""Aggregates whose parts are states: the sub-aggregate next to the source, the super-aggregate that
merges, and the value of the merged state (paper 1, 3.2).

In: a call of an aggregate that keeps a `StateKind` (terascope.sketches.base). Out: the way it
splits. Nobody names these three in a query: a split plan has them, and its text shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
from terascope.functions.values import as_bytes
from terascope.hashing import value_hash, word_of
from terascope.sketches.base import Argument, CodedValues, StateKind, packed_states
from terascope.types import Type

NUMBERS = frozenset({Type.BOOL, Type.INT, Type.UINT, Type.LLONG, Type.ULLONG, Type.WIDE})


class PartialState(Collecting):
    """The state of the tuples of one group, packed: a sub-aggregate."""

    internal = True
    cheap = True
    skips_null = True

    def __init__(self, function: AggregateFunction, kind: StateKind, types: tuple[Type, ...]):
        self.name = f"{function.name}_state[{kind.name}]"  # type: ignore[misc]
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
        self.name = f"merge[{kind.name}]"  # type: ignore[misc]
        self._kind = kind

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return Type.BINARY

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return state_slot(self._kind.merging)

    def finish(self, state: Runs, *parameters: Value) -> bytes | None:
        states = list(items(state))
        if not states:
            return None
        merged = self._kind.high()
        merged.merge(np.zeros(len(states), np.int64), packed_states(states))
        (packed,) = merged.pack(np.zeros(1, np.int64)).to_pylist()
        return bytes(packed)


def state_parts(
    function: AggregateFunction,
    kind: StateKind,
    types: tuple[Type, ...],
    result: Type,
    parameters: tuple[Value, ...],
) -> Decomposition:
    """The split of a call that keeps states. `types`: of the arguments, and of the places of tuples
    behind them; `parameters`: those of the finish.
    """
    sub = PartialState(function, kind, types), tuple(map(Place, range(len(types))))
    part = AggregatePart((sub,), MergedState(kind))
    finish = state_value(function, result, parameters)
    return Decomposition((part,), Apply(finish, (FIRST,)) if finish is not None else FIRST)


@lru_cache(maxsize=256)
def state_value(
    function: AggregateFunction, result: Type, parameters: tuple[Value, ...]
) -> Scalar | None:
    """The function from a packed state to the value of a call; None when the state is the value."""
    if type(function).finish_state is AggregateFunction.finish_state:
        return None
    text = "".join(f", {value!r}" for value in parameters)

    def evaluate(packed: bytes) -> Value:
        return function.finish_state(packed, *parameters)

    return Scalar(
        f"{function.name}_of_state[{text.removeprefix(', ')}]",
        lambda _: result,
        evaluate,
        cost_ns=1000,
        of_states=True,
        doc=f"the value of a state of {function.name}",
    )


# ---- plain values as vectors ---------------------------------------------------------------------


@dataclass(frozen=True)
class ListedValues:
    """The values of codes; 0 is NULL."""

    listed: tuple[Value, ...]
    type: pa.DataType

    def values(self, codes: Any = None) -> pa.Array:
        every = pa.array(self.listed, self.type)
        return every if codes is None else every.take(pa.array(codes))

    def hashes(self, codes: Any) -> NDArray[np.uint64]:
        own = [0 if one is None else int(hash_of(as_bytes(one))) for one in self.listed]
        return np.asarray(np.array(own, np.uint64)[codes])


def hash_of(data: bytes) -> np.uint64:
    """The hash that a dictionary of a task has for these bytes."""
    word = word_of(np.frombuffer(data, np.uint8), 0, len(data))
    return value_hash(np.int64(word))


def vector_of(values: Sequence[Value], type: Type) -> Argument:
    """Values, none of them NULL, as a column of states takes them."""
    if type is Type.FLOAT:
        return np.array(values, np.float64)
    if type in NUMBERS:
        return np.array(values, np.int64)
    known = {value: code for code, value in enumerate(dict.fromkeys(values), 1)}
    arrow = pa.string() if type is Type.STRING else pa.binary()
    codes = np.array([known[value] for value in values], np.int32)
    return CodedValues(codes, ListedValues((None, *known), arrow))
