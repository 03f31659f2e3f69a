"""COUNT(*) and COUNT(x): how many tuples, how many with a value."""

from __future__ import annotations

from typing import Final

from terascope.functions.aggregates.total import Sum
from terascope.functions.base import AggregateFunction, Value
from terascope.functions.decomposition import FIRST, Decomposition, SinglePart
from terascope.functions.signatures import ANYTHING, expect
from terascope.functions.slots import COUNT, COUNT_OF, SlotKind
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.types import Type


class Count(AggregateFunction):
    name = "count"
    takes_star = True
    takes_held = True
    sampling = "rescale"
    doc = "count(*): the number of tuples; count(x): of those whose x is not NULL"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        if args:
            expect(self.name, args[: self.arity], ANYTHING)
        return Type.ULLONG

    def zero(self, *parameters: Value) -> int:
        return 0

    def reduce(self, state: int, *args: Value) -> int:
        return state + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def finish(self, state: int, *parameters: Value) -> int:
        return state

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return COUNT_OF if args else COUNT

    def spark(self, call: SparkCall) -> SparkForm | None:
        F = call.F
        if not call.columns:
            return SparkForm((F.count(F.lit(1)),))
        return SparkForm((F.count_distinct(call.value) if call.distinct else F.count(call.value),))

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        over = (FIRST,) if args else ()
        return Decomposition((SinglePart(Count(), over, Sum()),), of_nothing=0)


class RunningCount(Count):
    name = "running_count"
    running = True
    doc = "the number of tuples since the group began, over all its epochs"

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return None


AGGREGATES: Final = (Count(), RunningCount())
