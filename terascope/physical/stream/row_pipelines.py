"""Queries that a task computes from stored rows by row pipelines alone.

In: the relations of a set, and the release of a query. Out: `RowPipelines`: for each stored stream
that the query reads, the steps below the operator at which it is released, and the steps above it.
Spark computes any other query. For these queries Spark's planning alone takes longer than the task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from terascope.analysis.order import Trees
from terascope.analysis.release import Release
from terascope.functions.base import Value
from terascope.physical.operators import Placement
from terascope.physical.row_pipeline import (
    Compute,
    RowPipeline,
    is_computable,
    row_chain,
    stepped,
    with_values,
)
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import Field, Merge, Read, Rel


@dataclass(frozen=True)
class RowPipelines:
    """A task filters, projects and merges stored rows to those of a query."""

    query: str
    inputs: tuple[RowPipeline, ...]
    """For each stored stream, the steps up to the operator at which the query is released."""
    above: RowPipeline
    """The steps after that operator."""
    value: Expr | None
    """The value by which rows are released, over the columns between `inputs` and `above`; None:
    rows are released at once."""
    fields: tuple[Field, ...]
    """The columns that are emitted."""
    order: tuple[tuple[str, bool], ...]
    """The columns by which rows are sorted, hidden columns included."""
    placement: Placement = "close"


def row_pipelines_of(
    query: str,
    release: Release,
    trees: Trees,
    leaves: Collection[str],
    fields: tuple[Field, ...],
    order: Sequence[tuple[str, bool]],
) -> RowPipelines | None:
    """The row pipelines of a query; None when it has other operators. `leaves`: the
    stored streams.
    """
    if release.kind == "at_end" or len(release.parts) > 1:
        return None
    computed = {name: rel for name, rel in trees.streams.items() if name not in leaves}
    chain, node = row_chain(trees.streams[query], computed, release.node)
    if node != release.node:
        return None
    above = stepped(chain, RowPipeline("", ()), trees.parameters)
    inputs = pipelines_below(node, computed, leaves, trees.parameters)
    if above is None or inputs is None:
        return None
    part = next(iter(release.parts), None)
    value = None if part is None else with_values(part.value, trees.parameters)
    if part is not None and part.only is not None:
        return None
    if value is not None and not is_computable(value):
        return None
    return RowPipelines(query, tuple(inputs), above, value, fields, tuple(order))


def pipelines_below(
    rel: Rel, computed: Mapping[str, Rel], leaves: Collection[str], parameters: Mapping[str, Value]
) -> list[RowPipeline] | None:
    """The steps from stored streams up to a relation that only filters, projects and merges them.
    `computed`: the relations that are not stored.
    """
    chain, bottom = row_chain(rel, computed)
    found: list[RowPipeline] = []
    match bottom:
        case Read(stream=stream) if stream in leaves:
            found.append(RowPipeline(stream, ()))
        case Merge(sources=sources):
            for source in sources:
                items = renamed(source.fields, bottom.fields)
                programs = pipelines_below(source, computed, leaves, parameters)
                if programs is None or items is None:
                    return None
                found += [program.extended(items) for program in programs]
        case _:
            return None
    made = [stepped(chain, program, parameters) for program in found]
    there = [program for program in made if program is not None]
    return there if len(there) == len(made) else None


def renamed(have: Sequence[Field], want: Sequence[Field]) -> Compute | None:
    """The columns of a merge's input under the names of the first; None: a value would change."""
    items: list[tuple[str, Expr]] = []
    for own, first in zip(have, want, strict=True):
        if own.type is not first.type and not (own.type.is_integer and first.type.is_integer):
            return None
        items.append((first.name, Col(own.name, own.type)))
    return Compute(tuple(items)) if len({name for name, _ in items}) == len(items) else None
