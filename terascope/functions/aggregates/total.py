"""COUNT, SUM and AVG, which split into each other. A sum of integers is exact, one of FLOATs exact
and rounded once. POSAVG is for values whose negatives mean that nothing was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias

import pyarrow as pa

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
from terascope.functions.epochs import SumsOfEpochs
from terascope.functions.exact_floats import ExactSum, added, exact, rounded
from terascope.functions.operators import operators
from terascope.functions.scalars.logic import if_
from terascope.functions.signatures import NUMBER
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT, SlotKind
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.functions.values import compare, whole
from terascope.sketches.base import StateKind
from terascope.sketches.float_moments import FLOAT_SUM, POSITIVE_SUM, moments_of
from terascope.sketches.moment_answers import sum_column
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


def scaled_total(type_: Type) -> Term:
    """The sum that two half sums, at the first two places, make, as a FLOAT."""
    upper, lower = carried(type_)
    scaled = Apply(operators["*"], (upper, Constant(2.0**32, Type.FLOAT)))
    return Apply(operators["+"], (scaled, lower))


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


def float_total(packed: bytes | None) -> tuple[float, int] | None:
    """The sum and the number of the FLOATs of a packed state; None when there is none."""
    if packed is None:
        return None
    count, total, _, flags, _ = moments_of(packed)
    return (rounded((total, flags)), count) if count else None


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

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        """FLOATs beside states of other aggregates, where a group has one row."""
        return FLOAT_SUM if args[0] is Type.FLOAT else None

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        found = float_total(packed)
        return None if found is None else found[0]

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return sum_column(packed, False, self.finish_state)

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

    def split_epochs(
        self, args: tuple[Type, ...], parameters: tuple[Value, ...]
    ) -> Decomposition | None:
        over = (FIRST,) if args else ()
        made = SumsOfEpochs(self, parameters, Type.ULLONG)
        return Decomposition((single(Count(), made, *over),))

    def reduce_parts(self, state: int, *parts: Value) -> int:
        return state + int(parts[0])

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return None


SumAndCount: TypeAlias = tuple[Total | None, int]
"""Sum and count. The sum is exact; it is rounded once, before the division."""


class Average(PlainAggregate):
    name = "avg"
    takes = (NUMBER,)
    returns = Type.FLOAT
    kind = "algebraic"
    sampling = "keep"
    counts_true = True
    adds_floats = "values"
    doc = "the mean, as FLOAT; of BOOLs, the share that is TRUE"

    def zero(self, *parameters: Value) -> SumAndCount:
        return None, 0

    def reduce(self, state: SumAndCount, *args: Value) -> SumAndCount:
        total, count = state
        return plus(total, args[0]), count + 1

    def merge(self, left: SumAndCount, right: SumAndCount) -> SumAndCount:
        return together(left[0], right[0]), left[1] + right[1]

    def finish(self, state: SumAndCount, *parameters: Value) -> float | None:
        total, count = state
        if total is None:
            return None
        return (rounded(total) if isinstance(total, tuple) else float(total)) / count

    def is_state(self, state: Value) -> bool:
        if not isinstance(state, tuple) or len(state) != 2:
            return False
        total, count = state
        return is_total(total) if count else total is None

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return FLOAT_SUM if args[0] is Type.FLOAT else None

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        found = float_total(packed)
        return None if found is None else found[0] / found[1]

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return sum_column(packed, True, self.finish_state)

    def spark(self, call: SparkCall) -> SparkForm | None:
        F, value = call.F, call.value
        counted = F.count_distinct(value) if call.distinct else F.count(value)
        if call.type is Type.FLOAT:
            summed = call.float_sum()
            made = summed.finish
            return SparkForm(
                (*summed.parts, counted), lambda p: spark_ratio(call, made(p[:-1]), p[-1])
            )
        if call.distinct:
            parts = (F.sum_distinct(value.cast("decimal(20,0)")), counted)
            return SparkForm(parts, lambda p: spark_ratio(call, p[0].cast("double"), p[1]))

        def finish(parts: Sequence[SparkColumn]) -> SparkColumn:
            upper, lower = spark_carried(call, parts[0], parts[1])
            exact = upper.cast("double") * F.lit(2.0**32) + lower.cast("double")
            return spark_ratio(call, exact, parts[2])

        return SparkForm((*spark_half_sums(call), counted), finish)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """SUM and COUNT; the sum of 64-bit values, such as nanosecond clocks, in two halves."""
        (type_,) = args
        count = single(Count(), Sum(), FIRST)
        if type_ is Type.FLOAT:
            mean = Apply(operators["/"], (FIRST, Place(1)))
            return Decomposition((float_sum_part(Sum()), count), mean)
        if not is_wide(type_):
            mean = Apply(operators["/"], (FIRST, Place(1)))
            return Decomposition((single(Sum(), Sum(), FIRST), count), mean)
        mean = Apply(operators["/"], (scaled_total(type_), Place(2)))
        return Decomposition((*half_sums(type_), count), mean)


def spark_ratio(call: SparkCall, summed: SparkColumn, counted: SparkColumn) -> SparkColumn:
    return summed / call.F.nullif(counted, call.number(0)).cast("double")


class AverageOfPositives(Average):
    name = "posavg"
    counts_true = False
    argument: ClassVar[Term] = Apply(
        if_,
        (Apply(operators[">="], (FIRST, Constant(0, Type.INT))), FIRST, Constant(None, Type.NULL)),
    )
    doc = "the mean of the values that are not negative"

    def reduce(self, state: SumAndCount, *args: Value) -> SumAndCount:
        return super().reduce(state, *args) if compare(args[0], 0) >= 0 else state

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return POSITIVE_SUM if args[0] is Type.FLOAT else None

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """The split is that of a mean over the values that are not negative; FLOATs are kept as
        states.
        """
        made = None if args[0] is Type.FLOAT else super().split(args, finer)
        if made is None:
            return None
        parts = (
            replace(part, subs=tuple((sub, tuple(map(_positive, over))) for sub, over in part.subs))
            for part in made.parts
        )
        return replace(made, parts=tuple(parts))


def _positive(term: Term) -> Term:
    """A term over the argument, as one over what posavg takes of it."""
    match term:
        case Apply(function, terms):
            return Apply(function, tuple(map(_positive, terms)))
        case Place(0):
            return AverageOfPositives.argument
    return term


SYNONYMS: Final = {"average": "avg"}
