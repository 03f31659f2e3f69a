"""Plan -> the rows of every stream.

In: a Plan and `Sources`. Out: for each stream, internal ones included, its rows, hidden columns
included. Each operator is a function from the tuples of its inputs to its own.
"""

from __future__ import annotations

from typing import assert_never

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
from terascope.reference.aggregate import aggregate
from terascope.reference.context import Evaluation, Sources
from terascope.reference.filter_project import filter_rows, project
from terascope.reference.join import join
from terascope.reference.lookup import lookup
from terascope.reference.merge import merge
from terascope.reference.rank import rank
from terascope.reference.rows import Row, Rows
from terascope.reference.running import running
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
            return filter_rows(rel, given[0], context)
        case Project():
            return project(rel, given[0], context)
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
            return merge(given)
        case _:
            assert_never(rel)
