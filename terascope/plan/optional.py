"""Columns of a side of a join that may be missing: the column where a marker is TRUE, else NULL.

In: a column and the marker of its side, or any expression. Out: the expression that is the one in
rows of the other, and the way back: which marker and which column an expression is made of.
"""

from __future__ import annotations

from terascope.plan.expr import Case, Col, Expr, Lit
from terascope.types import Type


def where_present(column: Col, marker: Col) -> Expr:
    """The column in rows in which its input is there, NULL in others."""
    return Case(((marker, column),), Lit(None, column.type), column.type)


def marked_column(expr: Expr) -> tuple[Col, Col] | None:
    """The marker and the column that `where_present` made the expression of; None: it is another
    one.
    """
    match expr:
        case Case(((Col(type=Type.BOOL) as marker, Col() as column),), Lit(None)):
            return marker, column
    return None
