"""Compute at plan time what is the same for every tuple."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from terascope.functions.base import ValueMistake
from terascope.functions.casts import cast_value
from terascope.functions.roles import Conjunction, Disjunction
from terascope.plan.build import FALSE, TRUE, conjunction, disjunction
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param, transform
from terascope.plan.rel import Filter, Join, Rel, with_expressions


def fold_constants(rel: Rel) -> Rel | None:
    """Before: Filter (x > 2 + 3 AND TRUE) s      After: Filter (x > 5) s."""
    folded = with_expressions(rel, lambda expr, _: fold(expr))
    match folded:
        case Filter(source=source, predicate=predicate) if predicate == TRUE:
            return source
        case Join(residual=residual) if residual == TRUE:
            return replace(folded, residual=None)
        case _:
            return None if folded is rel else folded


def fold(expr: Expr) -> Expr:
    """An expression with all that is constant in it computed."""
    return transform(expr, fold_node)


def fold_node(expr: Expr) -> Expr:
    match expr:
        case Col() | Lit() | Param():
            return expr
        case Cast(Lit(value), target, renames=True):
            return Lit(value, target)
        case Cast(Lit(value, source), target):
            return Lit(cast_value(value, source, target), target)
        case Cast():
            return expr
        case Case(branches, otherwise, type):
            live = tuple((c, v) for c, v in branches if not never(c))
            if live and live[0][0] == TRUE:
                return live[0][1]
            return Case(live, otherwise, type) if live else otherwise
        case Call(function, args, type):
            if isinstance(function.role, Conjunction):
                return FALSE if FALSE in args else conjunction(args)
            if isinstance(function.role, Disjunction):
                return TRUE if TRUE in args else disjunction(args)
            if function.user_defined or not all(isinstance(a, Lit) for a in args):
                return expr
            try:
                return Lit(function(*(a.value for a in args if isinstance(a, Lit))), type)
            except ValueMistake:
                return expr  # reported when the query runs, with the tuple
        case _:
            assert_never(expr)


def never(condition: Expr) -> bool:
    return isinstance(condition, Lit) and condition.value is not True
