"""Whether a sample of the sources can pay for itself, told before anything is read.

In: an optimised plan and its interfaces. Out: a `Prospect`: the time that sharing could save at
most, and what it takes to find out. Where the first is less, no source is sampled: aggregations
with different conditions have tables of their own, there are no trees, tumbling windows keep their
own keys, and only sliding windows, which are made of slices anyway, share them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from terascope.connectors.extent import about_tuples
from terascope.connectors.registry import Interface
from terascope.physical.riding import TUPLE_NS
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate, Read, Rel, Scan, Sliding, Window, inputs
from terascope.sharing.windows import WindowCosts

SAVED_SHARE: Final = 0.4
"""Of all look-ups, that sharing saves: 36% of those of the fifty queries of `bench set50`."""
SAMPLE_SECONDS: Final = 0.25
"""To load the kernels that decode a source, and to read some of it. Measured: three aggregations of
a capture take 0.29 s more to plan with a sample than without, a hundred alike 0.43 s, and those of
set50 0.55 to 0.79 s; 0.1 to 0.2 s less in a process that has planned before."""
AGGREGATION_SECONDS: Final = 0.005
"""To evaluate the keys and conditions of an aggregation on the sample, and to plan with that."""


@dataclass(frozen=True)
class Prospect:
    """What is to be gained by looking at the sources."""

    tuples: float
    aggregations: int
    saves_seconds: float
    """At most, on all cores together."""
    costs_seconds: float
    """On one: nothing else is done meanwhile."""

    @property
    def pays(self) -> bool:
        return self.saves_seconds > self.costs_seconds


def prospect_of(
    plan: Plan, interfaces: Mapping[str, Interface], cores: int | None = None
) -> Prospect:
    """Of a plan over interfaces."""
    takers = list(aggregations_of_tuples(plan))
    costs = SAMPLE_SECONDS + AGGREGATION_SECONDS * len(takers)
    if len(takers) < 2:  # who should share with whom?
        return Prospect(0.0, len(takers), 0.0, costs)
    names = {n for s in plan for scan in scans(s.rel) for n in scan.interfaces}
    tuples = sum(about_tuples(interfaces[n]) for n in names if interfaces[n].hosts_low_level)
    # One look-up of each tuple is left, however much is shared.
    spent = sorted(look_up_ns(rel) for rel in takers)[:-1]
    saved = 1e-9 * tuples * sum(spent) * SAVED_SHARE / (cores or os.cpu_count() or 1)
    return Prospect(tuples, len(takers), saved, costs)


def aggregations_of_tuples(plan: Plan) -> Iterator[Aggregate]:
    """The aggregations that take tuples of sources, and not what others made of them."""
    selections: set[str] = set()
    for stream in plan:
        if not any(isinstance(rel, Aggregate) for rel in below(stream.rel)):
            selections.add(stream.name)
            continue
        for rel in below(stream.rel):
            if isinstance(rel, Aggregate) and takes_tuples(rel.source, selections):
                yield rel


def takes_tuples(rel: Rel, selections: set[str]) -> bool:
    parts = list(below(rel))
    made = any(isinstance(part, Aggregate) for part in parts)
    known = all(part.stream in selections for part in parts if isinstance(part, Read))
    return known and not made


def look_up_ns(rel: Aggregate) -> float:
    """What a tuple costs; in sliding windows it may become a partial of its own."""
    specs = [part.spec for part in below(rel) if isinstance(part, Window)]
    sliding = any(isinstance(spec, Sliding) and spec.range != spec.slide for spec in specs)
    return TUPLE_NS + (WindowCosts().partial_ns if sliding else 0.0)


def scans(rel: Rel) -> Iterator[Scan]:
    return (part for part in below(rel) if isinstance(part, Scan))


def below(rel: Rel) -> Iterator[Rel]:
    """A relation and all it is made of."""
    yield rel
    for part in inputs(rel):
        yield from below(part)
