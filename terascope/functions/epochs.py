"""Running aggregates over sub-aggregates (CLOSING_WHEN, dissertation 3.1.2).

In: a running aggregate, and for every epoch of a group the sub-aggregates that the low level made
of its tuples, any number of partial ones. Out: the super-aggregate, which takes them in, goes on
over epochs as the aggregate itself does, and has the same value.

Between two epochs the state is the aggregate's own, so that saved states are the same whether a
query splits or not; that of a sketch is its packed bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    AggregatePart,
    Decomposition,
    Place,
    State,
    Value,
)
from terascope.functions.partial_states import PartialState, label_of, merged_bytes
from terascope.sketches.base import StateKind
from terascope.types import Type


class OverEpochs(AggregateFunction):
    """A running aggregate whose arguments are sub-aggregates of an epoch."""

    internal = True
    running = True

    def __init__(
        self, function: AggregateFunction, parameters: tuple[Value, ...], result: Type, what: str
    ) -> None:
        """`parameters`: all constants of the call. `what`: the sub-aggregates, as text."""
        constants = "".join(f", {value!r}" for value in parameters)
        self.name = f"{function.name}_of_epochs[{what}{constants}]"  # type: ignore[misc]
        self.user_defined = function.user_defined  # type: ignore[misc]
        self.state_classes = function.state_classes  # type: ignore[misc]
        self.function, self._result = function, result
        self.given = parameters[: function.state_parameters]
        self.finishing = parameters[function.state_parameters :]

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return self._result

    def zero(self, *parameters: Value) -> State:
        return self.function.zero(*self.given)

    def merge(self, left: State, right: State) -> State:
        return self.function.merge(left, right)

    def finish(self, state: State, *parameters: Value) -> Value:
        return self.function.finish(state, *self.finishing)

    def next_epoch(self, state: State) -> State:
        return self.function.next_epoch(state)

    def is_state(self, state: State) -> bool:
        return self.function.is_state(state)


class SumsOfEpochs(OverEpochs):
    """The sub-aggregates are a sum, of 64-bit values in two halves, and perhaps a count."""

    def __init__(
        self,
        function: AggregateFunction,
        parameters: tuple[Value, ...],
        result: Type,
        parts: int = 1,
        halves: bool = False,
    ) -> None:
        """`parts`: how many sub-aggregates there are."""
        super().__init__(function, parameters, result, "halves" if halves else "sums")
        self.arity = parts  # type: ignore[misc]
        self._halves = halves

    def reduce(self, state: State, *args: Value) -> State:
        if self._halves:
            upper, lower, *rest = args
            args = ((upper << 32) + lower, *rest)
        return self.function.reduce_parts(state, *args)


@dataclass(frozen=True)
class OpenEpoch:
    """A state while the packed states of an epoch come in."""

    before: State
    packed: tuple[bytes, ...]


class OverPackedEpochs(OverEpochs):
    """A running aggregate whose sub-aggregates are packed states."""

    def __init__(
        self,
        function: AggregateFunction,
        parameters: tuple[Value, ...],
        result: Type,
        kind: StateKind,
    ) -> None:
        super().__init__(function, parameters, result, label_of(kind))
        self._kind = kind


class StatesOfEpochs(OverPackedEpochs):
    """The sub-aggregates are packed states that can be opened. Those of an epoch are merged as
    such, because their tuples may interleave.
    """

    def reduce(self, state: State, *args: Value) -> State:
        before = state if isinstance(state, OpenEpoch) else OpenEpoch(state, ())
        return OpenEpoch(before.before, (*before.packed, *args))

    def finish(self, state: State, *parameters: Value) -> Value:
        return super().finish(self._closed(state))

    def next_epoch(self, state: State) -> State:
        return super().next_epoch(self._closed(state))

    def _closed(self, state: State) -> State:
        if not isinstance(state, OpenEpoch):
            return state
        merged = merged_bytes(self._kind, state.packed)
        epoch = self.function.opened(merged, *self.given)
        return self.function.merge(state.before, epoch)


class SketchesOfEpochs(OverPackedEpochs):
    """The sub-aggregates are packed states, and so is the state."""

    def zero(self, *parameters: Value) -> State:
        return None

    def reduce(self, state: bytes | None, *args: Value) -> bytes:
        return merged_bytes(self._kind, args if state is None else (state, *args))

    def merge(self, left: bytes | None, right: bytes | None) -> bytes | None:
        both = [state for state in (left, right) if state is not None]
        return merged_bytes(self._kind, both) if both else None

    def finish(self, state: bytes | None, *parameters: Value) -> Value:
        return self.function.finish_state(state, *self.finishing)

    def next_epoch(self, state: State) -> State:
        return state

    def is_state(self, state: State) -> bool:
        return state is None or isinstance(state, bytes)


def epoch_state_parts(
    function: AggregateFunction,
    kind: StateKind,
    types: tuple[Type, ...],
    result: Type,
    parameters: tuple[Value, ...],
) -> Decomposition:
    """The split of a call of a running aggregate that keeps states. `types`: of the arguments, and
    of the places of tuples behind them; `parameters`: all constants of the call.
    """
    sub = PartialState(kind, types), tuple(map(Place, range(len(types))))
    opens = type(function).opened is not AggregateFunction.opened
    make = StatesOfEpochs if opens else SketchesOfEpochs
    return Decomposition((AggregatePart((sub,), make(function, parameters, result, kind)),), FIRST)
