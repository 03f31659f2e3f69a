"""Expr -> Column.

In: an expression and the Columns of the relation it stands over. Out: its Column: native for
operators, CASE, CAST and the common functions, an Arrow UDF for functions that exist in Python
only. Constant expressions are computed here, once; constants stay in a UDF and are not sent with
each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.aggregates.float_sums import FLOAT_TOTAL
from terascope.functions.base import Value, ValueMistake
from terascope.functions.members import Members
from terascope.functions.spark_form import Operand, SparkArguments
from terascope.plan.evaluate import Parameters, compile_expr, constant_value
from terascope.plan.expr import (
    Bound,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Lit,
    Param,
    columns_of,
    is_constant,
)
from terascope.spark.catalyst.casts import native_cast, range_checked
from terascope.spark.catalyst.float_sums import float_total
from terascope.spark.catalyst.frame import arrow_function, changing, literal, null
from terascope.spark.catalyst.operators import spark_form
from terascope.spark.mistakes import telling
from terascope.types import Type


@dataclass(frozen=True)
class Translated:
    """A Column, and whether Spark computes it without Python."""

    column: Column
    native: bool = True


@dataclass(frozen=True)
class Translator:
    """Translates expressions over one relation."""

    scope: Mapping[str, Column]
    parameters: Parameters

    def column(self, expr: Expr) -> Column:
        return self.translate(expr).column

    def typed(self, expr: Expr, type: Type) -> Column:
        """The Column, converted to the wider type that it was unified to."""
        return cast(Column, Operand(self.column(expr), expr.type).alike(type))

    def translate(self, expr: Expr) -> Translated:
        is_known, value = self.constant(expr)
        match expr:
            case Col(name):
                return Translated(self.scope[name])
            case Bound(value=int(bound)):
                return Translated(changing(bound))
            case Lit(value=Members()):
                return Translated(null(Type.NULL))  # a function of a list takes the constant itself
            case Lit() | Param():
                return Translated(literal(value, expr.type))
            case _ if is_known:
                return Translated(literal(value, expr.type))
            case Call():
                return self.call(expr)
            case Case():
                return self.case(expr)
            case Cast():
                return self.cast(expr)
            case _:
                assert_never(expr)

    def constant(self, expr: Expr) -> tuple[bool, Value]:
        """Whether an expression has one value for all rows, and that value. One that fails is left
        in place, because a CASE may never evaluate it.
        """
        if not is_constant(expr):
            return False, None
        try:
            return True, constant_value(expr, self.parameters)
        except ValueMistake:
            return False, None

    def operand(self, expr: Expr) -> tuple[Operand, bool]:
        translated = self.translate(expr)
        return Operand(translated.column, expr.type, *self.constant(expr)), translated.native

    def call(self, expr: Call) -> Translated:
        pairs = [self.operand(arg) for arg in expr.args]
        operands = tuple(operand for operand, _ in pairs)
        column = native_call(expr, operands)
        if column is None:
            where = f"function {expr.function.name}"
            return Translated(outer_in_python(expr, operands, where), False)
        return Translated(column, all(native for _, native in pairs))

    def case(self, expr: Case) -> Translated:
        branches = [(self.translate(w), *self.operand(t)) for w, t in expr.branches]
        otherwise, native = self.operand(expr.otherwise)
        if not (native and all(when.native and then for when, _, then in branches)):
            # A CASE that guards a Python function must not call it for the rows that take another
            # branch, but Spark calls UDFs for every row.
            return Translated(in_python(expr, self.scope, self.parameters, "CASE"), False)
        (first, value, _), *others = branches
        column = F.when(first.column, value.alike(expr.type))
        for when, then, _ in others:
            column = column.when(when.column, then.alike(expr.type))
        return Translated(column.otherwise(otherwise.alike(expr.type)))

    def cast(self, expr: Cast) -> Translated:
        operand, native = self.operand(expr.operand)
        column = native_cast(operand, expr.type)
        if column is None:
            where = f"CAST AS {expr.type.label}"
            return Translated(outer_in_python(expr, [operand], where), False)
        if expr.checks_range:
            column = range_checked(column, expr.type)
        written = operand.type.is_address and expr.type is Type.STRING
        return Translated(column, native and not written)


def native_call(expr: Call, operands: tuple[Operand, ...]) -> Column | None:
    """The Column of a call; None when it exists in Python only."""
    form = float_total if expr.function == FLOAT_TOTAL else spark_form(expr.function)
    try:
        return None if form is None else form(SparkArguments(F, operands, expr.type))
    except ValueMistake:
        # A constant that cannot be meant: Python says so when, and if, it is reached.
        return None


def outer_in_python(expr: Call | Cast, operands: Sequence[Operand], where: str) -> Column:
    """A call or a cast in Python, over the Columns of its arguments. Constants are not sent with
    each row.
    """
    args: list[Expr] = [
        Lit(o.value, o.type) if o.constant else Col(f"#{i}", o.type) for i, o in enumerate(operands)
    ]
    outer: Expr = (
        replace(expr, args=tuple(args))
        if isinstance(expr, Call)
        else replace(expr, operand=args[0])
    )
    return in_python(outer, {f"#{i}": o.column for i, o in enumerate(operands)}, {}, where)


def in_python(
    expr: Expr, scope: Mapping[str, Column], parameters: Parameters, where: str
) -> Column:
    """The value of an expression for each row; `where` names it in messages."""
    names = tuple(sorted(columns_of(expr)))
    evaluate, result_type = compile_expr(expr, names, parameters), arrow_type(expr.type)

    def on_arrays(*arrays: pa.Array) -> pa.Array:
        with telling(where):
            rows = zip(*(array.to_pylist() for array in arrays), strict=True)
            return pa.array([evaluate(row) for row in rows], result_type)

    return arrow_function(on_arrays, expr.type)(*(scope[name] for name in names))
