"""The draft of a Job: the state of planning between two rules.

In: an optimised Plan, the interfaces it names and the settings. Out: a `JobDraft`. Every rule of
`terascope.physical.rules` takes a draft and returns a changed one; the last draft has all parts of
a `Job`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from terascope.config import Config
from terascope.connectors.base import Edge, Split
from terascope.connectors.registry import Interface, versioned
from terascope.physical.job import (
    Deliveries,
    Job,
    LowOutput,
    Output,
    SourceRead,
    StreamStage,
    TreeDecision,
)
from terascope.physical.operators import Operator
from terascope.physical.settings import Destination
from terascope.physical.split.slicing import InForce, Slicing, nothing_in_force
from terascope.physical.split.split_plan import SplitPlan
from terascope.physical.statistics.measured import Measured
from terascope.physical.statistics.prospects import Prospect
from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Project, Read, Rel, inputs, with_inputs


@dataclass(frozen=True)
class Asked:
    """The plan and the settings to plan for, and facts that are known before planning."""

    plan: Plan
    interfaces: Mapping[str, Interface]
    config: Config
    destination: Destination
    split_bytes: int | None
    """The bytes of a split; None for a live source, which has no splits yet."""
    prospect: Prospect | None = None
    """The possible gain of samples of the sources; None: sources are always sampled."""
    in_force: InForce = nothing_in_force
    """The composition of windows in a running stream."""
    arrival_ns: int = field(default_factory=time.time_ns)
    """The arrival time of all tuples of a batch: now."""
    found: dict[tuple[str, Edge | None], tuple[Split, ...]] = field(default_factory=dict)
    """The splits found so far, as a cache: finding them takes time."""

    @property
    def is_live(self) -> bool:
        return self.split_bytes is None

    @property
    def is_native(self) -> bool:
        """Whether the tasks that read run the low level, where their source allows it."""
        return self.config.low != "catalyst"

    @property
    def samples(self) -> bool:
        return self.prospect is None or self.prospect.pays

    def splits(self, members: Sequence[Interface], edge: Edge | None) -> list[Split] | None:
        """The splits of a source; a live source has none yet."""
        if self.split_bytes is None:
            return None
        return versioned(self.splits_of(members, edge, self.split_bytes))

    def splits_of(
        self, members: Sequence[Interface], edge: Edge | None, split_bytes: int
    ) -> list[Split]:
        """The splits of a source, found once for each interface."""
        for member in members:
            if (member.name, edge) not in self.found:
                self.found[member.name, edge] = tuple(member.splits(split_bytes, edge))
        return [split for member in members for split in self.found[member.name, edge]]


@dataclass(frozen=True)
class SharedTables:
    """The low-level streams with tables of their own, and views for the others."""

    reads: tuple[SourceRead, ...]
    low: tuple[LowOutput, ...]
    views: Mapping[str, Project]
    """For each stream that shares a table: the columns of that table under the stream's names."""

    def read(self, rel: Rel) -> Rel:
        """The same relation over the streams that have tables."""
        if isinstance(rel, Read):
            return self.views.get(rel.stream, rel)
        parts = inputs(rel)
        return with_inputs(rel, tuple(self.read(part) for part in parts)) if parts else rel


@dataclass(frozen=True)
class JobDraft:
    """A Job while rules are applied; the docstring of a field names the rule that sets it."""

    asked: Asked
    measured: Measured
    """Samples of the sources, taken when a rule first needs one."""
    decided: Slicing | None = None
    """choose_slices: the slices of windows, where they are known."""
    made: SplitPlan | None = None
    """split_queries: the low and the high part of every query."""
    reads: tuple[SourceRead, ...] = ()
    """read_sources; host_low_level, share_tables, grow_trees: with low-level plans."""
    bound: tuple[Interface, ...] = ()
    """read_sources: the interfaces that the set reads."""
    hosted: tuple[Stream, ...] = ()
    """host_low_level: the low-level streams of sources whose tasks run them."""
    in_spark: Mapping[str, Rel] = field(default_factory=dict)
    """host_low_level: the low-level streams of the other sources."""
    unshared: tuple[SourceRead, ...] = ()
    """share_tables: the reads before aggregations shared tables."""
    shared: SharedTables | None = None
    """share_tables"""
    low: tuple[LowOutput, ...] = ()
    """share_tables, grow_trees, place_high_parts: the streams that tasks emit."""
    decisions: tuple[TreeDecision, ...] = ()
    """grow_trees"""
    above: Mapping[str, Rel] = field(default_factory=dict)
    """place_high_parts: the relations above the low level."""
    rels: Mapping[str, Rel] = field(default_factory=dict)
    """place_high_parts: the meaning of every stream, low-level streams included."""
    stages: tuple[StreamStage, ...] = ()
    """keep_shared_streams"""
    outputs: tuple[Output, ...] = ()
    """order_outputs"""
    deliveries: Deliveries | None = None
    """finish_in_tasks"""
    operators: tuple[Operator, ...] = ()
    """list_operators"""

    @property
    def split(self) -> SplitPlan:
        assert self.made is not None, "split_queries comes first"
        return self.made

    @property
    def whole(self) -> Plan:
        """The plan in which low-level streams contain the scans."""
        return self.split.plan

    def job(self) -> Job:
        """The Job, after all rules."""
        return Job(
            self.reads,
            self.stages,
            self.outputs,
            dict(self.whole.values),
            self.low,
            self.rels,
            self.decisions,
            self.asked.prospect if self.asked.is_native else None,
            self.asked.destination,
            self.deliveries or Deliveries(),
            self.operators,
        )
