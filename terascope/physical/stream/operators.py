"""The operators of a stream, each with its places, behind what it reads.

In: a `StreamPlan` about which everything is decided. Out: its operators. Next to the sources they
are those of a batch; behind them stands the slice store instead of an exchange, and closing tasks
instead of merging tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Final

from terascope.physical.operators import (
    GroupTuples,
    JoinGroups,
    MergeGroups,
    Operator,
    Placement,
    PrefilterTuples,
    ReadSource,
    RunPipeline,
    SelectTuples,
    StoreSlices,
    TreeEdge,
)
from terascope.physical.rules.list_operators import READING, Listing
from terascope.physical.stream.plan import (
    InSpark,
    LowStream,
    RowPipelines,
    StoredJoin,
    StreamOutput,
    StreamPlan,
    WrittenByTasks,
)
from terascope.physical.stream.windows import StoredWindows
from terascope.plan.rel import Rel

NEXT_TO_SOURCES: Final = (ReadSource, PrefilterTuples, SelectTuples, GroupTuples, TreeEdge)
CLOSING: Final[tuple[Placement, ...]] = ("close",)
OWNED_OR_CLOSING: Final[tuple[Placement, ...]] = ("task", "close")
CLOSING_OR_SPARK: Final[tuple[Placement, ...]] = ("close", "spark")


def stream_operators(plan: StreamPlan) -> tuple[Operator, ...]:
    return tuple(StreamListing(plan).listed())


class StreamListing(Listing):
    """Lists the operators of a stream in the order of the data."""

    def __init__(self, plan: StreamPlan) -> None:
        super().__init__(replace(plan.job, deliveries=plan.deliveries))
        self.plan = plan
        self.kept: dict[str, str] = {}
        """By stream: the operator that stores its rows."""

    def listed(self) -> list[Operator]:
        self.operators += [one for one in self.job.operators if isinstance(one, NEXT_TO_SOURCES)]
        self.ends |= self.low_names
        for stream in self.plan.low:
            self.stored(stream)
        for one in self.plan.running:
            self.computed(one.name, one.rel)
            (self.kept[one.name],) = self.ends[one.name]
        for output in self.plan.outputs:
            self.query(output)
            places: tuple[Placement, ...] = (output.placement,)
            if output.placement == "close":
                places = CLOSING_OR_SPARK if output.low is None else OWNED_OR_CLOSING
            self.write(output.output, len(output.fields), places)
        return self.operators

    def stored(self, stream: LowStream) -> None:
        """The store of a low-level stream: groups that no task has alone, rows that others read."""
        name, ends = stream.name, self.ends.get(stream.name, ())
        if stream.groups is not None:
            store = self.add(StoreSlices(f"store {name}", ends, READING, stream.value or ""))
            merged = MergeGroups(f"merge {name}", (store,), CLOSING, stream.groups)
            self.ends[name] = (*ends, self.add(merged))
        if name in self.needed and stream.kept_by:
            places = READING if stream.groups is None else OWNED_OR_CLOSING
            rows = StoreSlices(f"rows {name}", self.ends[name], places, stream.kept_by)
            self.kept[name] = self.add(rows)

    @cached_property
    def needed(self) -> set[str]:
        """The stored streams whose rows something reads."""
        found = {leaf for one in self.plan.running for leaf in self.plan.leaves_of(one.rel)}
        return found.union(*map(self.plan.sources, self.plan.outputs))

    def query(self, output: StreamOutput) -> None:
        query, below = output.name, self.read(self.plan.sources(output))
        match output.plan:
            case WrittenByTasks(stream=number):
                places = READING if self.plan.low[number].groups is None else OWNED_OR_CLOSING
                self.pipeline(self.plan.deliveries.direct[query], places)
            case RowPipelines(above=above):
                rows = RunPipeline(f"pipeline {query}", below, CLOSING_OR_SPARK, above)
                self.ends[query] = (self.add(rows),)
            case StoredJoin(join=join):
                joined = JoinGroups(f"join {query}", below, CLOSING_OR_SPARK, join)
                self.ends[query] = (self.add(joined),)
            case StoredWindows() as stored:
                self.windows(query, stored.windows, below, CLOSING_OR_SPARK)
            case InSpark():
                self.computed(query, self.plan.trees.streams[query])

    def computed(self, name: str, rel: Rel) -> None:
        self.compute(name, rel, self.read(self.plan.leaves_of(rel)), kept=False)

    def read(self, streams: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.kept[name] for name in streams))
