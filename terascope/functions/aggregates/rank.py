"""Median, percentile and quantile: exact, and always one of the values that occurred.

percentile(x, p) is the value of rank max(1, ceil(p / 100 * n)) among the n sorted values that are
not NULL; the median is percentile 50. The state of all of them is the values themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from terascope.functions.aggregates.folding import Collecting, Runs, items
from terascope.functions.base import Value, ValueMistake
from terascope.functions.signatures import NUMBER, Want
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.functions.values import order_key
from terascope.types import Type

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


AGGREGATES: Final = (Median(), Percentile(), Quantile())
SYNONYMS: Final = {"median_of": "median"}
