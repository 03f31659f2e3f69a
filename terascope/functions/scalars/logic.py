"""Choices between values, comparisons that give numbers, and casts of properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from terascope.functions.base import UNORDERED, Scalar, Slope, Value
from terascope.functions.operators import operators
from terascope.functions.signatures import ANYTHING, CONDITION, INTEGER, signature, unified
from terascope.functions.values import compare
from terascope.types import Type


def _if(condition: Value, then: Value, otherwise: Value) -> Value:
    """NULL counts as false, as it does in WHERE."""
    return then if condition else otherwise


def _nullif(value: Value, other: Value) -> Value:
    if value is None or other is None:
        return value
    return None if compare(value, other) == 0 else value


def _swapped(value: int) -> int:
    return int.from_bytes((value & 0xFFFFFFFF).to_bytes(4, "big"), "little")


def _forget_order(_: Sequence[Slope]) -> Slope:
    return UNORDERED


def _as_number(name: str, operator: str, words: str) -> Scalar:
    compared: Callable[[Value, Value], bool] = operators[operator].evaluate
    type_rule = operators[operator].type_rule

    def rule(args: tuple[Type, ...]) -> Type:
        type_rule(args)
        return Type.UINT

    return Scalar(
        name, rule, lambda a, b: int(compared(a, b)), cost_ns=3, doc=f"1 when x {words} y, else 0"
    )


SCALARS: Final = (
    operators["coalesce"],
    Scalar(
        "if",
        signature(
            "IF", CONDITION, ANYTHING, ANYTHING, returns=lambda args: unified("IF", args[1:])
        ),
        _if,
        strict=False,
        unified_from=1,
        takes_held=True,
        doc="IF(condition, x, y): x when the condition is TRUE or not 0, else y",
    ),
    Scalar(
        "nullif",
        signature("NULLIF", ANYTHING, ANYTHING, returns=lambda args: unified("NULLIF", args)),
        _nullif,
        strict=False,
        unified_from=0,
        takes_held=True,
        doc="NULLIF(x, y): NULL when the two are equal, else x",
    ),
    _as_number("eq", "=", "="),
    _as_number("geq", ">=", ">="),
    _as_number("ge", ">", ">"),
    _as_number("leq", "<=", "<="),
    _as_number("le", "<", "<"),
    Scalar(
        "endian_swap_ui",
        signature("endian_swap_ui", INTEGER, returns=Type.UINT),
        _swapped,
        doc="the lowest 32 bits with their four bytes in the other order",
    ),
    Scalar(
        "non_temporal",
        signature("non_temporal", ANYTHING, returns=lambda args: args[0]),
        lambda value: value,
        slope=_forget_order,
        takes_held=True,
        cost_ns=0,
        doc="x itself, no longer known to be ordered",
    ),
)

SYNONYMS: Final = {f"if_else_{suffix}": "if" for suffix in ("i", "u", "ll", "ul", "f")} | {
    "if_else": "if",
    "iff": "if",
    "ifnull": "coalesce",
}
