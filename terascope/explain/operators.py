"""Operator trees as nodes of a picture, with what the analyses say of them (dissertation 3.1).

In: a relation of the Plan and the ordered columns of the streams it reads. Out: nodes whose labels
are those of terascope.plan.show, shortened: the hidden columns that carry a tuple's place become
`+place`, and a long list of columns is cut. Remarks such as `groups close by tb` stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from terascope.analysis.bounded import closing_key, is_timeless, join_bound
from terascope.analysis.order import Ordered, Orders, column_orders, expression_slope
from terascope.explain.model import Box, ColumnNote, Facts, PictureNode
from terascope.plan.rel import (
    Aggregate,
    Field,
    Join,
    Merge,
    Project,
    Read,
    Rel,
    Running,
    Scan,
    Window,
    inputs,
)
from terascope.plan.show import show_node

MOST_COLUMNS = 12
"""Columns of a scan that are named; the rest is counted."""
PLACE = " +place"

SourcesOf = Callable[[Scan], tuple[str, ...]]
"""The boxes a scan takes its tuples from."""


def operator_node(rel: Rel, streams: StreamOrders, sources: SourcesOf) -> PictureNode:
    reads: tuple[str, ...] = ()
    if isinstance(rel, Read):
        reads = (stream_id(rel.stream),)
    elif isinstance(rel, Scan):
        reads = sources(rel)
    return PictureNode(
        type(rel).__name__,
        label(rel),
        remarks_on(rel, streams),
        rel.names,
        tuple(operator_node(part, streams, sources) for part in inputs(rel)),
        reads,
    )


def stream_box(
    name: str,
    columns: tuple[ColumnNote, ...],
    root: PictureNode,
    marks: tuple[str, ...],
    facts: Facts = (),
    text: str = "",
) -> Box:
    return Box(stream_id(name), name, "stream", marks, columns, facts, root=root, text=text)


def stream_id(name: str) -> str:
    return f"stream:{name}"


def source_id(name: str) -> str:
    return f"source:{name}"


def label(rel: Rel) -> str:
    """The operator on one line, hidden columns shortened."""
    match rel:
        case Scan(columns=columns):
            shown = [c for c in columns if not is_hidden(c.name)]
            cut = len(shown) - MOST_COLUMNS
            kept = shown if cut <= 1 else shown[:MOST_COLUMNS]
            text = show_node(replace(rel, columns=tuple(kept)))
            if cut > 1:
                text = f"{text[:-1]}, ... {cut} more]"
            return text + (PLACE if len(shown) < len(columns) else "")
        case Project(items=items):
            named = tuple(item for item in items if not is_hidden(item[0]))
            text = show_node(replace(rel, items=named)).rstrip()
            return text + (PLACE if len(named) < len(items) else "")
        case _:
            return show_node(rel)


def is_hidden(name: str) -> bool:
    """Hidden columns of a join's input have its alias before them: `S1.#ts`."""
    return name.startswith("#") or ".#" in name


def order_in_words(order: Sequence[tuple[str, bool]]) -> str:
    """The order of rows; the place of a tuple is one word for its hidden columns."""
    shown: dict[str, str] = {}
    for name, descending in order:
        word = "place" if is_hidden(name) else name
        shown.setdefault(word, f"{word} descending" if descending else word)
    return ", ".join(shown.values())


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
