"""Plan -> the rows of every stream.

In: a Plan and `Sources`. Out: for each stream, internal ones included, its rows, hidden columns
included. Each operator is a function from the tuples of its inputs to its own.
"""

from __future__ import annotations

from operator import itemgetter
from typing import assert_never

from terascope.execute.watch_list import read_watch_list
from terascope.functions.overflow import overflow_of
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
from terascope.reference.context import Evaluation, Sources
from terascope.reference.join import join
from terascope.reference.rows import Row, Rows, same_row, sort_key
from terascope.reference.window import window


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
    """The tuples a tree stands for."""
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
