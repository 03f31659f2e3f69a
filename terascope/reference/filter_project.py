"""Selection and projection: one tuple in, at most one out."""

from __future__ import annotations

from terascope.plan.rel import Filter, Project
from terascope.reference.context import Evaluation
from terascope.reference.rows import Row


def filter_rows(rel: Filter, rows: list[Row], context: Evaluation) -> list[Row]:
    """The tuples for which the predicate is TRUE, neither FALSE nor NULL."""
    predicate = context.compile(rel.predicate, rel.source.names)
    return [row for row in rows if predicate(row) is True]


def project(rel: Project, rows: list[Row], context: Evaluation) -> list[Row]:
    items = [context.compile(expr, rel.source.names) for _, expr in rel.items]
    return [tuple(item(row) for item in items) for row in rows]
