"""A row pipeline: conditions and projections on finished rows, then a rank or another aggregation.

In: a query over a low-level stream. Out: a `RowPipeline`, which a task runs on columns, so that it
can write the rows of the query itself; None for a query that does anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from terascope.functions.base import Value
from terascope.functions.roles import NullTest
from terascope.kernels.codegen.expressions import unsupported
from terascope.kernels.columns.payload_tests import is_payload_text
from terascope.physical.low_plan import LowAggregate, Slot, has_slot, slot_of
from terascope.physical.regrouped import RegroupedAggregate, state_of
from terascope.plan.build import call, disjunction
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
    walk,
)
from terascope.plan.rel import (
    Aggregate,
    Field,
    Filter,
    Join,
    Named,
    Project,
    Rank,
    Read,
    Rel,
)
from terascope.types import Type

Equalities: TypeAlias = tuple[tuple[Expr, Expr], ...]
"""The equalities of a join: over the left side, and over the right side."""

KeptOrder: TypeAlias = tuple[tuple[str, bool], ...]
"""The columns in whose order rows are emitted; True: larger values come first."""


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


@dataclass(frozen=True)
class RowPlanner:
    """Plans row pipelines over relations in which parameters have values. An answer is None where
    the kernels have no form for an expression.
    """

    relations: Mapping[str, Rel]
    """The named relations above the low level, which a query may read."""
    parameters: Mapping[str, Value]

    def pipeline(self, rel: Rel) -> RowPipeline | None:
        """A query as steps over a low-level stream; None when it does anything else."""
        chain, bottom = self.chain(rel)
        match bottom:
            case Read(stream=stream):
                below: RowPipeline | None = RowPipeline(stream, ())
            case Rank():
                below = self.ranked(self.pipeline(bottom.source), bottom)
            case Aggregate(sets=None, emit_empty=None):
                below = self.regrouped(self.pipeline(bottom.source), bottom)
            case _:
                return None
        return self.stepped(chain, below)

    def chain(self, rel: Rel, until: Rel | None = None) -> tuple[list[Rel], Rel]:
        """The operators at the top of a relation that process one row at a time, the topmost first,
        and the relation below them: filters, projections, ranks without a limit, and the reading of
        a named relation. `until`: where the chain ends at the latest.
        """
        chain: list[Rel] = []
        while rel != until:
            match rel:
                case Read(stream=stream) if stream in self.relations:
                    source = self.relations[stream]
                case (
                    Filter(source=source) | Project(source=source) | Rank(source=source, limit=None)
                ):
                    pass
                case _:
                    break
            chain.append(rel)
            rel = source
        return chain, rel

    def stepped(self, chain: Sequence[Rel], below: RowPipeline | None) -> RowPipeline | None:
        """A pipeline with a step for each condition and projection of a chain; its other operators,
        such as a rank without a limit, change no row.
        """
        for rel in reversed(chain):
            match rel:
                case Filter(predicate=predicate, source=source):
                    below = self.kept(below, predicate, source.fields)
                case Project(items=items, source=source):
                    bound = [(name, simpler_tests(self.bound(expr))) for name, expr in items]
                    below, exprs = self.with_states(below, [e for _, e in bound], source.fields)
                    if below is None or not all(map(is_computable, exprs)):
                        return None
                    names = (name for name, _ in bound)
                    below = below.extended(Compute(tuple(zip(names, exprs, strict=True))))
        return below

    def kept(
        self, below: RowPipeline | None, predicate: Expr, fields: Sequence[Field]
    ) -> RowPipeline | None:
        """A pipeline that keeps the rows for which a predicate is TRUE; `fields`: their columns."""
        below, (test,) = self.with_states(below, [simpler_tests(self.bound(predicate))], fields)
        if below is None or not is_computable(test):
            return None
        made = below.extended(Keep(test))
        hoisted = columns_of(test) - {f.name for f in fields}
        return made.extended(picking(fields)) if hoisted else made

    def with_states(
        self, below: RowPipeline | None, exprs: Sequence[Expr], fields: Sequence[Field]
    ) -> tuple[RowPipeline | None, list[Expr]]:
        """Expressions in which each function of a state is a column, and a pipeline with these
        columns beside the others.
        """
        calls = list(dict.fromkeys(e for expr in exprs for e in walk(expr) if is_of_states(e)))
        calls = [c for c in calls if not any(c in list(walk(o))[1:] for o in calls)]
        if below is None or not calls or not all(map(takes_columns, calls)):
            return below if not calls else None, list(exprs)
        names = {call: Col(f"#state {i}", call.type) for i, call in enumerate(calls)}
        values = ((column.name, call) for call, column in names.items())
        made = below.extended(Compute((*picking(fields).items, *values)))
        return made, [transform(expr, lambda e: names.get(e, e)) for expr in exprs]

    def ranked(self, below: RowPipeline | None, rank: Rank) -> RowPipeline | None:
        """A pipeline that keeps the first few rows of each window."""
        if below is None or below.whole is not None or rank.limit is None:
            return None
        order = tuple((self.bound(expr), down) for expr, down in rank.order)
        if not all(is_computable(expr) for expr, _ in order):
            return None
        return replace(below, whole=Top(rank.per, order, rank.limit))

    def regrouped(self, below: RowPipeline | None, rel: Aggregate) -> RowPipeline | None:
        """A pipeline that aggregates finished rows."""
        if below is None or below.whole is not None:
            return None
        bound = [(name, self.with_constants(agg)) for name, agg in rel.aggs]
        one_row = any(state_of(agg) is not None and not has_slot(agg) for _, agg in bound)
        parts = [RegroupedAggregate.of(name, agg, one_row) for name, agg in bound]
        kept = [one for part in parts for one in part.subs]
        if not all(has_slot(agg) for _, agg in kept):
            return None
        keys = tuple((name, self.bound(expr)) for name, expr in rel.keys)
        slots = (slot_of(name, agg, {}) for name, agg in kept)
        regroup = Regroup(keys, tuple(map(self.with_values, slots)))
        if any(unsupported(expr) is not None for expr in regroup.query.outputs):
            return None
        made = replace(below, whole=regroup)
        if all(part.is_plain for part in parts):
            return made
        keys_again = tuple((name, Col(name, expr.type)) for name, expr in keys)
        return made.extended(Compute((*keys_again, *(part.finished for part in parts))))

    def with_constants(self, agg: AggCall) -> AggCall:
        """An aggregate with the values of parameters among its constants."""
        values = [self.bound(parameter) for parameter in agg.parameters]
        return replace(agg, parameters=tuple(v for v in values if isinstance(v, Lit | Param)))

    def with_values(self, slot: Slot) -> Slot:
        """A slot whose arguments have the values of parameters."""
        argument = None if slot.argument is None else self.bound(slot.argument)
        return replace(slot, argument=argument, more=tuple(map(self.bound, slot.more)))

    def matching(self, join: Join) -> tuple[Equalities, tuple[Named, ...]] | None:
        """The equalities and the fills of a join whose sides can be compared directly."""
        equalities = tuple((self.bound(a), self.bound(b)) for a, b in join.equalities)
        fills = tuple((name, self.bound(expr)) for name, expr in join.fills)
        computed = [*(e for pair in equalities for e in pair), *(expr for _, expr in fills)]
        if not all(map(is_computable, computed)):
            return None
        same = all(can_match(a.type, b.type) for a, b in equalities)
        return (equalities, fills) if same else None

    def bound(self, expr: Expr) -> Expr:
        """An expression with the values of parameters."""
        return transform(
            expr, lambda e: Lit(self.parameters[e.name], e.type) if isinstance(e, Param) else e
        )


def can_match(left: Type, right: Type) -> bool:
    """Whether values of two types can be compared directly: integers, or others of one type. FLOATs
    need more.
    """
    if left.is_integer and right.is_integer:
        return True
    return left is right and left not in (Type.FLOAT, Type.NULL)


def origin(program: RowPipeline, name: str) -> str | None:
    """The column of the stream that a column after the steps repeats unchanged, if there is one."""
    for step in reversed(program.steps):
        if isinstance(step, Compute):
            expr = dict(step.items).get(name)
            if not isinstance(expr, Col):
                return None
            name = expr.name
    return name


def is_of_states(expr: Expr) -> bool:
    """Whether an expression is a function of packed states (terascope.sketches)."""
    return isinstance(expr, Call) and expr.function.of_states


def takes_columns(call: Expr) -> bool:
    """Whether a function of states takes columns, constants and other functions of states."""
    return all(
        (is_of_states(arg) and takes_columns(arg)) or is_computable(arg)
        for arg in (call.args if isinstance(call, Call) else ())
    )


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
