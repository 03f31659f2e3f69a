"""MIN and MAX, of anything that has an order."""

from __future__ import annotations

from typing import Final

from terascope.functions.base import Aggregate, Value
from terascope.functions.decomposition import FIRST, Decomposition, Part
from terascope.functions.signatures import ANYTHING, expect
from terascope.functions.values import larger, smaller
from terascope.types import Type


class Minimum(Aggregate):
    name = "min"
    keeps_one = True
    takes_held = True
    doc = "the smallest value"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return expect(self.name, args[: self.arity], ANYTHING)[0]

    def better(self, left: Value, right: Value) -> Value:
        return smaller(left, right)

    def zero(self, *parameters: Value) -> Value:
        return None

    def reduce(self, state: Value, *args: Value) -> Value:
        (value,) = args
        return self.merge(state, value)

    def merge(self, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return right if left is None else left
        return self.better(left, right)

    def finish(self, state: Value, *parameters: Value) -> Value:
        # -0.0 equals 0.0: which of them came first must not be seen.
        return state + 0.0 if isinstance(state, float) else state

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        return Decomposition((Part(self, (FIRST,), self),))


class Maximum(Minimum):
    name = "max"
    doc = "the largest value"

    def better(self, left: Value, right: Value) -> Value:
        return larger(left, right)


AGGREGATES: Final = (Minimum(), Maximum())
SYNONYMS: Final[dict[str, str]] = {}
