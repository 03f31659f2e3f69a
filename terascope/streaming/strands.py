"""Queries that tasks compute from closed rows: filtered, projected, merged, and nothing else.

In: the trees of a set, and how a query is let go. Out: `Strands`: for each stored stream that its
rows come from, the steps below the operator that is waited for, and those above it. Anything else a
query may do is Spark's, which takes longer to plan such a query than tasks take to compute it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.analysis.release import Release
from terascope.functions.base import Value
from terascope.physical.row_pipeline import Compute, RowProgram, is_computable, stepped, with_values
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import Field, Filter, Merge, Project, Rank, Read, Rel


@dataclass(frozen=True)
class Strand:
    """Rows of one stored stream on their way to a query."""

    stream: str
    below: RowProgram
    above: RowProgram


@dataclass(frozen=True)
class Strands:
    """All rows of a query."""

    query: str
    strands: tuple[Strand, ...]
    value: Expr | None
    """By which rows are let go, over the columns between `below` and `above`; None: rows wait for
    nothing."""
    fields: tuple[Field, ...]
    """What is delivered."""
    order: tuple[tuple[str, bool], ...]
    """By columns that may be hidden."""


def strands_of(
    query: str,
    release: Release,
    trees: Mapping[str, Rel],
    leaves: Collection[str],
    parameters: Mapping[str, Value],
    fields: tuple[Field, ...],
    order: Sequence[tuple[str, bool]],
) -> Strands | None:
    """How tasks compute a query; None when it is not theirs."""
    if release.kind == "at_end" or len(release.parts) > 1:
        return None
    unwinding = _Unwinding(release.node, trees, leaves, parameters)
    found = unwinding.above(trees[query])
    if found is None:
        return None
    part = next(iter(release.parts), None)
    if part is None:
        return Strands(query, tuple(found), None, fields, tuple(order))
    value = with_values(part.value, parameters)
    if part.only is not None or not is_computable(value):
        return None
    return Strands(query, tuple(found), value, fields, tuple(order))


@dataclass(frozen=True)
class _Unwinding:
    node: Rel
    """The operator that is waited for."""
    trees: Mapping[str, Rel]
    leaves: Collection[str]
    parameters: Mapping[str, Value]

    def above(self, rel: Rel) -> list[Strand] | None:
        """From the top of a query down to that operator."""
        if rel == self.node:
            programs = self.below(rel)
            nothing = RowProgram("", ())
            return None if programs is None else [Strand(p.stream, p, nothing) for p in programs]
        source = self.source_of(rel)
        strands = None if source is None else self.above(source)
        if strands is None:
            return None
        changed = all_or_none(self.step(rel, strand.above) for strand in strands)
        if changed is None:
            return None
        pairs = zip(strands, changed, strict=True)
        return [replace(strand, above=program) for strand, program in pairs]

    def below(self, rel: Rel) -> list[RowProgram] | None:
        """From that operator down to what is stored."""
        if isinstance(rel, Read) and rel.stream in self.leaves:
            return [RowProgram(rel.stream, ())]
        if isinstance(rel, Merge):
            return all_or_none(self.merged(rel))
        source = self.source_of(rel)
        programs = None if source is None else self.below(source)
        if programs is None:
            return None
        return all_or_none(self.step(rel, program) for program in programs)

    def merged(self, rel: Merge) -> Iterator[RowProgram | None]:
        for source in rel.sources:
            items = renamed(source.fields, rel.fields)
            programs = self.below(source)
            if programs is None or items is None:
                yield None
                continue
            for program in programs:
                yield program.extended(items)

    def source_of(self, rel: Rel) -> Rel | None:
        """What a relation that looks at one row at a time is made of."""
        match rel:
            case Read(stream=stream) if stream in self.trees and stream not in self.leaves:
                return self.trees[stream]
            case Filter(source=source) | Project(source=source) | Rank(source=source, limit=None):
                return source
            case _:
                return None

    def step(self, rel: Rel, program: RowProgram) -> RowProgram | None:
        if len(set(rel.names)) < len(rel.names):
            return None
        return stepped(rel, program, self.parameters)


def renamed(have: Sequence[Field], want: Sequence[Field]) -> Compute | None:
    """The columns of an input of a merge as those of the first; None where a value would change."""
    items: list[tuple[str, Expr]] = []
    for own, first in zip(have, want, strict=True):
        if own.type is not first.type and not (own.type.is_integer and first.type.is_integer):
            return None
        items.append((first.name, Col(own.name, own.type)))
    return Compute(tuple(items)) if len({name for name, _ in items}) == len(items) else None


def all_or_none(programs: Iterator[RowProgram | None]) -> list[RowProgram] | None:
    found = list(programs)
    there = [program for program in found if program is not None]
    return there if len(there) == len(found) else None
