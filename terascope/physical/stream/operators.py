"""The operators of a stream, each with its places, behind what it reads.

In: a `StreamPlan` about which everything is decided. Out: its operators. Next to the sources they
are those of a batch; behind them stands the slice store instead of an exchange, and closing tasks
instead of merging tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from terascope.analysis.costs import Costs
from terascope.physical.operators import (
    AssembleWindows,
    ComputeRelation,
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
    WriteRows,
)
from terascope.physical.rules.list_operators import READING, Listing
from terascope.physical.stream.plan import (
    InSpark,
    LowStream,
    StoredJoin,
    StreamOutput,
    StreamPlan,
    WrittenByTasks,
)
from terascope.physical.stream.row_pipelines import RowPipelines
from terascope.physical.stream.windows import StoredWindows
from terascope.plan.plan import reads
from terascope.plan.rel import Rel

NEXT_TO_SOURCES: Final = (ReadSource, PrefilterTuples, SelectTuples, GroupTuples, TreeEdge)
CLOSING: Final[tuple[Placement, ...]] = ("close",)
OWNED_OR_CLOSING: Final[tuple[Placement, ...]] = ("task", "close")
CLOSING_OR_SPARK: Final[tuple[Placement, ...]] = ("close", "spark")
IN_SPARK: Final[tuple[Placement, ...]] = ("spark",)


def stream_operators(plan: StreamPlan) -> tuple[Operator, ...]:
    return tuple(StreamListing(plan).operators())


@dataclass
class StreamListing:
    """Lists the operators of a stream in the order of the data."""

    plan: StreamPlan

    def __post_init__(self) -> None:
        job = replace(self.plan.job, deliveries=self.plan.deliveries)
        self._low = Listing(job, Costs())
        self._ends = self._low.ends
        """By stream: the operators whose rows are those of the stream."""
        self._kept: dict[str, str] = {}
        """By stream: the operator that stores its rows."""

    def operators(self) -> Iterator[Operator]:
        yield from (one for one in self.plan.job.operators if isinstance(one, NEXT_TO_SOURCES))
        self._ends |= self._low.low_names
        for stream in self.plan.low:
            yield from self._stored(stream)
        for one in self.plan.running:
            yield self._relation(one.name, one.rel)
            self._kept[one.name] = f"relation {one.name}"
        for output in self.plan.outputs:
            yield from self._computed(output)
            yield self._written(output)

    def _stored(self, stream: LowStream) -> Iterator[Operator]:
        """The store of a low-level stream: groups that no task has alone, rows that others read."""
        name, ends = stream.name, self._ends.get(stream.name, ())
        if stream.groups is not None:
            store = StoreSlices(f"store {name}", ends, READING, stream.value or "")
            merged = MergeGroups(f"merge {name}", (store.name,), CLOSING, stream.groups)
            yield from (store, merged)
            self._ends[name] = (*ends, merged.name)
        if name in self._needed and stream.kept_by:
            places = READING if stream.groups is None else OWNED_OR_CLOSING
            kept = StoreSlices(f"rows {name}", self._ends[name], places, stream.kept_by)
            yield kept
            self._kept[name] = kept.name

    @cached_property
    def _needed(self) -> set[str]:
        """The stored streams whose rows something reads."""
        found = {leaf for one in self.plan.running for leaf in self._leaves(one.rel)}
        return found.union(*map(self._sources, self.plan.outputs))

    def _sources(self, output: StreamOutput) -> list[str]:
        """The stored streams whose rows a query reads."""
        match output.plan:
            case WrittenByTasks():
                return []
            case RowPipelines(inputs=sources):
                return [one.stream for one in sources]
            case StoredJoin(pairing=join):
                return [side.program.stream for side in join.sides]
            case StoredWindows() as stored:
                return list(stored.streams)
            case InSpark():
                return list(self._leaves(self.plan.trees.streams[output.name]))

    def _computed(self, output: StreamOutput) -> Iterator[Operator]:
        query, below = output.name, self._read(*self._sources(output))
        match output.plan:
            case WrittenByTasks(stream=number):
                stream, direct = self.plan.low[number], self.plan.deliveries.direct[query]
                places = READING if stream.groups is None else OWNED_OR_CLOSING
                yield from self._low.pipeline(direct, places)
                return
            case RowPipelines(inputs=sources):
                name = f"pipeline {query}"
                yield RunPipeline(name, below, CLOSING_OR_SPARK, sources[0].above)
            case StoredJoin(pairing=join):
                name = f"join {query}"
                yield JoinGroups(name, below, CLOSING_OR_SPARK, join)
            case StoredWindows() as stored:
                name = f"windows {query}"
                yield AssembleWindows(name, below, CLOSING_OR_SPARK, stored.windows)
            case InSpark():
                yield self._relation(query, self.plan.trees.streams[query])
                return
        self._ends[query] = (name,)

    def _relation(self, name: str, rel: Rel) -> Operator:
        below = self._read(*self._leaves(rel))
        self._ends[name] = (f"relation {name}",)
        return ComputeRelation(f"relation {name}", below, IN_SPARK, rel, kept=False)

    def _leaves(self, rel: Rel) -> Iterator[str]:
        """The stored streams that a relation reads, through the streams between."""
        for read in reads(rel):
            if read.stream in self.plan.leaves:
                yield read.stream
            else:
                yield from self._leaves(self.plan.trees.streams[read.stream])

    def _read(self, *streams: str) -> tuple[str, ...]:
        """The operators that store some streams."""
        return tuple(dict.fromkeys(self._kept[name] for name in streams))

    def _written(self, output: StreamOutput) -> Operator:
        query, below = output.name, self._ends[output.name]
        places: tuple[Placement, ...] = (output.placement,)
        if output.placement == "close":
            places = CLOSING_OR_SPARK if output.low is None else OWNED_OR_CLOSING
        order = output.output.order
        return WriteRows(f"write {query}", below, places, query, len(output.fields), order)
