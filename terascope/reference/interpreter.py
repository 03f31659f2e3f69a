"""Plan -> the rows of every stream.

In: a Plan and `Sources`. Out: for each stream, internal ones included, its rows, hidden columns
included. Each operator is a function from the tuples of its inputs to its own. A join is as SQL
means it: NULL equals nothing, duplicates on both sides multiply; behind the pairs come the rows of
an outer side that found no partner, with the missing side NULL except for the columns that `fills`
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import assert_never

from terascope.functions.base import Value
from terascope.functions.overflow import overflow_of
from terascope.functions.values import as_bytes
from terascope.plan.expr import Expr
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Window,
    inputs,
)
from terascope.reference.aggregate import aggregate, running
from terascope.reference.rows import Evaluation, Row, Rows, Sources, same, same_row, sort_key
from terascope.reference.watch_list import read_watch_list
from terascope.reference.window import window
from terascope.types import Type, unify


def evaluate(plan: Plan, sources: Sources) -> dict[str, Rows]:
    """The rows of all streams, by name.

    Raises:
        ValueMistake: a value no answer exists for, such as an integer overflow.
    """
    streams: dict[str, Rows] = {}
    for stream in plan:
        context = Evaluation.of(plan, sources, streams)
        with overflow_of(stream.name):
            streams[stream.name] = Rows(stream.rel.fields, tuples_of(stream.rel, context))
    return streams


def tuples_of(rel: Rel, context: Evaluation) -> list[Row]:
    """The tuples a relation stands for."""
    return tuples_over(rel, [tuples_of(source, context) for source in inputs(rel)], context)


def tuples_over(rel: Rel, given: list[list[Row]], context: Evaluation) -> list[Row]:
    """The tuples of one operator, from those of its inputs."""
    match rel:
        case Scan():
            return context.scan(rel)
        case Read():
            return context.streams[rel.stream].tuples
        case Lookup():
            return lookup(rel)
        case Filter():
            predicate = context.compile(rel.predicate, rel.source.names)
            return [row for row in given[0] if predicate(row) is True]
        case Project():
            items = [context.compile(expr, rel.source.names) for _, expr in rel.items]
            return [tuple(item(row) for item in items) for row in given[0]]
        case Window():
            return window(rel, given[0])
        case Aggregate():
            return aggregate(rel, given[0], context)
        case Running():
            return running(rel, given[0], context)
        case Rank():
            return rank(rel, given[0], context)
        case Join():
            return join(rel, given[0], given[1], context)
        case Merge():
            return [row for rows in given for row in rows]
        case _:
            assert_never(rel)


def lookup(rel: Lookup) -> list[Row]:
    """The rows, typed.

    Raises:
        SourceError: the file is not there, or a line has too few columns.
    """
    columns = [column.to_pylist() for column in read_watch_list(rel).columns]
    return list(zip(*columns, strict=True))


def rank(rel: Rank, rows: list[Row], context: Evaluation) -> list[Row]:
    """In the order asked for within each combination; NULL counts as the largest value."""
    # Sorting is stable, so the last sort, by the first expression, decides first.
    for expr, descending in reversed(rel.order):
        value = context.compile(expr, rel.source.names)
        keyed = [(sort_key(value(row)), row) for row in rows]
        keyed.sort(key=itemgetter(0), reverse=descending)
        rows = [row for _, row in keyed]
    per = [rel.source.names.index(name) for name in rel.per]
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(same_row(row[i] for i in per), []).append(row)
    return [row for group in groups.values() for row in group[: rel.limit]]


# ---- joins ---------------------------------------------------------------------------------------


def join(rel: Join, left: list[Row], right: list[Row], context: Evaluation) -> list[Row]:
    pairs = matches(rel, left, right, context)
    with_partner_left = {i for i, _ in pairs}
    with_partner_right = {j for _, j in pairs}
    if rel.kind == "semi":
        return [row for i, row in enumerate(left) if i in with_partner_left]
    given = [left[i] + right[j] for i, j in pairs]
    no_left: Row = (None,) * len(rel.left.names)
    no_right: Row = (None,) * len(rel.right.names)
    if rel.kind in ("left", "full"):
        fill = filler(rel, rel.right, context)
        given += [fill(row + no_right) for i, row in enumerate(left) if i not in with_partner_left]
    if rel.kind in ("right", "full"):
        fill = filler(rel, rel.left, context)
        given += [fill(no_left + row) for j, row in enumerate(right) if j not in with_partner_right]
    return given


def matches(
    rel: Join, left: list[Row], right: list[Row], context: Evaluation
) -> list[tuple[int, int]]:
    """The places of all pairs for which the equalities and the residual are TRUE."""
    types = [unify(a.type, b.type) for a, b in rel.equalities]

    def keys(side: Rel, exprs: Sequence[Expr], rows: list[Row]) -> list[Row]:
        parts = [context.compile(expr, side.names) for expr in exprs]
        return [tuple(map(equated, (part(row) for part in parts), types)) for row in rows]

    partners: dict[Row, list[int]] = {}
    for j, key in enumerate(keys(rel.right, [b for _, b in rel.equalities], right)):
        if None not in key:
            partners.setdefault(key, []).append(j)
    # A key with a NULL is never in `partners`.
    left_keys = keys(rel.left, [a for a, _ in rel.equalities], left)
    pairs = [(i, j) for i, key in enumerate(left_keys) for j in partners.get(key, [])]
    if rel.residual is None:
        return pairs
    residual = context.compile(rel.residual, rel.left.names + rel.right.names)
    return [(i, j) for i, j in pairs if residual(left[i] + right[j]) is True]


def equated(value: Value, type: Type | None) -> Value:
    """Equal in Python for values of two sides that `=` calls equal, given their common type."""
    if value is None:
        return None
    if type is Type.FLOAT:
        return same(float(value))
    return as_bytes(value) if type is Type.BINARY else value


def filler(rel: Join, missing: Rel, context: Evaluation) -> Callable[[Row], Row]:
    """The function that fills columns of a row whose side `missing` is missing."""
    names = rel.left.names + rel.right.names
    fills = {
        names.index(name): context.compile(expr, names)
        for name, expr in rel.fills
        if name in missing.names
    }
    return lambda row: tuple(fills[i](row) if i in fills else v for i, v in enumerate(row))
