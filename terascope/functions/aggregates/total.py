"""SUM: of integers exactly, of FLOATs exactly and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from terascope.functions.aggregates.float_sums import float_sum_part
from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.base import (
    FIRST,
    AggregatePart,
    Apply,
    Constant,
    Decomposition,
    Place,
    Term,
    Value,
    single,
)
from terascope.functions.exact_floats import ExactSum, added, exact, rounded
from terascope.functions.operators import operators
from terascope.functions.signatures import NUMBER
from terascope.functions.slots import SUM_INT, SlotKind
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.functions.values import whole
from terascope.types import INT_MAX, INT_MIN, Type

Number = int | float
Total: TypeAlias = int | ExactSum
"""An exact sum of integers, or of FLOATs."""


def sum_type(type_: Type) -> Type:
    """Sums are 64 bits wide."""
    if type_ is Type.FLOAT:
        return Type.FLOAT
    return Type.ULLONG if type_.is_unsigned else Type.LLONG


def plus(total: Total | None, value: Number) -> Total:
    """A sum and one value more."""
    if isinstance(value, float):
        one = exact(value)
        return added(total, one) if isinstance(total, tuple) else one
    return value if total is None or isinstance(total, tuple) else total + value


def together(left: Total | None, right: Total | None) -> Total | None:
    """Two sums of the same type; None has no value."""
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, tuple) and isinstance(right, tuple):
        return added(left, right)
    assert isinstance(left, int)
    assert isinstance(right, int)
    return left + right


def is_total(held: object) -> bool:
    """Whether it is a sum that was not rounded."""
    if isinstance(held, tuple):
        return len(held) == 2 and all(isinstance(part, int) for part in held)
    return isinstance(held, int)


def checked_sum(total: Total, name: str) -> Number:
    """Overflow is judged on the whole sum, so that the order of tuples does not matter."""
    return whole(total, name.upper()) if isinstance(total, int) else rounded(total)


# ---- sums that are wider than 64 bits ------------------------------------------------------------

LOW_HALF: Final = 0xFFFFFFFF


def is_wide(type_: Type) -> bool:
    """Whether a sum of a few such values may need more than 64 bits."""
    return type_ is Type.LLONG or type_ is Type.ULLONG


def half_sums(type_: Type) -> tuple[AggregatePart, AggregatePart]:
    """The sums of the upper and of the lower 32 bits of the argument: neither can overflow."""
    upper = Apply(operators[">>"], (FIRST, Constant(32, Type.INT)))
    lower = Apply(operators["&"], (FIRST, Constant(LOW_HALF, type_)))
    return single(Sum(), Sum(), upper), single(Sum(), Sum(), lower)


def carried(type_: Type) -> tuple[Term, Term]:
    """The two half sums, at the first two places, as upper * 2^32 + lower with lower < 2^32."""
    carry = Apply(operators[">>"], (Place(1), Constant(32, Type.INT)))
    upper = Apply(operators["+"], (FIRST, carry))
    return upper, Apply(operators["&"], (Place(1), Constant(LOW_HALF, type_)))


def spark_half_sums(call: SparkCall) -> tuple[SparkColumn, SparkColumn]:
    """The same two sums in Spark."""
    upper = call.F.call_function("shiftright", call.value, call.F.lit(32))
    return call.F.sum(upper), call.F.sum(call.value.bitwiseAND(call.number(LOW_HALF)))


def spark_carried(
    call: SparkCall, upper: SparkColumn, lower: SparkColumn
) -> tuple[SparkColumn, SparkColumn]:
    carry = call.F.call_function("shiftright", lower, call.F.lit(32))
    return upper + carry, lower.bitwiseAND(call.number(LOW_HALF))


def spark_whole(call: SparkCall, upper: SparkColumn, lower: SparkColumn) -> SparkColumn:
    """The sum that two half sums make, if it fits."""
    F = call.F
    upper, lower = spark_carried(call, upper, lower)
    total = F.call_function("shiftleft", upper, F.lit(32)).bitwiseOR(lower)
    fits = upper.between(call.number(-(2**31)), call.number(2**31 - 1))
    return F.when(fits, total).when(upper.isNotNull(), call.overflow())


class Sum(PlainAggregate):
    name = "sum"
    takes = (NUMBER,)
    sampling = "rescale"
    keeps_one = True
    counts_true = True
    adds_floats = "values"
    doc = "the sum; of BOOLs, how many are TRUE; NULL when there is no value"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return sum_type(super().type_rule(args))

    def reduce(self, state: Total | None, *args: Value) -> Total:
        return plus(state, args[0])

    def merge(self, left: Total | None, right: Total | None) -> Total | None:
        return together(left, right)

    def finish(self, state: Total | None, *parameters: Value) -> Number | None:
        return None if state is None else checked_sum(state, self.name)

    def is_state(self, state: Value) -> bool:
        return state is None or is_total(state)

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        """FLOATs are summed in several slots (terascope.functions.aggregates.float_sums)."""
        return None if args[0] is Type.FLOAT else SUM_INT

    def spark(self, call: SparkCall) -> SparkForm | None:
        """Spark's SUM of integers fails as soon as a partial sum overflows, and so depends on the
        order of tuples. Of sums in halves, only the whole decides.
        """
        F, value = call.F, call.value
        if call.type is Type.FLOAT:
            return call.float_sum()
        if call.cannot_overflow:
            return SparkForm((F.sum(value),))
        if not call.distinct:
            return SparkForm(spark_half_sums(call), lambda parts: spark_whole(call, *parts))

        def finish(parts: Sequence[SparkColumn]) -> SparkColumn:
            (total,) = parts
            fits = total.between(call.number(INT_MIN), call.number(INT_MAX))
            return F.when(fits, total.cast("bigint")).when(total.isNotNull(), call.overflow())

        return SparkForm((F.sum_distinct(value.cast("decimal(20,0)")),), finish)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        (type_,) = args
        if type_ is Type.FLOAT:
            return Decomposition((float_sum_part(self),))
        if not finer or not is_wide(type_):
            return Decomposition((single(Sum(), Sum(), FIRST),))
        # The sum of a finer group may overflow though the whole does not; the shift tells when the
        # whole does.
        upper, lower = carried(type_)
        shifted = Apply(operators["<<"], (upper, Constant(32, Type.INT)))
        return Decomposition(half_sums(type_), Apply(operators["|"], (shifted, lower)))


AGGREGATES: Final = (Sum(),)
