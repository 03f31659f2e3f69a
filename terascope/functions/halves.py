"""An aggregate made of two others: a sub-aggregate next to the source, a super-aggregate above.

In: two registered aggregates that a declaration names,
`int UDAF char(36) [low_x, high_x] x(int)` (paper 1, 3.2). Out: the aggregate x. The sub-aggregate's
value is what the super-aggregate takes. Super-aggregates are merged themselves, so
that there may be any number of levels. Layout of a packed state: `TH`, version, then 0 and the
value of the sub-aggregate, 1 and the packed state of the super-aggregate, or 2: no value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from terascope.functions.base import AggregateFunction, State, Value, ValueMistake
from terascope.functions.object_states import object_columns, object_state_kind, object_value
from terascope.functions.packed_states import is_packed_object
from terascope.functions.values import as_bytes
from terascope.functions.vector_dictionary import coded
from terascope.sketches.base import (
    Argument,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_states,
)
from terascope.types import Type

FAMILY: Final = b"TB\x01"
WORD_BYTES: Final = 8
LOW, HIGH, NOTHING = b"\x00", b"\x01", b"\x02"


class HalvedAggregate(AggregateFunction):
    """A sub- and a super-aggregate under one name. A state is the pair of theirs."""

    low: ClassVar[AggregateFunction]
    high: ClassVar[AggregateFunction]

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return self.high.type_rule((self.low.type_rule(args[: self.arity]),))

    def zero(self, *parameters: Value) -> State:
        return self.low.zero(*parameters), self.low.zero(*parameters), None

    def reduce(self, state: State, *args: Value) -> State:
        nothing, low, high = state
        return nothing, self.low.reduce(low, *args), high

    def merge(self, left: State, right: State) -> State:
        nothing = left[0]
        if left == (nothing, nothing, None):
            return right
        if right == (nothing, nothing, None):
            return left
        return nothing, nothing, self.high.merge(self.lifted(left), self.lifted(right))

    def lifted(self, state: State) -> State:
        """The super-aggregate's state of everything that came."""
        nothing, low, high = state
        if high is not None and low == nothing:
            return high
        high = self.high.zero() if high is None else high
        value = self.low.finish(low)
        return high if value is None else self.high.reduce(high, value)

    def finish(self, state: State, *parameters: Value) -> Value:
        return self.high.finish(self.lifted(state), *parameters)

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        """The kind whose columns are those of the two aggregates."""
        low = kept_by(self.low, args, parameters)
        value_type = self.low.type_rule(args)
        high = kind_of(self.high, (value_type,), ())
        if high is None:
            return None
        return StateKind(
            f"{self.name} [{low}, {high}]",
            partial(LowHalf, self, low.low, value_type),
            partial(HighHalf, self, high.high, value_type),
        )

    def finish_state(self, packed: bytes | None, *finish_parameters: Value) -> Value:
        held = None
        if packed is not None:
            if packed[:4] != FAMILY + HIGH:
                raise ValueError(f"these bytes are no packed state of {self.name}")
            held = packed[4:]
        return finished(self.high, held, *finish_parameters)


def halved(
    name: str, low: AggregateFunction, high: AggregateFunction, scratchpad: int
) -> AggregateFunction:
    """The aggregate of two others. `scratchpad`: the most bytes of the sub-aggregate's value; 0:
    not limited.
    """
    members = {
        "low": low,
        "high": high,
        "name": name,
        "arity": low.arity,
        "state_parameters": low.state_parameters,
        "finish_parameters": high.finish_parameters,
        "user_defined": True,
        "mergeable": high.mergeable,
        "cheap": low.cheap,
        "scratchpad": scratchpad,
        "bound": staticmethod(high.bound),
        "errors": staticmethod(high.errors),
        "doc": f"{high.name} of {low.name}",
        "example_parameters": (
            *low.example_parameters[: low.state_parameters],
            *high.example_parameters[high.state_parameters :],
        ),
    }
    made: type[HalvedAggregate] = type("HalvedAggregate", (HalvedAggregate,), members)
    return made()


def kept_by(
    aggregate: AggregateFunction, args: tuple[Type, ...], parameters: tuple[Value, ...]
) -> StateKind:
    """The kind of a sub-aggregate, whose states need not merge."""
    kept: Callable[..., StateKind] = getattr(aggregate, "kept", partial(object_columns, aggregate))
    return kept(args, parameters)


def kind_of(
    aggregate: AggregateFunction, args: tuple[Type, ...], parameters: tuple[Value, ...]
) -> StateKind | None:
    """The kind that an aggregate declares, else that of its objects."""
    return aggregate.state(args, parameters) or object_state_kind(aggregate, args, parameters)


def finished(aggregate: AggregateFunction, packed: bytes | None, *parameters: Value) -> Value:
    """The value of a state of the kind that `kind_of` gives. `parameters`: all constants of the
    call.
    """
    declared = type(aggregate).finish_state is not AggregateFunction.finish_state
    if packed is not None:
        # A built-in aggregate may declare a kind for some types only; a user's reads all its own.
        of_object = is_packed_object(packed)
        declared = not of_object or (declared and aggregate.user_defined)
    if declared:
        given = 0 if aggregate.finishes_with_all else aggregate.state_parameters
        return aggregate.finish_state(packed, *parameters[given:])
    return object_value(aggregate, packed, *parameters)


def word_of(type: Type) -> str:
    """The form of a number as eight bytes; empty for text, addresses and bytes."""
    if type is Type.FLOAT:
        return "<d"
    return "<q" if type.is_whole or type is Type.BOOL else ""


class LowHalf(StateColumn):
    """States of the sub-aggregate; packed, each is its value."""

    def __init__(
        self, whole: HalvedAggregate, make: Callable[[], StateColumn], value_type: Type
    ) -> None:
        self.whole, self._column = whole, make()
        self._word = word_of(value_type)

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        self._column.iterate(numbers, arguments)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        raise ValueMistake(f"function {self.whole.low.name}: values of it are merged above")

    def pack(self, numbers: Numbers) -> Packed:
        return self._values(self._column.pack(numbers))

    def flushed(self) -> tuple[Numbers, Packed] | None:
        found = self._column.flushed()
        return None if found is None else (found[0], self._values(found[1]))

    def _values(self, packed: Packed) -> Packed:
        return packed_states([FAMILY + self._value(held) for held in packed.to_pylist()])

    def _value(self, held: bytes) -> bytes:
        found = finished(self.whole.low, held)
        if found is None:
            return NOTHING
        value = struct.pack(self._word, found) if self._word else as_bytes(found)
        if 0 < self.whole.scratchpad < len(value):
            raise ValueMistake(
                f"function {self.whole.low.name}: a state of {len(value)} bytes is larger than its"
                f" scratchpad of {self.whole.scratchpad} bytes"
            )
        return LOW + value

    def drop(self, numbers: Numbers) -> None:
        self._column.drop(numbers)

    def clear(self) -> None:
        self._column.clear()

    @property
    def memory_bytes(self) -> int:
        return self._column.memory_bytes


class HighHalf(StateColumn):
    """States of the super-aggregate, which takes values of the sub-aggregate in."""

    def __init__(
        self, whole: HalvedAggregate, make: Callable[[], StateColumn], value_type: Type
    ) -> None:
        self.whole, self._column = whole, make()
        self._word = word_of(value_type)
        self._arrow = pa.string() if value_type is Type.STRING else pa.binary()

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        raise ValueMistake(f"function {self.whole.high.name}: tuples are taken in below")

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        states = packed.to_pylist()
        if any(held[:3] != FAMILY or held[3:4] not in (LOW, HIGH, NOTHING) for held in states):
            raise ValueError(f"these bytes are no packed state of {self.whole.name}")
        variants = np.array([held[3] for held in states], np.uint8)
        low, high = variants == LOW[0], variants == HIGH[0]
        if low.any():
            found = [held[4:] for held in states if held[3:4] == LOW]
            self._column.iterate(numbers[low], [self._values(found)])
        if high.any():
            held = packed_states([held[4:] for held in states if held[3:4] == HIGH])
            self._column.merge(numbers[high], held)

    def _values(self, found: list[bytes]) -> Argument:
        """Values of the sub-aggregate, as the super-aggregate takes them."""
        if not self._word:
            return coded(pa.array(found, pa.binary()).cast(self._arrow))
        if any(len(each) != WORD_BYTES for each in found):
            raise ValueError(f"these bytes are no packed state of {self.whole.name}")
        return np.frombuffer(b"".join(found), np.dtype(self._word))

    def pack(self, numbers: Numbers) -> Packed:
        packed = self._column.pack(numbers).to_pylist()
        return packed_states([FAMILY + HIGH + held for held in packed])

    def drop(self, numbers: Numbers) -> None:
        self._column.drop(numbers)

    def clear(self) -> None:
        self._column.clear()

    @property
    def memory_bytes(self) -> int:
        return self._column.memory_bytes
