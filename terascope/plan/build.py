"""Expressions built by the binder and by rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from terascope.functions.base import Apply, Constant, Place, Scalar, Term, Value
from terascope.functions.members import IN_LIST, Members
from terascope.functions.operators import operators
from terascope.functions.scalars.slices import in_slices, slice_end, slice_start
from terascope.functions.slices import SliceVector
from terascope.functions.values import SOME_VALUE
from terascope.plan.expr import AggCall, Call, Expr, Lit
from terascope.types import Type

TRUE = Lit(True, Type.BOOL)
FALSE = Lit(False, Type.BOOL)
SLICE_FUNCTIONS = {scalar.name: scalar for scalar in (slice_start, slice_end, in_slices)}


def applied(function: Scalar, *args: Expr) -> Call:
    """A function applied; raises TypeMistake when the types do not fit."""
    return Call(function, args, function.type_rule(tuple(a.type for a in args)))


def call(operator: str, *args: Expr) -> Call:
    """An operator applied; raises TypeMistake when the types do not fit."""
    return applied(operators[operator], *args)


def slice_call(name: str, time: Expr, vector: SliceVector) -> Call:
    """slice_start, slice_end or in_slices of a time."""
    return applied(SLICE_FUNCTIONS[name], time, Lit(str(vector), Type.STRING))


def list_call(operand: Expr, values: Iterable[Value]) -> Call:
    """`operand IN (...)` of many constants of its type."""
    return Call(IN_LIST, (operand, Lit(Members.of(values), operand.type)), Type.BOOL)


def conjunction(parts: Iterable[Expr]) -> Expr:
    """The AND of all parts; TRUE of none."""
    kept = tuple(p for p in parts if p != TRUE)
    if not kept:
        return TRUE
    return kept[0] if len(kept) == 1 else call("and", *kept)


def disjunction(parts: Iterable[Expr]) -> Expr:
    """The OR of all parts; FALSE of none."""
    kept = tuple(dict.fromkeys(p for p in parts if p != FALSE))
    if not kept:
        return FALSE
    return kept[0] if len(kept) == 1 else call("or", *kept)


def state_arguments(agg: AggCall) -> tuple[Expr, ...]:
    """The vectors that columns of states take for the arguments of a call. An aggregate that sees
    NULLs has two for each argument, neither of them ever NULL: whether there is a value, and the
    value.
    """
    if agg.function.skips_null:
        return agg.args
    pairs = ((call("not", call("is_null", arg)), without_null(arg)) for arg in agg.args)
    return tuple(expr for pair in pairs for expr in pair)


def without_null(expr: Expr) -> Expr:
    """An expression with a value of its type in place of NULL."""
    return call("coalesce", expr, Lit(SOME_VALUE.get(expr.type, 0), expr.type))


def term_expr(term: Term, places: Sequence[Expr]) -> Expr:
    """A term of a function as an expression, given the expressions at its places."""
    match term:
        case Place(number):
            return places[number]
        case Constant(value, type):
            return Lit(value, type)
        case Apply(function, terms):
            return applied(function, *(term_expr(t, places) for t in terms))
        case _:
            assert_never(term)
