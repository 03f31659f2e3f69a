"""Expressions of the Plan as GSQL again.

In: a bound expression, and what each of its columns is called in the text around it. Out: the
expression of the Script that binds to it: operators as operators, all else as calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from terascope.functions.base import Scalar, Value
from terascope.functions.members import Members
from terascope.functions.roles import Narrowing
from terascope.plan.expr import AggCall, Call, Case, Cast, Col, Expr, Lit, Param, is_constant
from terascope.syntax import ast
from terascope.types import BIAS, Type

Scope: TypeAlias = Mapping[str, ast.Expr]
"""Column -> how it is written."""

BINARY: Final[Mapping[str, ast.BinaryOp]] = {
    **{op: cast(ast.BinaryOp, op) for op in "= != < <= > >= | ^ & << >> + - * / % ||".split()},
    "or": "OR",
    "and": "AND",
    "div": "DIV",
    "mask": "&",
}
KINDS: Final[Mapping[Type, ast.LiteralKind]] = {
    Type.BOOL: "bool",
    Type.FLOAT: "float",
    Type.STRING: "string",
    Type.IP: "ip",
    Type.IPV6: "ipv6",
    Type.BINARY: "binary",
}


def written(expr: Expr, scope: Scope) -> ast.Expr:
    match expr:
        case Col(name):
            return scope[name]
        case Lit(value, type):
            return literal(value, type)
        case Param(name):
            return ast.ParameterRef(name)
        case Call(args=(operand, Lit(value=Members() as members, type=type))):
            nulls = (None,) if members.has_null else ()
            items = tuple(literal(value, type) for value in (*members.values, *nulls))
            return ast.InList(written(operand, scope), items)
        case Cast(operand, Type.WIDE) if operand.type.is_integer:
            return written(operand, scope)  # whoever reads it finds out that it must be
        case Call(Scalar(role=Narrowing()), (operand,)):
            return written(operand, scope)
        case Cast(operand, type):
            return ast.CastExpr(written(operand, scope), type.label)
        case Case(branches, otherwise):
            pairs = tuple((written(c, scope), written(v, scope)) for c, v in branches)
            return ast.CaseExpr(None, pairs, written(otherwise, scope))
        case Call(function, args):
            return call(function.name, args, scope)


def call(name: str, args: tuple[Expr, ...], scope: Scope) -> ast.Expr:
    parts = tuple(written(a, scope) for a in args)
    if name == "/" and is_constant(args[1]) and all(a.type.is_integer for a in args):
        # Between integers, / by a constant would round down.
        parts = (ast.CastExpr(parts[0], Type.FLOAT.value), parts[1])
    if name in BINARY and len(parts) >= 2:
        made = parts[0]
        for part in parts[1:]:
            made = ast.Binary(BINARY[name], made, part)
        return made
    match name, parts:
        case "not", (ast.IsNull(operand, False),):
            return ast.IsNull(operand, True)
        case "not", (operand,):
            return ast.Unary("NOT", operand)
        case "neg", (operand,):
            return ast.Unary("-", operand)
        case "~", (operand,):
            return ast.Unary("~", operand)
        case "is_null", (operand,):
            return ast.IsNull(operand)
        case "in", (operand, *items):
            return ast.InList(operand, tuple(items))
        case "like", (operand, pattern):
            return ast.Like(operand, pattern)
        case _:
            return ast.CallExpr(name, parts)


def aggregate(agg: AggCall, scope: Scope) -> ast.Expr:
    args = tuple(written(a, scope) for a in (*agg.args, *agg.parameters))
    return ast.CallExpr(agg.function.name, args, star=not args, distinct=agg.distinct)


def literal(value: Value, type: Type) -> ast.Expr:
    if value is None:
        return ast.Literal_("null", None)
    if type is Type.WIDE:
        return ast.Literal_("int", value + BIAS)
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        return ast.Unary("-", literal(-value, type))
    return ast.Literal_(KINDS.get(type, "int"), value)


def all_of(conditions: tuple[ast.Expr, ...]) -> ast.Expr | None:
    """Their AND; None of none."""
    made: ast.Expr | None = None
    for condition in conditions:
        made = condition if made is None else ast.Binary("AND", made, condition)
    return made
