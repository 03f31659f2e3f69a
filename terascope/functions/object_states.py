"""Columns of states that are Python objects, for every aggregate that has no better column.

In: an aggregate (zero, reduce, merge, finish), the types of its arguments and its parameters. Out:
`object_state_kind`, by which it runs as sub-aggregate next to the source and as super-aggregate
above (paper 1, 3.2). The tuples of a vector are sorted by state without Python code for each; the
aggregate is then called for every value, or, when it takes columns (terascope.functions.udaf), once
for every state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.base import AggregateFunction, State, TypeMistake, Value, ValueMistake
from terascope.functions.packed_states import packed_object, unpacked_object
from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_states,
)
from terascope.sketches.values import ordered_kind, ordered_rows
from terascope.types import Type

Words: TypeAlias = NDArray[np.int64]

BYTES_OF_STATE: Final = 200
"""A rough size of a small Python object that is a state, for the account of memory."""
SPARSE: Final = 8
"""With so many times more states than tuples, tuples are compared instead of counted."""


class ObjectStates(StateColumn):
    """States of one aggregate, as a list of the objects that its methods give and take."""

    def __init__(
        self, aggregate: AggregateFunction, args: tuple[Type, ...], parameters: tuple[Value, ...]
    ) -> None:
        self.aggregate, self.args, self.parameters = aggregate, args, parameters
        self._states: list[State] = []
        self.join: Callable[[State, State], State] = bare(aggregate.merge)

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        if not len(numbers):
            return
        self._reach(int(numbers.max()) + 1)
        order, present, edges = grouped(numbers, len(self._states))
        with user_code(self.aggregate.name):
            columns = [
                self.column(each, type, order)
                for each, type in zip(arguments, self.args, strict=True)
            ]
            self.take(present.tolist(), edges.tolist(), columns)

    def column(self, argument: Argument, type: Type, order: Words) -> Any:
        """The values of an argument, in the order of their states."""
        return in_order(argument, type, order).to_pylist()

    def take(self, present: list[int], edges: list[int], columns: list[Any]) -> None:
        """Take values in: those from edges[i] to edges[i + 1] belong to state present[i]."""
        reduce, states = bare(self.aggregate.reduce), self._states
        if columns and not self.aggregate.skips_null:
            columns = [
                [value if known else None for known, value in zip(*pair, strict=True)]
                for pair in zip(columns[::2], columns[1::2], strict=True)
            ]
        for i, number in enumerate(present):
            state = states[number]
            for values in zip(*(c[edges[i] : edges[i + 1]] for c in columns), strict=True):
                state = reduce(state, *values)
            if not columns:
                for _ in range(edges[i], edges[i + 1]):
                    state = reduce(state)
            states[number] = state

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        if not len(numbers):
            return
        self._reach(int(numbers.max()) + 1)
        others = list(map(self.unpacked, packed.to_pylist()))
        join, states = self.join, self._states
        with user_code(self.aggregate.name):
            for number, other in zip(numbers.tolist(), others, strict=True):
                states[number] = join(states[number], other)

    def pack(self, numbers: Numbers) -> Packed:
        if len(numbers):
            self._reach(int(numbers.max()) + 1)
        with user_code(self.aggregate.name):
            return packed_states([self.packed(self._states[n]) for n in numbers.tolist()])

    def packed(self, state: State) -> bytes:
        return packed_object(self.aggregate, state)

    def unpacked(self, packed: bytes) -> State:
        return unpacked_object(self.aggregate, packed)

    def drop(self, numbers: Numbers) -> None:
        for number in numbers.tolist():
            if number < len(self._states):
                self._states[number] = self.initial()

    def clear(self) -> None:
        self._states.clear()

    @property
    def memory_bytes(self) -> int:
        return BYTES_OF_STATE * len(self._states)

    def initial(self) -> State:
        return self.aggregate.zero(*self.parameters)

    def _reach(self, count: int) -> None:
        """Make states up to this number."""
        with user_code(self.aggregate.name):
            while len(self._states) < count:
                self._states.append(self.initial())


def object_state_kind(
    aggregate: AggregateFunction, args: tuple[Type, ...], parameters: tuple[Value, ...]
) -> StateKind | None:
    """The kind that keeps the states of an aggregate as Python objects; None when its states do not
    merge. States of an order-dependent aggregate do not merge in any order: its values are kept,
    each with its place, and reduced when all are there.
    """
    if not aggregate.mergeable:
        return None
    if aggregate.ordered:
        return ordered_kind(column_types(aggregate, args))
    return object_columns(aggregate, args, parameters)


def object_columns(
    aggregate: AggregateFunction, args: tuple[Type, ...], parameters: tuple[Value, ...]
) -> StateKind:
    """The same for any aggregate, whoever sees to it that its states need not merge."""
    make = partial(ObjectStates, aggregate, column_types(aggregate, args), parameters)
    return StateKind(kind_name(aggregate, args, parameters), make, make)


def column_types(aggregate: AggregateFunction, args: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the vectors that columns of states take: for an aggregate that sees NULLs two
    for each argument, whether there is a value, and the value.
    """
    if aggregate.skips_null:
        return tuple(args)
    return tuple(type for arg in args for type in (Type.BOOL, arg))


def seen_values(values: Sequence[Value]) -> Iterator[Value]:
    """The arguments of a tuple, of an aggregate that sees NULLs, from the vectors of a column."""
    for known, value in zip(values[::2], values[1::2], strict=True):
        yield value if known else None


def fold_in_order(aggregate: AggregateFunction, packed: bytes | None, *parameters: Value) -> Value:
    """The value of an aggregate over a packed list of values, which are put in stream order.
    `parameters`: those of zero() and those of finish().
    """
    given = aggregate.state_parameters
    state = ordered_state(aggregate, packed, *parameters[:given])
    return aggregate.finish(state, *parameters[given:])


def ordered_state(aggregate: AggregateFunction, packed: bytes | None, *parameters: Value) -> State:
    """The state of a packed list of values, which are put in stream order."""
    state = aggregate.zero(*parameters)
    for row in [] if packed is None else ordered_rows(packed):
        values = row if aggregate.skips_null else tuple(seen_values(row))
        state = aggregate.reduce(state, *values)
    return state


def kind_name(
    aggregate: AggregateFunction, args: tuple[Type, ...], parameters: tuple[Value, ...]
) -> str:
    listed = ", ".join([*(type.value for type in args), *map(repr, parameters)])
    return f"objects of {aggregate.name}({listed})"


def object_value(aggregate: AggregateFunction, packed: bytes | None, *parameters: Value) -> Value:
    """The value of a call whose packed state is of `object_state_kind`; None: no tuple came.
    `parameters`: those of zero() and those of finish().
    """
    given = aggregate.state_parameters
    with user_code(aggregate.name):
        state = object_state(aggregate, packed, *parameters[:given])
        return aggregate.finish(state, *parameters[given:])


def object_state(aggregate: AggregateFunction, packed: bytes | None, *parameters: Value) -> State:
    """The state that a packed one of `object_state_kind` is; `parameters`: those of zero()."""
    with user_code(aggregate.name):
        if packed is None:
            return aggregate.zero(*parameters)
        if aggregate.ordered:
            return ordered_state(aggregate, packed, *parameters)
        return unpacked_object(aggregate, packed)


def bare(method: Callable[..., State]) -> Callable[..., State]:
    """A method of an aggregate without the wrapper that names it when it fails."""
    return getattr(method, "__wrapped__", method)


@contextmanager
def user_code(name: str) -> Iterator[None]:
    """What goes wrong in an aggregate's own code stops the run with its name."""
    try:
        yield
    except (TypeMistake, ValueMistake):
        raise
    except Exception as problem:
        raise ValueMistake(f"function {name}: {type(problem).__name__}: {problem}") from problem


# ---- tuples by state -----------------------------------------------------------------------------


def grouped(numbers: Numbers, states: int) -> tuple[Words, Words, Words]:
    """Sort tuples by the numbers of their states, in the order of the vector within a state: the
    places of the tuples, the numbers that occur, and where the tuples of each begin; a last edge is
    the end.
    """
    if states > SPARSE * len(numbers):
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        return order, present, np.append(starts, len(numbers))
    edges, order = np.zeros(states + 1, np.int64), np.empty(len(numbers), np.int64)
    counting_sort(numbers, edges, order)
    present = np.flatnonzero(np.diff(edges))
    return order, present, np.append(edges[present], len(numbers))


@compiled_for(column(np.int64), output(np.int64), output(np.int64))
def counting_sort(numbers: Words, edges: Words, order: Words) -> None:
    """The places of tuples by number; edges, zeros at first, become the place where each number
    begins.
    """
    for i in range(len(numbers)):
        edges[np.uint64(numbers[i])] += 1
    total = 0
    for n in range(len(edges)):
        count = edges[np.uint64(n)]
        edges[np.uint64(n)] = total
        total += count
    for i in range(len(numbers)):
        at = np.uint64(numbers[i])
        order[np.uint64(edges[at])] = i
        edges[at] += 1
    for n in range(len(edges) - 1, 0, -1):
        edges[np.uint64(n)] = edges[np.uint64(n - 1)]
    edges[np.uint64(0)] = 0


def in_order(argument: Argument, type: Type, order: Words) -> pa.Array:
    """The values of an argument as an Arrow column, in this order."""
    if isinstance(argument, CodedValues):
        return argument.dictionary.values(argument.codes[order])
    taken = argument[order]
    return pa.array(taken != 0 if type is Type.BOOL else taken)
