"""How many tuples, how many values, how many different ones, and how many repeated ones.

count_dups(x) = COUNT(x) - COUNT(DISTINCT x). It is running (dissertation 3.1.2): under CLOSING_WHEN
a sequence number seen again in a later epoch of its connection is a duplicate.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from terascope.functions.aggregates.folding import PlainAggregate, Sets, include, members, unite
from terascope.functions.aggregates.total import Sum
from terascope.functions.base import FIRST, Decomposition, Value, single
from terascope.functions.slots import COUNT, COUNT_OF, SlotKind
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.functions.values import distinct_key
from terascope.types import Type


class Count(PlainAggregate):
    name = "count"
    returns = Type.ULLONG
    takes_star = True
    takes_held = True
    sampling = "rescale"
    doc = "count(*): the number of tuples; count(x): of those whose x is not NULL"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return super().type_rule(args) if args else Type.ULLONG

    def zero(self, *parameters: Value) -> int:
        return 0

    def reduce(self, state: int, *args: Value) -> int:
        return state + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return COUNT_OF if args else COUNT

    def spark(self, call: SparkCall) -> SparkForm | None:
        F = call.F
        if not call.columns:
            return SparkForm((F.count(F.lit(1)),))
        return SparkForm((F.count_distinct(call.value) if call.distinct else F.count(call.value),))

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        over = (FIRST,) if args else ()
        return Decomposition((single(Count(), Sum(), *over),), of_nothing=0)


class RunningCount(Count):
    name = "running_count"
    running = True
    doc = "the number of tuples since the group began, over all its epochs"

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return None


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

    def spark(self, call: SparkCall) -> SparkForm | None:
        if call.distinct:
            return None
        parts = call.F.count(call.value), call.F.count_distinct(call.value)
        return SparkForm(parts, lambda p: p[0] - p[1])


AGGREGATES: Final = (Count(), RunningCount(), CountDistinct(), CountDups())
SYNONYMS: Final = {"count_dup": "count_dups", "sum_of_dups": "count_dups"}
