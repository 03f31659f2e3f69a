"""An aggregation as sub-aggregates next to the source and super-aggregates above.

In: an aggregation over a selection of one scan. Out: its high part (the low part is a draft), or
`NotSplit` with all reasons against a split. These are the data cube's sub- and superaggregates, as
in dissertation 3.4.1: the low level emits partial groups, any number of one group.

An aggregate declares how it splits (terascope.functions.base); here its terms become expressions. A
call over the set of different values (DISTINCT) has no sub-aggregate: its arguments become keys of
the low-level groups, and the call itself stays above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final

from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    AggregatePart,
    Decomposition,
    Slope,
    Term,
    Trend,
    Value,
)
from terascope.functions.epochs import epoch_state_parts
from terascope.functions.partial_states import PartialState, distinct_parts, state_parts
from terascope.physical.rules.low_planner import epoch_key
from terascope.physical.split.drafts import Drafts, LowDraft, Names
from terascope.physical.split.host import LowSafety
from terascope.physical.split.selection import Selection
from terascope.plan.build import call as build_call
from terascope.plan.build import state_arguments, term_expr
from terascope.plan.expr import (
    AggCall,
    Call,
    Cast,
    Col,
    Expr,
    Lit,
    Param,
    children,
    is_constant,
    rebuild,
    substitute,
)
from terascope.plan.rel import WEND, WSTART, Aggregate, Named, NamedAgg, Project, Rel, Running
from terascope.plan.show import show_agg, show_expr, show_named

Reason = tuple[str, str]
"""The text of a part of the query, and the reason why it stays in the high part."""


class NotSplit(Exception):
    """An aggregation stays in the high part, for these reasons."""

    def __init__(self, *reasons: Reason) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


def split_aggregation(
    query: str, rel: Aggregate | Running, chosen: Selection, drafts: Drafts
) -> Rel:
    """The high part of an aggregation whose sub-aggregates move into the low part. Sub-aggregates
    of a live source must close by epochs. Where groups live over epochs (CLOSING_WHEN), the low
    part groups the tuples of each epoch.

    Raises:
        NotSplit: there are reasons against it.
    """
    bound = drafts.judge.with_value
    keys = tuple((name, bound(chosen.over_scan(expr))) for name, expr in rel.keys)
    made = sub_aggregation(query, rel, keys, chosen, drafts)
    high_keys = tuple((name, follows(expr, made.columns) or expr) for name, expr in keys)
    return super_aggregation(rel, made.draft.read, high_keys, made)


@dataclass(frozen=True)
class SubAggregation:
    """The low part of an aggregation."""

    draft: LowDraft
    splits: list[SplitCall]
    columns: Mapping[Expr, Expr]
    """The columns of the low-level keys."""

    def columns_of(self, split: SplitCall) -> list[Expr]:
        """The columns of one of its aggregates."""
        if split.subs:
            return [self.draft.sub_aggregate(call) for sub in split.subs for call in sub.calls]
        return [follows(arg, self.columns) or arg for arg in split.keyed]


def sub_aggregation(
    query: str,
    rel: Aggregate | Running,
    keys: tuple[Named, ...],
    chosen: Selection,
    drafts: Drafts,
    finer: bool = False,
) -> SubAggregation:
    """The sub-aggregates of an aggregation by some keys over the scan. `finer`: several low-level
    groups make up one requested group, whatever the keys are.

    Raises:
        NotSplit: there are reasons against it.
    """
    text, judge = f"GROUP BY {show_named(rel.keys)}", drafts.judge
    if not judge.host.aggregates:
        raise NotSplit((text, f"host {judge.host.name} does not aggregate"))
    calls = [over_scan(call, chosen, judge) for _, call in rel.aggs]
    own = fewest(expr for _, expr in keys)
    apart = counts_apart(calls, own)
    sets = [] if apart else [a for call in calls if depends_on_set(call) for a in call.args]
    groups = fewest((*own, *sets))
    has_sets = isinstance(rel, Aggregate) and rel.sets is not None
    several = finer or has_sets or set(groups) != set(own)
    types = {f.name: f.type for f in rel.source.fields}
    order = {name for call in calls for name in call.order} - {WSTART, WEND}  # of the group
    known = {name: over_source(Col(name, types[name]), chosen, judge) for name in order}
    places = [tuple(known[name] for name in call.order if name in known) for call in calls]
    pairs = list(zip(calls, places, strict=True))
    how = CallSplitter(several, apart, over_epochs=isinstance(rel, Running))
    splits = [how.split(call, at) for call, at in pairs]
    if any(isinstance(split, SplitCall) and split.has_states for split in splits):
        # A group with states has one row: sums of FLOATs are states then, too.
        splits = [replace(how, one_row=True).split(call, at) for call, at in pairs]
    reasons = tuple(dict.fromkeys(against(chosen, groups, calls, splits, judge)))
    if drafts.live and epoch_key(chosen.scan, groups) is None:
        reasons += ((text, "no key increases with one column, so that sub-aggregates never close"),)
    made = [split for split in splits if isinstance(split, SplitCall)]
    subs = [call for split in made for sub in split.subs for call in sub.calls]
    if not reasons and len(set(subs)) > judge.host.most_slots:
        why = f"{len(set(subs))} sub-aggregates; a table has room for {judge.host.most_slots}"
        reasons = ((text, why),)
    if reasons:
        raise NotSplit(*reasons)
    draft = drafts.stream(query, chosen.scan, chosen.conditions, groups, subs)
    columns = {expr: draft.column(expr, key_name(expr, keys)) for expr in groups}
    for sub in subs:
        draft.sub_aggregate(sub)
    return SubAggregation(draft, made, columns)


def key_name(expr: Expr, keys: tuple[Named, ...]) -> str:
    """The name of a low-level key: that of the key it is, or of a key that follows from it."""
    whole = [name for name, key in keys if key == expr]
    scaled = [f"{name}_key" for name, key in keys if unscaled(key) == expr]
    return next(iter((*whole, *scaled)), "value")


def over_scan(call: AggCall, chosen: Selection, judge: LowSafety) -> AggCall:
    """A call over the columns of the scan, with the values of parameters."""
    known = (judge.with_value(parameter) for parameter in call.parameters)
    parameters = tuple(p for p in known if isinstance(p, Lit | Param))
    args = tuple(over_source(a, chosen, judge) for a in call.args)
    return replace(call, args=args, parameters=parameters)


def over_source(expr: Expr, chosen: Selection, judge: LowSafety) -> Expr:
    return judge.with_value(chosen.over_scan(expr))


def counts_apart(calls: Sequence[AggCall], own: Sequence[Expr]) -> bool:
    """Whether aggregates look at the different values of different things: these cannot all become
    keys of the groups.
    """
    looked_at = (frozenset(fewest(c.args)) - frozenset(own) for c in calls if depends_on_set(c))
    return len({some for some in looked_at if some}) > 1


def against(
    chosen: Selection,
    groups: list[Expr],
    calls: list[AggCall],
    splits: list[SplitCall | str],
    judge: LowSafety,
) -> Iterator[Reason]:
    for condition in chosen.conditions:
        if (reason := judge.condition(condition)) is not None:
            yield show_expr(condition), reason
    for expr in groups:
        if (reason := judge.key(expr)) is not None:
            yield show_expr(expr), reason
    for call, split in zip(calls, splits, strict=True):
        if isinstance(split, str):
            yield show_agg(call), split
            continue
        for part in (part for sub in split.subs for part in sub.calls):
            if (reason := judge.sub_aggregate(part)) is not None:
                yield show_agg(call), reason


def super_aggregation(
    rel: Aggregate | Running, source: Rel, high_keys: tuple[Named, ...], low: SubAggregation
) -> Rel:
    """The super-aggregates over a relation with the columns of the low-level stream, and the values
    computed from them.
    """
    empty = isinstance(rel, Running) or rel.emit_empty is not None
    names = Names(set(rel.names))
    supers: dict[AggCall, str] = {}
    values: list[Named] = []
    for (name, _), split in zip(rel.aggs, low.splits, strict=True):
        calls = merged_again(split, low.columns_of(split))
        plain = split.finish == FIRST and not (empty and split.of_nothing is not None)
        if plain and calls[0] not in supers:
            supers[calls[0]] = name
        columns = [Col(supers.get(c) or named(c, names, supers), c.type) for c in calls]
        values.append((name, split.value(columns, empty)))
    aggs: tuple[NamedAgg, ...] = tuple((name, call) for call, name in supers.items())
    if isinstance(rel, Running):
        closing = substitute(rel.closing, dict(values))
        made: Rel = replace(rel, source=source, keys=high_keys, aggs=aggs, closing=closing)
    else:
        made = replace(rel, source=source, keys=high_keys, aggs=aggs)
    kept = tuple((name, Col(name, expr.type)) for name, expr in high_keys)
    return Project(made, (*kept, *values))


def named(call: AggCall, names: Names, supers: dict[AggCall, str]) -> str:
    """A name for a super-aggregate that is only a part of a value."""
    column = call.args[0]
    supers[call] = names.take(column.name if isinstance(column, Col) else "value")
    return supers[call]


# ---- one aggregate call --------------------------------------------------------------------------


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
    def has_states(self) -> bool:
        return any(isinstance(c.function, PartialState) for sub in self.subs for c in sub.calls)

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


@dataclass(frozen=True)
class CallSplitter:
    """Splits the calls of an aggregation into sub- and super-aggregates."""

    finer: bool
    """Several low-level groups make up one requested group."""
    apart: bool = False
    """Sets of different values are states, not keys."""
    over_epochs: bool = False
    """Groups live over epochs: running aggregates go on."""
    one_row: bool = False
    """A group must have one row, also where FLOATs are summed."""

    def split(self, call: AggCall, places: tuple[Expr, ...] = ()) -> SplitCall | str:
        """The sub- and the super-aggregate of a call, or the reason why it does not split.
        `places`: the place of a tuple in the stream, for an order-dependent aggregate.
        """
        function = call.function
        lives = self.over_epochs and function.running
        if depends_on_set(call) and not function.user_defined:
            if not self.apart:
                return SplitCall(call, ())
            return SET_OVER_EPOCHS if lives else split_set(call)
        types = tuple(a.type for a in call.args)
        made = None
        if not call.distinct:
            constants = values_of(call)
            if not lives:
                made = function.split(types, self.finer)
            elif constants is not None:
                made = function.split_epochs(types, constants)
        if made is None or (self.one_row and splits_rows(made)):
            return split_states(call, places, lives)
        subs = tuple(sub_call(part, call.args) for part in made.parts)
        return SplitCall(call, subs, made.finish, made.of_nothing)


SET_OVER_EPOCHS: Final = "the different values of several things are not kept over epochs"


def splits_rows(made: Decomposition) -> bool:
    return any(sub.splits_groups for part in made.parts for sub, _ in part.subs)


def values_of(call: AggCall) -> tuple[Value, ...] | None:
    """The constants of a call; None when the value of a parameter is not known."""
    values = tuple(p.value for p in call.parameters if isinstance(p, Lit))
    return values if len(values) == len(call.parameters) else None


def split_set(call: AggCall) -> SplitCall | str:
    """The split of a call over the different values of one argument, which a group keeps."""
    values = values_of(call)
    if len(call.args) != 1 or values is None:
        return "another aggregate looks at different values of something else"
    made = distinct_parts(call.function, call.args[0].type, call.type, values)
    return SplitCall(call, tuple(sub_call(part, call.args) for part in made.parts), made.finish)


def split_states(call: AggCall, places: tuple[Expr, ...], lives: bool) -> SplitCall | str:
    """The split of a call that keeps a state in each group (paper 1, 3.2). `lives`: over epochs."""
    function, values, kind = call.function, values_of(call), None
    if not call.distinct and values is not None and (places or not function.ordered):
        given = values[: function.state_parameters]
        kind = function.state(tuple(a.type for a in call.args), given)
    if kind is None or values is None:
        return f"aggregate {function.name} does not split"
    args = call.args[:1] if kind.from_states else (*state_arguments(call), *places)
    parts = epoch_state_parts if lives else state_parts
    made = parts(function, kind, tuple(a.type for a in args), call.type, values)
    return SplitCall(call, tuple(sub_call(part, args) for part in made.parts), made.finish)


def sub_call(part: AggregatePart, over_args: Sequence[Expr]) -> SubCall:
    calls = []
    for sub, over in part.subs:
        args = tuple(term_expr(term, over_args) for term in over)
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
