"""Queries over windows that a task assembles from the stored slices of a stream (paper 0).

In: the relations of a set. Out: `StoredWindows`: the windows, and the row pipeline from their
groups to the rows of a query. A batch assembles the same windows in its merge
(terascope.physical.rules.merged_groups); in a stream a window is due when its last slice has
closed, and its slices are read from the store.

A long window would read many slices, so that spans of eight slices, of eight such spans and so on
are stored as well (tiers): of a range of r/s slices a window reads O(log r/s) spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from terascope.analysis.release import Release
from terascope.functions.base import Value
from terascope.functions.slices import SliceVector
from terascope.physical.job import Output
from terascope.physical.low_plan import LowOutput, Slot, Windows
from terascope.physical.operators import Placement
from terascope.physical.row_pipeline import Regroup, RowPipeline, RowPlanner, Top
from terascope.physical.rules.merged_groups import Assembly
from terascope.physical.split.drafts import Names
from terascope.plan.expr import Col
from terascope.plan.rel import WEND, WSTART, Aggregate, Field, Rel

FACTOR: Final = 8
"""The number of spans of a tier in one span of the next."""

Length: TypeAlias = int
"""The length of the spans of a tier; 0: the slices themselves."""


def tiers_of(vector: SliceVector, longest: int) -> tuple[Length, ...]:
    """The useful tiers for windows of at most this range."""
    found: list[Length] = []
    length = FACTOR * vector.period
    while 2 * length <= longest:
        found.append(length)
        length *= FACTOR
    return tuple(found)


@dataclass(frozen=True)
class StoredWindows:
    """A task assembles the windows of a query from stored slices."""

    query: str
    windows: Windows
    slices: Regroup
    """The aggregation that makes groups of the stored rows of slices."""
    program: RowPipeline
    """The row pipeline from the groups of windows to the rows of the query."""
    by_start: bool
    """Whether rows are released by the start of their window, not by its end."""
    fields: tuple[Field, ...]
    """The columns that are emitted."""
    order: tuple[tuple[str, bool], ...]
    """The columns by which rows are sorted, hidden columns included."""
    earlier: tuple[StoredWindows, ...] = ()
    """The same query over the slices of retired streams, which its windows contain as well."""
    placement: Placement = "close"

    @property
    def stream(self) -> str:
        """The stream whose slices are read."""
        return self.windows.stream

    @property
    def by_stream(self) -> tuple[StoredWindows, ...]:
        """The query over each stream whose slices are read."""
        return (self, *self.earlier)

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(one.stream for one in self.by_stream)


@dataclass(frozen=True)
class WindowFamily:
    """All queries over windows of the slices of one stream."""

    members: tuple[StoredWindows, ...]

    @property
    def slices(self) -> Regroup:
        return self.members[0].slices

    @property
    def vector(self) -> SliceVector:
        return self.members[0].windows.vector

    @cached_property
    def longest(self) -> int:
        return max(one.windows.window.range for one in self.members)

    @cached_property
    def tiers(self) -> tuple[Length, ...]:
        """The lengths of the spans of slices that are stored for these windows."""
        return tiers_of(self.vector, self.longest)


def stored_windows(
    low: Sequence[LowOutput],
    stages: Mapping[str, Rel],
    parameters: Mapping[str, Value],
    outputs: Iterable[tuple[Output, Release, tuple[Field, ...]]],
) -> Iterator[StoredWindows]:
    """The queries of a set that consist of windows alone. `outputs`: queries with their release and
    the columns that are emitted.
    """
    groups = {output.name: output for output in low if output.groups is not None}
    assembly = Assembly(groups, Names({*stages, *groups}))
    above = assembly.over_windows(stages)
    planner = RowPlanner(above, parameters)
    made = {one.name: one.windows for one in assembly.made.values()}
    for output, release, fields in outputs:
        query, by_start = output.stream, released_by_start(release)
        program = None if by_start is None else planner.pipeline(above[query])
        windows = None if program is None else made.get(program.stream)
        if by_start is None or program is None or windows is None:
            continue
        if program.whole is not None and not isinstance(program.whole, Top):
            continue
        slices = regrouped(groups[windows.stream])
        now = StoredWindows(query, windows, slices, program, by_start, fields, output.order)
        earlier = tuple(
            replace(
                now,
                windows=replace(windows, stream=stream, vector=vector, earlier=()),
                slices=regrouped(groups[stream]),
            )
            for stream, vector in windows.earlier
        )
        yield replace(now, earlier=earlier)


def released_by_start(release: Release) -> bool | None:
    """Whether rows are released by the start of their window, or by its end; None: by neither."""
    node, parts = release.node, release.parts
    if not isinstance(node, Aggregate) or len(parts) != 1 or release.fills_gaps:
        return None
    match parts[0].value:
        case Col(name) if not parts[0].descending and parts[0].only is None:
            edge = dict(node.keys).get(name)
            if isinstance(edge, Col) and edge.name in (WSTART, WEND):
                return edge.name == WSTART
    return None


def regrouped(output: LowOutput) -> Regroup:
    """The groups of a stream, computed again from its finished rows."""
    groups = output.groups
    assert groups is not None
    keys = tuple((f.name, Col(f.name, f.type)) for f in groups.keys)
    slots = [
        Slot(f.name, kind.of_partials, Col(f.name, f.type), f.type)
        for f, kind in zip(groups.slots, groups.shape.slots, strict=True)
    ]
    return Regroup(keys, tuple(slots), groups.epoch, groups.sums)
