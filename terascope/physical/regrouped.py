"""Aggregates of finished rows: a query over a query, in a task.

In: an aggregate over the rows of another query. Out: what a table keeps for it, one slot, the slots
of a sum of FLOATs or a state, and the value that is made of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from terascope.functions.aggregates.float_sums import float_sum_part
from terascope.functions.aggregates.total import Sum
from terascope.functions.base import AggregateFunction, Term, Value
from terascope.functions.partial_states import state_parts
from terascope.physical.low_plan import has_slot
from terascope.plan.build import state_arguments, term_expr
from terascope.plan.expr import AggCall, Col, Expr, Lit
from terascope.plan.rel import Named, NamedAgg
from terascope.sketches.base import StateKind
from terascope.types import Type


@dataclass(frozen=True)
class RegroupedAggregate:
    """An aggregate of finished rows: what is kept for a group, and the value made of that."""

    subs: tuple[NamedAgg, ...]
    finished: Named

    @property
    def is_plain(self) -> bool:
        return isinstance(self.finished[1], Col)

    @classmethod
    def of(cls, name: str, agg: AggCall, one_row: bool) -> RegroupedAggregate:
        """Several slots for a sum of FLOATs, a state for what does not fit slots, itself otherwise.
        `one_row`: a group must have one row, also where FLOATs are summed.
        """
        kind = state_of(agg)
        if kind is not None and (not has_slot(agg) if not is_float_sum(agg) else one_row):
            return cls.of_state(name, agg, kind)
        if not is_float_sum(agg):
            return cls(((name, agg),), (name, Col(name, agg.type)))
        part = float_sum_part(agg.function)
        subs = [sub_aggregate(f"{name}#{k}", *one, agg.args) for k, one in enumerate(part.subs)]
        term = part.merge.of_one()
        assert term is not None
        columns = [Col(sub, call.type) for sub, call in subs]
        return cls(tuple(subs), (name, term_expr(term, columns)))

    @classmethod
    def of_state(cls, name: str, agg: AggCall, kind: StateKind) -> RegroupedAggregate:
        args = agg.args[:1] if kind.from_states else state_arguments(agg)
        types = tuple(arg.type for arg in args)
        made = state_parts(agg.function, kind, types, agg.type, constants(agg))
        ((sub, over),) = made.parts[0].subs
        kept = sub_aggregate(f"{name}#state", sub, over, args)
        return cls((kept,), (name, term_expr(made.finish, [Col(kept[0], kept[1].type)])))


def sub_aggregate(
    name: str, function: AggregateFunction, over: Sequence[Term], args: Sequence[Expr]
) -> NamedAgg:
    own = tuple(term_expr(term, args) for term in over)
    return name, AggCall(function, own, function.type_rule(tuple(arg.type for arg in own)))


def state_of(agg: AggCall) -> StateKind | None:
    """The columns that can keep an aggregate, if there are any."""
    values, function = constants(agg), agg.function
    if agg.distinct or agg.order or len(values) < len(agg.parameters):
        return None
    types = tuple(arg.type for arg in agg.args)
    return function.state(types, values[: function.state_parameters])


def constants(agg: AggCall) -> tuple[Value, ...]:
    return tuple(p.value for p in agg.parameters if isinstance(p, Lit))


def is_float_sum(agg: AggCall) -> bool:
    """Whether an aggregate is a sum that takes several slots."""
    return isinstance(agg.function, Sum) and not agg.distinct and agg.args[0].type is Type.FLOAT
