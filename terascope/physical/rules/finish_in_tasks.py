"""The readers of the low level's rows: queries that tasks finish themselves, and the high level.

In: a Job with low-level streams. Out: for each of these a `Target`, the queries that tasks write
(`Direct`), and the joins that tasks make where they have both sides (`TaskJoin`).

A task joins two low-level aggregations, epoch by epoch; the high level joins the leftover rows. A
join is taken when an equality ties the epochs of both sides together, and when the equalities name
all keys of one side: then each row of the other side has at most one partner, and the join is not
larger than its inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from terascope.connectors.base import INTERFACE, POSITION
from terascope.functions.base import Scalar
from terascope.functions.roles import Addition
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.delivery import (
    Direct,
    InsideStream,
    Side,
    Target,
    TaskJoin,
    leftover_name,
)
from terascope.physical.draft import JobDraft
from terascope.physical.job import Deliveries, Job, Output, SourceRead
from terascope.physical.low_plan import LowPlan, LowSelect, expressions_of
from terascope.physical.row_pipeline import (
    Equalities,
    Keep,
    Regroup,
    RowPipeline,
    RowPlanner,
    columns_read,
    origin,
    picked,
    picking,
)
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of, substitute
from terascope.plan.plan import reads
from terascope.plan.rel import Aggregate, Join, Lookup, Read, Rel, Running, Scan, walk, with_inputs


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
    direct = {name: made for name, made in direct.items() if is_whole(job, made)}
    joined = task_joins(job, direct, sorted_later) if writing and joins else {}
    inside = inside_streams(job, {**direct, **joined}, writing, sorted_later) if joins else {}
    direct = {name: made for name, made in direct.items() if name not in inside}
    joined = {name: made for name, made in joined.items() if name not in inside}
    job = replace(job, deliveries=Deliveries(inside=inside))
    pushed = {n: pushed_down(t) for n, t in stream_targets(job, direct, joined).items()}
    targets = {number: narrow(target) for number, (target, _) in pushed.items()}
    conditions = {target.name: asked for target, asked in pushed.values()}
    columns = {target.name: {f.name for f in target.fields} for target in targets.values()}
    reads = tuple(
        replace(read, low=adapted(read.low, conditions, columns))
        for read in job.reads
        if read.low is not None
    )
    planned = Deliveries(direct, joined, targets, reads, inside)
    above = streams_above(job, planned.fields, sorted_later) if writing and joins else ()
    return replace(planned, above=above)


def streams_above(
    job: Job, finished: Collection[str], sorted_later: bool
) -> tuple[InsideStream, ...]:
    """The streams that neither the tasks of sources nor those of partitions compute, and that a
    task could compute from packed rows.
    """
    outputs = {o.stream: o for o in job.outputs if o.stream not in finished}
    return tuple(
        InsideStream(
            name, rel, outputs[name].part_fields(rel, sorted_later) if name in outputs else ()
        )
        for name, rel in needed(job, finished).items()
        if not any(map(is_of_spark, walk(rel))) and not ends_with_time(rel)
    )


def is_of_spark(rel: Rel) -> bool:
    """Whether an operator reads more than packed rows: tuples in Spark, or a file."""
    return isinstance(rel, Scan | Lookup)


def is_whole(job: Job, direct: Direct) -> bool:
    """Whether a task has all rows that a query ranks or groups. In a task that reads a partition,
    complete groups need not be all groups of their epoch.
    """
    owned, program = job.ownership, direct.program
    if owned is None or program.whole is None or direct.query in owned.kept:
        return True
    return program.stream not in owned.kept


def inside_streams(
    job: Job, finished: Collection[str], writing: bool, sorted_later: bool
) -> dict[str, InsideStream]:
    """The streams above the low level that each partition computes by itself: all that are kept and
    still needed.
    """
    if job.ownership is None:
        return {}
    wanted = needed(job, finished)
    chosen: dict[str, Rel] = {}
    low = {output.name for output in job.low}
    for name, rel in wanted.items():
        below = {one.stream for one in reads(rel)}
        known = below <= chosen.keys() | (low & job.ownership.kept)
        if name in job.ownership.kept and known:
            chosen[name] = rel
    later: set[str] = set()
    for name, rel in chosen.items():
        if ends_with_time(rel) or any(one.stream in later for one in reads(rel)):
            later.add(name)
    outputs = {output.stream: output for output in job.outputs}
    apart = [rel for name, rel in wanted.items() if name not in chosen or name in later]
    above = {one.stream for rel in apart for one in reads(rel)} - later
    above |= {one.stream for n, rel in wanted.items() if n not in chosen for one in reads(rel)}
    made: dict[str, InsideStream] = {}
    number = len(job.low) + 2 * len(job.outputs)  # behind the leftover rows of all joins
    for name, rel in chosen.items():
        output = outputs.get(name)
        written = output.part_fields(rel, sorted_later) if output and writing else ()
        handed_up = name in above or (output is not None and not writing)
        at = number + len(made) if handed_up else None
        made[name] = InsideStream(name, rel, written, at, name in later)
    return made


def ends_with_time(rel: Rel) -> bool:
    """Whether a relation has rows up to the last tuple of its sources, wherever that is."""
    return any(
        isinstance(one, Running) or (isinstance(one, Aggregate) and one.emit_empty is not None)
        for one in walk(rel)
    )


def stream_numbers(job: Job, read: SourceRead) -> tuple[int, ...]:
    numbers = {output.name: i for i, output in enumerate(job.low)}
    return tuple(numbers[query.name] for query in read.queries)


def direct_queries(job: Job, sorted_later: bool) -> dict[str, Direct]:
    """The queries that only filter and project a low-level stream. Parts that are sorted later also
    have the hidden columns of the sort.
    """
    low = {output.name: [f.name for f in output.fields] for output in job.low}
    groups = {output.name: output.groups for output in job.low}
    planner = RowPlanner(job.streams, job.parameters)
    found: dict[str, Direct] = {}
    for output in job.outputs:
        rel = job.streams[output.stream]
        program = planner.pipeline(rel)
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
    epoch = None if groups is None else groups.epoch_name
    if epoch is None:
        return None

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
    job: Job, direct: Mapping[str, Direct], joined: Mapping[str, TaskJoin]
) -> dict[int, Target]:
    """The readers of each low-level stream, by its number; leftover rows of joins, too."""
    inside = job.deliveries.inside
    wanted = needed(job, {*direct, *joined, *(n for n, one in inside.items() if one.written)})
    high = {read.stream for rel in wanted.values() for read in reads(rel)}
    within = {one.stream for made in inside.values() if not made.later for one in reads(made.rel)}
    later = {one.stream for made in inside.values() if made.later for one in reads(made.rel)}
    targets = {
        number: Target(
            **vars(output),
            high=output.name in high,
            inside=output.name in within,
            later=output.name in later,
            remote=output.name in high and on_hosts(job),
            direct=tuple(d for d in direct.values() if d.program.stream == output.name),
            feeds=tuple(
                (at, other.windows)
                for at, other in enumerate(job.low)
                if other.windows is not None and other.windows.stream == output.name
            ),
        )
        for number, output in enumerate(job.low)
    }
    for query, join in joined.items():
        for place, side in enumerate(join.sides):
            name = leftover_name(query, place)
            targets[side.leftovers] = Target(name, side.fields, None, high=True)
    shown = {output.stream for output in job.outputs}
    for one in inside.values():
        if one.number is not None:
            is_read = one.name in high or (one.name in shown and not one.written)
            targets[one.number] = Target(
                one.name, one.rel.fields, None,
                high=is_read, later=one.name in later, remote=is_read and on_hosts(job),
            )  # fmt: skip
    return targets


def on_hosts(job: Job) -> bool:
    """Whether tasks run on hosts of partitions, so that what they hand on leaves the host."""
    return job.ownership is not None and job.ownership.host_count > 0


def needed(job: Job, finished: Collection[str]) -> dict[str, Rel]:
    """The streams of the high level: outputs that no task has finished, and the streams these
    read. A stream stands after all it reads; those that partitions compute are given.
    """
    read = {output.stream for output in job.outputs if output.stream not in finished}
    found: dict[str, Rel] = {}
    for name in reversed(tuple(job.streams)):
        if name in read and name not in job.deliveries.inside:
            found[name] = job.streams[name]
            read |= {one.stream for one in reads(found[name])}
    return dict(reversed(found.items()))


# ---- conditions and columns that the low level takes over ----------------------------------------


def pushed_down(target: Target) -> tuple[Target, tuple[Expr, ...]]:
    """A target without the conditions that its lone query begins with, and these conditions: the
    low level tests them before tuples are copied. Only of a selection that one query reads
    alone.
    """
    if target.handed_on or target.groups or target.windows or len(target.direct) != 1:
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
    if target.handed_on or target.groups is not None or not target.direct:
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


# ---- joins ---------------------------------------------------------------------------------------


def task_joins(job: Job, direct: Collection[str], sorted_later: bool) -> dict[str, TaskJoin]:
    """The task joins, by query. Parts that are sorted later have hidden sort columns, too."""
    found: dict[str, TaskJoin] = {}
    for output in job.outputs:
        if output.stream not in direct:
            made = task_join(job, output, sorted_later, len(job.low) + 2 * len(found))
            if made is not None:
                found[output.stream] = made
    return found


def task_join(job: Job, output: Output, sorted_later: bool, number: int) -> TaskJoin | None:
    """The task join of a query, or None. `number`: that of the first stream of leftover rows."""
    rel, planner = job.streams[output.stream], RowPlanner(job.streams, job.parameters)
    chain, join = planner.chain(rel)
    if not isinstance(join, Join):
        return None
    after = steps_above(chain, join, planner)
    sides = sides_of(join, job, number, planner)
    matching = planner.matching(join)
    if after is None or sides is None or matching is None:
        return None
    (left, right), (equalities, fills) = sides, matching
    owned = job.ownership
    apart = owned is not None and output.stream not in owned.kept
    if apart and owned and any(side.program.stream in owned.kept for side in sides):
        return None  # a task has whole groups, but not all groups of an epoch
    ahead = distance(equalities, sides)
    keyed = (names_all_keys(equalities, place, side) for place, side in enumerate(sides))
    if ahead is None or not any(keyed):
        return None
    fields = output.part_fields(rel, sorted_later)
    inputs = tuple(
        Read(leftover_name(output.stream, place), side.fields) for place, side in enumerate(sides)
    )
    rest: Rel = with_inputs(join, inputs)
    for above in reversed(chain):
        if not isinstance(above, Read):
            rest = with_inputs(above, (rest,))
    steps = after.extended(picking(fields))
    return TaskJoin(
        output.stream, join.kind, left, right, equalities, ahead, fills, steps, fields, rest
    )


def steps_above(chain: Sequence[Rel], join: Join, planner: RowPlanner) -> RowPipeline | None:
    """The steps on the rows of a join. The residual of the join is one more condition, if rows that
    fail it are simply dropped.
    """
    program: RowPipeline | None = RowPipeline("", ())
    if join.residual is not None:
        if join.kind != "inner":
            return None
        program = planner.kept(program, join.residual, join.fields)
    return planner.stepped(chain, program)


def sides_of(join: Join, job: Job, number: int, planner: RowPlanner) -> tuple[Side, Side] | None:
    """Both inputs of a join, when each is a low-level aggregation and both are of one read."""
    low = {output.name: i for i, output in enumerate(job.low)}
    made: list[Side] = []
    for place, rel in enumerate((join.left, join.right)):
        program = planner.pipeline(rel)
        if program is None or program.whole is not None or program.stream not in low:
            return None
        stream = low[program.stream]
        groups = job.low[stream].groups
        if groups is None or groups.epoch is None:
            return None
        made.append(Side(stream, groups, program, rel.fields, number + place))
    names = {side.program.stream for side in made}
    together = any(names <= {query.name for query in read.queries} for read in job.reads)
    return (made[0], made[1]) if together else None


def distance(equalities: Equalities, sides: tuple[Side, Side]) -> int | None:
    """The difference of the left and the right epoch in every row of the join; None when the
    equalities do not determine it.
    """
    for pair in equalities:
        shifts: list[int] = []
        for expr, side in zip(pair, sides, strict=True):
            key, shift = shifted_key(expr, side)
            if key == side.groups.epoch_name:
                shifts.append(shift)
        if len(shifts) == 2:
            return shifts[1] - shifts[0]
    return None


def names_all_keys(equalities: Equalities, place: int, side: Side) -> bool:
    """Whether the equalities name all keys of a side, so that at most one of its rows matches."""
    named = {shifted_key(pair[place], side)[0] for pair in equalities}
    return {f.name for f in side.groups.keys} <= named


def shifted_key(expr: Expr, side: Side) -> tuple[str | None, int]:
    """The key of a side's groups and the constant of which an expression is the sum; None instead
    of a key where there is none.
    """
    shift = 0
    match expr:
        case Call(Scalar(role=Addition((1, sign))), (base, Lit(value=int(by)))):
            expr, shift = base, sign * by
        case Call(Scalar(role=Addition((1, 1))), (Lit(value=int(by)), base)):
            expr, shift = base, by
    return origin(side.program, expr.name) if isinstance(expr, Col) else None, shift
