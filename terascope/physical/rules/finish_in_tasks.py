"""The readers of the low level's rows: queries that tasks finish themselves, and the high level.

In: a Job with low-level streams. Out: for each of these a `Target`, the queries that tasks write
(`Direct`), and the joins that tasks make where they have both sides (`TaskJoin`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from terascope.connectors.base import INTERFACE, POSITION
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.delivery import Direct, Joining, Target, rest_name
from terascope.physical.draft import JobDraft
from terascope.physical.job import Deliveries, Job, SourceRead
from terascope.physical.low_plan import LowPlan, LowSelect, expressions_of
from terascope.physical.row_pipeline import (
    Keep,
    Regroup,
    RowPipeline,
    columns_read,
    origin,
    picked,
    picking,
    row_pipeline,
)
from terascope.physical.rules.join_in_tasks import joinings
from terascope.plan.expr import Col, Expr, columns_of, substitute
from terascope.plan.plan import reads


def finish_in_tasks(draft: JobDraft) -> JobDraft:
    """Before: the high level computes every query      After: tasks write the rows of queries that
    only filter, project, rank or regroup one low-level stream, or join two. For a live stream this
    is planned with its slices (terascope.physical.stream.rules).
    """
    if not draft.hosted or draft.destination == "stream":
        return draft
    planned = deliveries(draft, draft.destination != "frames", draft.destination == "rows")
    adapted = {read.name: read for read in planned.reads}
    reads_ = tuple(adapted.get(read.name, read) for read in draft.reads)
    return replace(draft, reads=reads_, deliveries=planned)


def deliveries(
    job: Job,
    writing: bool,
    sorted_later: bool,
    joins: bool = True,
    held: Collection[str] = (),
) -> Deliveries:
    """The deliveries of a job. `writing`: tasks write the queries they can finish, joins included
    if allowed. Parts that are sorted later also have the hidden columns of the sort. `held`:
    low-level streams whose rows are stored for others, so that no task can finish them.
    """
    direct = direct_queries(job, sorted_later) if writing else {}
    direct = {name: made for name, made in direct.items() if made.program.stream not in held}
    joined = joinings(job, direct, sorted_later) if writing and joins else {}
    pushed = {n: pushed_down(t) for n, t in stream_targets(job, direct, joined).items()}
    targets = {number: narrow(target) for number, (target, _) in pushed.items()}
    conditions = {target.name: asked for target, asked in pushed.values()}
    columns = {target.name: {f.name for f in target.fields} for target in targets.values()}
    reads = tuple(
        replace(read, low=adapted(read.low, conditions, columns))
        for read in job.reads
        if read.low is not None
    )
    return Deliveries(direct, joined, targets, reads)


def stream_numbers(job: Job, read: SourceRead) -> tuple[int, ...]:
    numbers = {output.name: i for i, output in enumerate(job.low)}
    return tuple(numbers[query.name] for query in read.queries)


def direct_queries(job: Job, sorted_later: bool) -> dict[str, Direct]:
    """The queries that only filter and project a low-level stream. Parts that are sorted later also
    have the hidden columns of the sort.
    """
    low = {output.name: [f.name for f in output.fields] for output in job.low}
    groups = {output.name: output.groups for output in job.low}
    trees = {stage.name: stage.rel for stage in job.streams}
    found: dict[str, Direct] = {}
    for output in job.outputs:
        rel = trees[output.stream]
        program = row_pipeline(rel, trees, job.parameters)
        if program is not None and program.whole is not None:
            program = within_epochs(program, groups.get(program.stream))
        if program is None or program.stream not in low:
            continue
        fields = output.part_fields(rel, sorted_later)
        steps = program.extended(picking(fields))
        places = picked(steps, low[program.stream])
        # Tuples of one interface are written as they come: their order is that of the source.
        ordered = () if groups[program.stream] is None else output.ordered
        found[output.stream] = Direct(output.stream, steps, fields, places, ordered)
    return found


def within_epochs(program: RowPipeline, groups: GroupFields | None) -> RowPipeline | None:
    """A pipeline that ranks or groups rows of one epoch only, so that one task has all of them."""
    if groups is None or groups.epoch is None:
        return None
    epoch = groups.keys[groups.epoch].name

    def is_epoch(name: str) -> bool:
        return origin(program, name) == epoch

    whole = program.whole
    if isinstance(whole, Regroup):
        for place, (_, expr) in enumerate(whole.keys):
            if isinstance(expr, Col) and is_epoch(expr.name):
                return replace(program, whole=replace(whole, epoch=place))
        return None
    return program if whole is None or any(map(is_epoch, whole.per)) else None


def stream_targets(
    job: Job, direct: Mapping[str, Direct], joined: Mapping[str, Joining] | None = None
) -> dict[int, Target]:
    """The readers of each low-level stream, by its number; leftover rows of joins, too."""
    joined = joined or {}
    wanted = needed(job, {*direct, *joined})
    high = {
        read.stream for stage in job.streams if stage.name in wanted for read in reads(stage.rel)
    }
    targets = {
        number: Target(
            output.name,
            output.fields,
            output.groups,
            output.name in high,
            tuple(d for d in direct.values() if d.program.stream == output.name),
            tuple(
                (at, other.windows)
                for at, other in enumerate(job.low)
                if other.windows is not None and other.windows.stream == output.name
            ),
            output.windows is not None,
            output.merged_above,
        )
        for number, output in enumerate(job.low)
    }
    for query, made in joined.items():
        for place, side in enumerate(made.pairing.sides):
            targets[side.rest] = Target(rest_name(query, place), side.fields, None, high=True)
    return targets


def needed(job: Job, direct: Collection[str]) -> set[str]:
    """The streams of the high level: outputs that no task writes, and the streams these read."""
    trees = {stage.name: stage.rel for stage in job.streams}
    waiting = [o.stream for o in job.outputs if o.stream not in direct]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in trees and name not in found:
            found.add(name)
            waiting += [read.stream for read in reads(trees[name])]
    return found


# ---- conditions and columns that the low level takes over ----------------------------------------


def pushed_down(target: Target) -> tuple[Target, tuple[Expr, ...]]:
    """A target without the conditions that its lone query begins with, and these conditions: the
    low level tests them before tuples are copied. Only of a selection that one query reads
    alone.
    """
    if target.high or target.groups is not None or len(target.direct) != 1 or target.of_windows:
        return target, ()
    (direct,) = target.direct
    found: list[Expr] = []
    for step in direct.program.steps:
        if not isinstance(step, Keep):
            break
        found.append(step.predicate)
    program = replace(direct.program, steps=direct.program.steps[len(found) :])
    return replace(target, direct=(replace(direct, program=program),)), tuple(found)


def narrow(target: Target) -> Target:
    """A target without the columns of a selection that no query of the tasks reads, such as those
    that only sorted rows need.
    """
    if target.high or target.groups is not None or not target.direct:
        return target
    read = [columns_read(d.program) for d in target.direct]
    fields = tuple(f for f in target.fields if any(r is None or f.name in r for r in read))
    fields = fields or target.fields[:1]  # a batch without columns has no rows
    direct = tuple(
        replace(d, places=picked(d.program, [f.name for f in fields])) for d in target.direct
    )
    return replace(target, fields=fields, direct=direct)


def adapted(
    low: LowPlan,
    conditions: Mapping[str, tuple[Expr, ...]],
    columns: Mapping[str, Collection[str]],
) -> LowPlan:
    """A plan whose selections have the conditions and columns of their targets, by stream. The
    place and the interface of a tuple are dropped when no query reads them; others stay: malformed
    values are counted.
    """
    queries = list(low.queries)
    for at, query in enumerate(queries):
        if isinstance(query, LowSelect):
            items = dict(query.items)
            asked = (substitute(condition, items) for condition in conditions[query.name])
            kept = tuple(item for item in query.items if item[0] in columns[query.name])
            queries[at] = replace(query, rest=(*query.rest, *asked), items=kept)
    expressions = [*low.predicates, *(e for query in queries for e in expressions_of(query))]
    used = frozenset[str]().union(*(columns_of(expr) for expr in expressions))
    read = tuple(c for c in low.columns if c.name in used or c.name not in (POSITION, INTERFACE))
    return replace(low, queries=tuple(queries), columns=read)
