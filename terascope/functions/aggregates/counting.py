"""How many different values, and how many repeated ones.

count_dups(x) = COUNT(x) - COUNT(DISTINCT x). It is running (dissertation 3.1.2): under CLOSING_WHEN
a sequence number seen again in a later epoch of its connection is a duplicate. The values seen are
`Sets`, which grow as `Runs` do (terascope.functions.aggregates.folding).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.base import Value
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.functions.values import distinct_key
from terascope.sketches.base import StateKind
from terascope.sketches.value_answers import size_columns
from terascope.sketches.values import set_kind, set_sizes
from terascope.types import Type

Sets: TypeAlias = tuple[frozenset[Any], ...]


def include(sets: Sets, item: Hashable) -> Sets:
    """The sets with an item; one that is there already changes nothing."""
    return sets if any(item in one for one in sets) else unite(sets, (frozenset((item,)),))


def unite(left: Sets, right: Sets) -> Sets:
    for one in right:
        while left and len(left[-1]) <= len(one):
            one = left[-1] | one
            left = left[:-1]
        left = (*left, one)
    return left


def members(sets: Sets) -> frozenset[Any]:
    return frozenset().union(*sets)


class CountDistinct(PlainAggregate):
    name = "count_distinct"
    returns = Type.ULLONG
    kind = "holistic"
    of_set = True
    cheap = False
    takes_held = True
    doc = "the number of different values, as COUNT(DISTINCT x)"

    def zero(self, *parameters: Value) -> Sets:
        return ()

    def reduce(self, state: Sets, *args: Value) -> Sets:
        return include(state, distinct_key(args[0]))

    def merge(self, left: Sets, right: Sets) -> Sets:
        return unite(left, right)

    def finish(self, state: Sets, *parameters: Value) -> int:
        return len(members(state))

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return set_kind(args[0])

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return 0 if packed is None else set_sizes(packed)[1]

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        sizes = size_columns(packed)
        return None if sizes is None else pa.array(sizes[1])

    def spark(self, call: SparkCall) -> SparkForm | None:
        return SparkForm((call.F.count_distinct(call.value),))


DupsState: TypeAlias = tuple[int, Sets]


class CountDups(PlainAggregate):
    name = "count_dups"
    returns = Type.ULLONG
    kind = "holistic"
    running = True
    cheap = False
    takes_held = True
    doc = "how many values had occurred before: COUNT(x) - COUNT(DISTINCT x)"

    def zero(self, *parameters: Value) -> DupsState:
        return 0, ()

    def reduce(self, state: DupsState, *args: Value) -> DupsState:
        count, seen = state
        return count + 1, include(seen, distinct_key(args[0]))

    def merge(self, left: DupsState, right: DupsState) -> DupsState:
        return left[0] + right[0], unite(left[1], right[1])

    def finish(self, state: DupsState, *parameters: Value) -> int:
        count, seen = state
        return count - len(members(seen))

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return set_kind(args[0])

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        if packed is None:
            return 0
        tuples, different = set_sizes(packed)
        return tuples - different

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        sizes = size_columns(packed)
        return None if sizes is None else pa.array(sizes[0] - sizes[1])

    def spark(self, call: SparkCall) -> SparkForm | None:
        if call.distinct:
            return None
        parts = call.F.count(call.value), call.F.count_distinct(call.value)
        return SparkForm(parts, lambda p: p[0] - p[1])


SYNONYMS: Final = {"count_dup": "count_dups", "sum_of_dups": "count_dups"}
