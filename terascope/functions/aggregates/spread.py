"""Variance and standard deviation, from one mergeable state.

The state is exact: the count, the sum and the sum of squares as integers, of FLOATs in units of
2^-1074 and of 2^-2148 (terascope.functions.exact_floats). So it does not depend on the order of
values, and nothing is lost where they are far from zero, as nanosecond clocks are. The variance is
rounded once, and the deviation is the root of that.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, TypeAlias

import pyarrow as pa

from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.base import Value
from terascope.functions.exact_floats import UNIT_EXPONENT, exact, ratio
from terascope.functions.signatures import NUMBER
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.sketches.base import StateKind
from terascope.sketches.float_moments import FLOAT_MOMENTS, moments_of
from terascope.sketches.moment_answers import spread_column
from terascope.sketches.moments import INTEGER_MOMENTS
from terascope.types import Type

Moments: TypeAlias = tuple[int, int, int, int, bool]
"""Count, sum, sum of squares, flags of values that are not finite, and whether these are FLOATs."""


def moments(value: int | float) -> Moments:
    """The moments of one value."""
    if isinstance(value, float):
        units, flags = exact(value)
        return 1, units, units * units, flags, True
    return 1, value, value * value, 0, False


def moments_together(left: Moments, right: Moments) -> Moments:
    return (
        left[0] + right[0],
        left[1] + right[1],
        left[2] + right[2],
        left[3] | right[3],
        left[4] or right[4],
    )


class Spread(PlainAggregate):
    """The base of all four: `sample` divides by n - 1 instead of n, `root` takes the root."""

    takes = (NUMBER,)
    returns = Type.FLOAT
    kind = "algebraic"
    sampling = "keep"
    adds_floats = "moments"
    sample: ClassVar[bool]
    root: ClassVar[bool]

    def zero(self, *parameters: Value) -> Moments:
        return 0, 0, 0, 0, False

    def reduce(self, state: Moments, *args: Value) -> Moments:
        return moments_together(state, moments(args[0]))

    def merge(self, left: Moments, right: Moments) -> Moments:
        return moments_together(left, right)

    def is_state(self, state: Value) -> bool:
        return isinstance(state, tuple) and len(state) == 5

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return FLOAT_MOMENTS if args[0] is Type.FLOAT else INTEGER_MOMENTS

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return None if packed is None else self.finish(moments_of(packed))

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        return spread_column(packed, self.sample, self.root, self.finish_state)

    def spark(self, call: SparkCall) -> SparkForm | None:
        return None if call.distinct else call.moments(self.finish)

    def finish(self, state: Moments, *parameters: Value) -> float | None:
        count, total, squares, flags, floats = state
        degrees = count - 1 if self.sample else count
        if degrees < 1:
            return None
        if flags:
            return math.nan
        unit = 1 << (-2 * UNIT_EXPONENT) if floats else 1
        variance = ratio(count * squares - total * total, count * degrees * unit)
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


SYNONYMS: Final = {
    "var": "var_samp",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
}
