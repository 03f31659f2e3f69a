"""Variance and standard deviation, from one mergeable state.

The state is (count, origin, mean, sum of squared deviations), the mean counted from the origin,
the first value: a nanosecond clock has no room for its digits in a FLOAT, its differences do. Two
states merge after Chan, Golub and LeVeque (1979), which never subtracts large sums of squares.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, TypeAlias

from terascope.functions.base import Aggregate, Value
from terascope.functions.signatures import NUMBER, expect
from terascope.types import Type

State: TypeAlias = tuple[int, int | float, float, float]


class Spread(Aggregate):
    """What the four share; `sample` divides by n - 1 instead of n, `root` takes the square root."""

    kind = "algebraic"
    sampling = "keep"
    sample: ClassVar[bool]
    root: ClassVar[bool]

    @property
    def state_name(self) -> str:
        return "moments"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        expect(self.name, args[: self.arity], NUMBER)
        return Type.FLOAT

    def zero(self, *parameters: Value) -> State:
        return 0, 0, 0.0, 0.0

    def reduce(self, state: State, *args: Value) -> State:
        (value,) = args
        count, origin, mean, squares = state
        if not count:
            return 1, value, 0.0, 0.0
        place = float(value - origin)
        away = place - mean
        mean += away / (count + 1)
        return count + 1, origin, mean, squares + away * (place - mean)

    def merge(self, left: State, right: State) -> State:
        if not left[0] or not right[0]:
            return left if left[0] else right
        count = left[0] + right[0]
        away = float(right[1] - left[1]) + right[2] - left[2]
        mean = left[2] + away * (right[0] / count)
        squares = left[3] + right[3] + away * away * (left[0] * (right[0] / count))
        return count, left[1], mean, squares

    def finish(self, state: State, *parameters: Value) -> float | None:
        count, _, _, squares = state
        degrees = count - 1 if self.sample else count
        if degrees < 1:
            return None
        variance = squares / degrees
        return math.sqrt(variance) if self.root else variance


class SampleVariance(Spread):
    name = "var_samp"
    sample, root = True, False
    doc = "variance of a sample (n - 1); NULL for fewer than two values"


class PopulationVariance(Spread):
    name = "var_pop"
    sample, root = False, False
    doc = "variance of a whole population (n)"


class SampleDeviation(Spread):
    name = "stddev_samp"
    sample, root = True, True
    doc = "standard deviation of a sample (n - 1); NULL for fewer than two values"


class PopulationDeviation(Spread):
    name = "stddev_pop"
    sample, root = False, True
    doc = "standard deviation of a whole population (n)"


AGGREGATES: Final = (
    SampleVariance(),
    PopulationVariance(),
    SampleDeviation(),
    PopulationDeviation(),
)
SYNONYMS: Final = {
    "var": "var_samp",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
}
