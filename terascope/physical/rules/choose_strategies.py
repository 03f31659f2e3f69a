"""The strategies of states: how low and high level share their work (paper 1, section 8).

In: the reads of a job. Out: the same, where every state that leaves a choice has the strategy that
suits its traffic: the number of groups, their sizes and how skewed these are, and whether low and
high level run on the same cores. The groups are known from a sample of the source. A running stream
chooses by the samples and heartbeats of its tasks (terascope.streaming.replan.strategies); until
these are known, as in a batch without a sample, each task decides by the first tuples that it
groups (terascope.execute.grouping.table_states).

Levels. The local engine and local[n] run both levels on the cores of one machine. On a cluster the
tasks that merge run in the executors that read, one after the other: every core does the work of
both levels, and the strategy with the least work in all is best. Where the merge is placed on other
hosts, the setting low_cores_per_high says how many reading cores feed one that merges. The busier
level then decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from terascope.config import Config
from terascope.functions.slots import state_slot
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery, Slot
from terascope.plan.show import show_expr
from terascope.sketches.base import Levels, StateKind, Traffic


def choose_strategies(draft: JobDraft) -> JobDraft:
    """Before: a state with any strategy      After: with the one that suits the traffic."""
    sampled = {read.name: read for read in draft.unshared}
    reads = [chosen_read(read, sampled.get(read.name, read), draft) for read in draft.reads]
    return replace(draft, reads=tuple(reads))


def chosen_read(read: SourceRead, sampled: SourceRead, draft: JobDraft) -> SourceRead:
    if read.low is None or not any(map(has_choice, read.low.queries)):
        return read
    found = {q.name: traffic_of(q, sampled, draft) for q in read.low.queries if has_choice(q)}
    known = {name: traffic for name, traffic in found.items() if traffic is not None}
    low = on_levels(with_strategies(read.low, known), levels_of(draft.config))
    return replace(read, low=low)


def levels_of(config: Config) -> Levels:
    """The cores of the two levels, by the settings."""
    if config.low_cores_per_high is not None:
        cores = f"{config.low_cores_per_high:g} cores read for each that merges"
        return Levels(config.low_cores_per_high, f"{cores} (low_cores_per_high)")
    if config.master.startswith("local"):
        return Levels()
    return Levels(None, "both levels run on the same cores, those of Spark's executors")


def has_choice(query: LowQuery) -> bool:
    if not isinstance(query, LowAggregate):
        return False
    return any(s.kind.state is not None and s.kind.state.choose is not None for s in query.slots)


def traffic_of(query: LowQuery, sampled: SourceRead, draft: JobDraft) -> Traffic | None:
    """The traffic of an aggregation in the sample; None: there is no sample."""
    own = next((q for q in sampled.aggregations if q.name == query.name), None)
    found = None if own is None else draft.measured.statistics(sampled, own)
    if own is None or found is None or not found.tuples:
        return None
    keys = frozenset(show_expr(expr) for expr in own.plain_keys)
    groups = found.groups(keys) if keys else 1.0
    exponent = found.exponent(keys) if keys else 0.0
    return Traffic(found.tuples, groups, exponent, levels_of(draft.config))


def with_strategies(low: LowPlan, traffic: Mapping[str, Traffic]) -> LowPlan:
    """The plan in which the states of some aggregations have the strategies for their traffic."""

    def chosen(query: LowQuery) -> LowQuery:
        found = traffic.get(query.name)
        return query if found is None else with_kinds(query, lambda kind: chosen_kind(kind, found))

    return replace(low, queries=tuple(map(chosen, low.queries))) if traffic else low


def on_levels(low: LowPlan, levels: Levels) -> LowPlan:
    """The plan in which choices that are left to tasks depend on the cores of the levels."""

    def informed(kind: StateKind) -> StateKind:
        assert kind.choose is not None
        return replace(kind, choose=partial(choose_on, levels, kind.choose))

    return replace(low, queries=tuple(with_kinds(query, informed) for query in low.queries))


def with_kinds(query: LowQuery, change: Callable[[StateKind], StateKind]) -> LowQuery:
    """A query with other kinds of the states that leave a choice."""
    if not has_choice(query):
        return query
    assert isinstance(query, LowAggregate)

    def changed(slot: Slot) -> Slot:
        kind = slot.kind.state
        is_open = kind is not None and kind.choose is not None
        return replace(slot, kind=state_slot(change(kind))) if kind and is_open else slot

    return replace(query, slots=tuple(map(changed, query.slots)))


def chosen_kind(kind: StateKind, traffic: Traffic) -> StateKind:
    return kind if kind.choose is None else kind.choose(traffic)


def choose_on(
    levels: Levels, choose: Callable[[Traffic], StateKind], traffic: Traffic
) -> StateKind:
    """The choice for traffic whose levels run on these cores."""
    return choose(replace(traffic, levels=levels))
