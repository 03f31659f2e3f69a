"""An aggregation as sub-aggregates next to the source and super-aggregates above.

In: an aggregation over a selection of one scan. Out: its high part (the low part is a draft), or
`NotSplit` with all reasons against a split. These are the data cube's sub- and superaggregates, as
in dissertation 3.4.1: the low level emits partial groups, any number of one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from terascope.analysis.costs import Costs
from terascope.functions.base import FIRST, Value
from terascope.physical.rules.low_planner import epoch_key
from terascope.physical.split.drafts import Drafts, LowDraft, Names
from terascope.physical.split.host import Host
from terascope.physical.split.selection import Selection
from terascope.physical.split.sub_aggregates import (
    SplitCall,
    depends_on_set,
    fewest,
    follows,
    merged_again,
    split_call,
    unscaled,
)
from terascope.plan.expr import AggCall, Call, Col, Expr, Lit, Param, is_constant, transform, walk
from terascope.plan.rel import Aggregate, Named, NamedAgg, Project, Rel
from terascope.plan.show import show_agg, show_expr, show_named

Reason = tuple[str, str]
"""The text of a part of the query, and the reason why it stays in the high part."""


@dataclass(frozen=True)
class LowSafety:
    """Decides which expressions may move into the low part. Answers are reasons against it, or
    None.
    """

    host: Host
    costs: Costs
    values: Mapping[str, Value]
    """The values of parameters; a parameter without a value stays a parameter."""

    def with_value(self, expr: Expr) -> Expr:
        if not self.values:
            return expr

        def bound(e: Expr) -> Expr:
            value = self.values.get(e.name) if isinstance(e, Param) else None
            return e if value is None or not isinstance(e, Param) else Lit(value, e.type, e.name)

        return transform(expr, bound)

    def with_values(self, chosen: Selection) -> Selection:
        if not self.values:
            return chosen
        conditions = tuple(map(self.with_value, chosen.conditions))
        items = tuple((name, self.with_value(expr)) for name, expr in chosen.items)
        return replace(chosen, conditions=conditions, items=items)

    def unsafe(self, expr: Expr, unable: str = "") -> str | None:
        """Why an expression must stay above the source; None when it is low-level safe. `unable`:
        what the host cannot do with any such expression. What its evaluator has no form for is only
        of interest when the expression would be worth it.
        """
        for part in walk(expr):
            if isinstance(part, Call) and part.function.user_defined:
                return f"{part.function.name} is a user's Python function"
        refused = f"host {self.host.name} {unable}" if unable else self.host.refuses(expr)
        if refused is not None:
            return refused
        cost, budget = self.costs.of(expr), self.costs.budget_ns
        if cost > budget:
            return f"costs {cost:.0f} ns, over the budget of {budget:.0f} ns"
        return self.host.knows(expr)

    def condition(self, expr: Expr) -> str | None:
        return self.unsafe(expr, "" if self.host.filters else "evaluates no predicates")

    def column(self, expr: Expr) -> str | None:
        return self.unsafe(expr, "" if self.host.computes else "computes no columns")

    def key(self, expr: Expr) -> str | None:
        if expr.type not in self.host.key_types:
            return f"host {self.host.name} does not group by {expr.type.label}"
        return self.unsafe(expr)

    def sub_aggregate(self, call: AggCall) -> str | None:
        if not call.function.cheap:
            return f"aggregate {call.function.name} is not for the low level"
        if call.type not in self.host.value_types:
            return f"host {self.host.name} holds no {call.type.label} in a group"
        return next(filter(None, map(self.unsafe, call.args)), None)

    def is_safe(self, chosen: Selection) -> bool:
        """Whether a whole selection can run next to the source."""
        computed = [e for _, e in chosen.items if not isinstance(e, Col) and not is_constant(e)]
        return all(self.condition(c) is None for c in chosen.conditions) and all(
            self.column(e) is None for e in computed
        )


class NotSplit(Exception):
    """An aggregation stays in the high part, for these reasons."""

    def __init__(self, *reasons: Reason) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


def split_aggregation(
    query: str,
    rel: Aggregate,
    chosen: Selection,
    judge: LowSafety,
    drafts: Drafts,
    live: bool = False,
) -> Rel:
    """The high part of an aggregation whose sub-aggregates move into the low part. Sub-aggregates
    of a live source must close by epochs.

    Raises:
        NotSplit: there are reasons against it.
    """
    keys = tuple((name, judge.with_value(chosen.over_scan(expr))) for name, expr in rel.keys)
    made = sub_aggregation(query, rel, keys, chosen, judge, drafts, live)
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
    rel: Aggregate,
    keys: tuple[Named, ...],
    chosen: Selection,
    judge: LowSafety,
    drafts: Drafts,
    live: bool,
    finer: bool = False,
) -> SubAggregation:
    """The sub-aggregates of an aggregation by some keys over the scan. `finer`: several low-level
    groups make up one requested group, whatever the keys are.

    Raises:
        NotSplit: there are reasons against it.
    """
    text = f"GROUP BY {show_named(rel.keys)}"
    if not judge.host.aggregates:
        raise NotSplit((text, f"host {judge.host.name} does not aggregate"))
    calls = [over_scan(call, chosen, judge) for _, call in rel.aggs]
    own = fewest(expr for _, expr in keys)
    groups = fewest((*own, *(a for call in calls if depends_on_set(call) for a in call.args)))
    several = finer or rel.sets is not None or set(groups) != set(own)
    splits = [split_call(call, several) for call in calls]
    reasons = tuple(dict.fromkeys(against(chosen, own, groups, calls, splits, judge)))
    if live and epoch_key(chosen.scan, groups) is None:
        reasons += ((text, "no key increases with one column, so that sub-aggregates never close"),)
    made = [split for split in splits if isinstance(split, SplitCall)]
    subs = [call for split in made for sub in split.subs for call in sub.calls]
    if not reasons and len(set(subs)) > judge.host.most_slots:
        why = f"{len(set(subs))} sub-aggregates; a table has room for {judge.host.most_slots}"
        reasons = ((text, why),)
    if reasons:
        raise NotSplit(*reasons)
    draft = drafts.stream(
        query, chosen.scan, chosen.conditions, groups, subs, judge.host.most_slots
    )
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
    return replace(call, args=tuple(judge.with_value(chosen.over_scan(a)) for a in call.args))


def against(
    chosen: Selection,
    own: list[Expr],
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
    added = frozenset(groups) - frozenset(own)
    adding = [frozenset(fewest(c.args)) & added if depends_on_set(c) else None for c in calls]
    apart = len({a for a in adding if a}) > 1
    for call, split, adds in zip(calls, splits, adding, strict=True):
        if isinstance(split, str):
            yield show_agg(call), split
            continue
        if apart and adds:
            yield show_agg(call), "another aggregate looks at different values of something else"
        for part in (part for sub in split.subs for part in sub.calls):
            if (reason := judge.sub_aggregate(part)) is not None:
                yield show_agg(call), reason


def super_aggregation(
    rel: Aggregate,
    source: Rel,
    high_keys: tuple[Named, ...],
    low: SubAggregation,
) -> Rel:
    """The super-aggregates over a relation with the columns of the low-level stream, and the values
    computed from them.
    """
    empty = rel.emit_empty is not None
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
    made = replace(rel, source=source, keys=high_keys, aggs=aggs)
    kept = tuple((name, Col(name, expr.type)) for name, expr in high_keys)
    return Project(made, (*kept, *values))


def named(call: AggCall, names: Names, supers: dict[AggCall, str]) -> str:
    """A name for a super-aggregate that is only a part of a value."""
    column = call.args[0]
    supers[call] = names.take(column.name if isinstance(column, Col) else "value")
    return supers[call]
