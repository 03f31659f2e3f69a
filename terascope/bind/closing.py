"""Which groups close, and which windows are shown though empty (dissertation 3.1.1).

In: an aggregation with its keys. Out: nothing, or the mistake `unbounded-group-by` at the GROUP BY;
for `empty 'emit'`, the windows to be filled in.
"""

from __future__ import annotations

from typing import Literal

from terascope.analysis.bounded import closing_key
from terascope.analysis.order import column_orders, expression_slope
from terascope.bind.context import BindContext
from terascope.bind.grouping import Grouping
from terascope.bind.joins import FromClause
from terascope.diagnostic import Span
from terascope.functions.base import Trend
from terascope.plan.rel import WEND, WSTART, Aggregate, Project, Rel, Window, WindowSpec, walk


def check_closing(context: BindContext, made: Aggregate, what: str) -> bool:
    """Some ordered key must be in every grouping set, or groups would never close."""
    orders = column_orders(made.source, context.stream_orders)
    keys = tuple(
        (n, e) for n, e in made.keys if made.sets is None or all(n in s for s in made.sets)
    )
    if closing_key(keys, lambda e: expression_slope(e, orders)) is not None:
        return True
    seen = made.source.source if isinstance(made.source, Project) else made.source
    tell_unbounded(context, made.span, seen, what)
    return False


def tell_unbounded(context: BindContext, span: Span, source: Rel, what: str = "GROUP BY") -> None:
    """The mistake `unbounded-group-by`, with what could be added."""
    orders = column_orders(source, context.stream_orders)
    ordered = [n for n in orders if not n.startswith("#")]
    note = (
        f"ordered columns here are: {', '.join(ordered)}"
        if ordered
        else "the input has no ordered column; a PROTOCOL can declare one: "
        "time UINT increasing clock(s)"
    )
    example = next((n for n in ordered if n.rpartition(".")[2] == "time"), None)
    key = f"{example}/60" if example else (ordered[0] if ordered else "an ordered column")
    if what == "aggregate":
        context.error(
            "unbounded-group-by",
            "an aggregate over the whole stream never ends: a stream has no last tuple",
            span,
            notes=(note,),
            help=f"say how often you want it: EVERY 1 minute, or GROUP BY {key}",
        )
        return
    context.error(
        "unbounded-group-by",
        "group-by never closes" if what == "GROUP BY" else f"{what} never closes",
        span,
        notes=("none of the keys moves with an ordered column in every grouping set", note),
        help=f"add a window key such as {key}, or EVERY 1 minute",
    )


def empty_windows(
    context: BindContext, clause: FromClause, grouping: Grouping, span: Span
) -> WindowSpec | Literal["epoch"] | None:
    """`empty 'emit'` is for ungrouped windows: their only keys are the window's."""
    names = {n for n, _ in grouping.keys}
    window = next((r for r in walk(clause.rel) if isinstance(r, Window)), None)
    if window is not None and names == {WSTART, WEND}:
        return window.spec
    orders = column_orders(clause.rel, context.stream_orders)
    if len(grouping.keys) == 1 and grouping.sets is None:
        _, key = grouping.keys[0]
        if key.type.is_integer and expression_slope(key, orders).trend is Trend.INCREASING:
            return "epoch"
    context.error(
        "bad-hint",
        "empty 'emit' is for windows without other keys",
        span,
        help="leave it out, or group by the window alone",
    )
    return None
