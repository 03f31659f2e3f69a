"""What a column is called that has no AS.

A plain column keeps its name, `f(x)` is `f_x`, `f(*)` is `f`, anything else `exprN`; a second `cnt`
becomes `cnt_2`.
"""

from __future__ import annotations

from terascope.syntax import ast


def default_name(expr: ast.Expr, position: int) -> str:
    """The name of the item at `position`, counted from 1."""
    match expr:
        case ast.Name(name=name):
            return name
        case ast.CallExpr(name=name, star=True):
            return name.lower()
        case ast.CallExpr(name=name, args=(ast.Name(name=argument),)):
            return f"{name.lower()}_{argument}"
        case _:
            return f"expr{position}"


class UniqueNames:
    """Hands out names, numbering those already taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, name: str) -> str:
        unique, count = name, 1
        while unique in self.taken:
            count += 1
            unique = f"{name}_{count}"
        self.taken.add(unique)
        return unique
