"""GROUP BY: keys, grouping sets, and expressions over what a group gives.

In: the GROUP BY clause. Out: keys of an `Aggregate`, and a rewriting of any expression of SELECT,
HAVING, ORDER BY or CLOSING_WHEN into the columns that aggregate has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from terascope.bind.aggregates import Aggregates
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.naming import UniqueNames
from terascope.diagnostic import Span
from terascope.plan.expr import Col, Expr, children, rebuild
from terascope.plan.rel import Named
from terascope.syntax import ast
from terascope.syntax.printer import print_expr


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


def bind_grouping(binder: ExprBinder, clause: ast.GroupBy | None) -> Grouping | None:
    """All keys of a clause, or None after its mistakes were told."""
    grouping = Grouping()
    parts: list[tuple[tuple[str, ...], ...]] = []
    failed = False
    extended = False
    for item in clause.items if clause else ():
        if isinstance(item, ast.GroupingFunction):
            extended = True
            sets = []
            for group in item.sets:
                bound = [(i, binder.bind(i.expr)) for i in group]
                failed |= any(e is None for _, e in bound)
                sets.append(tuple(grouping.add(i, e) for i, e in bound if e is not None))
            parts.append(tuple(expand(item.kind, sets)))
        else:
            expr = binder.bind(item.expr)
            failed |= expr is None
            if expr is not None:
                parts.append(((grouping.add(item, expr),),))
    if failed:
        return None
    if extended:
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


@dataclass(frozen=True)
class Grouped:
    """Rewrites expressions over the source of an aggregation into expressions over its result."""

    context: BindContext
    grouping: Grouping
    aggregates: Aggregates

    def rewrite(self, expr: Expr, span: Span) -> Expr | None:
        """The same value from keys and aggregates, or None when a column is neither."""
        for name, key in self.grouping.keys:
            if key == expr:
                return Col(name, expr.type)
        if isinstance(expr, Col):
            if expr.name in self.aggregates.calls:
                return expr
            shown = expr.name.lstrip("#")
            self.context.error(
                "not-grouped",
                f"'{shown}' is neither a key of GROUP BY nor inside an aggregate",
                span,
                help=f"add {shown} to GROUP BY, or take min({shown}) or max({shown})",
            )
            return None
        parts = [self.rewrite(part, span) for part in children(expr)]
        kept = tuple(p for p in parts if p is not None)
        return rebuild(expr, kept) if len(kept) == len(parts) else None
