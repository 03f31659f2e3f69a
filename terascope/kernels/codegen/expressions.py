"""Expressions as generated statements (dissertation 3.4.3): one text for machine code and numpy.

In: expressions over columns of a source. Out: Python statements that compute them from vectors. The
statements use only what means the same for a number and for an array, so that the text in a loop
over tuples is compiled by numba and the text without the loop is run by numpy: both paths give
the same answers by construction.

A value is a pair (value, valid). Text and addresses are seen through their dictionary: an
expression of one such column and constants is computed once for each different value and becomes a
vector of its own (`InputKind.LOOKUP`); tests of payload bytes are vectors, too (`InputKind.BYTES`).
`unsupported` says why an expression has no such form; it is then evaluated above. The recipes of
comparisons and of logic stand here: NULL is the third truth value, and NaN is the largest FLOAT and
equals itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from terascope.functions import roles
from terascope.functions.base import Scalar
from terascope.functions.operators import operators
from terascope.functions.roles import Comparator, Conditional, ListMembership, Role, SlicePart
from terascope.kernels.codegen.arithmetic_recipes import ARITHMETIC_RECIPES, FLOAT_RECIPES
from terascope.kernels.codegen.lookups import among, sliced
from terascope.kernels.codegen.statements import (
    InputKind,
    Recipe,
    Statements,
    Term,
    Unsupported,
    alike,
    both,
    convert,
    is_coded,
    is_number,
    is_true,
    literal,
    within,
)
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.plan.build import call
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param, walk
from terascope.types import Type

# ---- comparisons ---------------------------------------------------------------------------------


def equal_text(a: Term, b: Term) -> str:
    if a.type is not Type.FLOAT:
        return f"({a.value} == {b.value})"
    nans = f"(({a.value} != {a.value}) & ({b.value} != {b.value}))"
    return f"(({a.value} == {b.value}) | {nans})"


def less_text(a: Term, b: Term) -> str:
    """NaN is the largest FLOAT."""
    if a.type is not Type.FLOAT:
        return f"({a.value} < {b.value})"
    below_nan = f"(({a.value} == {a.value}) & ({b.value} != {b.value}))"
    return f"(({a.value} < {b.value}) | {below_nan})"


def compared_text(role: roles.Comparator, a: Term, b: Term) -> str:
    """TRUE for one outcome, or not for the one that is left."""
    if role.is_single:
        return equal_text(a, b) if role.equal else less_text(a, b) if role.less else less_text(b, a)
    return f"({compared_text(role.opposite, a, b)} == False)"


def comparison(w: Statements, call: Call, guard: str | None) -> Term:
    a, b = alike(w, call, guard)
    role = call.function.role
    assert isinstance(role, roles.Comparator)
    return w.made(compared_text(role, a, b), both(a.valid, b.valid), Type.BOOL)


# ---- logic with three values ---------------------------------------------------------------------


def junction(w: Statements, call: Call, guard: str | None, decides: bool) -> Term:
    """Write AND, which FALSE decides whatever is NULL, or OR, which TRUE decides."""
    terms = [convert(w, w.term(a, guard), Type.BOOL) for a in call.args]
    return joined(w, terms, decides)


def joined(w: Statements, terms: list[Term], decides: bool) -> Term:
    symbol = " | " if decides else " & "
    if all(t.valid is None for t in terms):
        return w.made(symbol.join(f"({t.value})" for t in terms), None, Type.BOOL)
    deciding = []
    for t in terms:
        own = t.value if decides else f"({t.value} == False)"
        deciding.append(own if t.valid is None else f"({own} & {t.valid})")
    decided = w.assign(" | ".join(deciding))
    every = None
    for t in terms:
        every = both(every, t.valid)
    value = decided if decides else f"({decided} == False)"
    return w.made(value, w.assign(f"{decided} | {every}"), Type.BOOL)


def negation(w: Statements, call: Call, guard: str | None) -> Term:
    term = convert(w, w.term(call.args[0], guard), Type.BOOL)
    return w.made(f"{term.value} == False", term.valid, Type.BOOL)


def is_null(w: Statements, call: Call, guard: str | None) -> Term:
    term = w.term(call.args[0], guard)
    return (
        Term("False", None, Type.BOOL)
        if term.valid is None
        else w.made(f"({term.valid}) == False", None, Type.BOOL)
    )


def membership(w: Statements, call: Call, guard: str | None) -> Term:
    first = call.args[0]
    equals = [
        comparison(w, Call(EQUALS, (first, item), Type.BOOL), guard) for item in call.args[1:]
    ]
    return joined(w, equals, decides=True)


def coalesced(w: Statements, call: Call, guard: str | None) -> Term:
    terms = [convert(w, w.term(a, guard), call.type) for a in call.args]
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = term if term.valid is None else w.pick(term.valid, term, result)
    return result


EQUALS: Final = operators["="]


RECIPES: Final[Mapping[type[Role], Recipe]] = {
    roles.Comparator: comparison,
    roles.Conjunction: partial(junction, decides=False),
    roles.Disjunction: partial(junction, decides=True),
    roles.Negation: negation,
    roles.NullTest: is_null,
    roles.Membership: membership,
    roles.Coalescing: coalesced,
    **ARITHMETIC_RECIPES,
    SlicePart: sliced,
    ListMembership: among,
}


@lru_cache(maxsize=4096)
def unsupported(expr: Expr) -> str | None:
    """Why the kernels cannot compute an expression; None when they can."""
    try:
        Writer().anything(expr)
    except Unsupported as why:
        return str(why)
    return None


@dataclass
class Writer(Statements):
    def anything(self, expr: Expr) -> Term | None:
        """A number, or None for text and addresses that are a dictionary's own or derived ones."""
        if is_coded(expr.type):
            if not depends_on_one_coded(expr):
                raise Unsupported(f"{expr.type.label} computed from several columns")
            return None
        if isinstance(expr, Col) and expr.type is Type.BINARY:
            return None
        if not is_number(expr.type):
            raise Unsupported(f"{expr.type.label} values")
        return self.term(expr)

    def term(self, expr: Expr, guard: str | None = None) -> Term:
        """A number or BOOL. Where `guard` is FALSE the value is not used."""
        known = self._known.get((expr, guard)) or self._known.get((expr, None))
        if known is not None:
            return known
        self._inside.append(expr)
        made = self._term(expr, guard)
        self._inside.pop()
        self._known[expr, guard] = made
        return made

    def _term(self, expr: Expr, guard: str | None) -> Term:
        match expr:
            case Lit(value, type):
                return literal(value, type)
            case Param(name):
                raise Unsupported(f"parameter ${name}")
            case Col(name, type) if is_number(type):
                return self.load(InputKind.NUMBER, expr)
            case Col(name, type):
                raise Unsupported(f"{type.label} {name} as a number")
        if is_payload_test(expr):
            return self.load(InputKind.BYTES, expr)
        if any(is_coded(e.type) or e.type is Type.BINARY for e in walk(expr)):
            if depends_on_one_coded(expr) and is_number(expr.type):
                return self.load(InputKind.LOOKUP, expr)
            shared = self.same_dictionary(expr)
            if shared is not None:
                return shared
        match expr:
            case Call(Scalar(role=Conditional()), (condition, then, otherwise)):
                if condition.type is not Type.BOOL:
                    condition = call("!=", condition, Lit(0, condition.type))
                return self.case(Case(((condition, then),), otherwise, expr.type), guard)
            case Call(function):
                recipe = recipe_of(function)
                if recipe is None:
                    raise Unsupported(f"function {function.name}")
                return recipe(self, expr, guard)
            case Case():
                return self.case(expr, guard)
            case Cast(operand, type):
                made = convert(self, self.term(operand, guard), type)
                return within(self, made) if expr.checks_range else made
        raise Unsupported(f"{expr.type.label} value")

    def same_dictionary(self, expr: Expr) -> Term | None:
        """Two addresses are equal when their codes are: all of them share a dictionary."""
        match expr:
            case Call(Scalar(role=Comparator() as role), (Col() as a, Col() as b)):
                if a.type.is_address and b.type.is_address and not role.is_range:
                    left, right = (self.load(InputKind.LOOKUP, column) for column in (a, b))
                    return self.made(
                        f"{left.value} {'==' if role.is_equality else '!='} {right.value}",
                        both(left.valid, right.valid),
                        Type.BOOL,
                    )
        return None

    def case(self, expr: Case, guard: str | None) -> Term:
        """Write a CASE, its last branch first. A branch is guarded by the conditions before it."""
        free = guard
        taken: list[tuple[str, Term]] = []
        for when, then in expr.branches:
            test = self.term(when, free)
            true = self.assign(is_true(test))
            chosen = self.assign(f"{true} & {free}") if free else true
            taken.append((true, convert(self, self.term(then, chosen), expr.type)))
            not_true = f"({true} == False)"
            free = self.assign(f"{not_true} & {free}" if free else not_true)
        result = convert(self, self.term(expr.otherwise, free), expr.type)
        for true, term in reversed(taken):
            result = self.pick(true, term, result)
        return result


def recipe_of(function: Scalar) -> Recipe | None:
    if function.role is None:
        return None if function.user_defined else FLOAT_RECIPES.get(function)
    return RECIPES.get(type(function.role))


def depends_on_one_coded(expr: Expr) -> bool:
    """Whether an expression is of one dictionary column and constants, and may be evaluated by
    itself: once for each different value.
    """
    columns = {e for e in walk(expr) if isinstance(e, Col)}
    if len(columns) != 1 or any(isinstance(e, Param) for e in walk(expr)):
        return False
    (column,) = columns
    partial = any(isinstance(e, Call) and e.function.partial for e in walk(expr))
    return is_coded(column.type) and expr.type is not Type.BINARY and not partial
