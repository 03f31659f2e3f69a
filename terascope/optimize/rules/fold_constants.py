"""Compute at plan time what is the same for every tuple."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from terascope.functions.base import ValueMistake
from terascope.functions.casts import cast_value
from terascope.plan.build import FALSE, TRUE, conjunction, disjunction
from terascope.plan.expr import (
    AggCall,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Lit,
    Param,
    transform,
)
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Window,
    changed,
)


def fold_constants(rel: Rel) -> Rel | None:
    """Before: Filter (x > 2 + 3 AND TRUE) s      After: Filter (x > 5) s."""
    match rel:
        case Scan() | Read() | Lookup() | Merge() | Window():
            return None
        case Filter(source=source, predicate=predicate):
            folded = fold(predicate)
            return source if folded == TRUE else changed(rel, predicate=folded)
        case Project(items=items):
            return changed(rel, items=tuple((n, fold(e)) for n, e in items))
        case Aggregate(keys=keys, aggs=aggs):
            return changed(
                rel,
                keys=tuple((n, fold(e)) for n, e in keys),
                aggs=tuple((n, fold_args(a)) for n, a in aggs),
            )
        case Running(keys=keys, aggs=aggs, closing=closing):
            return changed(
                rel,
                keys=tuple((n, fold(e)) for n, e in keys),
                aggs=tuple((n, fold_args(a)) for n, a in aggs),
                closing=fold(closing),
            )
        case Rank(order=order):
            return changed(rel, order=tuple((fold(e), d) for e, d in order))
        case Join(equalities=equalities, residual=residual):
            rest = None if residual is None else fold(residual)
            return changed(
                rel,
                equalities=tuple((fold(a), fold(b)) for a, b in equalities),
                residual=None if rest == TRUE else rest,
            )
        case _:
            assert_never(rel)


def fold_args(agg: AggCall) -> AggCall:
    args = tuple(fold(a) for a in agg.args)
    return agg if args == agg.args else replace(agg, args=args)


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
            if function.name == "and":
                return FALSE if FALSE in args else conjunction(args)
            if function.name == "or":
                return TRUE if TRUE in args else disjunction(args)
            if function.user_defined or not all(isinstance(a, Lit) for a in args):
                return expr
            try:
                return Lit(function(*(a.value for a in args if isinstance(a, Lit))), type)
            except ValueMistake:
                return expr  # told when it runs, with the tuple that asked for it
        case _:
            assert_never(expr)


def never(condition: Expr) -> bool:
    return isinstance(condition, Lit) and condition.value is not True
