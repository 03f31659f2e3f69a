"""An aggregate call as sub-aggregates next to the source and a value computed from them above.

In: an aggregate call over the columns of a scan. Out: a `SplitCall`, or the reason why there is
none. The aggregate declares how it splits (terascope.functions.base); here its terms
become expressions. A call over the set of different values (DISTINCT) has no sub-aggregate: its
arguments become keys of the low-level groups, and the call itself stays above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    AggregatePart,
    Slope,
    Term,
    Trend,
    Value,
)
from terascope.plan.build import call as build_call
from terascope.plan.build import term_expr
from terascope.plan.expr import AggCall, Call, Cast, Col, Expr, Lit, children, is_constant, rebuild


@dataclass(frozen=True)
class SubCall:
    """Sub-aggregates over the scan, most often one, and the super-aggregate that merges them."""

    calls: tuple[AggCall, ...]
    merge: AggregateFunction

    def merged(self, columns: tuple[Expr, ...]) -> AggCall:
        """The super-aggregate over the columns of the sub-aggregates."""
        return AggCall(self.merge, columns, self.merge.type_rule(tuple(c.type for c in columns)))


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
    """Return the sub- and the super-aggregate of a call, or the reason why it does not split."""
    function = call.function
    if depends_on_set(call) and not function.user_defined:
        return SplitCall(call, ())
    types = tuple(a.type for a in call.args)
    made = None if call.distinct or call.parameters else function.split(types, finer)
    if made is None:
        return f"aggregate {function.name} does not split"
    subs = tuple(sub_call(part, call) for part in made.parts)
    return SplitCall(call, subs, made.finish, made.of_nothing)


def sub_call(part: AggregatePart, call: AggCall) -> SubCall:
    calls = []
    for sub, over in part.subs:
        args = tuple(term_expr(term, call.args) for term in over)
        calls.append(AggCall(sub, args, sub.type_rule(tuple(a.type for a in args))))
    return SubCall(tuple(calls), part.merge)


def merged_again(split: SplitCall, columns: Sequence[Expr]) -> tuple[AggCall, ...]:
    """The calls of the high part, over the columns of the low part."""
    if not split.subs:
        return (replace(split.call, args=tuple(columns)),)
    left = iter(columns)
    return tuple(sub.merged(tuple(islice(left, len(sub.calls)))) for sub in split.subs)


RISING = Slope(Trend.INCREASING, strict=True)


def fewest(exprs: Iterable[Expr]) -> list[Expr]:
    """The fewest expressions from which all given expressions follow."""
    bases = list(dict.fromkeys(unscaled(e) for e in exprs if not is_constant(e)))
    return [e for e in bases if follows(e, {b: b for b in bases if b != e}) is None]


def follows(expr: Expr, known: Mapping[Expr, Expr]) -> Expr | None:
    """The expression over known ones; None when it needs more."""
    if expr in known:
        return known[expr]
    if isinstance(expr, Col):
        return None
    parts = [follows(part, known) for part in children(expr)]
    found = tuple(part for part in parts if part is not None)
    return rebuild(expr, found) if len(found) == len(parts) else None


@lru_cache(maxsize=4096)
def unscaled(expr: Expr) -> Expr:
    """The expression without outer functions that keep integers different: x of 60 * x + 7."""
    while isinstance(expr, Call) and expr.type.is_integer:
        varying = [a for a in expr.args if not is_constant(a)]
        if len(varying) != 1 or not varying[0].type.is_integer or not keeps_apart(expr):
            return expr
        expr = varying[0]
    return expr


def keeps_apart(call: Call) -> bool:
    """Whether a larger argument always gives a larger, or always gives a smaller value."""
    slopes: list[Slope] = []
    for arg in call.args:
        if not is_constant(arg):
            slopes.append(RISING)
        elif isinstance(arg, Lit) and arg.value is not None:
            slopes.append(Slope(Trend.CONSTANT, value=arg.value))
        else:
            return False
    slope = call.function.slope(slopes)
    return slope.is_ordered and slope.strict
