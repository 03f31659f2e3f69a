"""SUM: of integers exactly, of FLOATs exactly and rounded once."""

from __future__ import annotations

from typing import Final, TypeAlias

from terascope.functions.aggregates.float_sums import float_sum_part
from terascope.functions.base import Aggregate, Value
from terascope.functions.decomposition import (
    FIRST,
    Apply,
    Constant,
    Decomposition,
    Part,
    Place,
    Term,
)
from terascope.functions.exact_floats import ExactSum, added, exact, rounded
from terascope.functions.operators import operators
from terascope.functions.signatures import NUMBER, expect
from terascope.functions.values import whole
from terascope.types import Type

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


def half_sums(type_: Type) -> tuple[Part, Part]:
    """The sums of the upper and of the lower 32 bits of the argument: neither can overflow."""
    upper = Apply(operators[">>"], (FIRST, Constant(32, Type.INT)))
    lower = Apply(operators["&"], (FIRST, Constant(LOW_HALF, type_)))
    return Part(Sum(), (upper,), Sum()), Part(Sum(), (lower,), Sum())


def carried(type_: Type) -> tuple[Term, Term]:
    """The two half sums, at the first two places, as upper * 2^32 + lower with lower < 2^32."""
    carry = Apply(operators[">>"], (Place(1), Constant(32, Type.INT)))
    upper = Apply(operators["+"], (FIRST, carry))
    return upper, Apply(operators["&"], (Place(1), Constant(LOW_HALF, type_)))


class Sum(Aggregate):
    name = "sum"
    sampling = "rescale"
    keeps_one = True
    counts_true = True
    doc = "the sum; of BOOLs, how many are TRUE; NULL when there is no value"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return sum_type(expect(self.name, args[: self.arity], NUMBER)[0])

    def zero(self, *parameters: Value) -> Total | None:
        return None

    def reduce(self, state: Total | None, *args: Value) -> Total:
        return plus(state, args[0])

    def merge(self, left: Total | None, right: Total | None) -> Total | None:
        return together(left, right)

    def finish(self, state: Total | None, *parameters: Value) -> Number | None:
        return None if state is None else checked_sum(state, self.name)

    def is_state(self, state: Value) -> bool:
        return state is None or is_total(state)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        (type_,) = args
        if type_ is Type.FLOAT:
            return Decomposition((float_sum_part(self),))
        if not finer or not is_wide(type_):
            return Decomposition((Part(Sum(), (FIRST,), Sum()),))
        # The sum of a finer group may overflow though the whole does not; the shift tells when the
        # whole does.
        upper, lower = carried(type_)
        shifted = Apply(operators["<<"], (upper, Constant(32, Type.INT)))
        return Decomposition(half_sums(type_), Apply(operators["|"], (shifted, lower)))


AGGREGATES: Final = (Sum(),)
SYNONYMS: Final[dict[str, str]] = {}
