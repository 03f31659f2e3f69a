"""User-defined aggregates as paper 1, 3.2 has them, each a small Python class.

In: a class with the methods initialize, iterate, merge (or superaggregate) and output, and perhaps
flushme, destroy, pack and unpack. Out: an aggregate that runs next to the source and above.

    @udaf(takes=("FLOAT",), returns="FLOAT", scratchpad=24)
    class harmonic_mean:
        def initialize(self):
            return (0, 0.0)
        def iterate(self, state, values):  # an Arrow array: values of one group
            return (state[0] + len(values), state[1] + pc.sum(pc.divide(1.0, values)).as_py())
        def merge(self, state, other):
            return (state[0] + other[0], state[1] + other[1])
        def output(self, state):
            return state[0] / state[1] if state[1] else None

`iterate` is called once for every group of a vector of tuples, and may change a state in place. A
class that has `kernels()` instead (terascope.functions.scratchpads) runs as machine code over a
scratchpad of fixed size. Without a merge an aggregate is refused by queries that must merge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from terascope.functions.base import (
    AggregateFunction,
    FunctionMistake,
    Sampling,
    State,
    Value,
    ValueMistake,
)
from terascope.functions.bounds import ErrorBound, Errors, differences, impossible, no_errors
from terascope.functions.object_states import ObjectStates, Words, in_order, kind_name, user_code
from terascope.functions.packed_states import (
    RAW,
    content_of,
    packed_object,
    unpacked_object,
    with_header,
)
from terascope.functions.scratchpads import (
    Kernels,
    Pad,
    ScratchpadStates,
    initial_pad,
    pad_of,
    unpacked_pad,
)
from terascope.functions.user import (
    checked_name,
    checked_type,
    first_line,
    guarded,
    module_classes,
    rule_of,
)
from terascope.sketches.base import Argument, Numbers, Packed, StateKind, packed_states
from terascope.types import Type

NUMBERS: Final = frozenset({"BOOL", "INT", "UINT", "LLONG", "ULLONG", "FLOAT", "NUMBER"})
"""Types of arguments that kernels take."""


def udaf(
    *,
    name: str | None = None,
    takes: Sequence[str],
    returns: str,
    scratchpad: int = 0,
    state_parameters: int = 0,
    finish_parameters: int = 0,
    sampling: Sampling = "none",
    error_bound: ErrorBound | None = None,
    example_parameters: Sequence[Value] = (),
    doc: str = "",
) -> Callable[[type], AggregateFunction]:
    """Make a class an aggregate of GSQL. `scratchpad`: the most bytes of a packed state, or the
    size of the pad that its kernels work on; 0: not limited. `error_bound`: the largest error of an
    approximate aggregate, whose class then has a method `exact` that takes all columns of a group.
    """

    def decorate(class_: type) -> AggregateFunction:
        known_as = checked_name(name or class_.__name__)
        result, parts = checked_type(known_as, returns), class_()
        rule = rule_of(known_as, takes, result)
        in_kernels = hasattr(parts, "kernels")
        merges = hasattr(parts, "merge") or hasattr(parts, "superaggregate")
        members: dict[str, Any] = {
            "name": known_as.lower(),
            "arity": len(takes),
            "state_parameters": state_parameters,
            "finish_parameters": finish_parameters,
            "kind": "algebraic" if scratchpad else "holistic",
            "sampling": sampling,
            "cheap": True,
            "user_defined": True,
            "finishes_with_all": True,
            "mergeable": merges,
            "scratchpad": scratchpad,
            "state_classes": module_classes(class_),
            "example_parameters": tuple(example_parameters),
            "doc": doc or first_line(class_.__doc__),
            "__module__": class_.__module__,
            "type_rule": staticmethod(lambda args: rule(args[: len(takes)])),
            "floats": tuple(word.upper() == "FLOAT" for word in takes),
            "parts": parts,
        }
        if error_bound is not None:
            if not callable(getattr(parts, "exact", None)):
                raise FunctionMistake(
                    f"aggregate {known_as} declares an error bound: give it a method exact, which"
                    " takes all columns of a group and gives the exact value"
                )
            members |= {
                "bound": staticmethod(lambda *parameters: error_bound),
                "errors": staticmethod(partial(value_errors, error_bound, parts.exact)),
            }
        if in_kernels:
            kernels = checked_kernels(known_as, parts.kernels(), takes, scratchpad)
            members |= {"kernels": kernels, "mergeable": kernels.merge is not None}
            members["answer"] = staticmethod(
                guarded(known_as, plain_value(kernels.output), (), result)
            )
            return _made(class_, KernelUdaf, members)
        for part in ("initialize", "iterate", "output"):
            if not callable(getattr(parts, part, None)):
                raise FunctionMistake(f"aggregate {known_as} has no method {part}")
        members["answer"] = staticmethod(guarded(known_as, parts.output, (), result))
        return _made(class_, ColumnUdaf, members)

    return decorate


def value_errors(
    bound: ErrorBound,
    exact: Callable[..., Value],
    columns: Sequence[pa.Array],
    found: Value,
    *parameters: Value,
) -> Errors:
    """The error of a number, by the user's method that computes the exact one."""
    wanted = exact(*columns, *parameters)
    if found is None or wanted is None:
        return no_errors() if found is wanted else impossible()
    return differences(found, wanted, abs(wanted) if bound.of else 1.0)


def _made(class_: type, base: Any, members: dict[str, Any]) -> AggregateFunction:
    made: type[AggregateFunction] = type(class_.__name__, (base,), members)
    return made()


def plain_value(output: Callable[..., Value]) -> Callable[..., Value]:
    """The output of a pad, as a number of Python's own types."""

    def answer(pad: Pad, *parameters: Value) -> Value:
        value = output(pad, *parameters)
        return value.item() if isinstance(value, np.generic) else value

    return answer


def checked_kernels(name: str, kernels: Any, takes: Sequence[str], scratchpad: int) -> Kernels:
    if not isinstance(kernels, Kernels):
        raise FunctionMistake(f"aggregate {name}: kernels() gives a terascope.Kernels")
    size = np.dtype(kernels.words).itemsize
    if scratchpad <= 0 or scratchpad % size:
        raise FunctionMistake(
            f"aggregate {name}: kernels need a scratchpad of so many {kernels.words}, a multiple of"
            f" {size} bytes, not {scratchpad}"
        )
    if not {word.upper() for word in takes} <= NUMBERS:
        raise FunctionMistake(f"aggregate {name}: kernels take numbers and BOOLs only")
    return kernels


def floated(args: Sequence[Value], floats: Sequence[bool]) -> list[Value]:
    """Values, with FLOATs where the aggregate takes FLOATs."""
    return [float(v) if is_float else v for v, is_float in zip(args, floats, strict=True)]


class ColumnUdaf(AggregateFunction):
    """A user's aggregate whose `iterate` takes Arrow columns."""

    parts: ClassVar[Any]
    floats: ClassVar[tuple[bool, ...]]
    answer: ClassVar[Callable[..., Value]]

    def zero(self, *parameters: Value) -> State:
        with user_code(self.name):
            return self.parts.initialize(*parameters)

    def reduce(self, state: State, *args: Value) -> State:
        """One tuple; a state that was handed out stays as it is."""
        columns = (pa.array([value]) for value in floated(args, self.floats))
        with user_code(self.name):
            return self.parts.iterate(deepcopy(state), *columns)

    def merge(self, left: State, right: State) -> State:
        with user_code(self.name):
            return self.join(deepcopy(left), deepcopy(right))

    @property
    def join(self) -> Callable[[State, State], State]:
        """The user's method that merges; it may change its first state."""
        if not self.mergeable:
            raise ValueMistake(f"function {self.name} has no method merge")
        parts = self.parts
        method: Callable[[State, State], State] = (
            parts.merge if hasattr(parts, "merge") else parts.superaggregate
        )
        return method

    def finish(self, state: State, *parameters: Value) -> Value:
        return self.answer(state, *parameters)

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return self.kept(args, parameters) if self.mergeable else None

    def kept(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind:
        """The kind of its states, whether they merge or not."""
        low = partial(ColumnStates, self, args, parameters, hasattr(self.parts, "flushme"))
        high = partial(ColumnStates, self, args, parameters)
        return StateKind(kind_name(self, args, parameters), low, high)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        given = self.state_parameters
        with user_code(self.name):
            state = self.zero(*parameters[:given]) if packed is None else self.unpacked(packed)
            return self.finish(state, *parameters[given:])

    def packed(self, state: State) -> bytes:
        if not hasattr(self.parts, "pack"):
            return packed_object(self, state)
        content = self.parts.pack(state)
        if not isinstance(content, bytes):
            raise ValueMistake(f"function {self.name}: pack gave {content!r}, which is not bytes")
        return with_header(self, RAW, content)

    def unpacked(self, packed: bytes) -> State:
        if not hasattr(self.parts, "unpack"):
            return unpacked_object(self, packed)
        variant, content = content_of(self, packed)
        if variant != RAW:
            raise ValueError(f"the packed state of {self.name} is damaged")
        return self.parts.unpack(content)


class ColumnStates(ObjectStates):
    """States of a `ColumnUdaf`. `flushes`: full ones leave, as they do next to the source."""

    aggregate: ColumnUdaf

    def __init__(
        self,
        aggregate: ColumnUdaf,
        args: tuple[Type, ...],
        parameters: tuple[Value, ...],
        flushes: bool = False,
    ) -> None:
        super().__init__(aggregate, args, parameters)
        if aggregate.mergeable:
            self.join = aggregate.join
        self._flushes = flushes
        self._full: list[tuple[int, bytes]] = []

    def column(self, argument: Argument, type: Type, order: Words) -> pa.Array:
        return in_order(argument, type, order)

    def take(self, present: list[int], edges: list[int], columns: list[Any]) -> None:
        parts, states = self.aggregate.parts, self._states
        columns = [
            c.cast(pa.float64()) if is_float else c
            for c, is_float in zip(columns, self.aggregate.floats, strict=True)
        ]
        for i, number in enumerate(present):
            start, length = edges[i], edges[i + 1] - edges[i]
            state = parts.iterate(states[number], *(c.slice(start, length) for c in columns))
            if self._flushes and parts.flushme(state):
                self._full.append((number, self.packed(state)))
                self._destroy(state)
                state = self.initial()
            states[number] = state

    def flushed(self) -> tuple[Numbers, Packed] | None:
        if not self._full:
            return None
        numbers, packed = zip(*self._full, strict=True)
        self._full = []
        return np.array(numbers, np.int64), packed_states(packed)

    def packed(self, state: State) -> bytes:
        return self.aggregate.packed(state)

    def unpacked(self, packed: bytes) -> State:
        return self.aggregate.unpacked(packed)

    def drop(self, numbers: Numbers) -> None:
        for number in numbers.tolist():
            if number < len(self._states):
                self._destroy(self._states[number])
        super().drop(numbers)

    def clear(self) -> None:
        for state in self._states:
            self._destroy(state)
        super().clear()

    def _destroy(self, state: State) -> None:
        if hasattr(self.aggregate.parts, "destroy"):
            with user_code(self.aggregate.name):
                self.aggregate.parts.destroy(state)


class KernelUdaf(AggregateFunction):
    """A user's aggregate over scratchpads. Outside of a column, a state is the bytes of its pad."""

    kernels: ClassVar[Kernels]
    floats: ClassVar[tuple[bool, ...]]
    answer: ClassVar[Callable[..., Value]]

    def zero(self, *parameters: Value) -> bytes:
        with user_code(self.name):
            return initial_pad(self.kernels, self.scratchpad, parameters).tobytes()

    def reduce(self, state: bytes, *args: Value) -> bytes:
        pad = pad_of(self.kernels, state)
        with user_code(self.name):
            self.kernels.iterate(pad, *floated(args, self.floats))
        return pad.tobytes()

    def merge(self, left: bytes, right: bytes) -> bytes:
        if self.kernels.merge is None:
            raise ValueMistake(f"function {self.name} has no kernel merge")
        pad = pad_of(self.kernels, left)
        with user_code(self.name):
            self.kernels.merge(pad, pad_of(self.kernels, right))
        return pad.tobytes()

    def finish(self, state: bytes, *parameters: Value) -> Value:
        return self.answer(pad_of(self.kernels, state), *parameters)

    def is_state(self, state: State) -> bool:
        return isinstance(state, bytes) and len(state) == self.scratchpad

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return self.kept(args, parameters) if self.mergeable else None

    def kept(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind:
        """The kind of its states, whether they merge or not."""
        make = partial(ScratchpadStates, self, self.kernels, self.floats, parameters)
        return StateKind(kind_name(self, args, parameters), partial(make, True), make)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        given = self.state_parameters
        with user_code(self.name):
            held = self.zero(*parameters[:given]) if packed is None else unpacked_pad(self, packed)
            return self.finish(held, *parameters[given:])
