"""Numeric functions. Where the answer is not a finite number (a root of -1, a logarithm of 0) it is
NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from terascope.functions.base import Scalar, Value
from terascope.functions.operators import operators
from terascope.functions.roles import Magnitude, Remainder
from terascope.functions.signatures import (
    ANYTHING,
    INTEGER,
    NUMBER,
    builtin,
    known,
    signature,
    unified,
)
from terascope.functions.slopes import folding, rounded
from terascope.functions.spark_form import SparkArguments, SparkColumn, SparkScalar
from terascope.functions.values import finite, larger, smaller, truncated, whole
from terascope.types import Type

Number = int | float


def _to_whole(rounding: Callable[[float], int]) -> Callable[[Number], int | None]:
    def evaluate(value: Number) -> int | None:
        if isinstance(value, int):
            return value
        return truncated(float(rounding(value))) if math.isfinite(value) else None

    return evaluate


def _half_up(value: float) -> int:
    """To the nearest, halves away from zero, judged on the decimal digits a person sees."""
    return int(Decimal(repr(value)).to_integral_value(ROUND_HALF_UP))


def _real(function: Callable[..., float]) -> Callable[..., float | None]:
    """A function on FLOATs whose domain errors and infinities are NULL."""

    def evaluate(*args: Number) -> float | None:
        try:
            result = function(*map(float, args))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return finite(result)

    return evaluate


def _extreme(better: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    def evaluate(*args: Value) -> Value:
        best = None
        for value in args:
            if value is not None:
                best = value if best is None else better(best, value)
        return best

    return evaluate


def _typed_extreme(better: Callable[[Value, Value], Value], type_: Type) -> Callable[..., Value]:
    """The smaller or larger of two numbers, made to be of the type in the function's name."""

    def evaluate(left: Number, right: Number) -> Number | None:
        result: Number = better(left, right)
        if type_ is Type.FLOAT:
            return float(result)
        return truncated(result) if isinstance(result, float) else result

    return evaluate


# ---- in Spark ------------------------------------------------------------------------------------


def _spark_real(make: Callable[..., SparkColumn]) -> SparkScalar:
    """A function on FLOATs that is NULL where it has no finite value; NaN is above all numbers."""

    def column(call: SparkArguments) -> SparkColumn:
        value = make(call.F, *(c.cast("double") for c in call.columns))
        return call.F.when(call.F.abs(value) < call.F.lit(math.inf), value)

    return column


def _spark_power(F: Any, base: SparkColumn, exponent: SparkColumn) -> SparkColumn:
    """1 to any power is 1, infinities and NaN included, where Java says NaN."""
    known = base.isNotNull() & exponent.isNotNull()
    turns = (base == F.lit(-1.0)) & (F.abs(exponent) == F.lit(math.inf))
    one = (base == F.lit(1.0)) | turns
    return F.when(known & one, F.lit(1.0)).otherwise(F.pow(base, exponent))


def _spark_whole(rounding: Callable[..., SparkColumn]) -> SparkScalar:
    def column(call: SparkArguments) -> SparkColumn:
        F, (value,) = call.F, call.columns
        if call.operands[0].type is not Type.FLOAT:
            return value.cast("bigint")
        fits = (value >= F.lit(-(2.0**63))) & (value < F.lit(2.0**63))
        return F.when(fits, rounding(F, F.when(fits, value)).cast("bigint"))

    return column


def _spark_typed_extreme(better: Callable[[SparkColumn, SparkColumn], SparkColumn]) -> SparkScalar:
    """The better one of two numbers, made to be of the result's type; an integer and a FLOAT are
    compared as FLOATs, but an integer that is chosen keeps all its digits.
    """

    def column(call: SparkArguments) -> SparkColumn:
        left, right = call.unified
        of_float = call.type is Type.FLOAT
        exact = [c.cast("double") if of_float else c.try_cast("bigint") for c in call.columns]
        chosen = call.F.when(better(right, left), exact[1]).otherwise(exact[0])
        return call.F.when(left.isNotNull() & right.isNotNull(), chosen)

    return column


# ---- the functions -------------------------------------------------------------------------------


@builtin(NUMBER, returns=lambda args: known(args[0], Type.INT), role=Magnitude())
def abs_(value: Number) -> Number:
    """The number without its sign."""
    return abs(value) if isinstance(value, float) else whole(abs(value), f"abs({value})")


def _spark_sign(call: SparkArguments) -> SparkColumn:
    F, (value,), zero = call.F, call.columns, call.number(0)
    negative = F.when(value < zero, call.number(-1)).when(value == zero, zero)
    positive = value > zero
    if call.operands[0].type is Type.FLOAT:
        positive = positive & ~F.isnan(value)
    return negative.when(positive, call.number(1))


@builtin(NUMBER, returns=Type.INT, spark=_spark_sign)
def sign(value: Number) -> int | None:
    """-1, 0 or 1."""
    return None if math.isnan(value) else int(value > 0) - int(value < 0)


def _spark_round(call: SparkArguments) -> SparkColumn | None:
    """Only integers: a FLOAT is rounded on its shortest decimal digits, which Python knows."""
    first, *places = call.operands
    keeps = not places or (places[0].constant and (places[0].value or -1) >= 0)
    return first.column if first.type.is_integer and keeps else None


@builtin(
    NUMBER,
    INTEGER,
    returns=lambda args: known(args[0], Type.INT) if len(args) > 1 else Type.LLONG,
    optional=1,
    spark=_spark_round,
)
def round_(value: Number, places: int | None = None) -> Number | None:
    """round(x) to the nearest integer, round(x, n) to n decimal places; halves away from 0."""
    if places is None:
        return _to_whole(_half_up)(value)
    if isinstance(value, int) and places >= 0:
        return value
    if not math.isfinite(value) or places > 400:
        return value
    if places < -400:
        return 0 if isinstance(value, int) else 0.0
    result = Decimal(repr(value)).scaleb(places).to_integral_value(ROUND_HALF_UP).scaleb(-places)
    return whole(int(result), "round") if isinstance(value, int) else float(result)


def _real_scalar(
    name: str,
    function: Callable[..., float],
    in_spark: Callable[..., SparkColumn],
    arity: int,
    doc: str,
) -> Scalar:
    rule = signature(name, *(NUMBER,) * arity, returns=Type.FLOAT)
    return Scalar(name, rule, _real(function), cost_ns=20, spark=_spark_real(in_spark), doc=doc)


def _whole_scalar(
    name: str,
    rounding: Callable[[float], int],
    in_spark: Callable[..., SparkColumn],
    doc: str,
) -> Scalar:
    evaluate = _to_whole(rounding)
    return Scalar(
        name,
        signature(name, NUMBER, returns=Type.LLONG),
        evaluate,
        slope=folding(evaluate, rounded),
        spark=_spark_whole(in_spark),
        doc=doc,
    )


def _choice(
    name: str,
    better: Callable[[Value, Value], Value],
    in_spark: Callable[..., SparkColumn],
    doc: str,
) -> Scalar:
    return Scalar(
        name,
        signature(name, ANYTHING, returns=lambda args: unified(name, args), repeated=True),
        _extreme(better),
        strict=False,
        unified_from=0,
        takes_held=True,
        spark=lambda call: (
            in_spark(call.F, *call.alike) if len(call.operands) > 1 else call.alike[0]
        ),
        doc=doc,
    )


_REAL: Final = (
    ("sqrt", math.sqrt, lambda F, x: F.sqrt(x), 1, "square root"),
    ("pow", math.pow, _spark_power, 2, "pow(x, y): x to the power of y"),
    ("exp", math.exp, lambda F, x: F.exp(x), 1, "e to the power of x"),
    ("log", math.log, lambda F, x: F.ln(x), 1, "natural logarithm"),
    ("log2", math.log2, lambda F, x: F.log2(x), 1, "logarithm to base 2"),
    ("log10", math.log10, lambda F, x: F.log10(x), 1, "logarithm to base 10"),
    ("sin", math.sin, lambda F, x: F.sin(x), 1, "sine of an angle in radians"),
    ("cos", math.cos, lambda F, x: F.cos(x), 1, "cosine of an angle in radians"),
    ("tan", math.tan, lambda F, x: F.tan(x), 1, "tangent of an angle in radians"),
    ("asin", math.asin, lambda F, x: F.asin(x), 1, "arc sine, in radians"),
    ("acos", math.acos, lambda F, x: F.acos(x), 1, "arc cosine, in radians"),
    ("atan", math.atan, lambda F, x: F.atan(x), 1, "arc tangent, in radians"),
    (
        "fmod",
        math.fmod,
        lambda F, x, y: x % F.nullif(y, F.lit(0.0)),
        2,
        "fmod(x, y): remainder of x / y with the sign of x",
    ),
)

_NAMED_EXTREMES: Final = (
    ("ull", Type.ULLONG),
    ("ll", Type.LLONG),
    ("u", Type.UINT),
    ("l", Type.INT),
    ("f", Type.FLOAT),
)

SCALARS: Final = (
    _whole_scalar("floor", math.floor, lambda F, x: F.floor(x), "the largest integer not above x"),
    _whole_scalar("ceil", math.ceil, lambda F, x: F.ceil(x), "the smallest integer not below x"),
    _whole_scalar("trunc", math.trunc, lambda F, x: x, "the integer part of x"),
    *(_real_scalar(*row) for row in _REAL),
    _choice("least", smaller, lambda F, *c: F.least(*c), "the smallest argument that is not NULL"),
    _choice(
        "greatest", larger, lambda F, *c: F.greatest(*c), "the largest argument that is not NULL"
    ),
    *(
        Scalar(
            short + word,
            signature((short + word).upper(), NUMBER, NUMBER, returns=type_),
            _typed_extreme(better, type_),
            spark=_spark_typed_extreme(in_spark),
            doc=f"the {adjective} of two numbers, as {type_.label}",
        )
        for short, type_ in _NAMED_EXTREMES
        for word, better, in_spark, adjective in (
            ("min", smaller, operator.lt, "smaller"),
            ("max", larger, operator.gt, "larger"),
        )
    ),
    Scalar(
        "mod",
        operators["%"].type_rule,
        operators["%"].evaluate,
        slope=operators["%"].slope,
        role=Remainder(),
        doc="mod(x, y): x % y",
    ),
)

SYNONYMS: Final = {"ln": "log", "power": "pow", "ceiling": "ceil"}
