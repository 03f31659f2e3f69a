"""What built-in aggregates share: the types they take, and states that are values.

`PlainAggregate` is the base of all of them. `Folding` is for aggregates whose state is what all
values make when they are combined two by two. `Collecting` keeps the values themselves, as `Runs`:
a sequence that is never changed in place, a tuple of tuples that get shorter from left to right.
Adding joins the last runs while the one before is not longer, so n items cost O(n log n) in all and
a state handed out earlier stays what it was. The order of items is kept.

Aggregates that fold values are MIN and MAX of anything that has an order; OR_AGGR, AND_AGGR and
XOR_AGGR, bit by bit over integers, or over BOOLs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias

import pyarrow as pa

from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    Apply,
    Constant,
    Decomposition,
    State,
    Term,
    Value,
    single,
)
from terascope.functions.operators import operators
from terascope.functions.scalars.logic import if_
from terascope.functions.signatures import ANYTHING, CONDITION, Want, expect, known
from terascope.functions.slots import SlotKind
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.functions.values import larger, smaller
from terascope.sketches.base import StateKind
from terascope.sketches.extreme_answers import extreme_column
from terascope.sketches.extremes import extreme_value, max_kind, min_kind
from terascope.sketches.value_forms import form_of
from terascope.types import INT_MAX, INT_MIN, Type

IS_FALSE: Final = Apply(operators["not"], (FIRST,))
AS_NUMBER: Final[Term] = Apply(
    if_,
    (
        FIRST,
        Constant(1, Type.INT),
        Apply(if_, (IS_FALSE, Constant(0, Type.INT), Constant(None, Type.NULL))),
    ),
)
"""A BOOL as a number, NULL as NULL."""

Runs: TypeAlias = tuple[tuple[Any, ...], ...]


class PlainAggregate(AggregateFunction):
    """Says by attributes what it takes and gives. Its state is its value, NULL at first, and the
    state of one value is that value, unless it says otherwise.
    """

    takes: ClassVar[tuple[Want, ...]] = (ANYTHING,)
    returns: ClassVar[Type | None] = None
    """The type of the result; None: that of the first argument."""

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        first, *_ = expect(self.name, args[: self.arity], *self.takes)
        return first if self.returns is None else self.returns

    def zero(self, *parameters: Value) -> State:
        return None

    def reduce(self, state: State, *args: Value) -> State:
        return self.merge(state, args[0])

    def finish(self, state: State, *parameters: Value) -> Value:
        return state


class Folding(PlainAggregate):
    """Says by `combine` what two values make, in any order; nothing makes NULL."""

    keeps_one = True

    @abstractmethod
    def combine(self, left: Value, right: Value) -> Value: ...

    def merge(self, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return right if left is None else left
        return self.combine(left, right)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """Partial values are merged as values are; BOOLs are kept as 1 and 0."""
        if args[0] is Type.BOOL:
            is_set = Apply(operators["!="], (FIRST, Constant(0, Type.INT)))
            return Decomposition((single(self, self, AS_NUMBER),), is_set)
        return Decomposition((single(self, self, FIRST),))


class Collecting(PlainAggregate):
    """Keeps all values of a group, in stream order."""

    kind = "holistic"
    cheap = False

    def zero(self, *parameters: Value) -> Runs:
        return ()

    def reduce(self, state: Runs, *args: Value) -> Runs:
        return join(state, ((args[0] if len(args) == 1 else args,),))

    def merge(self, left: Runs, right: Runs) -> Runs:
        return join(left, right)


def join(left: Runs, right: Runs) -> Runs:
    for run in right:
        while left and len(left[-1]) <= len(run):
            run = left[-1] + run
            left = left[:-1]
        left = (*left, run)
    return left


def items(runs: Runs) -> Iterator[Any]:
    return chain.from_iterable(runs)


# ---- folds ---------------------------------------------------------------------------------------

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
OR_INT: Final = SlotKind("or_int", ("{slot} |= {value}",), numpy="bitwise_or")
AND_INT: Final = SlotKind(
    "and_int",
    ("if {seen}:", "    {slot} &= {value}", "else:", "    {slot} = {value}"),
    identity=-1,
    started=("{slot} &= {value}",),
    numpy="bitwise_and",
)
XOR_INT: Final = SlotKind(
    "xor_int", ("{slot} ^= {value}",), take_back=("{slot} ^= {value}",), numpy="bitwise_xor"
)

Bits = int
"""An integer, or a BOOL, whose operators | & ^ give BOOLs again."""


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

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """Numbers fit a slot; other values are kept as states."""
        return super().split(args, finer) if form_of(args[0]).is_word else None

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        if form_of(args[0]).is_word:
            return None
        return min_kind(args[0]) if self.picks_smaller else max_kind(args[0])

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return None if packed is None else extreme_value(packed)

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return extreme_column(packed)

    def spark(self, call: SparkCall) -> SparkForm | None:
        """Adding 0.0 hides which of -0.0 and 0.0, which are equal, Spark saw first."""
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


class OrAggregate(Folding):
    name = "or_aggr"
    takes = (CONDITION,)
    doc = "the bits set in any value; for BOOL, whether any is TRUE"
    kept_in: ClassVar[SlotKind] = OR_INT
    in_spark: ClassVar[tuple[str, str]] = ("bit_or", "bool_or")
    """The names of Spark's aggregates over integers and over BOOLs."""

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return known(super().type_rule(args), Type.INT)

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left | right

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return self.kept_in

    def spark(self, call: SparkCall) -> SparkForm | None:
        function = getattr(call.F, self.in_spark[call.type is Type.BOOL])
        return SparkForm((function(call.value),))


class AndAggregate(OrAggregate):
    name = "and_aggr"
    doc = "the bits set in every value; for BOOL, whether all are TRUE"
    kept_in = AND_INT
    in_spark = ("bit_and", "bool_and")

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left & right


class XorAggregate(OrAggregate):
    name = "xor_aggr"
    doc = "the bits set in an odd number of values; for BOOL, whether an odd number is TRUE"
    kept_in = XOR_INT

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left ^ right

    def spark(self, call: SparkCall) -> SparkForm | None:
        F = call.F
        if call.distinct:
            return None
        if call.type is Type.BOOL:
            return SparkForm((F.bit_xor(call.value.cast("int")),), lambda p: p[0] != F.lit(0))
        return SparkForm((F.bit_xor(call.value),))


SYNONYMS: Final = {
    "bit_or": "or_aggr",
    "bit_and": "and_aggr",
    "bit_xor": "xor_aggr",
    "bool_or": "or_aggr",
    "bool_and": "and_aggr",
}
