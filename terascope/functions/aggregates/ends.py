"""FIRST and LAST in stream order. As in GS-Lite they are running: FIRST keeps the group's first."""

from __future__ import annotations

from typing import Final

from terascope.functions.base import AggregateFunction, Value
from terascope.functions.signatures import ANYTHING, expect
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.types import Type


class First(AggregateFunction):
    name = "first"
    ordered = True
    running = True
    takes_held = True
    doc = "the value of the first tuple, in stream order, that has one"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return expect(self.name, args[: self.arity], ANYTHING)[0]

    def zero(self, *parameters: Value) -> Value:
        return None

    def reduce(self, state: Value, *args: Value) -> Value:
        return self.merge(state, args[0])

    def merge(self, left: Value, right: Value) -> Value:
        return right if left is None else left

    def finish(self, state: Value, *parameters: Value) -> Value:
        return state

    def spark(self, call: SparkCall) -> SparkForm | None:
        return SparkForm((call.F.min_by(call.value, self._place(call)),))

    def _place(self, call: SparkCall) -> SparkColumn:
        return call.F.when(call.value.isNotNull(), call.place)


class Last(First):
    name = "last"
    doc = "the value of the last tuple, in stream order, that has one"

    def merge(self, left: Value, right: Value) -> Value:
        return left if right is None else right

    def spark(self, call: SparkCall) -> SparkForm | None:
        return SparkForm((call.F.max_by(call.value, self._place(call)),))


AGGREGATES: Final = (First(), Last())
SYNONYMS: Final = {"first_value": "first", "last_value": "last"}
