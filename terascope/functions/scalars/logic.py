"""Choices between values, comparisons that give numbers, and casts of properties."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from terascope.functions.base import Scalar, Value
from terascope.functions.operators import operators
from terascope.functions.roles import Conditional
from terascope.functions.signatures import ANYTHING, CONDITION, INTEGER, builtin, unified
from terascope.functions.spark_form import SparkArguments, SparkColumn
from terascope.functions.values import compare
from terascope.types import Type


def _as_number(
    name: str, symbol: str, in_spark: Callable[[SparkColumn, SparkColumn], SparkColumn]
) -> Scalar:
    compared: Callable[[Value, Value], bool] = operators[symbol].evaluate
    type_rule = operators[symbol].type_rule

    def rule(args: tuple[Type, ...]) -> Type:
        type_rule(args)
        return Type.UINT

    return Scalar(
        name,
        rule,
        lambda a, b: int(compared(a, b)),
        cost_ns=3,
        spark=lambda call: in_spark(*call.unified).cast("bigint"),
        doc=f"1 when x {symbol} y, else 0",
    )


def _spark_if(call: SparkArguments) -> SparkColumn:
    condition, holds = call.operands[0], call.columns[0]
    if condition.type is not Type.BOOL:
        holds = holds.cast("bigint") != call.number(0)
    return call.F.when(holds, call.alike[1]).otherwise(call.alike[2])


@builtin(
    CONDITION, ANYTHING, ANYTHING, returns=lambda args: unified("IF", args[1:]), written="IF",
    strict=False, unified_from=1, takes_held=True, role=Conditional(), spark=_spark_if,
)  # fmt: skip
def if_(condition: Value, then: Value, otherwise: Value) -> Value:
    """IF(condition, x, y): x when the condition is TRUE or not 0, else y. NULL counts as false, as
    it does in WHERE.
    """
    return then if condition else otherwise


@builtin(
    ANYTHING, ANYTHING, returns=lambda args: unified("NULLIF", args), written="NULLIF",
    strict=False, unified_from=0, takes_held=True, spark=lambda call: call.F.nullif(*call.unified),
)  # fmt: skip
def nullif(value: Value, other: Value) -> Value:
    """NULLIF(x, y): NULL when the two are equal, else x."""
    if value is None or other is None:
        return value
    return None if compare(value, other) == 0 else value


@builtin(INTEGER, returns=Type.UINT)
def endian_swap_ui(value: int) -> int:
    """The lowest 32 bits with their four bytes in the other order."""
    return int.from_bytes((value & 0xFFFFFFFF).to_bytes(4, "big"), "little")


def _spark_itself(call: SparkArguments) -> SparkColumn:
    (operand,) = call.operands
    return operand.column if operand.type is not Type.NULL else call.null(call.type)


@builtin(ANYTHING, returns=lambda args: args[0], takes_held=True, cost_ns=0, spark=_spark_itself)
def non_temporal(value: Value) -> Value:
    """The value itself, no longer known to be ordered."""
    return value


SCALARS: Final = (
    operators["coalesce"],
    _as_number("eq", "=", operator.eq),
    _as_number("geq", ">=", operator.ge),
    _as_number("ge", ">", operator.gt),
    _as_number("leq", "<=", operator.le),
    _as_number("le", "<", operator.lt),
)
SYNONYMS: Final = {f"if_else_{suffix}": "if" for suffix in ("i", "u", "ll", "ul", "f")} | {
    "if_else": "if",
    "iff": "if",
    "ifnull": "coalesce",
}
