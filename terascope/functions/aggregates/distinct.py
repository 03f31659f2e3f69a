"""Distinct counts and entropy, approximate, from states of a few kilobytes.

approx_count_distinct(x) is a number, distinct_state(x) a state: a value of type BINARY from which
the scalars of terascope.functions.scalars.distinct take the count, and which they unite, intersect
and subtract. Over a column of such states, distinct_state merges them. Small groups are exact.

The methods for the reference interpreter keep all values: what they give is exact, and the state
that they finish is the one an engine would have made of the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.functions.aggregates.counting import CountDups, Sets, include, members, unite
from terascope.functions.aggregates.folding import Collecting, PlainAggregate, Runs, items
from terascope.functions.base import State, Value, ValueMistake
from terascope.functions.bounds import ErrorBound, Errors, differences, impossible, no_errors
from terascope.functions.values import distinct_key
from terascope.functions.vector_dictionary import vector_of
from terascope.sketches.base import StateKind, packed_states
from terascope.sketches.distinct import KINDS, distinct_estimate, tuples_seen
from terascope.sketches.distinct_answers import distinct_columns, filled_states
from terascope.sketches.entropy import ENTROPY_KIND, MOST_PAIRS, entropy_of, exact_entropy
from terascope.sketches.theta import FAMILY, THETA_KIND, is_empty
from terascope.types import Type

STRATEGIES: Final = {
    "hll": "HyperLogLog of 4096 registers: 4 KB, standard error 1.6%",
    "theta": "the 4096 smallest hashes: 32 KB, standard error 1.6%; the kind of distinct_state",
    "fm": "64 bitmaps of Flajolet and Martin: 0.5 KB, standard error 10%",
}
DEFAULT_STRATEGY: Final = "hll"
DIFFERENT: Final = "the number of different values"
NEAR: Final = ErrorBound(0.05, DIFFERENT, cases=0.99, exact_to=64)

Different: TypeAlias = tuple[str, Sets]
"""The strategy, and the different values."""


class ApproxCountDistinct(PlainAggregate):
    name = "approx_count_distinct"
    returns = Type.ULLONG
    kind = "algebraic"
    takes_held = True
    state_parameters = 1
    default_parameters: ClassVar[tuple[Value, ...]] = ("",)
    example_parameters: ClassVar[tuple[Value, ...]] = ("",)
    strategies = STRATEGIES
    doc = "about how many different values there are"

    def zero(self, *parameters: Value) -> Different:
        return checked_strategy(self.name, *parameters), ()

    def reduce(self, state: Different, *args: Value) -> Different:
        return state[0], include(state[1], distinct_key(args[0]))

    def merge(self, left: Different, right: Different) -> Different:
        return left[0], unite(left[1], right[1])

    def finish(self, state: Different, *parameters: Value) -> int:
        return len(members(state[1]))

    def is_state(self, state: State) -> bool:
        return isinstance(state, tuple) and len(state) == 2

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return KINDS[checked_strategy(self.name, *parameters) or DEFAULT_STRATEGY]

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return 0 if packed is None else round(distinct_estimate(packed))

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        sizes = distinct_columns(packed)
        return None if sizes is None else pa.array(sizes[1])

    def bound(self, *parameters: Value) -> ErrorBound:
        return replace(NEAR, most=0.3) if checked_strategy(self.name, *parameters) == "fm" else NEAR

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        return count_errors(columns[0], found)


class RunningApproxCountDistinct(ApproxCountDistinct):
    name = "running_approx_count_distinct"
    running = True
    doc = "about how many different values there were since the group began, over all its epochs"


class ApproxCountDups(CountDups):
    name = "approx_count_dups"
    cheap = True
    doc = "about how many values had occurred before: COUNT(x) - approx_count_distinct(x)"

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return KINDS["hll"]

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        if packed is None:
            return 0
        return max(0, tuples_seen(packed) - round(distinct_estimate(packed)))

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        sizes = distinct_columns(packed)
        return None if sizes is None else pa.array(np.maximum(0, sizes[0] - sizes[1]))

    def bound(self, *parameters: Value) -> ErrorBound:
        return NEAR

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        return count_errors(columns[0], len(columns[0]) - found)


class DistinctState(Collecting):
    """Tuples are kept, and not only the different values: the state counts tuples, too."""

    name = "distinct_state"
    returns = Type.BINARY
    cheap = True
    doc = "distinct_state(x): a state of the different values, for distinct_of and set operations"

    def finish(self, state: Runs, *parameters: Value) -> bytes | None:
        values = list(items(state))
        if not values:
            return None
        column = THETA_KIND.high()
        numbers = np.zeros(len(values), np.int64)
        states = [value for value in values if is_distinct_state(value)]
        try:
            if states:
                column.merge(numbers[: len(states)], packed_states(states))
            if len(states) < len(values):
                rest = [value for value in values if not is_distinct_state(value)]
                column.iterate(numbers[: len(rest)], [vector_of(rest, type_of(rest))])
        except ValueError as mistake:
            raise ValueMistake(f"{self.name}: {mistake}") from mistake
        (packed,) = column.pack(np.zeros(1, np.int64)).to_pylist()
        return bytes(packed)

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return THETA_KIND.merging if args[0] is Type.BINARY else THETA_KIND

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        """The state itself; NULL when no value is in it."""
        return None if packed is None or is_empty(packed) else packed

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return filled_states(packed)

    def bound(self, *parameters: Value) -> ErrorBound:
        return NEAR

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        return count_errors(columns[0], 0 if found is None else round(distinct_estimate(found)))


class Entropy(Collecting):
    name = "entropy"
    returns = Type.FLOAT
    cheap = True
    takes_held = True
    doc = "the Shannon entropy of the values, in bits; NULL when there is no value"

    def finish(self, state: Runs, *parameters: Value) -> float | None:
        counts: dict[Value, int] = {}
        for value in map(distinct_key, items(state)):
            counts[value] = counts.get(value, 0) + 1
        return exact_entropy(list(counts.values())) if counts else None

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return ENTROPY_KIND

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return None if packed is None else entropy_of(packed)

    def bound(self, *parameters: Value) -> ErrorBound:
        return ErrorBound(0.35, unit="bits", cases=0.99, exact_to=MOST_PAIRS)

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        if found is None or not len(columns[0]):
            return no_errors() if found is None and not len(columns[0]) else impossible()
        counts = columns[0].value_counts().field("counts").to_pylist()
        return differences(found, exact_entropy(counts))


def count_errors(values: pa.Array, found: int) -> Errors:
    """The error of a number of different values."""
    exact = pc.count_distinct(values).as_py()
    return differences(found, exact, exact or 1.0)


def checked_strategy(name: str, strategy: Value = "") -> str:
    if strategy and strategy not in STRATEGIES:
        raise ValueMistake(f"{name} has no strategy '{strategy}'; it has {', '.join(STRATEGIES)}")
    return str(strategy)


def is_distinct_state(value: Value) -> bool:
    """Whether a value is no address, which is held as bytes, too, but a packed state."""
    return isinstance(value, bytes) and value[:2] == b"T" + FAMILY.encode()


def type_of(values: Iterable[Value]) -> Type:
    """A type that holds some values of one type."""
    value = next(iter(values))
    if isinstance(value, float):
        return Type.FLOAT
    if isinstance(value, int):
        return Type.LLONG
    return Type.STRING if isinstance(value, str) else Type.BINARY
