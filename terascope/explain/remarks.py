"""What the analyses say of an operator, in a few words (dissertation 3.1).

In: an operator and the ordered columns of the streams it reads. Out: remarks such as `groups close
by tb`, and the ordering of every column of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from terascope.analysis.bounded import closing_key, is_timeless, join_bound
from terascope.analysis.order import Ordered, Orders, column_orders, expression_slope
from terascope.explain.model import ColumnNote
from terascope.plan.rel import Aggregate, Field, Join, Merge, Rel, Running, Scan, Window

StreamOrders = Mapping[str, Orders]


def remarks_on(rel: Rel, streams: StreamOrders) -> tuple[str, ...]:
    """What makes the operator able to run forever, or what order it gives."""
    match rel:
        case Scan() | Window() | Merge():
            return ordered_columns(rel, streams)
        case Aggregate(source=source, keys=keys) | Running(source=source, keys=keys):
            below = column_orders(source, streams)
            key = closing_key(keys, lambda e: expression_slope(e, below))
            word = "epochs" if isinstance(rel, Running) else "groups"
            return (f"{word} close by {key}",) if key is not None else ()
        case Join():
            return (join_remark(rel, streams),)
        case _:
            return ()


def ordered_columns(rel: Rel, streams: StreamOrders) -> tuple[str, ...]:
    orders = column_orders(rel, streams)
    told = [f"{f.name} {orders[f.name]}" for f in rel.visible if f.name in orders]
    return tuple(told)


def join_remark(join: Join, streams: StreamOrders) -> str:
    if is_timeless(join.left) or is_timeless(join.right):
        return "needs no bound: one side is a table"
    left, right = column_orders(join.left, streams), column_orders(join.right, streams)
    bound = join_bound(
        join, lambda e: expression_slope(e, left), lambda e: expression_slope(e, right)
    )
    return "not bounded" if bound is None else f"bounded by {bound}"


def column_notes(fields: tuple[Field, ...], orders: Orders) -> tuple[ColumnNote, ...]:
    """Columns as a PROTOCOL would declare them."""
    return tuple(column_note(f, orders.get(f.name)) for f in fields)


def column_note(field: Field, ordered: Ordered | None) -> ColumnNote:
    if ordered is None:
        return ColumnNote(field.name, field.type.label)
    order = str(Ordered(ordered.slope))
    return ColumnNote(field.name, field.type.label, order, ordered.clock)
