"""The strategies of states: how low and high level share their work (paper 1, section 8).

In: the reads of a job. Out: the same, where every state that leaves a choice has the strategy that
suits its traffic: the number of groups, their sizes and how skewed these are. They are known from a
sample of the source. Without one, as for a stream that has not run yet, each task decides by the
first tuples that it groups (terascope.execute.grouping.table_states).
"""

from __future__ import annotations

from dataclasses import replace

from terascope.functions.slots import state_slot
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowQuery, Slot
from terascope.plan.show import show_expr
from terascope.sketches.base import Traffic


def choose_strategies(draft: JobDraft) -> JobDraft:
    """Before: a state with any strategy      After: with the one that suits the traffic."""
    sampled = {read.name: read for read in draft.unshared}
    reads = [chosen_read(read, sampled.get(read.name, read), draft) for read in draft.reads]
    return replace(draft, reads=tuple(reads))


def chosen_read(read: SourceRead, sampled: SourceRead, draft: JobDraft) -> SourceRead:
    if read.low is None or not any(has_choice(query) for query in read.low.queries):
        return read
    queries = tuple(
        chosen(query, found) if (found := traffic_of(query, sampled, draft)) else query
        for query in read.low.queries
    )
    return replace(read, low=replace(read.low, queries=queries))


def has_choice(query: LowQuery) -> bool:
    if not isinstance(query, LowAggregate):
        return False
    return any(s.kind.state is not None and s.kind.state.choose is not None for s in query.slots)


def traffic_of(query: LowQuery, sampled: SourceRead, draft: JobDraft) -> Traffic | None:
    """The traffic of an aggregation with a choice, in the sample, if there is one."""
    if not has_choice(query):
        return None
    own = next((q for q in sampled.aggregations if q.name == query.name), None)
    found = None if own is None else draft.measured.statistics(sampled, own)
    if own is None or found is None or not found.tuples:
        return None
    keys = frozenset(show_expr(expr) for expr in own.plain_keys)
    groups = found.groups(keys) if keys else 1.0
    return Traffic(found.tuples, groups, found.exponent(keys) if keys else 0.0)


def chosen(query: LowQuery, traffic: Traffic) -> LowQuery:
    assert isinstance(query, LowAggregate)

    def with_strategy(slot: Slot) -> Slot:
        kind = slot.kind.state
        if kind is None or kind.choose is None:
            return slot
        return replace(slot, kind=state_slot(kind.choose(traffic)))

    return replace(query, slots=tuple(map(with_strategy, query.slots)))
