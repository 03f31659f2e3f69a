"""The parts of a sum of FLOATs next to the sources, and what merges them.

In: nothing. Out: `float_sum_part`, by which SUM and AVG split over FLOATs. The sub-aggregates are
the range of a value (terascope.functions.exact_floats) and the integer sums of its digits; one
super-aggregate merges all six. Nobody names them in a query.
"""

from __future__ import annotations

import struct
from typing import Final

from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    AggregatePart,
    Apply,
    Constant,
    Place,
    Scalar,
    Term,
    Value,
)
from terascope.functions.exact_floats import (
    DIGITS,
    NOTHING,
    ROUNDED,
    ExactSum,
    added,
    from_digits,
    rounded,
    to_digits,
)
from terascope.functions.signatures import INTEGER, NUMBER, signature
from terascope.functions.slots import RANGE, SlotKind
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.types import Type


def _digit(value: float, place: int) -> int:
    return to_digits(value)[1][place]


def _total(range_: int, *digits: int) -> float:
    if range_ == ROUNDED:
        return float(struct.unpack("<d", struct.pack("<q", digits[0]))[0])
    return rounded(from_digits(range_, digits))


FLOAT_DIGIT: Final = Scalar(
    "float_digit",
    signature("float_digit", NUMBER, INTEGER, returns=Type.LLONG),
    _digit,
    cost_ns=2,
    doc="float_digit(x, k): 30 bits of x as an integer with its sign",
)
FLOAT_TOTAL: Final = Scalar(
    "float_total",
    signature("float_total", *(INTEGER,) * (1 + DIGITS), returns=Type.FLOAT),
    _total,
    doc="float_total(range, d0, .., d4): the FLOAT nearest to the sum of some digits",
)


class FloatRange(PlainAggregate):
    """The range that the digits of a group belong to. A group has a row for each."""

    name = "float_range"
    internal = True
    takes = (NUMBER,)
    returns = Type.LLONG
    splits_groups = True
    doc = "the range of the digits of x"

    def reduce(self, state: int | None, *args: Value) -> int:
        return self.merge(state, to_digits(args[0])[0]) or 0

    def merge(self, left: int | None, right: int | None) -> int | None:
        return max((r for r in (left, right) if r is not None), default=None)

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return RANGE

    def spark(self, call: SparkCall) -> SparkForm | None:
        return SparkForm((), lambda _: call.value)


class FloatSum(PlainAggregate):
    """Merges rows of a range and its digits into the sum they stand for."""

    name = "float_sum"
    internal = True
    arity = 1 + DIGITS
    takes = (INTEGER,) * (1 + DIGITS)
    returns = Type.FLOAT
    doc = "the sum that ranges and digits stand for"

    def reduce(self, state: ExactSum | None, *args: Value) -> ExactSum:
        return added(state or NOTHING, from_digits(args[0], args[1:]))

    def merge(self, left: ExactSum | None, right: ExactSum | None) -> ExactSum | None:
        if left is None or right is None:
            return right if left is None else left
        return added(left, right)

    def finish(self, state: ExactSum | None, *parameters: Value) -> float | None:
        return None if state is None else rounded(state)

    def spark(self, call: SparkCall) -> SparkForm | None:
        return call.merged_float_sum()

    def of_one(self) -> Term | None:
        return Apply(FLOAT_TOTAL, tuple(map(Place, range(self.arity))))


def float_sum_part(sum_: AggregateFunction) -> AggregatePart:
    """The sum of a FLOAT argument; `sum_` sums integers."""
    digits = ((sum_, (Apply(FLOAT_DIGIT, (FIRST, Constant(k, Type.INT))),)) for k in range(DIGITS))
    return AggregatePart(((FloatRange(), (FIRST,)), *digits), FloatSum())
