"""Queries over windows that tasks put together from the closed slices of one stream.

In: the trees of a set. Out: `Windowing`: the windows, and the steps from their groups to the rows
of a query. As in a batch (terascope.physical.rules.window_assembly), but a window is due when its
last slice was closed, and its slices are read from the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from terascope.analysis.release import Release
from terascope.functions.base import Value
from terascope.functions.slices import SliceVector
from terascope.kernels.tables.slots import SlotKind
from terascope.physical.job import LowOutput
from terascope.physical.job_windows import Windows
from terascope.physical.low_plan import Slot
from terascope.physical.row_pipeline import Regroup, RowProgram, Top, row_program
from terascope.physical.rules.window_assembly import Assembly
from terascope.physical.split.drafts import Names
from terascope.plan.expr import Col
from terascope.plan.rel import WEND, WSTART, Aggregate, Field, Rel
from terascope.streaming.state.tiers import Length, tiers_of


@dataclass(frozen=True)
class Windowing:
    """A query over windows of closed slices."""

    query: str
    windows: Windows
    slices: Regroup
    """The groups of the slices, out of the rows that the store has of them."""
    program: RowProgram
    """From the groups of windows to the rows of the query."""
    by_start: bool
    """Whether rows are let go by the begin of their window, not by its end."""
    fields: tuple[Field, ...]
    """What is delivered."""
    order: tuple[tuple[str, bool], ...]
    """By columns that may be hidden."""
    earlier: tuple[Windowing, ...] = ()
    """The same query over other slices that its windows are made of as well: they are of streams
    that get no more tuples."""

    @property
    def stream(self) -> str:
        """The one whose slices are read."""
        return self.windows.stream

    @property
    def by_stream(self) -> tuple[Windowing, ...]:
        """For each stream whose slices are read."""
        return (self, *self.earlier)

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(one.stream for one in self.by_stream)


@dataclass(frozen=True)
class WindowFamily:
    """All queries over windows of the slices of one stream."""

    members: tuple[Windowing, ...]

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
        """The lengths of the spans of slices that are put together for them."""
        return tiers_of(self.vector, self.longest)


class WindowingPlanner:
    """Finds the queries of a set that are made of windows alone."""

    def __init__(
        self, low: Sequence[LowOutput], stages: Mapping[str, Rel], parameters: Mapping[str, Value]
    ) -> None:
        self._low = {output.name: output for output in low if output.groups is not None}
        self._assembly = Assembly(self._low, Names({*stages, *self._low}))
        self._above = self._assembly.over_windows(stages)
        self._made = {made.name: made.windows for made in self._assembly.made.values()}
        self._parameters = parameters

    def windowing(
        self,
        query: str,
        release: Release,
        fields: tuple[Field, ...],
        order: Sequence[tuple[str, bool]],
    ) -> Windowing | None:
        """How tasks compute a query; None when it is not theirs."""
        by_start = released_by_start(release)
        if by_start is None:
            return None
        program = row_program(self._above[query], self._above, self._parameters)
        windows = None if program is None else self._made.get(program.stream)
        if program is None or windows is None:
            return None
        if program.whole is not None and not isinstance(program.whole, Top):
            return None
        now = Windowing(
            query, windows, self._slices(windows.stream), program, by_start, fields, tuple(order)
        )
        earlier = tuple(
            replace(
                now,
                windows=replace(windows, stream=stream, vector=vector, earlier=()),
                slices=self._slices(stream),
            )
            for stream, vector in windows.earlier
        )
        return replace(now, earlier=earlier)

    def _slices(self, stream: str) -> Regroup:
        return regrouped(self._low[stream])


def released_by_start(release: Release) -> bool | None:
    """Whether rows are let go by the begin of their window, or by its end; None: by neither."""
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
    """The groups of a stream, made once more of its finished rows."""
    groups = output.groups
    assert groups is not None
    keys = tuple((f.name, Col(f.name, f.type)) for f in groups.keys)
    slots = [
        Slot(f.name, of_values(kind), Col(f.name, f.type), f.type)
        for f, kind in zip(groups.slots, groups.shape.slots, strict=True)
    ]
    return Regroup(keys, tuple(slots), groups.epoch, groups.sums)


def of_values(kind: SlotKind) -> SlotKind:
    """The slot that merges finished values of another."""
    return "sum_int" if kind in ("count", "count_of") else kind
