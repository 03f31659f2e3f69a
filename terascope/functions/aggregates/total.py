"""SUM: of integers exactly, of FLOATs as FLOAT."""

from __future__ import annotations

from typing import Final

from terascope.functions.base import Aggregate, Value
from terascope.functions.signatures import NUMBER, expect
from terascope.functions.values import whole
from terascope.types import Type

Number = int | float


def sum_type(type_: Type) -> Type:
    """Sums are 64 bits wide."""
    if type_ is Type.FLOAT:
        return Type.FLOAT
    return Type.ULLONG if type_.is_unsigned else Type.LLONG


def checked_sum(total: Number, name: str) -> Number:
    """Overflow is judged on the whole sum, so that the order of tuples does not matter."""
    return whole(total, name) if isinstance(total, int) else total


class Sum(Aggregate):
    name = "sum"
    sampling = "rescale"
    doc = "the sum; NULL when there is no value"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return sum_type(expect(self.name, args[: self.arity], NUMBER)[0])

    def zero(self, *parameters: Value) -> Number | None:
        return None

    def reduce(self, state: Number | None, *args: Value) -> Number:
        (value,) = args
        total: Number = value if state is None else state + value
        return total

    def merge(self, left: Number | None, right: Number | None) -> Number | None:
        if left is None or right is None:
            return right if left is None else left
        return left + right

    def finish(self, state: Number | None, *parameters: Value) -> Number | None:
        return None if state is None else checked_sum(state, self.name)


AGGREGATES: Final = (Sum(),)
SYNONYMS: Final[dict[str, str]] = {}
