"""Numeric functions. Where the answer is not a finite number (a root of -1, a logarithm of 0) it is
NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Any, Final

from terascope.functions.base import Scalar, Value
from terascope.functions.operators import operators
from terascope.functions.roles import Magnitude
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
from terascope.functions.spark_form import SparkArguments, SparkColumn
from terascope.functions.values import finite, larger, smaller, truncated, whole
from terascope.types import Type

Number = int | float


# ---- the nearest integer -------------------------------------------------------------------------


def _to_whole(rounding: Callable[[float], int], value: Number) -> int | None:
    if isinstance(value, int):
        return value
    return truncated(float(rounding(value))) if math.isfinite(value) else None


def _whole(name: str, doc: str) -> Scalar:
    """A rounding that `math` has, to an integer."""
    rounding = getattr(math, name)

    def evaluate(value: Number) -> int | None:
        return _to_whole(rounding, value)

    def column(call: SparkArguments) -> SparkColumn:
        F, (value,) = call.F, call.columns
        if call.operands[0].type is not Type.FLOAT:
            return value.cast("bigint")
        fits = (value >= F.lit(-(2.0**63))) & (value < F.lit(2.0**63))
        found = F.when(fits, value)
        if name != "trunc":  # which is what the cast does
            found = getattr(F, name)(found)
        return F.when(fits, found.cast("bigint"))

    rule = signature(name, NUMBER, returns=Type.LLONG)
    return Scalar(name, rule, evaluate, slope=folding(evaluate, rounded), spark=column, doc=doc)


def _half_up(value: float) -> int:
    """Rounds to the nearest integer, halves away from zero, by the digits that a person sees."""
    return int(Decimal(repr(value)).to_integral_value(ROUND_HALF_UP))


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
        return _to_whole(_half_up, value)
    if isinstance(value, int) and places >= 0:
        return value
    if not math.isfinite(value) or places > 400:
        return value
    if places < -400:
        return 0 if isinstance(value, int) else 0.0
    result = Decimal(repr(value)).scaleb(places).to_integral_value(ROUND_HALF_UP).scaleb(-places)
    return whole(int(result), "round") if isinstance(value, int) else float(result)


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


# ---- functions on FLOATs -------------------------------------------------------------------------


def _real(
    name: str, doc: str, arity: int = 1, in_spark: Callable[..., SparkColumn] | None = None
) -> Scalar:
    """A function of `math` whose domain errors and infinities are NULL. Spark has it under the same
    name, unless `in_spark` says otherwise.
    """
    function = getattr(math, name)

    def evaluate(*args: Number) -> float | None:
        try:
            return finite(function(*map(float, args)))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    def column(call: SparkArguments) -> SparkColumn:
        F, columns = call.F, [column.cast("double") for column in call.columns]
        value = in_spark(F, *columns) if in_spark else getattr(F, name)(*columns)
        return F.when(F.abs(value) < F.lit(math.inf), value)  # NaN is above all numbers

    rule = signature(name, *(NUMBER,) * arity, returns=Type.FLOAT)
    return Scalar(name, rule, evaluate, cost_ns=20, spark=column, doc=doc)


def _spark_power(F: Any, base: SparkColumn, exponent: SparkColumn) -> SparkColumn:
    """1 to any power is 1, infinities and NaN included, where Java says NaN."""
    known = base.isNotNull() & exponent.isNotNull()
    turns = (base == F.lit(-1.0)) & (F.abs(exponent) == F.lit(math.inf))
    one = (base == F.lit(1.0)) | turns
    return F.when(known & one, F.lit(1.0)).otherwise(F.pow(base, exponent))


# ---- the smaller and the larger ------------------------------------------------------------------


def _extreme(name: str, better: Callable[[Value, Value], Value], doc: str) -> Scalar:
    def evaluate(*args: Value) -> Value:
        values = [value for value in args if value is not None]
        return reduce(better, values) if values else None

    def column(call: SparkArguments) -> SparkColumn:
        return getattr(call.F, name)(*call.alike) if len(call.operands) > 1 else call.alike[0]

    rule = signature(name, ANYTHING, returns=lambda args: unified(name, args), repeated=True)
    return Scalar(
        name, rule, evaluate, strict=False, unified_from=0, takes_held=True, spark=column, doc=doc
    )


def _typed_extreme(short: str, type_: Type, is_larger: bool) -> Scalar:
    """The better one of two numbers, made to be of the type in the function's name."""
    name = f"{short}{'max' if is_larger else 'min'}"

    def evaluate(left: Number, right: Number) -> Number | None:
        result: Number = larger(left, right) if is_larger else smaller(left, right)
        if type_ is Type.FLOAT:
            return float(result)
        return truncated(result) if isinstance(result, float) else result

    def column(call: SparkArguments) -> SparkColumn:
        """An integer and a FLOAT are compared as FLOATs, but an integer that is chosen keeps all
        its digits.
        """
        left, right = call.unified
        of_float = call.type is Type.FLOAT
        exact = [c.cast("double") if of_float else c.try_cast("bigint") for c in call.columns]
        better = operator.gt if is_larger else operator.lt
        chosen = call.F.when(better(right, left), exact[1]).otherwise(exact[0])
        return call.F.when(left.isNotNull() & right.isNotNull(), chosen)

    doc = f"the {'larger' if is_larger else 'smaller'} of two numbers, as {type_.label}"
    rule = signature(name.upper(), NUMBER, NUMBER, returns=type_)
    return Scalar(name, rule, evaluate, spark=column, doc=doc)


_NAMED_EXTREMES: Final = (
    ("ull", Type.ULLONG),
    ("ll", Type.LLONG),
    ("u", Type.UINT),
    ("l", Type.INT),
    ("f", Type.FLOAT),
)

SCALARS: Final = (
    _whole("floor", "the largest integer not above x"),
    _whole("ceil", "the smallest integer not below x"),
    _whole("trunc", "the integer part of x"),
    _real("sqrt", "square root"),
    _real("pow", "pow(x, y): x to the power of y", 2, _spark_power),
    _real("exp", "e to the power of x"),
    _real("log", "natural logarithm"),
    _real("log2", "logarithm to base 2"),
    _real("log10", "logarithm to base 10"),
    _real("sin", "sine of an angle in radians"),
    _real("cos", "cosine of an angle in radians"),
    _real("tan", "tangent of an angle in radians"),
    _real("asin", "arc sine, in radians"),
    _real("acos", "arc cosine, in radians"),
    _real("atan", "arc tangent, in radians"),
    _real(
        "fmod", "fmod(x, y): remainder of x / y with the sign of x", 2,
        lambda F, x, y: x % F.nullif(y, F.lit(0.0)),
    ),
    _extreme("least", smaller, "the smallest argument that is not NULL"),
    _extreme("greatest", larger, "the largest argument that is not NULL"),
    *(_typed_extreme(*row, is_larger) for row in _NAMED_EXTREMES for is_larger in (False, True)),
    replace(operators["%"], name="mod", cost_ns=5, doc="mod(x, y): x % y"),
)  # fmt: skip

SYNONYMS: Final = {"ln": "log", "power": "pow", "ceiling": "ceil"}
