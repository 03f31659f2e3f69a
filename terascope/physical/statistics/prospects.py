"""Whether a sample of the sources can pay for itself, estimated before anything is read.

In: an optimised plan and its interfaces. Out: a `Prospect`: the most time that sharing is likely to
save, and the time that a sample takes. Where the first is less, no source is sampled: aggregations
with different conditions have tables of their own, there are no trees, tumbling windows keep keys
of their own, and only sliding windows, which are assembled from slices anyway, share slices.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from terascope.connectors.registry import Interface
from terascope.physical.split.drafts import scan_key
from terascope.plan.expr import columns_of
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Read,
    Rel,
    Scan,
    Sliding,
    Window,
    WindowSpec,
    walk,
)
from terascope.sharing.windows import PARTIAL_NS, TUPLE_NS

SAVED_SHARE: Final = 0.25
"""The most that sharing is likely to save, as a share of the time of the avoidable look-ups:
look-ups of groups on tree edges replace them. Measured without Spark, in processor time: at most 6%
for `bench set50` and for 78 pairs of keys, 15% for `bench hundred`; 51% for packets by all sets of
the fields of a flow (`bench trees`), which few query sets resemble."""
SAMPLE_SECONDS: Final = 0.25
"""The time to load the kernels that decode a source, and to read some of it. Measured: three
aggregations of a capture take 0.29 s more to plan with a sample than without, a hundred alike 0.43
s, and the 32 of set50 0.55 to 0.79 s; 0.1 to 0.3 s less in a process that has planned before."""
AGGREGATION_SECONDS: Final = 0.01
"""The time to evaluate an aggregation on the sample, and to plan with that."""
SLOT_NS: Final = 1.0
"""Updating a slot."""
MASKED_NS: Final = 1.5
"""Testing the admission predicate of a slot, and updating the slot or not."""
VIEW_NS: Final = 20.0
"""Copying a group of a shared table to one of its queries, where each query has a stream."""


@dataclass(frozen=True)
class Prospect:
    """The possible gain of a sample of the sources, and its cost."""

    tuples: float
    aggregations: int
    saves_seconds: float
    """An upper bound in practice, on all cores together."""
    costs_seconds: float
    """The time on one core, while the others are idle."""

    @property
    def pays(self) -> bool:
        return self.saves_seconds > self.costs_seconds


def prospect_of(
    plan: Plan, interfaces: Mapping[str, Interface], cores: int | None = None
) -> Prospect:
    takers = list(aggregations_of_tuples(plan))
    costs = SAMPLE_SECONDS + AGGREGATION_SECONDS * len(takers)
    if len(takers) < 2:  # nothing to share with
        return Prospect(0.0, len(takers), 0.0, costs)
    names = {n for s in plan for scan in scans(s.rel) for n in scan.interfaces}
    tuples = sum(interfaces[n].estimated_tuples() for n in names if interfaces[n].hosts_low_level)
    saved = 1e-9 * tuples * spared_ns(takers) * SAVED_SHARE / (cores or os.cpu_count() or 1)
    return Prospect(tuples, len(takers), saved, costs)


def aggregations_of_tuples(plan: Plan) -> Iterator[Aggregate]:
    """The aggregations over tuples of sources, not over other queries."""
    selections: set[str] = set()
    for stream in plan:
        if not any(isinstance(rel, Aggregate) for rel in walk(stream.rel)):
            selections.add(stream.name)
            continue
        for rel in walk(stream.rel):
            if isinstance(rel, Aggregate) and takes_tuples(rel.source, selections):
                yield rel


def takes_tuples(rel: Rel, selections: set[str]) -> bool:
    parts = list(walk(rel))
    made = any(isinstance(part, Aggregate) for part in parts)
    known = all(part.stream in selections for part in parts if isinstance(part, Read))
    return known and not made


def spared_ns(aggregations: Iterable[Aggregate]) -> float:
    """The nanoseconds for each tuple of the look-ups that sharing could avoid: all but one of those
    with the same time, which could share tables and trees, or of those with the same keys, which
    could share slices. Aggregations that share a table in any case count once.
    """
    tables: set[object] = set()
    times: dict[object, list[float]] = {}
    keys: dict[object, list[float]] = {}
    for rel in aggregations:
        exprs = frozenset(expr for _, expr in rel.keys)
        timed = frozenset(expr for expr in exprs if columns_of(expr) & ordered(rel.source))
        windows = frozenset(part.spec for part in walk(rel) if isinstance(part, Window))
        table = tuples_of(rel.source), exprs, windows
        if table in tables:
            continue
        tables.add(table)
        cost = look_up_ns(windows)
        times.setdefault((timed, windows), []).append(cost)
        keys.setdefault(exprs - timed, []).append(cost)
    return max(sum(sum(own) - max(own) for own in some.values()) for some in (times, keys))


def tuples_of(rel: Rel) -> object:
    """The identity of the tuples of an aggregation, whatever columns it uses."""
    filters = (part.predicate for part in walk(rel) if isinstance(part, Filter))
    read = (part.stream for part in walk(rel) if isinstance(part, Read))
    return tuple(map(scan_key, scans(rel))), tuple(read), frozenset(filters)


def ordered(rel: Rel) -> frozenset[str]:
    """The columns of a source that move with time."""
    columns = (column for scan in scans(rel) for column in scan.columns)
    return frozenset(column.name for column in columns if column.slope is not None)


def look_up_ns(windows: Iterable[WindowSpec]) -> float:
    """The cost of a tuple; in a sliding window it may become a partial of its own."""
    sliding = any(isinstance(spec, Sliding) and spec.range != spec.slide for spec in windows)
    return TUPLE_NS + (PARTIAL_NS if sliding else 0.0)


def scans(rel: Rel) -> Iterator[Scan]:
    return (part for part in walk(rel) if isinstance(part, Scan))


@dataclass(frozen=True)
class Taking:
    """An aggregation: the tuples it takes, and its slots."""

    tuples: float
    slots: int

    @property
    def slots_ns(self) -> float:
        return SLOT_NS * self.slots * self.tuples


def masked_ns(either: float, members: Sequence[Taking]) -> float:
    """The slots of all in one table, which `either` tuples enter, and a count for each."""
    return MASKED_NS * either * sum(member.slots + 1 for member in members)


def saves_lookups(parts: Iterable[tuple[float, Sequence[Taking]]]) -> bool:
    """Whether aggregations should share a table instead of having one each: for every read, the
    tuples that any of them takes, and each of them.
    """
    together = apart = 0.0
    for either, members in parts:
        together += TUPLE_NS * either + masked_ns(either, members)
        apart += sum(TUPLE_NS * member.tuples + member.slots_ns for member in members)
    return 0.0 < together < apart
