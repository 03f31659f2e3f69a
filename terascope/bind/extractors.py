"""Extractors: scalars of an aggregate's state, so that several of them keep one state.

In: a call such as `approx_percentile(len, 95)` of a built-in extractor, or of one that the script
declares with EXTR (paper 1, 3.2). Out: the scalar over the aggregate, `percentile_of(
approx_quantile(len), 95)`. Equal aggregates of a query are one, whichever call they stand in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from terascope.bind.aggregates import bind_aggregate, typed_at
from terascope.bind.coerce import full_cast
from terascope.diagnostic import mistake
from terascope.functions.base import Extractor
from terascope.functions.casts import check_cast
from terascope.plan.expr import Col, Expr
from terascope.syntax import ast
from terascope.types import type_names

if TYPE_CHECKING:
    from terascope.bind.expressions import ExprBinder


def bind_extractor(binder: ExprBinder, extractor: Extractor, node: ast.CallExpr) -> Expr:
    """The value of an extractor."""
    context, name = binder.context, extractor.function
    scalar = context.functions.scalar(name)
    if scalar is None or context.aggregate(extractor.aggregate) is None:
        missing, what = (name, "scalar") if scalar is None else (extractor.aggregate, "aggregate")
        message = f"'{node.name}' needs the {what} '{missing}', which is not registered"
        raise mistake("not-executable", message, node.span)
    taken, least = extractor.arguments, extractor.arguments + extractor.extras
    if len(node.args) < least:
        wanted = f"{least} argument{'' if least == 1 else 's'}"
        message = f"'{node.name}' takes {wanted} or more, not {len(node.args)}"
        raise mistake("wrong-arguments", message, node.span)
    inner = ast.CallExpr(
        extractor.aggregate,
        (*node.args[:taken], *node.args[least:]),
        distinct=node.distinct,
        strategy=node.strategy,
        span=node.span,
    )
    state = bind_aggregate(context, binder.aggregates, binder, inner)
    extras = (
        *binder.exprs(node.args[taken:least]),
        *map(binder.bind_literal, map(literal, extractor.constants)),
    )
    exact = context.functions.scalar(scalar.of_integers)
    if exact is not None and isinstance(state, Col) and binder.aggregates is not None:
        type = binder.aggregates.calls[state.name].args[0].type
        if type.is_integer:
            return full_cast(binder.applied_scalar(exact, (state, *extras), node.span), type)
    return binder.applied_scalar(scalar, (state, *extras), node.span)


def bind_declared(
    binder: ExprBinder, declared: ast.ExtractorDeclaration, node: ast.CallExpr
) -> Expr:
    """The value of an extractor that the script declares, of the declared type."""
    extractor = declared_extractor(declared)
    wanted = extractor.arguments + extractor.extras
    if len(node.args) != wanted:
        message = f"'{node.name}' is declared with {wanted} arguments, not {len(node.args)}"
        raise mistake("wrong-arguments", message, node.span)
    value = bind_extractor(binder, extractor, node)
    type = type_names.get(declared.returns.split("(")[0].strip().upper())
    if type is None:
        raise mistake("unknown-type", f"unknown type '{declared.returns}'", declared.span)
    if type is value.type:
        return value
    with typed_at(declared.span):
        check_cast(value.type, type)
    return full_cast(value, type)


def declared_extractor(declared: ast.ExtractorDeclaration) -> Extractor:
    """`int EXTR function aggregate name(int; int)`: the types before the semicolon are those of the
    aggregate's arguments, the types behind it those of the scalar's further ones.
    """
    return Extractor(
        declared.function,
        declared.aggregate,
        len(declared.aggregate_parameters),
        len(declared.extra_parameters),
    )


def literal(value: object) -> ast.Literal_:
    """A number as a query would write it."""
    match value:
        case int():
            return ast.Literal_("int", value)
        case float():
            return ast.Literal_("float", value)
        case _:
            return ast.Literal_("string", str(value))
