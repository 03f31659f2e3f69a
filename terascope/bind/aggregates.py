"""Aggregate calls: found in any clause of a query, computed once each.

In: calls like `sum(len)`. Out: a column that will hold the value, and the list of all that a query
needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from terascope.bind.coerce import narrowed
from terascope.bind.context import BindContext
from terascope.diagnostic import Span, mistake
from terascope.functions.base import AggregateFunction, TypeMistake, ValueMistake
from terascope.plan.expr import AggCall, Cast, Col, Expr, Lit, Param, is_constant
from terascope.plan.show import show_agg
from terascope.syntax import ast
from terascope.types import Type

if TYPE_CHECKING:
    from terascope.bind.expressions import ExprBinder


@dataclass
class Aggregates:
    """The aggregates of one query, each under a name no column can have, such as `sum(len)`."""

    order: tuple[str, ...]
    """Columns that put the tuples of the input in stream order, for FIRST and LAST."""
    calls: dict[str, AggCall] = field(default_factory=dict)

    def add(self, call: AggCall) -> Col:
        name = show_agg(call)
        self.calls.setdefault(name, call)
        return Col(name, call.type)

    @property
    def named(self) -> tuple[tuple[str, AggCall], ...]:
        return tuple(self.calls.items())


def bind_aggregate(
    context: BindContext, into: Aggregates | None, outer: ExprBinder, node: ast.CallExpr
) -> Expr:
    """Bind a call of a known aggregate."""
    function = context.functions.aggregate(node.name)
    assert function is not None
    if into is None:
        message = f"aggregate '{node.name}' cannot stand {outer.clause}"
        help = (
            "aggregates stand in SELECT, HAVING, ORDER BY and CLOSING_WHEN; "
            "to aggregate an aggregate, read the first query from a second one"
        )
        raise mistake("misplaced-aggregate", message, node.span, help=help)
    if node.star:  # as in count(*): no argument is needed
        if not function.takes_star or node.distinct:
            raise mistake("wrong-arguments", f"'{node.name}' needs an argument, not *", node.span)
        return into.add(AggCall(function, (), function.type_rule(())))
    bound = outer.within_aggregate().exprs(node.args)
    wanted = function.arity + function.state_parameters + function.finish_parameters
    if len(bound) != wanted:
        arguments = f"{wanted} argument{'' if wanted == 1 else 's'}"
        message = f"'{node.name}' takes {arguments}, not {len(bound)}"
        raise mistake("wrong-arguments", message, node.span)
    constants = tuple(constant_parameter(given, node.span) for given in bound[function.arity :])
    args = bound[: function.arity]
    if function.counts_true:  # a condition is 1 or 0
        args = tuple(Cast(a, Type.UINT) if a.type is Type.BOOL else a for a in args)
    with typed_at(node.span):
        args = args if function.takes_held else tuple(map(narrowed, args))
        for constant in constants:
            narrowed(constant)
        type = function.type_rule(tuple(a.type for a in (*args, *constants)))
        check_parameters(function, constants)
    order = into.order if function.ordered else ()
    return into.add(AggCall(function, args, type, constants, node.distinct, order))


def check_parameters(function: AggregateFunction, constants: tuple[Lit | Param, ...]) -> None:
    """Refuse a constant that makes no sense, such as a percentile of 120, before anything runs."""
    values = [c.value for c in constants if isinstance(c, Lit)]
    if constants and len(values) == len(constants):
        state = function.zero(*values[: function.state_parameters])
        function.finish(state, *values[function.state_parameters :])


def constant_parameter(given: Expr, span: Span) -> Lit | Param:
    match given:
        case Lit() | Param():
            return given
        case Cast(Lit() as literal, _) if is_constant(given):
            return literal
        case _:
            raise mistake(
                "wrong-arguments", "this argument must be a constant or a $parameter", span
            )


@contextmanager
def typed_at(span: Span) -> Iterator[None]:
    """Give a mistake of types or of constants its place in the script."""
    try:
        yield
    except TypeMistake as reason:
        raise mistake("type-mismatch", str(reason), span) from None
    except ValueMistake as reason:
        raise mistake("bad-constant", str(reason), span) from None
