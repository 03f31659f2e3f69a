"""The order in which the rows of every visible stream are emitted."""

from __future__ import annotations

from dataclasses import replace

from terascope.analysis.order import emitted_orders, falls, plan_orders, sequence
from terascope.analysis.slopes import Orders
from terascope.physical.draft import JobDraft
from terascope.physical.job import Output
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.expr import Col, Expr
from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import WEND, WSTART, Project, Rank, Rel


def order_outputs(draft: JobDraft) -> JobDraft:
    """Before: visible streams      After: their columns and the order of their rows."""
    return replace(draft, outputs=outputs_of(draft.whole))


def outputs_of(plan: Plan) -> tuple[Output, ...]:
    known = plan_orders(plan)
    orders = {s.name: emitted_orders(s.rel, known[s.name]) for s in plan.visible}
    return tuple(
        Output(
            s.name,
            tuple(f.name for f in s.rel.visible),
            output_order(s, orders[s.name]),
            kept_order(s, orders[s.name]),
        )
        for s in plan.visible
    )


def output_order(stream: Stream, orders: Orders) -> tuple[tuple[str, bool], ...]:
    """Rows in the order of the stream; with ORDER BY, in that order within each window. Columns
    that are known to be in order come first, so that breaking the ties of one column does not break
    the order of another.
    """
    plain = sequence(stream.rel, orders)
    edges = [(name, down) for name, down in plain if name in (WEND, WSTART)]
    ranked = rank_order(stream.rel, orders)
    found: dict[str, bool] = {}
    for name, down in (*ranked, *edges, *kept_order(stream, orders), *plain):
        found.setdefault(name, down)
    return tuple(found.items())


def kept_order(stream: Stream, orders: Orders) -> KeptOrder:
    """The columns in whose order rows are emitted; a column with a band is not among them."""
    known = [f.name for f in stream.rel.visible if f.name in orders]
    return tuple((n, falls(n, orders)) for n in known if not orders[n].slope.band)


def rank_order(rel: Rel, orders: Orders) -> tuple[tuple[str, bool], ...]:
    """The ORDER BY of a query, restricted to the columns that are emitted."""
    names: dict[Expr, str] = {Col(f.name, f.type): f.name for f in rel.fields}
    if isinstance(rel, Project):
        names = {expr: name for name, expr in rel.items}
        rel = rel.source
    if not isinstance(rel, Rank):
        return ()
    order: list[tuple[str, bool]] = [
        (names[column], falls(names[column], orders))
        for n in rel.per
        if (column := Col(n, rel.type_of(n))) in names
    ]
    windows = {name for name, _ in order}
    for expr, descending in rel.order:
        if expr not in names:
            break
        if names[expr] not in windows:
            order.append((names[expr], descending))
    return tuple(order)
