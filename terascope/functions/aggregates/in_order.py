"""Aggregates of values in stream order: FIRST and LAST, count_diff, CAT_aggr."""

from __future__ import annotations

from typing import Final, TypeAlias

from terascope.functions.aggregates.folding import Collecting, PlainAggregate, Runs, items
from terascope.functions.base import Value
from terascope.functions.signatures import TEXT
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.functions.values import as_text, compare
from terascope.types import Type

Stretches: TypeAlias = tuple[int, Value, Value]
"""Number of stretches of equal values, first value, last value."""


class First(PlainAggregate):
    """Keeps the first value of the group over all epochs, as in GS-Lite."""

    name = "first"
    ordered = True
    running = True
    takes_held = True
    doc = "the value of the first tuple, in stream order, that has one"

    def merge(self, left: Value, right: Value) -> Value:
        return right if left is None else left

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


class CountDiff(PlainAggregate):
    """The number of stretches of equal values: the first value counts as one, as in GS-Lite."""

    name = "count_diff"
    returns = Type.ULLONG
    ordered = True
    takes_held = True
    doc = "how often the value differs from the one before it; the first one counts"

    def zero(self, *parameters: Value) -> Stretches:
        return 0, None, None

    def reduce(self, state: Stretches, *args: Value) -> Stretches:
        (value,) = args
        return self.merge(state, (1, value, value))

    def merge(self, left: Stretches, right: Stretches) -> Stretches:
        if not left[0] or not right[0]:
            return left if left[0] else right
        joined = compare(left[2], right[1]) == 0
        return left[0] + right[0] - int(joined), left[1], right[2]

    def finish(self, state: Stretches, *parameters: Value) -> int:
        return state[0]


class Concatenation(Collecting):
    name = "cat_aggr"
    arity = 2
    takes = (TEXT, TEXT)
    returns = Type.STRING
    ordered = True
    doc = "cat_aggr(separator, text): the texts in stream order, each after its separator"

    def reduce(self, state: Runs, *args: Value) -> Runs:
        return super().reduce(state, *map(as_text, args))

    def finish(self, state: Runs, *parameters: Value) -> str | None:
        if not state:
            return None
        pieces = [piece for pair in items(state) for piece in pair]
        return "".join(pieces[1:])


AGGREGATES: Final = (First(), Last(), CountDiff(), Concatenation())
SYNONYMS: Final = {"first_value": "first", "last_value": "last"}
