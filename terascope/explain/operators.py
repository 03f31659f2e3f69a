"""Operator trees as nodes of a picture.

In: a relation of the Plan. Out: `Node`s whose labels are those of terascope.plan.show, shortened:
the hidden columns that carry a tuple's place become `+place`, and a long list of columns is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from terascope.explain.model import PictureNode
from terascope.explain.remarks import StreamOrders, remarks_on
from terascope.plan.rel import Project, Read, Rel, Scan, inputs
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


def stream_id(name: str) -> str:
    return f"stream:{name}"


def source_id(name: str) -> str:
    return f"source:{name}"


def label(rel: Rel) -> str:
    """The operator on one line, hidden columns shortened."""
    match rel:
        case Scan(columns=columns):
            shown = [c for c in columns if not c.name.startswith("#")]
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
