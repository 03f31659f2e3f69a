"""Numeric functions. Where the answer is not a finite number (a root of -1, a logarithm of 0) it is
NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from terascope.functions.base import Scalar, Value
from terascope.functions.operators import operators
from terascope.functions.signatures import ANYTHING, INTEGER, NUMBER, known, signature, unified
from terascope.functions.slopes import folding, rounded
from terascope.functions.values import finite, larger, smaller, truncated, whole
from terascope.types import Type

Number = int | float


def _abs(value: Number) -> Number:
    return abs(value) if isinstance(value, float) else whole(abs(value), f"abs({value})")


def _sign(value: Number) -> int | None:
    return None if math.isnan(value) else int(value > 0) - int(value < 0)


def _to_whole(rounding: Callable[[float], int]) -> Callable[[Number], int | None]:
    def evaluate(value: Number) -> int | None:
        if isinstance(value, int):
            return value
        return truncated(float(rounding(value))) if math.isfinite(value) else None

    return evaluate


def _half_up(value: float) -> int:
    """To the nearest, halves away from zero, judged on the decimal digits a person sees."""
    return int(Decimal(repr(value)).to_integral_value(ROUND_HALF_UP))


def _round(value: Number, places: int | None = None) -> Number | None:
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


def _real_scalar(name: str, function: Callable[..., float], arity: int, doc: str) -> Scalar:
    rule = signature(name, *(NUMBER,) * arity, returns=Type.FLOAT)
    return Scalar(name, rule, _real(function), cost_ns=20, doc=doc)


def _whole_scalar(name: str, rounding: Callable[[float], int], doc: str) -> Scalar:
    evaluate = _to_whole(rounding)
    rule = signature(name, NUMBER, returns=Type.LLONG)
    return Scalar(name, rule, evaluate, slope=folding(evaluate, rounded), doc=doc)


def _choice(name: str, better: Callable[[Value, Value], Value], doc: str) -> Scalar:
    rule = signature(name, ANYTHING, returns=lambda args: unified(name, args), repeated=True)
    return Scalar(
        name, rule, _extreme(better), strict=False, unified_from=0, takes_held=True, doc=doc
    )


_REAL: Final = (
    ("sqrt", math.sqrt, 1, "square root"),
    ("pow", math.pow, 2, "pow(x, y): x to the power of y"),
    ("exp", math.exp, 1, "e to the power of x"),
    ("log", math.log, 1, "natural logarithm"),
    ("log2", math.log2, 1, "logarithm to base 2"),
    ("log10", math.log10, 1, "logarithm to base 10"),
    ("sin", math.sin, 1, "sine of an angle in radians"),
    ("cos", math.cos, 1, "cosine of an angle in radians"),
    ("tan", math.tan, 1, "tangent of an angle in radians"),
    ("asin", math.asin, 1, "arc sine, in radians"),
    ("acos", math.acos, 1, "arc cosine, in radians"),
    ("atan", math.atan, 1, "arc tangent, in radians"),
    ("fmod", math.fmod, 2, "fmod(x, y): remainder of x / y with the sign of x"),
)

_NAMED_EXTREMES: Final = (
    ("ull", Type.ULLONG),
    ("ll", Type.LLONG),
    ("u", Type.UINT),
    ("l", Type.INT),
    ("f", Type.FLOAT),
)

SCALARS: Final = (
    Scalar(
        "abs",
        signature("abs", NUMBER, returns=lambda args: known(args[0], Type.INT)),
        _abs,
        doc="the number without its sign",
    ),
    Scalar(
        "sign",
        signature("sign", NUMBER, returns=Type.INT),
        _sign,
        doc="-1, 0 or 1",
    ),
    _whole_scalar("floor", math.floor, "the largest integer not above x"),
    _whole_scalar("ceil", math.ceil, "the smallest integer not below x"),
    _whole_scalar("trunc", math.trunc, "the integer part of x"),
    Scalar(
        "round",
        signature(
            "round",
            NUMBER,
            INTEGER,
            returns=lambda args: known(args[0], Type.INT) if len(args) > 1 else Type.LLONG,
            optional=1,
        ),
        _round,
        doc="round(x) to the nearest integer, round(x, n) to n decimal places; halves away from 0",
    ),
    *(_real_scalar(*row) for row in _REAL),
    _choice("least", smaller, "the smallest argument that is not NULL"),
    _choice("greatest", larger, "the largest argument that is not NULL"),
    *(
        Scalar(
            short + word,
            signature((short + word).upper(), NUMBER, NUMBER, returns=type_),
            _typed_extreme(better, type_),
            doc=f"the {adjective} of two numbers, as {type_.label}",
        )
        for short, type_ in _NAMED_EXTREMES
        for word, better, adjective in (("min", smaller, "smaller"), ("max", larger, "larger"))
    ),
    Scalar(
        "mod",
        operators["%"].type_rule,
        operators["%"].evaluate,
        slope=operators["%"].slope,
        doc="mod(x, y): x % y",
    ),
)

SYNONYMS: Final = {"ln": "log", "power": "pow", "ceiling": "ceil"}
