"""Expr -> Column.

In: an expression and the Columns of the relation it stands over. Out: its Column: native for
operators, CASE, CAST and the common functions, an Arrow UDF for functions that exist in Python
only. Constant expressions are computed here, once; constants stay in a UDF and are not sent with
each row.

CAST has the meaning of terascope.functions.casts. Spark's own casts accept more texts and stop the
run where GSQL gives NULL, so a pattern decides first which texts are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import assert_never, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.aggregates.float_sums import FLOAT_TOTAL
from terascope.functions.base import Value, ValueMistake
from terascope.functions.casts import IPV4_MAX, TRUTH
from terascope.functions.members import Members
from terascope.functions.spark_form import Operand, SparkArguments, SparkColumn, sql_type
from terascope.kernels.encode.text import address_text
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
from terascope.spark.catalyst.float_sums import float_total
from terascope.spark.catalyst.frame import (
    WIDE,
    arrow_function,
    changing,
    flipped,
    literal,
    null,
    number,
)
from terascope.spark.catalyst.operators import ipv4_address, ipv4_number, is_ipv4, spark_form
from terascope.spark.mistakes import telling
from terascope.types import BIAS, INT_MIN, WIDE_MAX, Type, value_range

BLANK = "[ \\t\\n\\r\\f\\x{b}]*"
INTEGER_TEXT = f"\\A{BLANK}[+-]?[0-9]+{BLANK}\\z"
NUMBER_TEXT = f"\\A{BLANK}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?{BLANK}\\z"
BLANKS = " \t\n\r\f\x0b"


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


# ---- casts ---------------------------------------------------------------------------------------


def range_checked(value: Column, target: Type) -> Column:
    """An integer that is in the range of an unsigned type, or NULL."""
    least, most = value_range(target)
    return F.when(value.between(number(least), number(most)), value)


def native_cast(operand: Operand, target: Type) -> SparkColumn | None:
    """The Column of a cast; None when it exists in Python only."""
    source, value = operand.type, operand.column
    if source is Type.NULL:
        return null(target)
    if source is target or (source.is_integer and target.is_integer):
        return value
    if source is Type.WIDE:
        return from_wide(value, target)
    if target is Type.WIDE:
        return to_wide(operand)
    if source.is_address and target.is_address:
        return value
    if target.is_integer:
        return to_integer(operand)
    if target.is_address:
        if not source.is_integer:
            return None
        return F.when(value.between(number(0), number(IPV4_MAX)), ipv4_address(value))
    match target:
        case Type.FLOAT:
            return to_float(operand)
        case Type.BOOL:
            return to_bool(operand)
        case Type.STRING:
            return to_string(operand)
        case Type.BINARY:
            return value.cast("binary")
        case _:
            return value.cast(sql_type(target))


def wide_number(held: Column) -> Column:
    """The number of a WIDE, as a decimal."""
    return (held.cast(WIDE) + F.lit(Decimal(BIAS)).cast(WIDE)).cast(WIDE)


def from_wide(held: Column, target: Type) -> Column | None:
    """A WIDE as a value of another type; NULL where there is none."""
    if target.is_integer:
        number_ = F.when(held < number(0), flipped(held))
        return range_checked(number_, target)
    match target:
        case Type.FLOAT:
            return wide_number(held).cast("double")
        case Type.BOOL:
            return held != number(INT_MIN)
        case Type.STRING:
            return wide_number(held).cast("string")
        case Type.BINARY:
            return wide_number(held).cast("string").cast("binary")
        case _:
            return None


def to_wide(operand: Operand) -> SparkColumn:
    """A value as a WIDE; NULL for negative values and for non-integers of 64 bits."""
    value = operand.column
    if operand.type.is_text:
        text = operand.text(F)
        found = F.btrim(text, F.lit(BLANKS)).try_cast("decimal(38, 0)")
        fits = text.rlike(INTEGER_TEXT) & found.between(F.lit(0), F.lit(Decimal(WIDE_MAX)))
        return F.when(fits, (found - F.lit(Decimal(BIAS))).cast("bigint"))
    if operand.type is Type.FLOAT:
        fits = (value > F.lit(-1.0)) & (value < F.lit(2.0**64))
        large = value >= F.lit(2.0**63)
        less = (value - F.lit(2.0**63)).try_cast("bigint")
        return F.when(fits & large, less).when(fits, flipped(value.try_cast("bigint")))
    whole = value.cast("bigint")
    return F.when(whole >= number(0), flipped(whole))


def to_integer(operand: Operand) -> SparkColumn:
    value = operand.column
    if operand.type.is_text:
        text = operand.text(F)
        trimmed = F.btrim(text, F.lit(BLANKS))
        return F.when(text.rlike(INTEGER_TEXT), trimmed.try_cast("bigint"))
    if operand.type.is_address:
        return F.when(is_ipv4(value), ipv4_number(value))
    return value.try_cast("bigint")


def to_float(operand: Operand) -> SparkColumn:
    if not operand.type.is_text:
        # Spark has no cast from BOOL to DOUBLE in ANSI mode for every version: go by way of int.
        return operand.column.cast("bigint").cast("double")
    text = operand.text(F)
    value = F.btrim(text, F.lit(BLANKS)).try_cast("double")
    finite = F.abs(value) < F.lit(float("inf"))
    return F.when(text.rlike(NUMBER_TEXT), F.when(finite, value))


def to_bool(operand: Operand) -> SparkColumn:
    if not operand.type.is_text:
        return operand.column != F.lit(0)
    word = F.lower(F.btrim(operand.text(F), F.lit(BLANKS)))
    true = [word for word, truth in TRUTH.items() if truth]
    false = [word for word, truth in TRUTH.items() if not truth]
    return F.when(word.isin(*true), F.lit(True)).when(word.isin(*false), F.lit(False))


def to_string(operand: Operand) -> SparkColumn | None:
    if operand.type.is_text:
        return operand.text(F)
    if operand.type.is_address:
        return written_address(operand.column)
    # A FLOAT is written in Java's own way before Java 19; ours is the same everywhere.
    return None if operand.type is Type.FLOAT else operand.column.cast("string")


def written_address(address: Column) -> Column:
    """Addresses as text, a column batch at a time."""
    return arrow_function(address_text, Type.STRING)(address)
