"""ORDER BY and LIMIT: top-k within each window; and the order of a stream, for FIRST and LAST.

In: the clauses of a SELECT and the relation they stand over. Out: a `Rank` whose last columns break
every tie, so that partitions do not matter; and, for ordered columns that fall, hidden columns that
rise, so that every engine sorts tuples in ascending order only.
"""

from __future__ import annotations

from collections.abc import Callable

from terascope.analysis.order import knows_place, sequence
from terascope.analysis.slopes import Orders, expression_slope
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.protocols import rising
from terascope.diagnostic import Span, mistake
from terascope.functions.base import Trend
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import WEND, WSTART, Project, Rank, Rel
from terascope.syntax import ast

OrderBy = list[tuple[Expr, bool]]
"""Expressions, each with True for descending."""


def bind_order(
    context: BindContext, select: ast.Select, bind: Callable[[ast.Expr, Span], Expr]
) -> OrderBy:
    """The expressions of ORDER BY."""
    return [
        (bind(order_target(context, select, item), item.span), item.descending)
        for item in select.order_by
    ]


def order_target(context: BindContext, select: ast.Select, item: ast.OrderItem) -> ast.Expr:
    """`ORDER BY 2` means the second column, as in SQL."""
    match item.expr:
        case ast.Literal_(kind="int", value=int() as place) if 1 <= place <= len(select.items):
            target = select.items[place - 1]
            if isinstance(target, ast.Item):
                return target.expr
        case ast.Literal_():
            context.error(
                "bad-order", "ordering by a constant does nothing: name a column", item.span
            )
    return item.expr


def bind_rank(context: BindContext, select: ast.Select, rel: Rel, binder: ExprBinder) -> Rel:
    """ORDER BY and LIMIT of a selection: within the window, or the epoch of what it reads."""
    order = bind_order(context, select, lambda expr, _: binder.expr(expr))
    orders = context.orders(rel)
    edges = tuple(n for n in rel.names if n.rpartition(".")[2] in (WSTART, WEND))
    if edges or not knows_place(rel):
        return rank(select, rel, order, edges or tuple(orders), orders)
    natural = select.limit is None and all(
        not d and expression_slope(e, orders).trend is Trend.INCREASING for e, d in order
    )
    if natural:
        return rel
    span = select.order_by[0].span.to(select.order_by[-1].span) if select.order_by else select.span
    message = "ORDER BY and LIMIT work within a window, and this stream has none"
    help = "cut it into windows, such as EVERY 1 minute"
    raise mistake("unbounded-order", message, span, help)


def rank(select: ast.Select, rel: Rel, order: OrderBy, per: tuple[str, ...], orders: Orders) -> Rel:
    """Ties are broken by the order of the stream."""
    ties: OrderBy = [(Col(n, rel.type_of(n)), falling) for n, falling in sequence(rel, orders)]
    return Rank(rel, per, (*order, *ties), select.limit, span=select.span)


def in_stream_order(rel: Rel, orders: Orders) -> tuple[Rel, tuple[str, ...]]:
    """The relation, and columns that sort its tuples in the order of the stream when ascending."""
    columns = sequence(rel, orders)
    if not any(falls for _, falls in columns):
        return rel, tuple(name for name, _ in columns)
    turned = {
        f"#rising.{name}": rising(Col(name, rel.type_of(name))) for name, falls in columns if falls
    }
    kept: list[tuple[str, Expr]] = [(f.name, Col(f.name, f.type)) for f in rel.fields]
    made = Project(rel, (*kept, *turned.items()), span=rel.span)
    return made, tuple(f"#rising.{name}" if falls else name for name, falls in columns)
