"""The rule driver: a Plan in, an equivalent cheaper Plan out.

Rules are plain functions. A relation rule looks at one operator and gives another, or None; a plan
rule looks at the whole plan. `BATCHES` is the order they run in. Constructors refuse senseless
trees, and after every rule the driver checks that no visible stream has changed its columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from terascope.optimize.rules.absorb_conditions import absorb_conditions
from terascope.optimize.rules.drop_identities import drop_identities
from terascope.optimize.rules.filter_before_join import filter_before_join
from terascope.optimize.rules.fold_constants import fold_constants
from terascope.optimize.rules.merge_filters import merge_filters
from terascope.optimize.rules.merge_projects import merge_projects
from terascope.optimize.rules.order_joins import order_joins
from terascope.optimize.rules.prune_columns import prune_columns
from terascope.optimize.rules.push_filters import push_filters
from terascope.optimize.rules.share_subqueries import share_subqueries
from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Field, PlanMistake, Rel, inputs, refreshed, require, with_inputs

RelRule: TypeAlias = Callable[[Rel], Rel | None]
PlanRule: TypeAlias = Callable[[Plan], Plan]
Observer: TypeAlias = Callable[[str, Plan, Plan], None]
"""Called for every rule that changed the plan: its name, the plan before, the plan after."""

MAX_ROUNDS = 50


@dataclass(frozen=True)
class RuleBatch:
    """Rules that run together: relation rules until nothing changes, then plan rules once."""

    name: str
    rel_rules: tuple[RelRule, ...] = ()
    plan_rules: tuple[PlanRule, ...] = ()


BATCHES: tuple[RuleBatch, ...] = (
    RuleBatch(
        "simplify",
        (
            fold_constants,
            merge_filters,
            push_filters,
            absorb_conditions,
            filter_before_join,
            merge_projects,
            drop_identities,
        ),
    ),
    RuleBatch("joins", (), (order_joins,)),
    RuleBatch("tidy", (merge_filters, push_filters, merge_projects, drop_identities)),
    RuleBatch("share", (), (share_subqueries, prune_columns)),
)


def rule_names() -> tuple[str, ...]:
    """All rules, in the order they first run."""
    names = [r.__name__ for b in BATCHES for r in (*b.rel_rules, *b.plan_rules)]
    return tuple(dict.fromkeys(names))


def optimize(
    plan: Plan, *, disabled: frozenset[str] = frozenset(), observer: Observer | None = None
) -> Plan:
    """Run all batches. `disabled` names rules that are left out, for tests and for questions."""
    for batch in BATCHES:
        for _ in range(MAX_ROUNDS):
            before = plan
            for rule in batch.rel_rules:
                if rule.__name__ not in disabled:
                    plan = observed(rule.__name__, plan, everywhere(plan, rule), observer)
            if plan == before:
                break
        else:
            raise PlanMistake(f"batch {batch.name} does not come to an end")
        for plan_rule in batch.plan_rules:
            if plan_rule.__name__ not in disabled:
                plan = observed(plan_rule.__name__, plan, plan_rule(plan), observer)
    return plan


def observed(name: str, before: Plan, after: Plan, observer: Observer | None) -> Plan:
    if after is before:
        return after
    for stream in before.visible:
        kept = after[stream.name].rel
        if kept is not stream.rel:
            same = kept.visible == stream.rel.visible
            require(same, f"{name} changed the columns of {stream.name}")
    if observer is not None and before != after:
        observer(name, before, after)
    return after


def everywhere(plan: Plan, rule: RelRule) -> Plan:
    """A relation rule applied to every operator of every stream, inputs first."""
    streams: list[Stream] = []
    fields: dict[str, tuple[Field, ...]] = {}
    for stream in plan:
        rel = apply_below(refreshed(stream.rel, fields), rule)
        fields[stream.name] = rel.fields
        streams.append(stream.over(rel))
    return plan.of(streams)


def apply_below(rel: Rel, rule: RelRule) -> Rel:
    rel = with_inputs(rel, tuple([apply_below(p, rule) for p in inputs(rel)]))
    return rule(rel) or rel
