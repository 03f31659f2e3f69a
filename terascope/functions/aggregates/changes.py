"""count_diff: how often, in stream order, a value differs from the one before it.

As in GS-Lite the first value counts, so the result is the number of stretches of equal values.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from terascope.functions.base import AggregateFunction, Value
from terascope.functions.signatures import ANYTHING, expect
from terascope.functions.values import compare
from terascope.types import Type

State: TypeAlias = tuple[int, Value, Value]
"""Number of stretches, first value, last value."""


class CountDiff(AggregateFunction):
    name = "count_diff"
    ordered = True
    takes_held = True
    doc = "how often the value differs from the one before it; the first one counts"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        expect(self.name, args[: self.arity], ANYTHING)
        return Type.ULLONG

    def zero(self, *parameters: Value) -> State:
        return 0, None, None

    def reduce(self, state: State, *args: Value) -> State:
        (value,) = args
        return self.merge(state, (1, value, value))

    def merge(self, left: State, right: State) -> State:
        if not left[0] or not right[0]:
            return left if left[0] else right
        joined = compare(left[2], right[1]) == 0
        return left[0] + right[0] - int(joined), left[1], right[2]

    def finish(self, state: State, *parameters: Value) -> int:
        return state[0]


AGGREGATES: Final = (CountDiff(),)
