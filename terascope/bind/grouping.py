"""GROUP BY: keys, grouping sets, and whether groups close (dissertation 3.1.1).

In: the GROUP BY clause. Out: keys of an `Aggregate`, and a rewriting of any expression of SELECT,
HAVING, ORDER BY or CLOSING_WHEN into the columns that aggregate has. Groups that never close are
the mistake `unbounded-group-by`; for `empty 'emit'`, the windows to be filled in are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Literal

from terascope.analysis.bounded import closing_key
from terascope.analysis.slopes import expression_slope
from terascope.bind.aggregates import Aggregates
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.diagnostic import Mistake, Span, each, mistake
from terascope.functions.base import Trend
from terascope.plan.expr import Col, Expr, children, rebuild
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Named,
    Project,
    Rel,
    Window,
    WindowSpec,
    walk,
)
from terascope.syntax import ast
from terascope.syntax.printer import print_expr


class UniqueNames:
    """Hands out names; a second `cnt` becomes `cnt_2`."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, name: str) -> str:
        unique, count = name, 1
        while unique in self.taken:
            count += 1
            unique = f"{name}_{count}"
        self.taken.add(unique)
        return unique


@dataclass
class Grouping:
    """The keys of a query. `sets`: None for a plain GROUP BY."""

    keys: list[Named] = field(default_factory=list)
    aliases: dict[str, Expr] = field(default_factory=dict)
    sets: tuple[tuple[str, ...], ...] | None = None
    names: UniqueNames = field(default_factory=UniqueNames)

    def add(self, item: ast.Item, expr: Expr) -> str:
        """A key, once even when it stands in several grouping sets."""
        for name, known in self.keys:
            if known == expr and (item.alias is None or item.alias == name):
                return name
        plain = item.expr.name if isinstance(item.expr, ast.Name) else print_expr(item.expr)
        name = self.names.take(item.alias or plain)
        self.keys.append((name, expr))
        if item.alias is not None:
            self.aliases[item.alias] = expr
        return name

    def add_edges(self, edges: Sequence[Col]) -> None:
        """The window's edges are keys of every windowed aggregation."""
        added = []
        for edge in edges:
            if not any(expr == edge for _, expr in self.keys):
                name = self.names.take(edge.name.rpartition(".")[2])
                self.keys.append((name, edge))
                added.append(name)
        if self.sets is not None:
            self.sets = tuple((*s, *added) for s in self.sets)

    def rewrite(self, expr: Expr, span: Span, aggregates: Aggregates) -> Expr:
        """The same value from keys and aggregates."""
        for name, key in self.keys:
            if key == expr:
                return Col(name, expr.type)
        if not isinstance(expr, Col):
            parts = each(lambda part: self.rewrite(part, span, aggregates), children(expr))
            return rebuild(expr, parts)
        if expr.name in aggregates.calls:
            return expr
        shown = expr.name.lstrip("#")
        message = f"'{shown}' is neither a key of GROUP BY nor inside an aggregate"
        help = f"add {shown} to GROUP BY, or take min({shown}) or max({shown})"
        raise mistake("not-grouped", message, span, help)


def bind_grouping(binder: ExprBinder, clause: ast.GroupBy | None) -> Grouping:
    """All keys of a clause."""
    grouping = Grouping()

    def key(item: ast.Item) -> str:
        return grouping.add(item, binder.expr(item.expr))

    def sets_of(item: ast.GroupItem) -> tuple[tuple[str, ...], ...]:
        if isinstance(item, ast.Item):
            return ((key(item),),)
        return tuple(expand(item.kind, each(lambda group: each(key, group), item.sets)))

    items = clause.items if clause else ()
    parts = each(sets_of, items)
    if any(isinstance(item, ast.GroupingFunction) for item in items):
        combined = (tuple(n for part in choice for n in part) for choice in product(*parts))
        grouping.sets = tuple(dict.fromkeys(combined))
    return grouping


def expand(kind: str, sets: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The grouping sets of CUBE(a, b), ROLLUP(a, b) or GROUPING_SETS((a), (b))."""
    if kind == "GROUPING_SETS":
        yield from sets
        return
    names = sets[0]
    for size in range(len(names), -1, -1):
        if kind == "ROLLUP":
            yield names[:size]
        else:
            yield from combinations(names, size)


# ---- which groups close --------------------------------------------------------------------------


def check_closing(context: BindContext, made: Aggregate, what: str) -> None:
    """Some ordered key must be in every grouping set, or groups would never close."""
    orders = context.orders(made.source)
    keys = tuple(
        (n, e) for n, e in made.keys if made.sets is None or all(n in s for s in made.sets)
    )
    if closing_key(keys, orders) is None:
        seen = made.source.source if isinstance(made.source, Project) else made.source
        raise unbounded(context, made.span, seen, what)


def unbounded(context: BindContext, span: Span, source: Rel, what: str = "GROUP BY") -> Mistake:
    """The mistake `unbounded-group-by`, with what could be added."""
    orders = context.orders(source)
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
        message = "an aggregate over the whole stream never ends: a stream has no last tuple"
        help = f"say how often you want it: EVERY 1 minute, or GROUP BY {key}"
        return mistake("unbounded-group-by", message, span, help, (note,))
    message = "group-by never closes" if what == "GROUP BY" else f"{what} never closes"
    notes = ("none of the keys moves with an ordered column in every grouping set", note)
    help = f"add a window key such as {key}, or EVERY 1 minute"
    return mistake("unbounded-group-by", message, span, help, notes)


def empty_windows(
    context: BindContext, rel: Rel, grouping: Grouping, span: Span
) -> WindowSpec | Literal["epoch"]:
    """`empty 'emit'` is for ungrouped windows: their only keys are the window's."""
    names = {n for n, _ in grouping.keys}
    window = next((r for r in walk(rel) if isinstance(r, Window)), None)
    if window is not None and names == {WSTART, WEND}:
        return window.spec
    orders = context.orders(rel)
    if len(grouping.keys) == 1 and grouping.sets is None:
        _, key = grouping.keys[0]
        if key.type.is_integer and expression_slope(key, orders).trend is Trend.INCREASING:
            return "epoch"
    message = "empty 'emit' is for windows without other keys"
    help = "leave it out, or group by the window alone"
    raise mistake("bad-hint", message, span, help)
