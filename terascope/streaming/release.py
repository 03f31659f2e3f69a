"""Releasing rows: the queries over stored rows that a micro-batch computes.

In: stored rows, and the watermarks of all relations. Out: reports and parts of the rows that are
newly complete. Tasks compute queries of placement "close", in one job; the engine's high level
computes queries of placement "spark", and those too large for the memory of a task, in another,
from relations with a filter right above the operator at which the query is released.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import TypeAlias

from terascope.analysis.moving import ALL, earlier
from terascope.analysis.order import emitted_orders
from terascope.analysis.release import Release, ReleasePart, complete_below
from terascope.analysis.watermarks import Watermarks
from terascope.execute.rows.task_joins import MEMORY_SHARE
from terascope.functions.base import Value
from terascope.physical.rules.finish_in_tasks import ends_with_time
from terascope.physical.stream.plan import InSpark, RowPipelines, StoredJoin, StreamOutput
from terascope.physical.stream.windows import StoredWindows
from terascope.plan.build import FALSE, call, conjunction, disjunction
from terascope.plan.expr import Bound, Col, Expr
from terascope.plan.plan import reads
from terascope.plan.rel import WEND, Aggregate, Filter, PlanMistake, Rel, inputs, with_inputs
from terascope.streaming.context import Report, RunContext, StreamEngine
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import StreamState
from terascope.streaming.stored_rows import (
    StoredStream,
    rows_by_stream,
    stored_leaves,
    stored_tiers,
)
from terascope.streaming.tasks.windows import (
    BUILT_AT_ONCE,
    DueSlices,
    DueSpan,
    DueWindows,
    Pieces,
)
from terascope.streaming.tasks.work import (
    DueJoin,
    DuePipelines,
    DueRange,
    DueRelations,
    DueWork,
)
from terascope.types import Type

Waiting: TypeAlias = tuple[StreamOutput, Sequence[tuple[Value, Value]]]
"""A query, and for each part of its release the range to release."""

Range: TypeAlias = tuple[Value, Value]
"""From the first value, inclusive, up to the second, exclusive. None as first: from the beginning.
ALL as second: to the end, with the rows that have no value (NULL). None as second: nothing."""


class Releasing:
    """The queries of one micro-batch."""

    def __init__(
        self,
        context: RunContext,
        engine: StreamEngine,
        state: StreamState,
        watermarks: Watermarks,
        fresh: Sequence[Segment],
        merges: Sequence[DueWork] = (),
    ) -> None:
        """`fresh`: the segments of this batch; `merges`: other work for the same job."""
        self._context, self._engine, self._state = context, engine, state
        self._fresh = fresh
        self._merges = merges
        self._watermarks = replace(watermarks, present=self._present)

    def run(self) -> list[Report]:
        """Compute the newly complete rows of all queries, and record them in the state."""
        plan, state = self._context.plan, self._state
        waiting: list[Waiting] = []
        for output in plan.outputs:
            progress = state.queries[output.name]
            if output.release is None:
                if output.low is not None:
                    progress.until = state.streams[plan.low[output.low].key].until
                progress.ended = state.ended
                continue
            bounds = self._bounds(output)
            if bounds is None:
                continue
            waiting.append((output, bounds))
            if output.release.kind != "at_once":
                progress.bounds = [low if above is ALL else above for low, above in bounds]
                progress.ended = state.ended
        due: list[DueWork] = [*self._merges]
        computed: list[Waiting] = []
        for members in together(waiting):
            parts = [self._due(members, home) for home in self._homes(members)]
            pieces = [one for one in parts if one is not None]
            most = max((one.bytes for one in pieces), default=0)
            if len(pieces) < len(parts) or MEMORY_SHARE * most > self._context.sink.memory_bytes:
                computed += members  # of placement "spark", or too large: `StreamOutput.when_large`
            else:
                due += (one for one in pieces if one.bytes)  # nothing is made of nothing
        due += self._spans()
        reports = run_due(self._context, self._engine, state, due)
        return [*reports, *self._computed(computed)]

    def _homes(self, members: Sequence[Waiting]) -> Sequence[int | None]:
        """The partitions that compute some queries, each from the rows that it has stored; None:
        one task computes them from all rows. Rows of several partitions can be put in order by
        columns without a band only.
        """
        names = [output.name for output, _ in members]
        return [None] if any(map(self._has_band, names)) else self._homes_of(names)

    def _has_band(self, stream: str) -> bool:
        trees = self._context.plan.trees
        orders = emitted_orders(trees.streams[stream], trees.stream_orders[stream])
        visible = {f.name for f in trees.streams[stream].visible}
        return any(order.slope.band for name, order in orders.items() if name in visible)

    def _homes_of(self, streams: Iterable[str]) -> Sequence[int | None]:
        owned = self._context.plan.job.ownership
        is_kept = owned is not None and all(name in owned.kept for name in streams)
        return range(self._state.destinations) if is_kept else [None]

    def _due(
        self, members: Sequence[Waiting], home: int | None
    ) -> DueSlices | DueJoin | DuePipelines | DueRelations | None:
        """The queries that tasks compute from closed rows: those of one partition, or of all."""
        output, bounds = members[0]
        plan, release = self._context.plan, output.release
        assert release is not None
        at_once = release.kind == "at_once"
        leaves = self._fresh_leaves if at_once else self._leaves
        if home is not None:
            leaves = {name: leaf.of_home(home) for name, leaf in leaves.items()}
        range_ = DueRange(*bounds[0], release.parts[0].descending) if bounds else None
        match output.plan:
            case StoredWindows() as windows:
                due = [
                    DueWindows.of(o.windows, DueRange(*b[0]), () if home is None else o.ordered)
                    for o, b in members
                    if o.windows
                ]
                pieces = [self._pieces(one, windows, home) for one in windows.by_stream]
                return DueSlices.of(due, pieces, self._context.sink.compiled)
            case StoredJoin(join, tied) if range_ is not None:
                left, right = (leaves[plan.low[side.stream].name] for side in join.sides)
                order = output.output.order
                return DueJoin(join, left, right, tied, range_, order, output.ordered)
            case RowPipelines() as pipelines:
                found = tuple(leaves[one.stream] for one in pipelines.inputs)
                ordered = () if home is None else output.ordered
                return DuePipelines(pipelines, found, range_, ordered)
            case InSpark() if home is not None:
                return self._relations(output, bounds, leaves)
            case _:
                return None

    def _relations(
        self, output: StreamOutput, bounds: Sequence[Range], leaves: Mapping[str, StoredStream]
    ) -> DueRelations | None:
        """A query that a partition computes by itself, from the rows that it has stored."""
        plan, release = self._context.plan, output.release
        assert release is not None
        trees = plan.trees.streams
        below = streams_below(output.name, trees, leaves)
        if any(ends_with_time(trees[name]) for name in below if name not in leaves):
            return None
        if release.kind != "at_once":
            trees = released(trees, release, bounds)
        return DueRelations(
            output.name, output.fields, output.output.order, output.ordered,
            {name: trees[name] for name in below if name not in leaves},
            {name: leaves[name] for name in below if name in leaves},
            plan.job.parameters,
        )  # fmt: skip

    def _pieces(self, windows: StoredWindows, now: StoredWindows, home: int | None) -> Pieces:
        """The slices of a query, retired ones included, in the columns of the present ones: those
        of one partition, or of all.
        """
        plan = self._context.plan
        own, shown = plan.by_name[windows.stream], plan.by_name[now.stream]
        leaves = stored_tiers(plan, own, shown, self._kept)
        if home is not None:
            leaves = {tier: leaf.of_home(home) for tier, leaf in leaves.items()}
        return Pieces(plan.windows[own.name], leaves, now.slices)

    def _spans(self) -> Iterator[DueSpan]:
        """The spans of slices to build for later windows."""
        plan = self._context.plan
        for name, family in plan.windows.items():
            stream, progress = plan.by_name[name], self._state.streams[plan.leaves[name]]
            if not family.tiers or progress.until is None or self._state.ended:
                continue
            own, until = family.members[0], int(progress.until)
            since = max(until - family.longest, int(progress.kept_from or until - family.longest))
            for home in self._homes_of([name]):
                pieces = self._pieces(own, own, home)
                built = pieces.built
                missing = built.missing(family.tiers, since, until)
                parts = ((span, pieces.of(built.cover(span.start, span.end))) for span in missing)
                there = ((span, some) for span, some in parts if some.bytes)
                for span, some in islice(there, BUILT_AT_ONCE):
                    yield DueSpan(stream, span, some, self._context.sink.compiled, home or 0)

    @cached_property
    def _kept(self) -> dict[str, tuple[Segment, ...]]:
        return rows_by_stream(self._state.segments)

    @cached_property
    def _leaves(self) -> dict[str, StoredStream]:
        return stored_leaves(self._context.plan, self._state.segments)

    @cached_property
    def _fresh_leaves(self) -> dict[str, StoredStream]:
        return stored_leaves(self._context.plan, self._fresh)

    def _computed(self, computed: Sequence[Waiting]) -> list[Report]:
        """Compute the queries of the high level, in one job."""
        plan = self._context.plan
        if not computed:
            return []
        high = self._engine.high_level(self._context, self._state, self._state.segments)
        # Rows without an order are released at once: only new segments are read.
        fresh = self._engine.high_level(self._context, self._state, self._fresh)
        queries = []
        for output, bounds in computed:
            assert output.release is not None
            at_once = output.release.kind == "at_once"
            trees = plan.trees.streams
            if not at_once:
                trees = released(trees, output.release, bounds)
            queries.append((fresh if at_once else high).query(output, trees))
        return self._engine.write(queries)

    def _bounds(self, output: StreamOutput) -> list[tuple[Value, Value]] | None:
        """The range to release for each part of a query's release; None: nothing."""
        release = output.release
        assert release is not None
        progress = self._state.queries[output.name]
        if progress.ended:
            return None
        if release.kind == "at_once":
            return []
        if self._state.ended:
            return [(low, ALL) for low in progress.lows(len(release.parts))]
        if release.kind == "at_end":
            return None
        below = complete_below(release, self._watermarks)
        lows = progress.lows(len(below))
        # A query that came later may begin after the complete rows.
        bounds = [
            (low, low if earlier(high, low, part.trend) else high)
            for low, high, part in zip(lows, below, release.parts, strict=True)
        ]
        return bounds if any(low != high for low, high in bounds) else None

    def _present(self, rel: Aggregate) -> Value:
        """The key of the last complete row of an aggregation that has tuples."""
        context, full = self._context, replace(rel, emit_empty=None)
        name = next((n for n, e in rel.keys if e == Col(WEND, e.type)), rel.keys[0][0])
        complete = self._watermarks.of(Col(name, rel.type_of(name)), full)
        if complete is None or complete is ALL:
            return None
        if context.present.get(rel, (None, None))[0] != complete:
            high = self._engine.high_level(context, self._state, self._state.segments)
            context.present[rel] = complete, high.last(full, name, complete)
        return context.present[rel][1]


def streams_below(name: str, trees: Mapping[str, Rel], leaves: Collection[str]) -> list[str]:
    """A stream and all streams it is computed from, each behind those it reads."""
    found: dict[str, None] = {}

    def visit(stream: str) -> None:
        if stream not in leaves:
            for read in reads(trees[stream]):
                visit(read.stream)
        found.setdefault(stream)

    visit(name)
    return list(found)


def together(waiting: Sequence[Waiting]) -> list[list[Waiting]]:
    """Queries over windows of the same slices together, and each of the others by itself."""
    found: dict[tuple[str, ...], list[Waiting]] = {}
    for output, bounds in waiting:
        windows = output.windows
        which = ("query", output.name) if windows is None else ("slices", *windows.streams)
        found.setdefault(which, []).append((output, bounds))
    return list(found.values())


def run_due(
    context: RunContext, engine: StreamEngine, state: StreamState, work: Sequence[DueWork]
) -> list[Report]:
    """Run work on stored rows, each piece in a task of its own."""
    stored = context.stored_rows(state)
    tasks = [partial(one.run, stored, context.sink) for one in work]
    return engine.run_tasks(tasks) if tasks else []


def released(
    streams: Mapping[str, Rel], release: Release, ranges: Sequence[Range]
) -> Mapping[str, Rel]:
    """The same relations, in which the released operator emits only rows of the ranges, one for
    each part. Only for evaluating the one stream of `release`: other readers of the same relation
    would miss rows.
    """
    if release.kind != "ordered":
        return streams
    pairs = zip(release.parts, ranges, strict=True)
    kept = disjunction(in_range(part, low, high) for part, (low, high) in pairs)
    tree = streams[release.stream]
    return {**streams, release.stream: filtered(tree, release.node, kept)}


def in_range(part: ReleasePart, low: Value, high: Value) -> Expr:
    """Whether a row belongs to a part and its value to the range of that part."""
    if high is None or low is ALL:
        return FALSE
    reached, beyond = ("<=", ">") if part.descending else (">=", "<")
    conditions = []
    if low is not None:
        conditions.append(call(reached, part.value, literal(low)))
    if high is not ALL:
        conditions.append(call(beyond, part.value, literal(high)))
    within = conjunction(conditions)
    if high is ALL and conditions:
        within = disjunction((call("is_null", part.value), within))
    return within if part.only is None else conjunction((part.only, within))


def literal(value: int | float) -> Bound:
    return Bound(value, Type.FLOAT if isinstance(value, float) else Type.LLONG)


def filtered(tree: Rel, node: Rel, kept: Expr) -> Rel:
    """The relation with a filter above the operator. Above the operator there are only operators
    that process one row at a time or look rows up in a table.
    """
    if tree == node:
        return Filter(tree, kept, span=tree.span)
    parts = inputs(tree)
    for place, part in enumerate(parts):
        if contains(part, node):
            changed = filtered(part, node, kept)
            return with_inputs(tree, (*parts[:place], changed, *parts[place + 1 :]))
    raise PlanMistake("the released operator is not in the tree")


def contains(tree: Rel, node: Rel) -> bool:
    return tree == node or any(contains(part, node) for part in inputs(tree))
