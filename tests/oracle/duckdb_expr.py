"""Expressions as DuckDB SQL.

In: an expression, and the SQL of each column it may name. Out: SQL text. Arithmetic, comparison
and logic are DuckDB's own, so that they check ours; a function it does not have is called in
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from terascope.functions.base import Value
from terascope.functions.casts import cast_value
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param
from terascope.types import Type
from tests.oracle.duckdb_session import Session, literal, sql_type

Columns: TypeAlias = Mapping[str, str]
Typed: TypeAlias = tuple[str, Type]
"""SQL text and the type of its value."""


@dataclass(frozen=True)
class Translator:
    session: Session
    parameters: Mapping[str, Value]

    def sql(self, expr: Expr, columns: Columns) -> str:
        match expr:
            case Col(name):
                return columns[name]
            case Lit(value, type):
                return literal(value, type)
            case Param(name, type):
                return literal(self.parameters[name], type)
            case Call():
                return self.call(expr, columns)
            case Case(branches, otherwise):
                whens = " ".join(
                    f"WHEN {self.sql(when, columns)} THEN {self.sql(then, columns)}"
                    for when, then in branches
                )
                return f"(CASE {whens} ELSE {self.sql(otherwise, columns)} END)"
            case Cast(operand, to_type):
                made = self.cast(self.sql(operand, columns), operand.type, to_type)
                # DuckDB's own unsigned types say what is outside of them.
                bounds = {Type.UINT: "UINTEGER", Type.ULLONG: "UBIGINT"}.get(to_type)
                if expr.renames or bounds is None or operand.type is Type.NULL:
                    return made
                return f"CAST(TRY_CAST({made} AS {bounds}) AS BIGINT)"
            case _:
                assert_never(expr)

    def call(self, expr: Call, columns: Columns) -> str:
        args = [(self.sql(a, columns), a.type) for a in expr.args]
        native = NATIVE.get(expr.function.name)
        text = native(args) if native else None
        if text is not None:
            return text
        types = [type for _, type in args]
        name = self.session.function(expr.function.name, expr.function, types, expr.type)
        return f"{name}({', '.join(sql for sql, _ in args)})"

    def cast(self, sql: str, from_type: Type, to_type: Type) -> str:
        if Type.WIDE in (from_type, to_type) and (made := self.wide(sql, from_type, to_type)):
            return made
        if from_type is to_type or sql_type(from_type) == sql_type(to_type):
            return sql
        if from_type.is_integer and to_type is Type.FLOAT:
            return f"CAST({sql} AS DOUBLE)"
        if from_type is Type.FLOAT and to_type.is_integer:
            return f"TRY_CAST(trunc({sql}) AS BIGINT)"
        if from_type is Type.BOOL and to_type.is_integer:
            return f"CAST({sql} AS BIGINT)"
        if from_type.is_integer and to_type is Type.BOOL:
            return f"({sql} <> 0)"
        if from_type.is_integer and to_type is Type.STRING:
            return f"CAST({sql} AS VARCHAR)"
        if from_type is Type.NULL:
            return f"CAST({sql} AS {sql_type(to_type)})"
        name = self.session.function(
            f"cast from {from_type.name} to {to_type.name}",
            lambda value: cast_value(value, from_type, to_type),
            [from_type],
            to_type,
        )
        return f"{name}({sql})"

    def wide(self, sql: str, from_type: Type, to_type: Type) -> str | None:
        """DuckDB's own conversions between UBIGINT and other numbers."""
        if from_type is to_type:
            return sql
        if from_type is Type.WIDE and (to_type is Type.FLOAT or to_type is Type.STRING):
            return f"CAST({sql} AS {sql_type(to_type)})"
        if from_type is Type.WIDE and to_type is Type.BOOL:
            return f"({sql} <> 0)"
        if from_type.is_integer or to_type.is_integer:
            return f"TRY_CAST({sql} AS {sql_type(to_type)})"
        return f"CAST({sql} AS UBIGINT)" if from_type is Type.NULL else None


def comparable(args: Sequence[Typed]) -> list[str]:
    """Text beside raw bytes is compared as its utf-8 bytes."""
    if Type.BINARY in (type for _, type in args):
        return [f"encode({sql})" if type is Type.STRING else sql for sql, type in args]
    return [sql for sql, _ in args]


def equality(left: Typed, right: Typed) -> str:
    a, b = comparable([left, right])
    return f"({a} = {b})"


Native: TypeAlias = Callable[[Sequence[Typed]], str | None]
"""The SQL of a call, or None when DuckDB has none for arguments of these types."""


def infix(symbol: str) -> Native:
    return lambda args: f"({f' {symbol} '.join(sql for sql, _ in args)})"


def comparison(symbol: str) -> Native:
    return lambda args: f"({f' {symbol} '.join(comparable(args))})"


def function(name: str) -> Native:
    return lambda args: f"{name}({', '.join(sql for sql, _ in args)})"


def of_strings(native: Native) -> Native:
    """Raw bytes count as latin-1 text in string functions, which DuckDB cannot read."""
    return lambda args: None if Type.BINARY in (type for _, type in args) else native(args)


def divide(args: Sequence[Typed]) -> str:
    (a, _), (b, _) = args
    return f"(CASE WHEN {b} = 0 THEN NULL ELSE CAST({a} AS DOUBLE) / CAST({b} AS DOUBLE) END)"


def negate(args: Sequence[Typed]) -> str:
    ((sql, type),) = args
    # Not -x: DuckDB widens that instead of telling the overflow.
    return f"(-{sql})" if type is Type.FLOAT else f"(CAST(0 AS BIGINT) - {sql})"


def is_in(args: Sequence[Typed]) -> str:
    first, *items = comparable(args)
    return f"({first} IN ({', '.join(items)}))"


def to_whole(name: str) -> Native:
    def native(args: Sequence[Typed]) -> str:
        ((sql, type),) = args
        return sql if type.is_integer else f"TRY_CAST({name}({sql}) AS BIGINT)"

    return native


def prefix(args: Sequence[Typed]) -> str | None:
    return function("prefix_bits")(args) if len(args) == 3 else None


def choose(args: Sequence[Typed]) -> str:
    (condition, type), (then, _), (otherwise, _) = args
    test = condition if type is Type.BOOL else f"{condition} <> 0"
    return f"(CASE WHEN {test} THEN {then} ELSE {otherwise} END)"


NATIVE: Mapping[str, Native] = {
    "or": infix("OR"),
    "and": infix("AND"),
    "not": lambda args: f"(NOT {args[0][0]})",
    "=": comparison("="),
    "!=": comparison("<>"),
    "<": comparison("<"),
    "<=": comparison("<="),
    ">": comparison(">"),
    ">=": comparison(">="),
    "+": infix("+"),
    "-": infix("-"),
    "*": infix("*"),
    "neg": negate,
    "narrow": lambda args: f"CAST({args[0][0]} AS BIGINT)",
    "/": divide,
    "div": function("floor_div"),
    "%": function("floor_mod"),
    "&": infix("&"),
    "|": infix("|"),
    "^": function("xor"),
    "~": lambda args: f"(~{args[0][0]})",
    "<<": function("shift_left"),
    ">>": function("shift_right"),
    "mask": function("mask"),
    "||": of_strings(infix("||")),
    "in": is_in,
    "in_list": is_in,
    "like": of_strings(lambda args: f"({args[0][0]} LIKE {args[1][0]} ESCAPE '\\')"),
    "is_null": lambda args: f"({args[0][0]} IS NULL)",
    "coalesce": function("coalesce"),
    "nullif": lambda args: f"nullif({', '.join(comparable(args))})",
    "if": choose,
    "least": function("least"),
    "greatest": function("greatest"),
    "abs": function("abs"),
    "floor": to_whole("floor"),
    "ceil": to_whole("ceil"),
    "trunc": to_whole("trunc"),
    "mod": function("floor_mod"),
    "prefix": prefix,
    "in_subnet": of_strings(function("in_subnet")),
    "non_temporal": lambda args: args[0][0],
    "concat": of_strings(infix("||")),
    "str_exists_substr": of_strings(function("contains")),
    "str_match_start": of_strings(function("starts_with")),
    "str_length": of_strings(function("length")),
}
