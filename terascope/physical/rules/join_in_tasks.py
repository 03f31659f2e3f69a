"""Joins that tasks can make: of two low-level aggregations, epoch by epoch.

In: a Job, and the queries that tasks finish already. Out: for each join a `TaskJoin` for the tasks,
and the same join as a relation over the leftover rows, which the high level computes.

A join is taken when an equality ties the epochs of both sides together, and when the equalities
name all keys of one side: then each row of the other side has at most one partner, and the join is
not larger than its inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from terascope.functions.base import Scalar, Value
from terascope.functions.roles import Addition
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.delivery import Joining, Side, TaskJoin, can_match, rest_name
from terascope.physical.job import Job, Output
from terascope.physical.row_pipeline import (
    RowPipeline,
    is_computable,
    kept,
    origin,
    picking,
    row_chain,
    row_pipeline,
    stepped,
    with_values,
)
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.plan.rel import Join, Read, Rel, with_inputs


def joinings(job: Job, direct: Collection[str], sorted_later: bool) -> dict[str, Joining]:
    """The task joins, by query. Parts that are sorted later have hidden sort columns, too."""
    found: dict[str, Joining] = {}
    for output in job.outputs:
        if output.stream not in direct:
            made = joining(job, output, sorted_later, len(job.low) + 2 * len(found))
            if made is not None:
                found[output.stream] = made
    return found


def joining(job: Job, output: Output, sorted_later: bool, number: int) -> Joining | None:
    trees = {stage.name: stage.rel for stage in job.streams}
    rel = trees[output.stream]
    chain, join = row_chain(rel, trees)
    if not isinstance(join, Join):
        return None
    after = steps_above(chain, join, job.parameters)
    sides = sides_of(join, job, trees, number)
    if after is None or sides is None:
        return None
    left, right = sides
    groups = {i: low.groups for i, low in enumerate(job.low)}
    ends = (End(left, groups[left.stream]), End(right, groups[right.stream]))
    bound = [tuple(with_values(e, job.parameters) for e in pair) for pair in join.equalities]
    ahead = distance(bound, ends)
    fills = tuple((name, with_values(expr, job.parameters)) for name, expr in join.fills)
    expressions = [e for pair in bound for e in pair] + [expr for _, expr in fills]
    if ahead is None or not all(is_computable(e) for e in expressions):
        return None
    if not all(can_match(a.type, b.type) for a, b in bound):
        return None
    if not any(names_all_keys(bound, place, end) for place, end in enumerate(ends)):
        return None
    fields = output.part_fields(rel, sorted_later)
    pairing = TaskJoin(
        output.stream,
        join.kind,
        left,
        right,
        tuple((a, b) for a, b in bound),
        ahead,
        fills,
        after.extended(picking(fields)),
        fields,
    )
    inputs = tuple(
        Read(rest_name(output.stream, i), side.fields) for i, side in enumerate((left, right))
    )
    rest: Rel = with_inputs(join, inputs)
    for above in reversed(chain):
        if not isinstance(above, Read):
            rest = with_inputs(above, (rest,))
    return Joining(pairing, rest)


def steps_above(
    chain: Sequence[Rel], join: Join, parameters: Mapping[str, Value]
) -> RowPipeline | None:
    """The steps on the rows of a join. The residual of the join is one more condition, if rows that
    fail it are simply dropped.
    """
    program: RowPipeline | None = RowPipeline("", ())
    if join.residual is not None:
        if join.kind != "inner":
            return None
        program = kept(program, join.residual, parameters)
    return stepped(chain, program, parameters)


def sides_of(
    join: Join, job: Job, trees: Mapping[str, Rel], number: int
) -> tuple[Side, Side] | None:
    """Both inputs of a join, when each is a low-level aggregation and both are of one read."""
    low = {output.name: i for i, output in enumerate(job.low)}
    made: list[Side] = []
    for place, rel in enumerate((join.left, join.right)):
        program = row_pipeline(rel, trees, job.parameters)
        if program is None or program.whole is not None or program.stream not in low:
            return None
        stream = low[program.stream]
        groups = job.low[stream].groups
        if groups is None or groups.epoch is None:
            return None
        made.append(Side(stream, program, rel.fields, number + place))
    names = {side.program.stream for side in made}
    together = any(names <= {query.name for query in read.queries} for read in job.reads)
    return (made[0], made[1]) if together else None


# ---- facts from the equalities -------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    """One side of the equalities, and the groups of that side."""

    side: Side
    groups: GroupFields | None

    def origin(self, expr: Expr) -> str | None:
        """The key of the groups that an expression repeats, if it repeats one."""
        return origin(self.side.program, expr.name) if isinstance(expr, Col) else None

    @property
    def epoch(self) -> str:
        assert self.groups is not None
        assert self.groups.epoch is not None
        return self.groups.keys[self.groups.epoch].name

    @property
    def keys(self) -> set[str]:
        assert self.groups is not None
        return {f.name for f in self.groups.keys}


def distance(equalities: Sequence[Sequence[Expr]], ends: tuple[End, End]) -> int | None:
    """The difference of the left and the right epoch in every row of the join; None when the
    equalities do not determine it.
    """
    for pair in equalities:
        shifts: list[int] = []
        for expr, end in zip(pair, ends, strict=True):
            column, shift = shifted(expr)
            if end.origin(column) == end.epoch:
                shifts.append(shift)
        if len(shifts) == 2:
            return shifts[1] - shifts[0]
    return None


def shifted(expr: Expr) -> tuple[Expr, int]:
    """An expression as another one plus a constant."""
    match expr:
        case Call(Scalar(role=Addition((1, sign))), (base, Lit(value=int(by)))):
            return base, sign * by
        case Call(Scalar(role=Addition((1, 1))), (Lit(value=int(by)), base)):
            return base, by
    return expr, 0


def names_all_keys(equalities: Sequence[Sequence[Expr]], place: int, end: End) -> bool:
    """Whether the equalities name all keys of a side, so that at most one of its rows matches."""
    named = {end.origin(shifted(pair[place])[0]) for pair in equalities}
    return end.keys <= named
