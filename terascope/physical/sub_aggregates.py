"""An aggregate call as sub-aggregates next to the source and what is made of them above.

In: an aggregate call over the columns of a scan. Out: a `SplitCall`, or why there is none. How an
aggregate splits is its own affair (terascope.functions.decomposition); here its terms become
expressions. A call that looks at the set of different values only (DISTINCT) has no sub-aggregate:
its arguments become keys of the low-level groups, and the call itself stays above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from terascope.functions.base import Aggregate, Value
from terascope.functions.decomposition import FIRST, Apply, Constant, Place, Term
from terascope.plan.build import call as build_call
from terascope.plan.expr import AggCall, Call, Cast, Expr, Lit


@dataclass(frozen=True)
class SubCall:
    """A sub-aggregate over the scan, and the super-aggregate that merges it."""

    call: AggCall
    merge: Aggregate

    def merged(self, column: Expr) -> AggCall:
        """The super-aggregate over the column of the sub-aggregate."""
        return AggCall(self.merge, (column,), self.merge.type_rule((column.type,)))


@dataclass(frozen=True)
class SplitCall:
    call: AggCall
    subs: tuple[SubCall, ...]
    finish: Term = FIRST
    of_nothing: Value = None

    @property
    def keyed(self) -> tuple[Expr, ...]:
        """The arguments that become keys of the low-level groups."""
        return self.call.args if depends_on_set(self.call) else ()

    def value(self, merged: Sequence[Expr], may_be_empty: bool) -> Expr:
        """The value of the call, from the merged parts."""
        made = term_expr(self.finish, merged)
        if may_be_empty and self.of_nothing is not None:
            made = build_call("coalesce", made, Lit(self.of_nothing, made.type))
        return made if made.type is self.call.type else Cast(made, self.call.type)


def depends_on_set(call: AggCall) -> bool:
    function = call.function
    return (call.distinct or function.of_set) and not function.ordered and bool(call.args)


def split_call(call: AggCall, finer: bool) -> SplitCall | str:
    """The halves of a call, or why it has none."""
    function = call.function
    if depends_on_set(call) and not function.user_defined:
        return SplitCall(call, ())
    types = tuple(a.type for a in call.args)
    made = None if call.distinct or call.parameters else function.split(types, finer)
    if made is None:
        return f"aggregate {function.name} does not split"
    subs = []
    for part in made.parts:
        args = tuple(term_expr(term, call.args) for term in part.over)
        kind = part.sub.type_rule(tuple(a.type for a in args))
        subs.append(SubCall(AggCall(part.sub, args, kind), part.merge))
    return SplitCall(call, tuple(subs), made.finish, made.of_nothing)


def merged_again(split: SplitCall, columns: Sequence[Expr]) -> tuple[AggCall, ...]:
    """The calls of the high half, over the columns of the low one."""
    if not split.subs:
        return (replace(split.call, args=tuple(columns)),)
    return tuple(sub.merged(column) for sub, column in zip(split.subs, columns, strict=True))


def term_expr(term: Term, places: Sequence[Expr]) -> Expr:
    match term:
        case Place(number):
            return places[number]
        case Constant(value, type):
            return Lit(value, type)
        case Apply(function, terms):
            args = tuple(term_expr(t, places) for t in terms)
            return Call(function, args, function.type_rule(tuple(a.type for a in args)))
        case _:
            assert_never(term)
