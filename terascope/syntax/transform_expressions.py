"""From matched rules to expression nodes. The rules are those of gsql.lark, one method each."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import lark

from terascope.syntax import ast
from terascope.syntax.parts import (
    Children,
    Lexeme,
    LexemeList,
    Matched,
    has,
    nodes,
    place,
    span_of,
    words,
)
from terascope.types import INT_MAX, INT_MIN

OPERATORS: Final[dict[str, ast.BinaryOp]] = {
    "OR": "OR", "AND": "AND", "EQ": "=", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
    "BITOR": "|", "BITXOR": "^", "BITAND": "&", "SHL": "<<", "SHR": ">>",
    "PLUS": "+", "MINUS": "-", "CONCAT": "||",
    "STAR": "*", "SLASH": "/", "PERCENT": "%", "DIV": "DIV",
}  # fmt: skip


class ExpressionRules:
    def only_expr(self, children: Children) -> Any:
        return self.parenthesised(children)

    def parenthesised(self, children: Children) -> Any:
        """Brackets leave no trace in the tree; the printer sets them where precedence asks for
        them.
        """
        return nodes(children)[0]

    def name(self, children: Children) -> ast.Name:
        *qualifier, name = words(children)
        return ast.Name(name, qualifier[0] if qualifier else None, span=span_of(children))

    def literal(self, children: Children) -> ast.Literal_:
        (token,) = children
        match token.type:
            case "NULL":
                return ast.Literal_("null", None, span=place(token))
            case "TRUE" | "FALSE":
                return ast.Literal_("bool", token.type == "TRUE", span=place(token))
            case _:
                assert isinstance(token, Lexeme)
                assert token.literal is not None
                return replace(token.literal, span=place(token))

    def reference(
        self, children: Children
    ) -> ast.ParameterRef | ast.ConstantRef | ast.InterfaceProperty:
        (token,) = children
        span = place(token)
        match token.type:
            case "PARAMETER":
                return ast.ParameterRef(str(token), span=span)
            case "CONSTANT":
                return ast.ConstantRef(str(token), span=span)
            case _:
                return ast.InterfaceProperty(str(token), span=span)

    def unary(self, children: Children) -> ast.Expr:
        sign = children[0]
        operand: ast.Expr = children[1]
        span = span_of(children)
        if sign.type == "PLUS":
            return replace(operand, span=span)
        if sign.type == "MINUS":
            if isinstance(operand, ast.Literal_) and operand.value == INT_MAX + 1:
                return replace(operand, value=INT_MIN, span=span)
            return ast.Unary("-", operand, span=span)
        return ast.Unary("~" if sign.type == "TILDE" else "NOT", operand, span=span)

    def binary(self, children: Children) -> ast.Binary:
        left, sign, right = children
        return ast.Binary(OPERATORS[sign.type], left, right, span=span_of(children))

    def between(self, children: Children) -> ast.Between:
        operand, low, high = nodes(children)
        return ast.Between(operand, low, high, has(children, "NOT"), span=span_of(children))

    def like(self, children: Children) -> ast.Like:
        operand, pattern = nodes(children)
        return ast.Like(operand, pattern, has(children, "NOT"), span=span_of(children))

    def in_list(self, children: Children) -> ast.InList:
        operand, *items = nodes(children)
        for child in children:
            if isinstance(child, LexemeList):
                items += child.literals
        return ast.InList(operand, tuple(items), has(children, "NOT"), span=span_of(children))

    def is_null(self, children: Children) -> ast.IsNull:
        return ast.IsNull(children[0], has(children, "NOT"), span=span_of(children))

    def call(self, children: Children) -> ast.CallExpr:
        return ast.CallExpr(
            name=str(children[0]),
            args=tuple(nodes(children)),
            star=has(children, "STAR"),
            distinct=has(children, "DISTINCT"),
            super_=has(children, "DOLLAR"),
            span=span_of(children),
        )

    def case(self, children: Children) -> ast.CaseExpr:
        operand = otherwise = None
        branches: list[tuple[ast.Expr, ast.Expr]] = []
        for before, child in pairwise(children):
            if isinstance(child, Matched):
                branches.append(child.value)
            elif not isinstance(child, lark.Token):
                if before.type == "CASE":
                    operand = child
                else:
                    otherwise = child
        return ast.CaseExpr(operand, tuple(branches), otherwise, span=span_of(children))

    def case_branch(self, children: Children) -> Matched[tuple[ast.Expr, ast.Expr]]:
        condition, value = nodes(children)
        return Matched((condition, value), span_of(children))

    def cast(self, children: Children) -> ast.CastExpr:
        operand, type_ = nodes(children)
        return ast.CastExpr(operand, type_.value, span=span_of(children))

    def type_name(self, children: Children) -> Matched[str]:
        """A type's name in upper case, with its size: `CHAR(36)`."""
        return Matched("".join(map(str, children)).upper(), span_of(children))
