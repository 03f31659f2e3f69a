"""Expressions as canonical GSQL: upper-case keywords, blanks around operators, no bracket that
precedence makes needless.

In: an expression. Out: text that parses back to an equal expression. It also names expressions in
messages.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, assert_never

from terascope.syntax import ast
from terascope.syntax.keywords import BEFORE_PARENTHESIS, RESERVED, TWO_WORDS
from terascope.types import format_ip

OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, PRIMARY = range(12)

PRECEDENCE: Final = {
    "OR": OR, "AND": AND,
    "=": COMPARISON, "!=": COMPARISON,
    "<": COMPARISON, "<=": COMPARISON, ">": COMPARISON, ">=": COMPARISON,
    "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "<<": SHIFT, ">>": SHIFT,
    "+": SUM, "-": SUM, "||": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "DIV": PRODUCT,
}  # fmt: skip
SUFFIXES: Final = {None: "", "UINT": "UL", "ULLONG": "ULL", "LLONG": "LL"}
PLAIN: Final = re.compile(r"[^\W\d]\w*")
QUOTED_WORDS: Final = RESERVED | {first for first, _ in TWO_WORDS}


def print_expr(expr: ast.Expr) -> str:
    """The canonical text of an expression."""
    return _print(expr, OR)


def _print(expr: ast.Expr, least: int) -> str:
    """The text of an operand; in brackets when it binds looser than its place asks for."""
    text = _text(expr)
    return f"({text})" if precedence(expr) < least else text


def precedence(expr: ast.Expr) -> int:
    match expr:
        case ast.Binary(op=op):
            return PRECEDENCE[op]
        case ast.Unary(op=op):
            return NOT if op == "NOT" else SIGN
        case ast.Between() | ast.InList() | ast.Like() | ast.IsNull():
            return COMPARISON
        case ast.Literal_(value=int() | float() as value) if value < 0:
            return SIGN
        case _:
            return PRIMARY


def _text(expr: ast.Expr) -> str:
    match expr:
        case ast.Name(name, qualifier):
            return ".".join(map(quote_name, filter(None, (qualifier, name))))
        case ast.Literal_():
            return print_literal(expr)
        case ast.ParameterRef(name):
            return f"${name}"
        case ast.ConstantRef(name):
            return f"#{name}"
        case ast.InterfaceProperty(name):
            return f"@{name}"
        case ast.Unary("NOT", operand):
            return f"NOT {_print(operand, NOT)}"
        case ast.Unary(op, operand):
            text = _print(operand, SIGN)
            # two minus signs in a row would start a comment
            return f"{op} {text}" if text.startswith("-") else f"{op}{text}"
        case ast.Binary(op, left, right):
            level = PRECEDENCE[op]
            return f"{_print(left, level)} {op} {_print(right, level + 1)}"
        case ast.Between(operand, low, high, negated):
            between = f"{_not(negated)}BETWEEN {_print(low, BIT_OR)} AND {_print(high, BIT_OR)}"
            return f"{_print(operand, COMPARISON)} {between}"
        case ast.InList(operand, items, negated):
            return f"{_print(operand, COMPARISON)} {_not(negated)}IN ({_list(items)})"
        case ast.Like(operand, pattern, negated):
            return f"{_print(operand, COMPARISON)} {_not(negated)}LIKE {_print(pattern, BIT_OR)}"
        case ast.IsNull(operand, negated):
            return f"{_print(operand, COMPARISON)} IS {_not(negated)}NULL"
        case ast.CaseExpr():
            return _case(expr)
        case ast.CastExpr(operand, type_name):
            return f"CAST({print_expr(operand)} AS {type_name})"
        case ast.CallExpr():
            return _call(expr)
        case _:
            assert_never(expr)


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _list(items: tuple[ast.Expr, ...]) -> str:
    return ", ".join(map(print_expr, items))


def _case(case: ast.CaseExpr) -> str:
    parts = ["CASE"]
    if case.operand is not None:
        parts.append(print_expr(case.operand))
    for condition, value in case.branches:
        parts.append(f"WHEN {print_expr(condition)} THEN {print_expr(value)}")
    if case.otherwise is not None:
        parts.append(f"ELSE {print_expr(case.otherwise)}")
    return " ".join([*parts, "END"])


def _call(call: ast.CallExpr) -> str:
    is_keyword = call.name.upper() in BEFORE_PARENTHESIS
    name = quote_name(call.name, always=is_keyword) + ("$" if call.super_ else "")
    arguments = "*" if call.star else _list(call.args)
    strategy = f" WITH strategy {quote_string(call.strategy)}" if call.strategy else ""
    return f"{name}({'DISTINCT ' if call.distinct else ''}{arguments}){strategy}"


def print_literal(literal: ast.Literal_) -> str:
    value = literal.value
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            digits = f"0x{value:X}" if literal.hexadecimal and value >= 0 else str(value)
            return digits + SUFFIXES[literal.type_name]
        case float():
            return repr(value)
        case str():
            return quote_string(value)
        case bytes() if literal.kind == "binary":
            return f"X'{value.hex()}'"
        case bytes() if literal.kind == "ip" and value[0] == 4:
            return format_ip(value)
        case bytes():
            return f"{literal.kind.upper()} '{format_ip(value)}'"


def print_amount(amount: int | float) -> str:
    """A number without an exponent, as durations are written."""
    return str(amount) if isinstance(amount, int) else f"{Decimal(repr(amount)):f}"


def quote_string(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def quote_name(name: str, *, always: bool = False) -> str:
    """A name as it can be written: in backquotes when it is a reserved word or no word at all."""
    if not always and PLAIN.fullmatch(name) and name.upper() not in QUOTED_WORDS:
        return name
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
