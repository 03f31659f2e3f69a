"""Queries that a task computes from stored rows by row pipelines alone.

In: the relations of a set, and the release of a query. Out: `RowPipelines`: for each stored stream
that the query reads, the steps below the operator at which it is released, and the steps above it.
Spark computes any other query. For these queries Spark's planning alone takes longer than the task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.analysis.order import Trees
from terascope.analysis.release import Release
from terascope.functions.base import Value
from terascope.physical.operators import Placement
from terascope.physical.row_pipeline import (
    Compute,
    RowPipeline,
    is_computable,
    row_source,
    stepped,
    with_values,
)
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import Field, Merge, Read, Rel


@dataclass(frozen=True)
class PipelineInput:
    """The row pipeline of one stored stream, in two parts."""

    stream: str
    below: RowPipeline
    """The steps up to the operator at which the query is released."""
    above: RowPipeline
    """The steps after it."""


@dataclass(frozen=True)
class RowPipelines:
    """A task filters, projects and merges stored rows to those of a query."""

    query: str
    inputs: tuple[PipelineInput, ...]
    value: Expr | None
    """The value by which rows are released, over the columns between `below` and `above`; None:
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
    unwinding = _Unwinding(release.node, computed, leaves, trees.parameters)
    found = unwinding.above(trees.streams[query])
    if found is None:
        return None
    part = next(iter(release.parts), None)
    value = None if part is None else with_values(part.value, trees.parameters)
    if part is not None and part.only is not None:
        return None
    if value is not None and not is_computable(value):
        return None
    return RowPipelines(query, tuple(found), value, fields, tuple(order))


@dataclass(frozen=True)
class _Unwinding:
    node: Rel
    """The operator at which the query is released."""
    trees: Mapping[str, Rel]
    """The relations that are not stored."""
    leaves: Collection[str]
    parameters: Mapping[str, Value]

    def above(self, rel: Rel) -> list[PipelineInput] | None:
        """The steps from the top of a query down to that operator."""
        if rel == self.node:
            programs = self.below(rel)
            nothing = RowPipeline("", ())
            return (
                None
                if programs is None
                else [PipelineInput(p.stream, p, nothing) for p in programs]
            )
        source = row_source(rel, self.trees)
        below = None if source is None else self.above(source)
        if below is None:
            return None
        changed = all_or_none(self.step(rel, one.above) for one in below)
        if changed is None:
            return None
        pairs = zip(below, changed, strict=True)
        return [replace(one, above=program) for one, program in pairs]

    def below(self, rel: Rel) -> list[RowPipeline] | None:
        """The steps from that operator down to stored streams."""
        if isinstance(rel, Read) and rel.stream in self.leaves:
            return [RowPipeline(rel.stream, ())]
        if isinstance(rel, Merge):
            return all_or_none(self.merged(rel))
        source = row_source(rel, self.trees)
        programs = None if source is None else self.below(source)
        if programs is None:
            return None
        return all_or_none(self.step(rel, program) for program in programs)

    def merged(self, rel: Merge) -> Iterator[RowPipeline | None]:
        for source in rel.sources:
            items = renamed(source.fields, rel.fields)
            programs = self.below(source)
            if programs is None or items is None:
                yield None
                continue
            for program in programs:
                yield program.extended(items)

    def step(self, rel: Rel, program: RowPipeline) -> RowPipeline | None:
        if len(set(rel.names)) < len(rel.names):
            return None
        return stepped(rel, program, self.parameters)


def renamed(have: Sequence[Field], want: Sequence[Field]) -> Compute | None:
    """The columns of a merge's input under the names of the first; None: a value would change."""
    items: list[tuple[str, Expr]] = []
    for own, first in zip(have, want, strict=True):
        if own.type is not first.type and not (own.type.is_integer and first.type.is_integer):
            return None
        items.append((first.name, Col(own.name, own.type)))
    return Compute(tuple(items)) if len({name for name, _ in items}) == len(items) else None


def all_or_none(programs: Iterator[RowPipeline | None]) -> list[RowPipeline] | None:
    found = list(programs)
    there = [program for program in found if program is not None]
    return there if len(there) == len(found) else None
