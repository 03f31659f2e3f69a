"""Whether rows come in the orders that are declared of their columns.

In: the ordered columns of a query (terascope.analysis.order), and its rows in the order in which
they are delivered. Out: nothing, or an AssertionError that names the column and both rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from terascope.analysis.order import emitted_orders, plan_orders
from terascope.analysis.slopes import Ordered, Orders
from terascope.functions.base import Trend
from terascope.pipeline import Compiled


def declared_orders(compiled: Compiled) -> Mapping[str, Orders]:
    """By stream, what `explain` says of its columns."""
    known = plan_orders(compiled.plan)
    return {s.name: emitted_orders(s.rel, known[s.name]) for s in compiled.plan}


def assert_in_order(
    rows: Iterable[Sequence[Any]], names: Sequence[str], orders: Orders, where: str
) -> int:
    """Every declared order holds over the rows; returns how many pairs were compared. A row that
    has no value in a column (NULL) says nothing about its order.

    Raises:
        AssertionError: it does not.
    """
    known = list(rows)
    return sum(
        assert_column(known, names.index(name), orders[name], f"{where}: {name}")
        for name in names
        if name in orders
    )


def assert_column(rows: Sequence[Sequence[Any]], place: int, order: Ordered, where: str) -> int:
    sign = -1 if order.slope.trend is Trend.DECREASING else 1
    furthest: Any = None
    compared = 0
    for number, row in enumerate(rows):
        value = row[place]
        if value is None:
            continue
        moved = sign * value
        if furthest is not None:
            compared += 1
            strict = order.slope.strict and not order.slope.band
            fine = moved > furthest if strict else moved >= furthest - order.slope.band
            assert fine, (
                f"{where} is declared {order}, but row {number} of {len(rows)} has {value} after"
                f" {sign * furthest}"
            )
        furthest = moved if furthest is None else max(furthest, moved)
    return compared
