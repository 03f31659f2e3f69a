"""The operators of a Job with their places and predicted costs, in the order of the data.

In: a draft whose parts are all decided. Out: the same draft with its operators, which explain
prints, `check_job` checks, and runs report measured figures for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from terascope.analysis.costs import Costs
from terascope.physical.delivery import Direct, Joining, Target, rest_name
from terascope.physical.draft import JobDraft
from terascope.physical.job import Job, SourceRead, StreamStage
from terascope.physical.low_plan import LowAggregate, LowQuery, LowSelect
from terascope.physical.operators import (
    AssembleWindows,
    ComputeRelation,
    Exchange,
    GroupTuples,
    JoinGroups,
    JoinLeftovers,
    Meeting,
    MergeGroups,
    Operator,
    Placement,
    PrefilterTuples,
    RankRows,
    ReadSource,
    RegroupRows,
    RunPipeline,
    SelectTuples,
    TreeEdge,
    WriteRows,
)
from terascope.physical.row_pipeline import Regroup, Top
from terascope.physical.settings import costs_of
from terascope.physical.splits import split_bytes
from terascope.physical.statistics.prospects import MASKED_NS, SLOT_NS
from terascope.plan.plan import reads
from terascope.plan.rel import Scan, walk
from terascope.sharing.windows import TUPLE_NS

READING: tuple[Placement, ...] = ("task",)
FINISHING: tuple[Placement, ...] = ("task", "merge")
MERGING: tuple[Placement, ...] = ("driver", "merge")
LEFTOVERS: tuple[Placement, ...] = ("driver", "merge", "spark")
IN_SPARK: tuple[Placement, ...] = ("spark",)


def list_operators(draft: JobDraft) -> JobDraft:
    """Before: a draft whose parts are decided      After: the same with its operators."""
    listing = Listing(draft.job(), costs_of(draft.asked.config))
    return replace(draft, operators=tuple(listing.operators()))


@dataclass
class Listing:
    """Lists the operators of a job in the order of the data."""

    job: Job
    costs: Costs
    ends: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By stream: the operators whose rows are those of the stream."""

    def operators(self) -> Iterator[Operator]:
        for read in self.job.reads:
            yield from self.reading(read)
        self.ends |= self.low_names
        yield from self.merging()
        yield from self.finished()
        yield from self.relations()
        yield from self.written()

    # ---- next to the source

    def reading(self, read: SourceRead) -> Iterator[Operator]:
        name = f"read {read.name}"
        size = int(sum(split_bytes(read.splits)))
        yield ReadSource(name, (), READING, len(read.columns), len(read.splits), size)
        if read.low is None:
            self.ends |= {interface.name: (name,) for interface in read.interfaces}
            return
        if read.low.predicates:
            above, name = name, f"prefilter {read.name}"
            cost = sum(map(self.costs.of, read.low.predicates))
            yield PrefilterTuples(name, (above,), READING, read.low.predicates, cost_ns=cost)
        yield from self.low_operators(read, name)

    def low_operators(self, read: SourceRead, above: str) -> Iterator[Operator]:
        """Selections, then groups: parents in an aggregate tree come before their children."""
        assert read.low is not None
        waiting: list[LowQuery] = [*read.low.inner, *read.low.queries]
        listed: set[str] = set()
        while waiting:
            ready = [q for q in waiting if parent_of(q) is None or parent_of(q) in listed]
            assert ready, "an aggregate tree has a root"
            for query in ready:
                yield self.low_operator(query, above, read)
                listed.add(query.name)
            waiting = [query for query in waiting if query.name not in listed]

    def low_operator(self, query: LowQuery, above: str, read: SourceRead) -> Operator:
        label = self.label(query.name, read)
        if isinstance(query, LowSelect):
            exprs = (*query.rest, *(expr for _, expr in query.items))
            cost = sum(map(self.costs.of, exprs))
            return SelectTuples(f"select {label}", (above,), READING, query, cost_ns=cost)
        if query.parent is not None:
            parent = f"group {self.label(query.parent, read)}"
            return TreeEdge(f"group {label}", (parent,), READING, query)
        cost = self.group_ns(query)
        return GroupTuples(f"group {label}", (above,), READING, query, cost_ns=cost)

    def group_ns(self, query: LowAggregate) -> float:
        """The time to find the group of a tuple and to update each slot."""
        slots = sum(SLOT_NS if slot.where is None else MASKED_NS for slot in query.slots)
        return TUPLE_NS + slots + sum(map(self.costs.of, (*query.rest, *query.outputs)))

    @cached_property
    def in_several(self) -> set[str]:
        """The low-level streams that several reads have tuples of."""
        counted = Counter(query.name for read in self.job.reads for query in read.queries)
        return {name for name, number in counted.items() if number > 1}

    @cached_property
    def low_names(self) -> dict[str, tuple[str, ...]]:
        """By low-level stream: the operators that give it, one for each read with tuples of it."""
        found: dict[str, tuple[str, ...]] = {}
        for read in self.job.reads:
            for query in read.queries:
                kind = "select" if isinstance(query, LowSelect) else "group"
                name = f"{kind} {self.label(query.name, read)}"
                found[query.name] = (*found.get(query.name, ()), name)
        return found

    def label(self, stream: str, read: SourceRead) -> str:
        return f"{stream} of {read.name}" if stream in self.in_several else stream

    # ---- behind the exchange

    def merging(self) -> Iterator[Operator]:
        for number, output in enumerate(self.job.low):
            if output.windows is not None:
                below = self.ends[output.windows.stream]
                name = f"windows {output.name}"
                self.ends[output.name] = (name,)
                yield AssembleWindows(name, below, MERGING, output.windows)
            elif output.groups is not None:
                sources = self.low_names[output.name]
                target = self.job.deliveries.targets.get(number)
                exchange = Exchange(f"exchange {output.name}", sources, READING, by(target))
                yield exchange
                name = f"merge {output.name}"
                self.ends[output.name] = (name,)
                yield MergeGroups(name, (exchange.name, *sources), MERGING, output.groups)

    # ---- rows that tasks finish

    def finished(self) -> Iterator[Operator]:
        for direct in self.job.deliveries.direct.values():
            yield from self.pipeline(direct, self.finishing[direct.program.stream])
        for query, joining in self.job.deliveries.joined.items():
            yield from self.joining(query, joining)

    @cached_property
    def finishing(self) -> dict[str, tuple[Placement, ...]]:
        """By low-level stream: the places of its finished rows."""
        found: dict[str, tuple[Placement, ...]] = {}
        for output in self.job.low:
            if output.windows is not None:
                found[output.name] = MERGING
            else:
                found[output.name] = READING if output.groups is None else FINISHING
        return found

    def pipeline(self, direct: Direct, places: tuple[Placement, ...]) -> Iterator[Operator]:
        below, query, whole = self.ends[direct.program.stream], direct.query, direct.program.whole
        yield RunPipeline(f"pipeline {query}", below, places, direct.program)
        self.ends[query] = (f"pipeline {query}",)
        match whole:
            case Top():
                yield RankRows(f"rank {query}", self.ends[query], places, whole)
                self.ends[query] = (f"rank {query}",)
            case Regroup():
                yield RegroupRows(f"regroup {query}", self.ends[query], places, whole)
                self.ends[query] = (f"regroup {query}",)
            case None:
                pass
            case _:
                assert_never(whole)

    def joining(self, query: str, joining: Joining) -> Iterator[Operator]:
        streams = dict.fromkeys(side.program.stream for side in joining.pairing.sides)
        below = tuple(name for stream in streams for name in self.ends[stream])
        join = JoinGroups(f"join {query}", below, FINISHING, joining.pairing)
        yield join
        yield JoinLeftovers(f"leftovers {query}", (join.name,), LEFTOVERS, joining.rest)
        self.ends |= {rest_name(query, side): (join.name,) for side in (0, 1)}
        self.ends[query] = (f"leftovers {query}",)

    # ---- Spark

    def relations(self) -> Iterator[Operator]:
        """The streams that no task finishes, and that an output or another such stream reads."""
        finished = self.job.deliveries.fields
        read = {output.stream for output in self.job.outputs}
        listed: list[StreamStage] = []
        for stage in reversed(self.job.streams):
            if stage.name in read and stage.name not in finished:
                listed.append(stage)
                read |= {one.stream for one in reads(stage.rel)}
        yield from map(self.relation, reversed(listed))

    def relation(self, stage: StreamStage) -> Operator:
        scanned = (i for rel in walk(stage.rel) if isinstance(rel, Scan) for i in rel.interfaces)
        streams = (read.stream for read in reads(stage.rel))
        # A low-level stream may come from tasks, and for other sources from Spark.
        read = (*scanned, *streams, stage.name)
        below = dict.fromkeys(end for name in read for end in self.ends.get(name, ()))
        name = f"relation {stage.name}"
        self.ends[stage.name] = (name,)
        return ComputeRelation(name, tuple(below), IN_SPARK, stage.rel, stage.keep)

    def written(self) -> Iterator[Operator]:
        direct, joined = self.job.deliveries.direct, self.job.deliveries.joined
        for output in self.job.outputs:
            query, places = output.stream, IN_SPARK
            if query in direct:
                places = self.finishing[direct[query].program.stream]
            elif query in joined:
                places = (*FINISHING, "spark")
            below = self.ends[query]
            yield WriteRows(
                f"write {query}", below, places, query, len(output.columns), output.order
            )


def parent_of(query: LowQuery) -> str | None:
    return query.parent if isinstance(query, LowAggregate) else None


def by(target: Target | None) -> Meeting:
    """The property that brings partial groups together; see `Target`."""
    if target is not None and target.feeds:
        return "keys without the slice"
    return "epoch" if target is not None and target.by_epoch else "keys"
