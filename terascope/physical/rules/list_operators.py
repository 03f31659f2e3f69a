"""The operators of a Job with their places and predicted costs, in the order of the data.

In: a draft whose parts are all decided. Out: the same draft with its operators, which explain
prints, `check_job` checks, and runs report measured figures for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from terascope.analysis.costs import Costs
from terascope.physical.delivery import Direct, Target, TaskJoin, rest_name
from terascope.physical.draft import JobDraft
from terascope.physical.job import Job, Output, SourceRead, StreamStage
from terascope.physical.low_plan import LowAggregate, LowQuery, LowSelect, Windows
from terascope.physical.operators import Operator, Placement
from terascope.physical.row_pipeline import Keep, Regroup, RowPipeline, Top
from terascope.physical.settings import costs_of
from terascope.physical.splits import split_bytes
from terascope.physical.statistics.prospects import MASKED_NS, SLOT_NS
from terascope.plan.plan import reads
from terascope.plan.rel import Scan, walk
from terascope.plan.show import order_in_words, show_expr
from terascope.sharing.windows import TUPLE_NS
from terascope.units import plural, readable_bytes

READING: tuple[Placement, ...] = ("task",)
FINISHING: tuple[Placement, ...] = ("task", "merge")
MERGING: tuple[Placement, ...] = ("driver", "merge")
LEFTOVERS: tuple[Placement, ...] = ("driver", "merge", "spark")
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
        for query, joining in self.job.deliveries.joined.items():
            self.joining(query, joining.pairing)
        self.relations()
        self.written()

    def add(
        self,
        name: str,
        inputs: Iterable[str],
        places: tuple[Placement, ...],
        does: str,
        cost_ns: float | None = None,
    ) -> str:
        self.operators.append(Operator(name, tuple(inputs), places, does, cost_ns))
        return name

    # ---- next to the source

    def reading(self, read: SourceRead) -> None:
        size = readable_bytes(int(sum(split_bytes(read.splits))))
        known = f"{size} in {plural(len(read.splits), 'split')}, " if read.splits else ""
        does = known + plural(len(read.columns), "column")
        name = self.add(f"read {read.name}", (), READING, does)
        low = read.low
        if low is None:
            self.ends |= {interface.name: (name,) for interface in read.interfaces}
            return
        if low.predicates:
            does = f"{plural(len(low.predicates), 'predicate')}, each evaluated once a tuple"
            cost = sum(map(self.costs.of, low.predicates))
            name = self.add(f"prefilter {read.name}", (name,), READING, does, cost)
        known_queries: dict[str, LowQuery] = {q.name: q for q in (*low.inner, *low.queries)}

        def depth(query: LowQuery) -> int:
            """Parents in an aggregate tree come before their children."""
            parent = query.parent if isinstance(query, LowAggregate) else None
            return 0 if parent is None else 1 + depth(known_queries[parent])

        for query in sorted(known_queries.values(), key=depth):
            self.low_operator(query, name, read)

    def low_operator(self, query: LowQuery, above: str, read: SourceRead) -> None:
        label = self.label(query.name, read)
        if isinstance(query, LowSelect):
            bits = f"bits {', '.join(map(str, query.signature))}" if query.signature else "any bits"
            does = f"{plural(len(query.items), 'column')} of tuples with {bits}"
            cost = sum(map(self.costs.of, (*query.rest, *(expr for _, expr in query.items))))
            self.add(f"select {label}", (above,), READING, does, cost)
        elif query.parent is not None:
            parent = f"group {self.label(query.parent, read)}"
            self.add(f"group {label}", (parent,), READING, f"{by_keys(query)}, of groups")
        else:
            self.add(f"group {label}", (above,), READING, by_keys(query), self.group_ns(query))

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

    def merging(self) -> None:
        for number, output in enumerate(self.job.low):
            name = output.name
            if output.windows is not None:
                self.windows(name, output.windows, self.ends[output.windows.stream], MERGING)
            elif output.groups is not None:
                sources = self.low_names[name]
                met = (
                    f"partial groups, by hash of {meeting(self.job.deliveries.targets.get(number))}"
                )
                exchange = self.add(f"exchange {name}", sources, READING, met)
                keys = f"by {', '.join(f.name for f in output.groups.keys)}"
                merged = self.add(f"merge {name}", (exchange, *sources), MERGING, keys)
                self.ends[name] = (merged,)

    def windows(
        self, name: str, windows: Windows, below: tuple[str, ...], places: tuple[Placement, ...]
    ) -> None:
        does = f"range {windows.window.range}, slide {windows.window.slide}"
        self.ends[name] = (self.add(f"windows {name}", below, places, does),)

    # ---- rows that tasks finish

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

    def pipeline(self, direct: Direct, places: tuple[Placement, ...]) -> None:
        query, program = direct.query, direct.program
        end = self.add(f"pipeline {query}", self.ends[program.stream], places, steps_text(program))
        match program.whole:
            case Top(per=per, limit=limit):
                does = f"the first {limit} per {', '.join(per) or 'stream'}"
                end = self.add(f"rank {query}", (end,), places, does)
            case Regroup() as regroup:
                end = self.add(f"regroup {query}", (end,), places, by_keys(regroup))
            case None:
                pass
            case _:
                assert_never(program.whole)
        self.ends[query] = (end,)

    def joining(self, query: str, pairing: TaskJoin) -> None:
        streams = dict.fromkeys(side.program.stream for side in pairing.sides)
        below = (name for stream in streams for name in self.ends[stream])
        join = self.join(query, pairing, below, FINISHING)
        does = "rows of epochs that no task has alone"
        left = self.add(f"leftovers {query}", (join,), LEFTOVERS, does)
        self.ends |= {rest_name(query, side): (join,) for side in (0, 1)}
        self.ends[query] = (left,)

    def join(
        self, query: str, join: TaskJoin, below: Iterable[str], places: tuple[Placement, ...]
    ) -> str:
        pairs = " AND ".join(f"{show_expr(a)} = {show_expr(b)}" for a, b in join.equalities)
        return self.add(f"join {query}", below, places, f"{join.kind} on {pairs}")

    # ---- Spark

    def relations(self) -> None:
        """The streams that no task finishes, and that an output or another such stream reads."""
        finished = self.job.deliveries.fields
        read = {output.stream for output in self.job.outputs}
        listed: list[StreamStage] = []
        for stage in reversed(self.job.streams):
            if stage.name in read and stage.name not in finished:
                listed.append(stage)
                read |= {one.stream for one in reads(stage.rel)}
        for stage in reversed(listed):
            self.relation(stage)

    def relation(self, stage: StreamStage) -> None:
        scanned = (i for rel in walk(stage.rel) if isinstance(rel, Scan) for i in rel.interfaces)
        streams = (read.stream for read in reads(stage.rel))
        # A low-level stream may come from tasks, and for other sources from Spark.
        read = (*scanned, *streams, stage.name)
        below = dict.fromkeys(end for name in read for end in self.ends.get(name, ()))
        does = "computed once, kept" if stage.keep else "computed"
        self.ends[stage.name] = (self.add(f"relation {stage.name}", below, IN_SPARK, does),)

    def written(self) -> None:
        direct, joined = self.job.deliveries.direct, self.job.deliveries.joined
        for output in self.job.outputs:
            query, places = output.stream, IN_SPARK
            if query in direct:
                places = self.finishing[direct[query].program.stream]
            elif query in joined:
                places = (*FINISHING, "spark")
            self.write(output, len(output.columns), places)

    def write(self, output: Output, columns: int, places: tuple[Placement, ...]) -> None:
        order = f", in order of {order_in_words(output.order)}" if output.order else ""
        does = plural(columns, "column") + order
        self.add(f"write {output.stream}", self.ends[output.stream], places, does)


def meeting(target: Target | None) -> str:
    """The property that brings partial groups together in one task; see `Target`."""
    if target is not None and target.feeds:
        return "keys without the slice"
    return "epoch" if target is not None and target.by_epoch else "keys"


def by_keys(grouping: LowAggregate | Regroup) -> str:
    names = ", ".join(name for name, _ in grouping.keys) or "nothing"
    return f"by {names}: {plural(len(grouping.slots), 'slot')}"


def steps_text(pipeline: RowPipeline) -> str:
    """The steps of a row pipeline; steps after a rank or another aggregation come last."""
    steps = (*pipeline.steps, *pipeline.after)
    conditions = [show_expr(step.predicate) for step in steps if isinstance(step, Keep)]
    return f"keep {' AND '.join(conditions)}, project" if conditions else "project"
