"""The draft of a Job: the state of planning between two rules.

In: an optimised Plan, the interfaces it names and the settings. Out: a `JobDraft`. Every rule of
`terascope.physical.rules` takes a draft and returns a changed one; the last draft has all parts of
a `Job`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from terascope.config import Config
from terascope.connectors.base import Edge, Split
from terascope.connectors.registry import Interface
from terascope.partitioning.sets import PartitionSet
from terascope.physical.job import Job, SourceRead
from terascope.physical.split.slicing import InForce, Slicing
from terascope.physical.split.split_plan import SplitPlan
from terascope.physical.splits import with_any_bounds
from terascope.physical.statistics.measured import Measured
from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Project, Rel


@dataclass(frozen=True, kw_only=True)
class JobDraft(Job):
    """A Job while rules are applied, with the facts that rules need. The parts of the Job are set
    by rules: reads by read_sources, with low-level plans by host_low_level, share_tables and
    grow_trees; low by share_tables, grow_trees and place_high_parts; trees by place_high_parts;
    streams by place_high_parts and keep_shared_streams. The docstring of a further field names the
    rule that sets it.
    """

    plan: Plan
    interfaces: Mapping[str, Interface]
    config: Config
    split_bytes: int | None
    """The bytes of a split; None for a live source, which has no splits yet."""
    measured: Measured
    """Samples of the sources, taken when a rule first needs one."""
    in_force: InForce | None = None
    """The composition of windows in a running stream."""
    arrival_ns: int = field(default_factory=time.time_ns)
    """The arrival time of all tuples of a batch: now."""
    found: dict[tuple[str, Edge | None], tuple[Split, ...]] = field(default_factory=dict)
    """The splits found so far, as a cache: finding them takes time."""
    decided: Slicing | None = None
    """choose_slices: the slices of windows, where they are known."""
    sets: Mapping[str, PartitionSet] = field(default_factory=dict)
    """read_sources: the partitioning set of each partitioned source."""
    made: SplitPlan | None = None
    """split_queries: the low and the high part of every query."""
    hosted: tuple[Stream, ...] = ()
    """host_low_level: the low-level streams of sources whose tasks run them."""
    in_spark: Mapping[str, Rel] = field(default_factory=dict)
    """host_low_level: the low-level streams of the other sources."""
    unshared: tuple[SourceRead, ...] = ()
    """share_tables: the reads before aggregations shared tables."""
    views: Mapping[str, Project] = field(default_factory=dict)
    """share_tables: for each stream that shares a table, the columns of that table under the
    stream's names."""

    @property
    def is_live(self) -> bool:
        return self.split_bytes is None

    @property
    def is_native(self) -> bool:
        """Whether the tasks that read run the low level, where their source allows it."""
        return self.config.low != "catalyst"

    @property
    def split(self) -> SplitPlan:
        assert self.made is not None, "split_queries comes first"
        return self.made

    @property
    def whole(self) -> Plan:
        """The plan in which low-level streams contain the scans."""
        return self.split.plan

    def splits_of(
        self, members: Sequence[Interface], edge: Edge | None, split_bytes: int
    ) -> list[Split]:
        """The splits of a source, found once for each interface."""
        for member in members:
            if (member.name, edge) not in self.found:
                self.found[member.name, edge] = tuple(member.splits(split_bytes, edge))
        return with_any_bounds([s for member in members for s in self.found[member.name, edge]])

    def job(self) -> Job:
        """The Job, after all rules."""
        return Job(*(getattr(self, part.name) for part in fields(Job)))
