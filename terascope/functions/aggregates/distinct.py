"""How many different values, and how many repeated ones.

count_dups(x) = COUNT(x) - COUNT(DISTINCT x). It is running (dissertation 3.1.2): under CLOSING_WHEN
a sequence number seen again in a later epoch of its connection is a duplicate.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from terascope.functions.aggregates.runs import Sets, include, members, unite
from terascope.functions.base import AggregateFunction, Value
from terascope.functions.signatures import ANYTHING, expect
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.functions.values import distinct_key
from terascope.types import Type


class CountDistinct(AggregateFunction):
    name = "count_distinct"
    kind = "holistic"
    of_set = True
    cheap = False
    takes_held = True
    doc = "the number of different values, as COUNT(DISTINCT x)"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        expect(self.name, args[: self.arity], ANYTHING)
        return Type.ULLONG

    def zero(self, *parameters: Value) -> Sets:
        return ()

    def reduce(self, state: Sets, *args: Value) -> Sets:
        return include(state, distinct_key(args[0]))

    def merge(self, left: Sets, right: Sets) -> Sets:
        return unite(left, right)

    def finish(self, state: Sets, *parameters: Value) -> int:
        return len(members(state))

    def spark(self, call: SparkCall) -> SparkForm | None:
        return SparkForm((call.F.count_distinct(call.value),))


DupsState: TypeAlias = tuple[int, Sets]


class CountDups(AggregateFunction):
    name = "count_dups"
    kind = "holistic"
    running = True
    cheap = False
    takes_held = True
    doc = "how many values had occurred before: COUNT(x) - COUNT(DISTINCT x)"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        expect(self.name, args[: self.arity], ANYTHING)
        return Type.ULLONG

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

    def spark(self, call: SparkCall) -> SparkForm | None:
        if call.distinct:
            return None
        parts = call.F.count(call.value), call.F.count_distinct(call.value)
        return SparkForm(parts, lambda p: p[0] - p[1])


AGGREGATES: Final = (CountDistinct(), CountDups())
SYNONYMS: Final = {"count_dup": "count_dups", "sum_of_dups": "count_dups"}
