"""AVG, and POSAVG for values whose negatives mean that nothing was measured."""

from __future__ import annotations

from typing import Final, TypeAlias

from terascope.functions.base import Aggregate, Value
from terascope.functions.signatures import NUMBER, expect
from terascope.types import Type

State: TypeAlias = tuple[int | float, int]
"""Sum and count. Sums of integers stay exact until the division."""


class Average(Aggregate):
    name = "avg"
    kind = "algebraic"
    sampling = "keep"
    doc = "the mean, as FLOAT"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        expect(self.name, args[: self.arity], NUMBER)
        return Type.FLOAT

    def zero(self, *parameters: Value) -> State:
        return 0, 0

    def reduce(self, state: State, *args: Value) -> State:
        total, count = state
        return total + args[0], count + 1

    def merge(self, left: State, right: State) -> State:
        return left[0] + right[0], left[1] + right[1]

    def finish(self, state: State, *parameters: Value) -> float | None:
        total, count = state
        return float(total / count) if count else None


class AverageOfPositives(Average):
    name = "posavg"
    doc = "the mean of the values that are not negative"

    def reduce(self, state: State, *args: Value) -> State:
        return super().reduce(state, *args) if args[0] >= 0 else state


AGGREGATES: Final = (Average(), AverageOfPositives())
SYNONYMS: Final = {"average": "avg"}
