"""The order of a stream's tuples, for FIRST, LAST and LIMIT and for the order of results.

In: a relation. Out: columns that put its rows in one order whatever the partitions: by (clock,
interface, position) for tuples that still have these columns, else by the ordered columns and then
all others.
"""

from __future__ import annotations

from terascope.analysis.order import Orders
from terascope.functions.base import Trend
from terascope.plan.rel import (
    WEND,
    WSTART,
    Filter,
    Join,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Scan,
    Window,
    inputs,
)


def knows_place(rel: Rel) -> bool:
    """Whether the hidden columns of the relation distinguish its tuples."""
    match rel:
        case Scan() | Read():
            return any(f.hidden for f in rel.fields)
        case Filter() | Window() | Rank() | Join() | Merge():
            return all(knows_place(part) for part in inputs(rel))
        case Project(source=source):
            hidden = {f.name for f in source.fields if f.hidden}
            return knows_place(source) and hidden <= set(rel.names)
        case _:
            return False


def sequence(rel: Rel, orders: Orders) -> tuple[tuple[str, bool], ...]:
    """Columns that order the tuples of a relation as its stream does; True: descending.

    Hidden columns always rise (bind/stream_order.py).
    """
    hidden = [(f.name, False) for f in rel.fields if f.hidden]
    edges = [n for n in (WEND, WSTART) if n in rel.names]
    known = [(n, False) for n in edges]
    if knows_place(rel):
        return (*known, *hidden)
    visible = [f.name for f in rel.visible if f.name not in edges]
    ordered = [(n, falls(n, orders)) for n in visible if n in orders]
    rest = [(n, False) for n in visible if n not in orders]
    return (*known, *ordered, *rest, *hidden)


def falls(name: str, orders: Orders) -> bool:
    """Whether the values of a column get smaller as the stream goes on."""
    return name in orders and orders[name].slope.trend is Trend.DECREASING
