"""Walking over expressions of the Script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from terascope.syntax import ast


def walk_expr(expr: ast.Expr) -> Iterator[ast.Expr]:
    """An expression and all its parts."""
    yield expr
    for field in fields(expr):
        yield from walk_value(getattr(expr, field.name))


def walk_value(value: object) -> Iterator[ast.Expr]:
    if isinstance(value, tuple):
        for part in value:
            yield from walk_value(part)
    elif isinstance(value, ast.Expr):
        yield from walk_expr(value)


def calls_in(expr: ast.Expr) -> Iterator[ast.CallExpr]:
    return (e for e in walk_expr(expr) if isinstance(e, ast.CallExpr))
