"""MIN and MAX, of anything that has an order."""

from __future__ import annotations

import math
from typing import ClassVar, Final

from terascope.functions.aggregates.folding import Folding
from terascope.functions.base import Value
from terascope.functions.slots import SlotKind
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.functions.values import larger, smaller
from terascope.types import INT_MAX, INT_MIN, Type

MIN_INT: Final = SlotKind(
    "min_int",
    ("if not ({seen}) or {value} < {slot}:", "    {slot} = {value}"),
    identity=INT_MAX,
    started=("{slot} = min({slot}, {value})",),
    numpy="minimum",
)
MAX_INT: Final = SlotKind(
    "max_int",
    ("if not ({seen}) or {value} > {slot}:", "    {slot} = {value}"),
    identity=INT_MIN,
    started=("{slot} = max({slot}, {value})",),
    numpy="maximum",
)
MIN_FLOAT: Final = SlotKind(  # NaN is the largest: it gives way to anything
    "min_float",
    ("if not ({seen}) or {value} < {slot} or math.isnan({slot}):", "    {slot} = {value}"),
    identity=math.nan,
    numpy="fmin",
    is_float=True,
)
MAX_FLOAT: Final = SlotKind(  # a NaN stays
    "max_float",
    ("if not ({seen}) or {value} > {slot} or math.isnan({value}):", "    {slot} = {value}"),
    identity=-math.inf,
    numpy="maximum",
    is_float=True,
)


class Minimum(Folding):
    name = "min"
    takes_held = True
    doc = "the smallest value"
    picks_smaller: ClassVar[bool] = True
    of_integers: ClassVar[SlotKind] = MIN_INT
    of_floats: ClassVar[SlotKind] = MIN_FLOAT

    def combine(self, left: Value, right: Value) -> Value:
        return smaller(left, right) if self.picks_smaller else larger(left, right)

    def finish(self, state: Value, *parameters: Value) -> Value:
        # -0.0 equals 0.0: which of them came first must not be seen.
        return state + 0.0 if isinstance(state, float) else state

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return self.of_floats if args[0] is Type.FLOAT else self.of_integers

    def spark(self, call: SparkCall) -> SparkForm | None:
        """Of -0.0 and 0.0, which are equal, Spark keeps the one that came first."""
        F = call.F
        found = F.min(call.value) if self.picks_smaller else F.max(call.value)
        is_float = call.type is Type.FLOAT
        return SparkForm((found,), lambda p: p[0] + F.lit(0.0) if is_float else p[0])


class Maximum(Minimum):
    name = "max"
    doc = "the largest value"
    picks_smaller = False
    of_integers = MAX_INT
    of_floats = MAX_FLOAT


AGGREGATES: Final = (Minimum(), Maximum())
