"""The operators of a Job with their places and predicted costs, in the order of the data.

In: a draft whose parts are all decided. Out: the same draft with its operators, which explain
prints, `check_job` checks, and runs report measured figures for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from terascope.analysis.costs import Costs
from terascope.physical.delivery import Direct, Target, TaskJoin
from terascope.physical.draft import JobDraft
from terascope.physical.job import Job, Output, SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery, LowSelect, Windows
from terascope.physical.operators import (
    AssembleWindows,
    CombineGroups,
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
    ReceiveTuples,
    RegroupRows,
    RunPipeline,
    SelectTuples,
    SendTuples,
    TreeEdge,
    WriteRows,
)
from terascope.physical.row_pipeline import Regroup, Top
from terascope.physical.rules.finish_in_tasks import needed
from terascope.physical.settings import costs_of
from terascope.physical.splits import split_bytes
from terascope.physical.statistics.prospects import MASKED_NS, SLOT_NS
from terascope.physical.time_ranges import sent_part
from terascope.plan.plan import reads
from terascope.plan.rel import Rel, Scan, walk
from terascope.sharing.windows import TUPLE_NS

READING: tuple[Placement, ...] = ("task",)
OWNING: tuple[Placement, ...] = ("partition",)
COMBINING: tuple[Placement, ...] = ("host",)
RANGES: tuple[Placement, ...] = ("merge",)
FINISHING: tuple[Placement, ...] = ("task", "merge")
MERGING: tuple[Placement, ...] = ("driver", "merge")
LEFTOVERS: tuple[Placement, ...] = ("driver", "merge", "spark")
MERGE_OR_SPARK: tuple[Placement, ...] = ("merge", "spark")
IN_SPARK: tuple[Placement, ...] = ("spark",)


def list_operators(draft: JobDraft) -> JobDraft:
    """Before: a draft whose parts are decided      After: the same with its operators."""
    listing = Listing(draft, costs_of(draft.config))
    listing.list_all()
    return replace(draft, operators=tuple(listing.operators))


@dataclass
class Listing:
    """Lists the operators of a job in the order of the data."""

    job: Job
    costs: Costs = field(default_factory=Costs)
    operators: list[Operator] = field(default_factory=list)
    ends: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By stream: the operators whose rows are those of the stream."""

    def list_all(self) -> None:
        for read in self.job.reads:
            self.reading(read)
        self.ends |= self.low_names
        self.merging()
        for direct in self.job.deliveries.direct.values():
            self.pipeline(direct, self.finishing[direct.program.stream])
        for join in self.job.deliveries.joins:
            self.joining(join)
        self.relations()
        self.written()

    def add(self, operator: Operator) -> str:
        self.operators.append(operator)
        return operator.name

    # ---- next to the source

    def reading(self, read: SourceRead) -> None:
        size = int(sum(split_bytes(read.splits)))
        name = self.add(
            ReadSource(f"read {read.name}", (), READING, len(read.columns), len(read.splits), size)
        )
        low = read.low
        if low is None:
            self.ends |= {interface.name: (name,) for interface in read.interfaces}
            return
        sent = self.sent(read)
        received = self.receiving(read, name) if sent else name
        if low.predicates:
            name = self.prefiltering(read.name, low, name, READING)
        known_queries: dict[str, LowQuery] = {q.name: q for q in (*low.inner, *low.queries)}

        def depth(query: LowQuery) -> int:
            """Parents in an aggregate tree come before their children."""
            parent = query.parent if isinstance(query, LowAggregate) else None
            return 0 if parent is None else 1 + depth(known_queries[parent])

        for query in sorted(known_queries.values(), key=depth):
            self.low_operator(query, received if query.name in sent else name, read)

    def prefiltering(
        self, read: str, low: LowPlan, above: str, places: tuple[Placement, ...]
    ) -> str:
        cost = sum(map(self.costs.of, low.predicates))
        name = f"prefilter {read}"
        return self.add(PrefilterTuples(name, (above,), places, low.predicates, cost_ns=cost))

    def sent(self, read: SourceRead) -> frozenset[str]:
        """The aggregations of a read whose tuples partitions send."""
        owned = self.job.ownership
        return frozenset() if owned is None else owned.sending.get(read.name, frozenset())

    @cached_property
    def all_sent(self) -> frozenset[str]:
        return frozenset().union(*map(self.sent, self.job.reads))

    def receiving(self, read: SourceRead, above: str) -> str:
        """Send the tuples of a read to the tasks of ranges of time."""
        assert self.job.ownership is not None
        assert read.edge is not None
        part = sent_part(read, self.job.ownership)
        assert part.low is not None
        count = len(part.low.queries)
        sender = SendTuples(f"send {read.name}", (above,), OWNING, len(part.low.columns), count)
        taken = ReceiveTuples(f"read {part.name}", (self.add(sender),), RANGES, read.edge.column)
        name = self.add(taken)
        if part.low.predicates:
            name = self.prefiltering(part.name, part.low, name, RANGES)
        return name

    def places_of(self, query: str) -> tuple[Placement, ...]:
        """The places where a query next to the source groups or selects tuples."""
        if query in self.all_sent:
            return RANGES
        return OWNING if self.is_kept(query) else READING

    def low_operator(self, query: LowQuery, above: str, read: SourceRead) -> None:
        label = self.label(query.name, read)
        places = self.places_of(query.name)
        if isinstance(query, LowSelect):
            cost = sum(map(self.costs.of, (*query.rest, *(expr for _, expr in query.items))))
            self.add(SelectTuples(f"select {label}", (above,), places, query, cost_ns=cost))
        elif query.parent is not None:
            parent = f"group {self.label(query.parent, read)}"
            self.add(TreeEdge(f"group {label}", (parent,), places, query))
        else:
            cost = self.group_ns(query)
            self.add(GroupTuples(f"group {label}", (above,), places, query, cost_ns=cost))

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

    def is_kept(self, stream: str) -> bool:
        """Whether the groups of a low-level stream are complete in each partition."""
        owned = self.job.ownership
        return owned is not None and stream in owned.kept

    # ---- behind the exchange

    def merging(self) -> None:
        for number, output in enumerate(self.job.low):
            name = output.name
            if output.windows is not None:
                places = OWNING if self.is_kept(output.windows.stream) else MERGING
                self.windows(name, output.windows, self.ends[output.windows.stream], places)
            elif output.groups is not None and not self.is_kept(name):
                sources = self.low_names[name]
                owned = self.job.ownership
                places = RANGES if name in self.all_sent else READING
                if owned is not None and owned.combined and name not in self.all_sent:
                    places = COMBINING
                    combined = f"combine {name}"
                    made = CombineGroups(combined, sources, COMBINING, output.groups)
                    sources = (self.add(made),)
                by = meeting(self.job.deliveries.targets.get(number))
                exchange = self.add(Exchange(f"exchange {name}", sources, places, by))
                below = (exchange, *sources)
                merged = MergeGroups(f"merge {name}", below, MERGING, output.groups)
                self.ends[name] = (self.add(merged),)

    def windows(
        self, name: str, windows: Windows, below: tuple[str, ...], places: tuple[Placement, ...]
    ) -> None:
        self.ends[name] = (self.add(AssembleWindows(f"windows {name}", below, places, windows)),)

    # ---- rows that tasks finish

    @cached_property
    def finishing(self) -> dict[str, tuple[Placement, ...]]:
        """By low-level stream: the places of its finished rows."""
        found: dict[str, tuple[Placement, ...]] = {}
        for output in self.job.low:
            stream = output.name if output.windows is None else output.windows.stream
            if self.is_kept(stream):
                found[output.name] = OWNING
            elif output.groups is None and output.windows is None:
                found[output.name] = READING
            else:
                found[output.name] = FINISHING if output.windows is None else MERGING
        return found

    def pipeline(self, direct: Direct, places: tuple[Placement, ...]) -> None:
        query, program = direct.query, direct.program
        below = self.ends[program.stream]
        end = self.add(RunPipeline(f"pipeline {query}", below, places, program))
        match program.whole:
            case Top() as top:
                end = self.add(RankRows(f"rank {query}", (end,), places, top))
            case Regroup() as regroup:
                end = self.add(RegroupRows(f"regroup {query}", (end,), places, regroup))
            case None:
                pass
            case _:
                assert_never(program.whole)
        self.ends[query] = (end,)

    def joining(self, join: TaskJoin) -> None:
        streams = dict.fromkeys(side.program.stream for side in join.sides)
        below = tuple(name for stream in streams for name in self.ends[stream])
        if all(map(self.is_kept, streams)):  # no task has leftover rows
            inside = JoinGroups(f"join {join.query}", below, OWNING, join)
            self.ends[join.query] = (self.add(inside),)
            return
        joined = self.add(JoinGroups(f"join {join.query}", below, FINISHING, join))
        name = f"leftovers {join.query}"
        left = JoinLeftovers(name, (joined,), LEFTOVERS, join.of_leftovers)
        self.ends[join.query] = (self.add(left),)

    # ---- Spark

    def relations(self) -> None:
        """The streams that no task finishes, and that an output or another such stream reads."""
        for one in self.job.deliveries.inside.values():
            ends = dict.fromkeys(end for read in reads(one.rel) for end in self.ends[read.stream])
            made = ComputeRelation(f"relation {one.name}", tuple(ends), OWNING, one.rel, False)
            self.ends[one.name] = (self.add(made),)
        finished = self.job.deliveries.fields
        others = {name: rel for name, rel in self.job.streams.items() if name not in finished}
        for stream, rel in needed(replace(self.job, streams=others), finished).items():
            scanned = (i for one in walk(rel) if isinstance(one, Scan) for i in one.interfaces)
            # A low-level stream may come from tasks, and for other sources from Spark.
            read = (*scanned, *(one.stream for one in reads(rel)), stream)
            below = dict.fromkeys(end for name in read for end in self.ends.get(name, ()))
            self.compute(stream, rel, tuple(below), stream in self.job.kept)

    def compute(self, stream: str, rel: Rel, below: tuple[str, ...], kept: bool) -> None:
        made = ComputeRelation(f"relation {stream}", below, self.relation_places(stream), rel, kept)
        self.ends[stream] = (self.add(made),)

    def relation_places(self, stream: str) -> tuple[Placement, ...]:
        """The places of a relation that no partition computes."""
        return MERGE_OR_SPARK if stream in self.job.deliveries.above_names else IN_SPARK

    def written(self) -> None:
        direct, joined = self.job.deliveries.direct, self.job.deliveries.joined
        for output in self.job.outputs:
            query, places = output.stream, self.relation_places(output.stream)
            if query in direct:
                places = self.finishing[direct[query].program.stream]
            elif query in joined and all(
                self.is_kept(side.program.stream) for side in joined[query].sides
            ):
                places = OWNING
            elif query in joined:
                places = (*FINISHING, "spark")
            elif query in self.job.deliveries.inside:
                places = OWNING
            self.write(output, len(output.columns), places)

    def write(self, output: Output, columns: int, places: tuple[Placement, ...]) -> None:
        query, below = output.stream, self.ends[output.stream]
        self.add(WriteRows(f"write {query}", below, places, query, columns, output.order))


def meeting(target: Target | None) -> Meeting:
    """The property that brings partial groups together in one task; see `Target`."""
    if target is not None and target.feeds:
        return "keys without the slice"
    return "epoch" if target is not None and target.by_epoch else "keys"
