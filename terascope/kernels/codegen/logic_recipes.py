"""Recipes of comparisons, and of logic with NULL as the third value.

In: a call. Out: its statements. NaN is the largest FLOAT and equals itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from terascope.functions import roles
from terascope.functions.operators import operators
from terascope.kernels.codegen.statements import Recipe, Statements, alike, convert
from terascope.kernels.codegen.terms import Term, both
from terascope.plan.expr import Call
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


def conjunction(w: Statements, call: Call, guard: str | None) -> Term:
    """AND with three values: FALSE decides, whatever is NULL."""
    return junction(w, call, guard, decides=False)


def disjunction(w: Statements, call: Call, guard: str | None) -> Term:
    return junction(w, call, guard, decides=True)


def junction(w: Statements, call: Call, guard: str | None, decides: bool) -> Term:
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

LOGIC_RECIPES: Final[Mapping[type[roles.Role], Recipe]] = {
    roles.Comparator: comparison,
    roles.Conjunction: conjunction,
    roles.Disjunction: disjunction,
    roles.Negation: negation,
    roles.NullTest: is_null,
    roles.Membership: membership,
    roles.Coalescing: coalesced,
}
