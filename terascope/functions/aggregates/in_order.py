"""Aggregates that depend on an order. Of the stream: FIRST and LAST, count_diff, CAT_aggr. Of the
values: median, percentile and quantile, which are exact, and always one of the values.

percentile(x, p) is the value of rank max(1, ceil(p / 100 * n)) among the n sorted values that are
not NULL; the median is percentile 50. The state of these three is the values themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.functions.aggregates.folding import Collecting, PlainAggregate, Runs, items
from terascope.functions.base import Value, ValueMistake
from terascope.functions.object_states import fold_in_order
from terascope.functions.signatures import NUMBER, TEXT, Want
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.functions.values import as_text, compare, order_key
from terascope.sketches.base import StateKind
from terascope.sketches.extreme_answers import extreme_column
from terascope.sketches.extremes import extreme_value, first_kind, last_kind
from terascope.sketches.value_answers import order_column
from terascope.sketches.values import list_kind, numbers_of, ordered_kind
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

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return first_kind(args[0])

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return None if packed is None else extreme_value(packed)

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return extreme_column(packed)

    def opened(self, packed: bytes, *parameters: Value) -> Value:
        return extreme_value(packed)

    def spark(self, call: SparkCall) -> SparkForm | None:
        return SparkForm((call.F.min_by(call.value, self._place(call)),))

    def _place(self, call: SparkCall) -> SparkColumn:
        return call.F.when(call.value.isNotNull(), call.place)


class Last(First):
    name = "last"
    doc = "the value of the last tuple, in stream order, that has one"

    def merge(self, left: Value, right: Value) -> Value:
        return left if right is None else right

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return last_kind(args[0])

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

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return ordered_kind(args)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return fold_in_order(self, packed)


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

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return ordered_kind(args)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return fold_in_order(self, packed)


# ---- in the order of values ----------------------------------------------------------------------

NOTHING: Final = np.zeros(0, np.int64)
RANKED: Final = Want(NUMBER.words, lambda t: NUMBER.accepts(t) or t is Type.WIDE)


class OrderStatistic(Collecting):
    """The base of median, percentile and quantile, which differ in how they name a place."""

    takes = (RANKED,)
    sampling = "keep"
    takes_held = True

    def finish(self, state: Runs, *parameters: Value) -> Value:
        share = self.share(*parameters)
        ordered = sorted(items(state), key=order_key)
        if not ordered:
            return None
        found = ordered[max(1, math.ceil(share * len(ordered))) - 1]
        return found + 0.0 if isinstance(found, float) else found  # -0.0 equals 0.0

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return list_kind(args[0])

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        share = self.share(*parameters)
        values = NOTHING if packed is None else numbers_of(packed)
        if not len(values):
            return None
        rank = max(1, math.ceil(share * len(values)))
        found = np.partition(values, rank - 1)[rank - 1].item()
        return found + 0.0 if isinstance(found, float) else found

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        def read(state: bytes) -> Value:
            return self.finish_state(state, *parameters)

        return order_column(packed, self.share(*parameters), read)

    def spark(self, call: SparkCall) -> SparkForm | None:
        if call.distinct:
            return None
        F, is_float = call.F, call.type is Type.FLOAT
        share = F.lit(float(self.share(*call.parameters)))

        def finish(parts: Sequence[SparkColumn]) -> SparkColumn:
            values = F.sort_array(parts[0])
            at = F.greatest(F.lit(1), F.ceil(share * F.size(values)).cast("int"))
            found = F.try_element_at(values, at)
            return found + F.lit(0.0) if is_float else found  # -0.0 equals 0.0

        return SparkForm((F.collect_list(call.value),), finish)

    def share(self, *parameters: Value) -> float:
        """The part of all values that lies at or below the one wanted, from 0 to 1."""
        return 0.5


class Median(OrderStatistic):
    name = "median"
    doc = "the middle value, the lower of two"


class Percentile(OrderStatistic):
    name = "percentile"
    finish_parameters = 1
    example_parameters = (95,)
    doc = "percentile(x, p): the smallest value with at least p percent of all at or below it"

    def share(self, *parameters: Value) -> float:
        return _between(self.name, parameters[0], 100) / 100.0


class Quantile(OrderStatistic):
    name = "quantile_of"
    finish_parameters = 1
    example_parameters = (0.9,)
    doc = "quantile_of(x, phi): percentile(x, 100 * phi)"

    def share(self, *parameters: Value) -> float:
        return _between(self.name, parameters[0], 1)


def _between(name: str, value: Value, highest: int) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= highest:
        raise ValueMistake(f"{name} takes a number between 0 and {highest}, not {value}")
    return float(value)


SYNONYMS: Final = {"first_value": "first", "last_value": "last", "median_of": "median"}
