"""The order of a stream as columns that rise: what FIRST, LAST and LIMIT sort by.

In: a relation, some of whose ordered columns may fall. Out: hidden columns that rise when those
fall, so that every engine sorts tuples in ascending order only.
"""

from __future__ import annotations

from terascope.analysis.order import sequence
from terascope.analysis.slopes import Orders
from terascope.connectors.arrival import is_arrival
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import TS, Filter, Project, Rank, Rel, Scan


def rising(column: Col) -> Expr:
    """A value that rises where a column falls. For integers it is ~x = -x - 1, which exists for
    every x.
    """
    return call("~" if column.type.is_integer else "neg", column)


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


def says_place(rel: Rel, name: str) -> bool:
    """Whether the hidden time of tuples puts them in the order of this column, too: it is the same
    column, or the finer clock of the same packets. Streams that are read are not looked into.
    """
    match rel:
        case Scan():
            columns = {c.name: c for c in rel.columns}
            if TS not in columns:
                return False
            same = columns[name].read_from == columns[TS].read_from
            own = columns[name].clock is not None and not is_arrival(columns[name].read_from)
            return same or (rel.layer is not None and own)
        case Filter() | Rank():
            return says_place(rel.source, name)
        case Project():
            items = dict(rel.items)
            column, time = items[name], items.get(TS)
            if not isinstance(column, Col) or not isinstance(time, Col) or time.name != TS:
                return False
            return says_place(rel.source, column.name)
        case _:
            return False
