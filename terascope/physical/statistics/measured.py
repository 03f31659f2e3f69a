"""Decisions from a sample of the sources.

In: the reads of a job with their low-level plans. Out: the rate of tuples and the number of their
groups, for windows (paper 0, inequality 3) and for trees (paper 4); and whether aggregations with
different conditions should share a table. A source is read for half a second at most, once, and
only when a decision depends on it and the sample can pay for itself (`prospects`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from terascope.diagnostic import SourceError
from terascope.functions.base import ValueMistake
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan, Queries, expressions_of
from terascope.physical.rules.low_planner import scan_use
from terascope.physical.split.drafts import scan_key
from terascope.physical.split.slicing import SliceFamily, Slicing, ticks
from terascope.physical.statistics.prospects import Taking, saves_lookups
from terascope.physical.statistics.sampling import (
    SampledTuples,
    SampleLimits,
    SourceSample,
    evaluated,
    read_some,
)
from terascope.plan.build import FALSE, TRUE
from terascope.plan.expr import columns_of, conjuncts
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate
from terascope.plan.show import show_expr
from terascope.sharing.statistics import SampledStatistics
from terascope.sharing.windows import TupleTraffic, ungrouped


@dataclass
class Measured:
    """Samples of the sources of a job, taken at first use."""

    limits: SampleLimits | None
    """The limits of a sample; None: nothing is measured."""
    samples: dict[str, tuple[LowPlan | None, SourceSample | None]] = field(default_factory=dict)
    tuples: dict[str, SampledTuples] = field(default_factory=dict)
    """The sampled tuples as they were read, for another plan of the same columns."""

    def sample(self, read: SourceRead) -> SourceSample | None:
        known = self.samples.get(read.name)
        if known is None or (known[0] is not read.low and known[0] != read.low):
            known = self.samples[read.name] = read.low, self._sampled(read)
        return known[1]

    def _sampled(self, read: SourceRead) -> SourceSample | None:
        if self.limits is None or read.low is None or not read.splits:
            return None
        low = of_aggregations(read.low)
        try:
            known = self.tuples.get(read.name)
            if known is None or not set(low.columns) <= set(known.columns):
                known = self.tuples[read.name] = read_some(low, read.splits, self.limits)
            return evaluated(low, known)
        except (SourceError, ValueMistake):  # the run will say so, if it matters there
            return None

    def statistics(self, read: SourceRead, *queries: LowAggregate) -> SampledStatistics | None:
        """Statistics of the tuples that any aggregation takes, in epochs of the first."""
        sample = self.sample(read)
        if sample is None or not sample.tuples_kept:
            return None
        return sample.statistics(*queries)

    def shares(self, read: SourceRead, queries: Sequence[LowAggregate]) -> dict[str, float]:
        """By name: the share of all tuples of some aggregations that each of them takes."""
        sample = self.sample(read)
        if sample is None:
            return {}
        taken = {query.name: sample.passed(query.name) for query in queries}
        total = max(1, int(sample.any_of(list(taken.values())).sum()))
        return {name: len(tuples) / total for name, tuples in taken.items()}

    # ---- conditions

    def pays_to_share(self, members: Sequence[Queries], reads: Sequence[SourceRead]) -> bool:
        """Whether aggregations with different conditions should share a table. Looking a tuple up
        once for all saves little where hardly any tuple belongs to two of them.
        """
        parts: list[tuple[float, list[Taking]]] = []
        for read in reads:
            own = [queries[read.name] for queries in members if read.name in queries]
            sample = self.sample(read) if own else None
            if sample is None:
                continue
            takings = [Taking(len(sample.passed(q.name)), len(q.slots)) for q in own]
            parts.append((sample.either(tuple(q.name for q in own)), takings))
        return saves_lookups(parts)

    def size(self, queries: Queries) -> float:
        """The tuples of the existing samples that an aggregation takes."""
        known = {name: sample for name, (_, sample) in self.samples.items()}
        found = ((query, known.get(name)) for name, query in queries.items())
        return float(sum(len(s.passed(q.name)) for q, s in found if s is not None and s.knows(q)))

    # ---- windows

    def traffic(
        self, family: SliceFamily, slicing: Slicing, plan: Plan, reads: Sequence[SourceRead]
    ) -> TupleTraffic | None:
        for read in reads:
            query = aggregation_of(family, plan, read)
            found = None if query is None else self.statistics(read, query)
            if found is None or query is None or not found.rate:
                continue
            keys = frozenset(show_expr(expr) for expr in query.plain_keys)
            second = ticks(slicing.scans[family], family.time)
            groups = partial(found.groups, keys) if keys else ungrouped
            return TupleTraffic(found.rate / second, groups)
        return None


def of_aggregations(plan: LowPlan) -> LowPlan:
    """A plan with the aggregations only: reading the columns of selections, payloads above all,
    takes longer than everything decided here.
    """
    queries = plan.aggregations
    bits = {bit for query in queries for bit in query.signature}
    predicates = tuple(p if i in bits else FALSE for i, p in enumerate(plan.predicates))
    used = [*predicates, *(expr for query in queries for expr in expressions_of(query))]
    names = frozenset[str]().union(*(columns_of(expr) for expr in used))
    columns = tuple(c for c in plan.columns if c.name in names or c.clock is not None)
    return replace(plan, queries=queries, predicates=predicates, columns=columns)


def aggregation_of(family: SliceFamily, plan: Plan, read: SourceRead) -> LowAggregate | None:
    """A low-level aggregation with the keys and the tuples of a family."""
    for query in read.aggregations:
        rel = plan[query.name].rel
        epoch = query.epoch
        if epoch is not None and isinstance(rel, Aggregate) and is_of(rel, epoch, family):
            return query
    return None


def is_of(rel: Aggregate, epoch: int, family: SliceFamily) -> bool:
    scan, predicate = scan_use(rel)
    conditions = frozenset(c for c in conjuncts(predicate) if c != TRUE)
    keys = frozenset(expr for i, (_, expr) in enumerate(rel.keys) if i != epoch)
    # In addition to the query's conditions, slices only need a time.
    beyond = (columns_of(c) for c in conditions - family.conditions)
    same = family.conditions <= conditions and all(c <= columns_of(family.time) for c in beyond)
    return same and scan_key(scan) == family.scan and keys == family.keys
