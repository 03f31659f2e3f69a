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
from terascope.bind.strategies import strategy_of
from terascope.diagnostic import Span, mistake
from terascope.functions.base import AggregateFunction, TypeMistake, Value, ValueMistake
from terascope.plan.expr import AggCall, Cast, Col, Expr, Lit, Param, is_constant
from terascope.plan.show import show_agg
from terascope.syntax import ast
from terascope.types import Type
from terascope.units import plural

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
    function = context.aggregate(node.name)
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
    strategy = strategy_of(context, function, node)
    bound = outer.within_aggregate().exprs(node.args)
    args, state, finish = arranged(function, bound, node)
    given = (*state, *strategy, *finish)
    constants = tuple(constant_parameter(each, node.span) for each in given)
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


def arranged(
    function: AggregateFunction, given: tuple[Expr, ...], node: ast.CallExpr
) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...]]:
    """The arguments of a call, the constants for zero() and those for finish(), all of them: what
    the call leaves out is filled in, parameters of zero() first, then arguments.
    """
    chooses = bool(function.strategies)
    parameters = function.state_parameters - chooses
    defaults = function.default_parameters[: -1 if chooses else None]
    optional = function.optional_arguments
    most = function.arity + parameters + function.finish_parameters
    least = most - len(defaults) - len(optional)
    if not least <= len(given) <= most:
        counts = f"{least} to {most} arguments" if least < most else plural(most, "argument")
        message = f"'{node.name}' takes {counts}, not {len(given)}"
        raise mistake("wrong-arguments", message, node.span)
    left_out = most - len(given)
    unset = min(left_out, len(defaults))
    absent = left_out - unset
    filled = map(constant, optional[len(optional) - absent :])
    args, rest = given[: function.arity - absent], given[function.arity - absent :]
    written = parameters - unset
    state = (*rest[:written], *map(constant, defaults[len(defaults) - unset :]))
    return (*args, *filled), state, rest[written:]


def constant(value: Value) -> Lit:
    """A constant of the type that a literal of the language would have."""
    match value:
        case bool():
            return Lit(value, Type.BOOL)
        case int():
            return Lit(value, Type.UINT if value >= 0 else Type.INT)
        case float():
            return Lit(value, Type.FLOAT)
        case _:
            return Lit(value, Type.STRING)


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
