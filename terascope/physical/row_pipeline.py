"""A row pipeline: conditions and projections on finished rows, then a rank or another aggregation.

In: a query over a low-level stream. Out: a `RowPipeline`, which a task runs on columns, so that it
can write the rows of the query itself; None for a query that does anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from terascope.functions.aggregates.float_sums import float_sum_part
from terascope.functions.aggregates.total import Sum
from terascope.functions.base import Value
from terascope.functions.roles import NullTest
from terascope.kernels.codegen.expressions import unsupported
from terascope.kernels.columns.payload_tests import is_payload_text
from terascope.physical.low_plan import LowAggregate, Slot, has_slot, slot_of
from terascope.plan.build import call, disjunction, term_expr
from terascope.plan.expr import (
    AggCall,
    Call,
    Cast,
    Col,
    Expr,
    Lit,
    Param,
    columns_of,
    marked_column,
    transform,
)
from terascope.plan.rel import Aggregate, Field, Filter, Named, NamedAgg, Project, Rank, Read, Rel
from terascope.types import Type


@dataclass(frozen=True)
class Top:
    """The first rows of each combination of columns; see plan.rel.Rank."""

    per: tuple[str, ...]
    order: tuple[tuple[Expr, bool], ...]
    limit: int


@dataclass(frozen=True)
class Regroup:
    """Keys and aggregates over columns of finished rows."""

    keys: tuple[tuple[str, Expr], ...]
    slots: tuple[Slot, ...]
    epoch: int | None = None
    """The key that is the epoch of the rows."""
    sums: tuple[str, ...] = field(default=(), compare=False)
    """The texts of its sums for messages, where its columns have generated names."""

    @property
    def query(self) -> LowAggregate:
        return LowAggregate("", (), (), (), self.keys, self.epoch, self.slots)


@dataclass(frozen=True)
class Keep:
    predicate: Expr


@dataclass(frozen=True)
class Compute:
    items: tuple[tuple[str, Expr], ...]


Step: TypeAlias = Keep | Compute


@dataclass(frozen=True)
class RowPipeline:
    """Steps that a task runs one after the other on every batch of results."""

    stream: str
    """The stream that the pipeline reads."""
    steps: tuple[Step, ...]
    whole: Top | Regroup | None = None
    """The operation on all rows of an epoch together after the steps: a rank or a regrouping."""
    after: tuple[Step, ...] = ()

    def extended(self, step: Step) -> RowPipeline:
        if self.whole is None:
            return replace(self, steps=(*self.steps, step))
        return replace(self, after=(*self.after, step))


def picking(fields: Sequence[Field]) -> Compute:
    """The step that keeps only some columns."""
    return Compute(tuple((f.name, Col(f.name, f.type)) for f in fields))


def picked(program: RowPipeline, names: Sequence[str]) -> tuple[int, ...] | None:
    """The places in `names` of the columns that a pipeline picks; None when it does more."""
    current = {name: place for place, name in enumerate(names)}
    last: tuple[int, ...] = tuple(current.values())
    if program.whole is not None:
        return None
    for step in program.steps:
        if isinstance(step, Keep):
            return None
        found: dict[str, int] = {}
        for name, expr in step.items:
            while isinstance(expr, Cast) and expr.type.is_integer and expr.operand.type.is_integer:
                expr = expr.operand  # integer types differ in name only
            if not isinstance(expr, Col):
                return None
            found[name] = current[expr.name]
        current, last = found, tuple(found.values())
    return last


def row_pipeline(
    rel: Rel, trees: Mapping[str, Rel], parameters: Mapping[str, Value]
) -> RowPipeline | None:
    """A query as steps over a low-level stream; None when it does anything else.

    `trees`: the other relations above the low level, which the query may read.
    """
    chain, bottom = row_chain(rel, trees)
    match bottom:
        case Read(stream=stream):
            below: RowPipeline | None = RowPipeline(stream, ())
        case Rank():
            below = ranked(row_pipeline(bottom.source, trees, parameters), bottom, parameters)
        case Aggregate(sets=None, emit_empty=None):
            below = regrouped(row_pipeline(bottom.source, trees, parameters), bottom, parameters)
        case _:
            return None
    return stepped(chain, below, parameters)


def row_chain(
    rel: Rel, relations: Mapping[str, Rel], until: Rel | None = None
) -> tuple[list[Rel], Rel]:
    """The operators at the top of a relation that process one row at a time, the topmost first, and
    the relation below them: filters, projections, ranks without a limit, and the reading of one of
    some named relations. `until`: where the chain ends at the latest.
    """
    chain: list[Rel] = []
    while rel != until:
        match rel:
            case Read(stream=stream) if stream in relations:
                source = relations[stream]
            case Filter(source=source) | Project(source=source) | Rank(source=source, limit=None):
                pass
            case _:
                break
        chain.append(rel)
        rel = source
    return chain, rel


def stepped(
    chain: Sequence[Rel], below: RowPipeline | None, parameters: Mapping[str, Value]
) -> RowPipeline | None:
    """A pipeline with a step for each condition and projection of a chain; its other operators,
    such as a rank without a limit, change no row. None where the kernels have no form for a step.
    """
    for rel in reversed(chain):
        match rel:
            case Filter(predicate=predicate):
                below = kept(below, predicate, parameters)
            case Project(items=items):
                computed = tuple((name, bound(expr, parameters)) for name, expr in items)
                if below is None or not all(is_computable(expr) for _, expr in computed):
                    return None
                below = below.extended(Compute(computed))
    return below


def kept(
    below: RowPipeline | None, predicate: Expr, parameters: Mapping[str, Value]
) -> RowPipeline | None:
    test = bound(predicate, parameters)
    return None if below is None or not is_computable(test) else below.extended(Keep(test))


def bound(expr: Expr, parameters: Mapping[str, Value]) -> Expr:
    return simpler_tests(with_values(expr, parameters))


def ranked(
    below: RowPipeline | None, rank: Rank, parameters: Mapping[str, Value]
) -> RowPipeline | None:
    """A pipeline that keeps the first few rows of each window."""
    if below is None or below.whole is not None or rank.limit is None:
        return None
    order = tuple((with_values(expr, parameters), down) for expr, down in rank.order)
    if not all(is_computable(expr) for expr, _ in order):
        return None
    return replace(below, whole=Top(rank.per, order, rank.limit))


def regrouped(
    below: RowPipeline | None, rel: Aggregate, parameters: Mapping[str, Value]
) -> RowPipeline | None:
    """A pipeline that aggregates finished rows."""
    if below is None or below.whole is not None:
        return None
    kept = [one for name, agg in rel.aggs for one in sub_aggregates(name, agg)]
    if not all(has_slot(agg) for _, agg in kept):
        return None
    slots = [slot_of(name, agg, {}) for name, agg in kept]
    bound = [
        replace(s, argument=None if s.argument is None else with_values(s.argument, parameters))
        for s in slots
    ]
    keys = tuple((name, with_values(expr, parameters)) for name, expr in rel.keys)
    regroup = Regroup(keys, tuple(bound))
    if any(unsupported(expr) is not None for expr in regroup.query.outputs):
        return None
    made = replace(below, whole=regroup)
    if len(kept) == len(rel.aggs):
        return made
    keys_again = tuple((name, Col(name, expr.type)) for name, expr in keys)
    return made.extended(Compute((*keys_again, *(finished_sum(n, a) for n, a in rel.aggs))))


def sub_aggregates(name: str, agg: AggCall) -> list[NamedAgg]:
    """The slots of an aggregate: several for a sum of FLOATs, itself otherwise."""
    if not is_float_sum(agg):
        return [(name, agg)]
    found: list[NamedAgg] = []
    for place, (sub, over) in enumerate(float_sum_part(agg.function).subs):
        args = tuple(term_expr(term, agg.args) for term in over)
        kind = sub.type_rule(tuple(arg.type for arg in args))
        found.append((f"{name}#{place}", AggCall(sub, args, kind)))
    return found


def finished_sum(name: str, agg: AggCall) -> Named:
    """The value of an aggregate, computed from its slots."""
    columns = [Col(part, one.type) for part, one in sub_aggregates(name, agg)]
    term = float_sum_part(agg.function).merge.of_one()
    return name, columns[0] if term is None or len(columns) == 1 else term_expr(term, columns)


def is_float_sum(agg: AggCall) -> bool:
    """Whether an aggregate is a sum that takes several slots."""
    return isinstance(agg.function, Sum) and not agg.distinct and agg.args[0].type is Type.FLOAT


def origin(program: RowPipeline, name: str) -> str | None:
    """The column of the stream that a column after the steps repeats unchanged, if there is one."""
    for step in reversed(program.steps):
        if isinstance(step, Compute):
            expr = dict(step.items).get(name)
            if not isinstance(expr, Col):
                return None
            name = expr.name
    return name


def is_computable(expr: Expr) -> bool:
    simple = isinstance(expr, Lit) or is_payload_text(expr) or marked_column(expr) is not None
    return simple or unsupported(expr) is None


def simpler_tests(expr: Expr) -> Expr:
    """Simplify `g.k IS NULL` of an optional side: it is missing, or its column is NULL."""

    def simpler(part: Expr) -> Expr:
        if not isinstance(part, Call) or not isinstance(part.function.role, NullTest):
            return part
        marked = marked_column(part.args[0])
        return part if marked is None else disjunction(call("is_null", one) for one in marked)

    return transform(expr, simpler)


def with_values(expr: Expr, parameters: Mapping[str, Value]) -> Expr:
    return transform(expr, lambda e: Lit(parameters[e.name], e.type) if isinstance(e, Param) else e)


def columns_read(program: RowPipeline) -> frozenset[str] | None:
    """The columns of the stream that a pipeline reads; None: all."""
    found: set[str] = set()
    for step in program.steps:
        if isinstance(step, Compute):
            return frozenset(found.union(*(columns_of(expr) for _, expr in step.items)))
        found |= columns_of(step.predicate)
    if isinstance(program.whole, Regroup):
        return frozenset(found.union(*map(columns_of, program.whole.query.outputs)))
    return None


KeptOrder: TypeAlias = tuple[tuple[str, bool], ...]
"""The columns in whose order rows are emitted; True: larger values come first."""
