"""SELECT: selection, projection, aggregation, top-k.

In: a SELECT of the Script. Out: its operator tree: FROM and WHERE, the window, the aggregation,
HAVING, ORDER BY, and the columns it names. Columns that tell where a tuple came from travel along
hidden until an aggregation ends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from terascope.analysis.bounded import closing_key
from terascope.analysis.order import Orders, column_orders, expression_slope
from terascope.analysis.sequence import knows_place
from terascope.bind.aggregates import Aggregates
from terascope.bind.closing import check_closing, empty_windows, tell_unbounded
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.grouping import Grouped, Grouping, bind_grouping
from terascope.bind.joins import FromClause
from terascope.bind.naming import UniqueNames, default_name
from terascope.bind.ranking import bind_order, bind_rank, rank
from terascope.bind.scope import NoSuchColumn, Scope, ScopeInput
from terascope.bind.sources import SourceBinder
from terascope.bind.stream_order import in_stream_order
from terascope.bind.windows import bind_window, every
from terascope.diagnostic import Span
from terascope.functions.base import Trend
from terascope.plan.build import call as build_call
from terascope.plan.build import conjunction
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.plan.expr import walk as walk_expr
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Named,
    Project,
    Rel,
    Running,
)
from terascope.syntax import ast
from terascope.syntax.ast import walk

Target = tuple[str, Expr, Span]
"""An output column: name, value, where it stands."""


@dataclass(frozen=True)
class SelectBinder:
    """Binds SELECT statements of one query."""

    context: BindContext
    sources: SourceBinder
    constants: Mapping[str, Lit]

    def bind(self, select: ast.Select, *, emit_empty: bool = False) -> Rel | None:
        before = len(self.context.diagnostics)
        self.refuse_sampling(select)
        clause = self.sources.bind(select.source, select.where)
        if clause is None:
            return None
        if select.every is not None:
            clause = self.bind_every(select.every, clause)
            if clause is None:
                return None
        if self.is_aggregation(select):
            rel = self.bind_aggregation(select, clause, emit_empty)
        else:
            rel = self.bind_projection(select, clause)
        errors = any(d.severity == "error" for d in self.context.diagnostics[before:])
        return None if errors else rel

    # ---- shape

    def is_aggregation(self, select: ast.Select) -> bool:
        if select.group_by is not None or select.having is not None:
            return True
        exprs = [i.expr for i in select.items if isinstance(i, ast.Item)]
        exprs += [o.expr for o in select.order_by]
        return any(
            isinstance(node, ast.CallExpr) and self.is_aggregate(node)
            for expr in exprs
            for node in walk(expr)
        )

    def is_aggregate(self, call: ast.CallExpr) -> bool:
        functions = self.context.functions
        extractors = {n.lower() for n in self.context.extractors}
        if call.name.lower() in extractors or call.star or call.distinct:
            return True
        return functions.scalar(call.name) is None and (
            functions.aggregate(call.name) is not None
            or functions.deferred(call.name) is not None
            or call.name in self.context.udafs
        )

    def refuse_sampling(self, select: ast.Select) -> None:
        parts = [
            ("SUPERGROUP BY", bool(select.supergroup), select.supergroup),
            ("CLEANING_WHEN", select.cleaning_when is not None, ()),
            ("CLEANING_BY", select.cleaning_by is not None, ()),
        ]
        for word, present, items in parts:
            if present:
                span = items[0].span if items else clause_span(select, word)
                self.context.error(
                    "not-executable",
                    f"{word} belongs to the sampling operator, "
                    "which is parsed but not executed yet",
                    span,
                )

    # ---- windows

    def bind_every(self, duration: ast.Duration, clause: FromClause) -> FromClause | None:
        if clause.windowed:
            self.context.error(
                "two-windows", "EVERY and a window in FROM exclude each other", duration.span
            )
            return None
        rel = self.context.attempt(bind_window, self.context, clause.rel, every(duration))
        if rel is None:
            return None
        edges = ScopeInput("", tuple((f.name, f) for f in rel.fields if f.name in (WSTART, WEND)))
        inputs = tuple(
            replace(i, columns=tuple(c for c in i.columns if c[1].name not in (WSTART, WEND)))
            for i in clause.scope.inputs
        )
        scope = replace(clause.scope, inputs=(*inputs, edges))
        return FromClause(rel, scope, True)

    def edges(self, clause: FromClause, span: Span) -> tuple[Col, ...]:
        """The columns wstart and wend of a windowed query."""
        if not clause.windowed:
            return ()
        try:
            return tuple(clause.scope.find_shared(name)[0] for name in (WSTART, WEND))
        except NoSuchColumn:
            self.context.error(
                "ambiguous-window",
                "several inputs have windows, and the condition does not say how they meet",
                span,
                help="equate them: a.wstart = b.wstart AND a.wend = b.wend",
            )
            return ()

    def orders(self, rel: Rel) -> Orders:
        return column_orders(rel, self.context.stream_orders)

    # ---- selection and projection

    def bind_projection(self, select: ast.Select, clause: FromClause) -> Rel | None:
        binder = ExprBinder(
            self.context, clause.scope, constants=self.constants, clause="in a plain selection"
        )
        if select.closing_when is not None:
            self.context.error(
                "misplaced-closing",
                "CLOSING_WHEN needs a GROUP BY",
                select.closing_when.span,
            )
        edges = self.edges(clause, select.source.span)
        targets = self.targets(select, clause, binder, edges)
        rel = clause.rel
        if select.order_by or select.limit is not None:
            ranked = bind_rank(self.context, select, rel, replace_aliases(binder, select))
            if ranked is None:
                return None
            rel = ranked
        if targets is None:
            return None
        items: list[Named] = [(name, expr) for name, expr, _ in targets]
        rel = discard_failures(rel, (expr for _, expr in items))
        if select.distinct:
            return self.distinct(rel, items, select)
        if knows_place(rel):
            items += [(f.name, Col(f.name, f.type)) for f in rel.fields if f.hidden]
        return Project(rel, tuple(items), span=select.span)

    def distinct(self, rel: Rel, items: list[Named], select: ast.Select) -> Rel:
        below = Project(rel, tuple(items), span=select.span)
        keys = tuple((n, Col(n, e.type)) for n, e in items)
        made = Aggregate(below, keys, (), span=select.span)
        check_closing(self.context, made, "SELECT DISTINCT")
        return made

    def targets(
        self, select: ast.Select, clause: FromClause, binder: ExprBinder, edges: tuple[Col, ...]
    ) -> list[Target] | None:
        """The output columns, named and told apart, with the window's edges last."""
        names = UniqueNames()
        found: list[Target] = []
        failed = False
        for position, item in enumerate(select.items, 1):
            if isinstance(item, ast.Star):
                columns = list(self.star(item, clause.scope))
                failed |= not columns
                found += [(names.take(n), c, item.span) for n, c in columns]
                continue
            expr = binder.bind(item.expr)
            failed |= expr is None
            name = names.take(item.alias or default_name(item.expr, position))
            if expr is not None:
                found.append((name, expr, item.span))
        for edge in edges:
            if not any(expr == edge for _, expr, _ in found):
                name = names.take(edge.name.rpartition(".")[2])
                found.append((name, edge, select.span))
        return None if failed else found

    def star(self, star: ast.Star, scope: Scope) -> Iterator[tuple[str, Expr]]:
        inputs = [i for i in scope.inputs if star.qualifier in (None, i.qualifier)]
        if not inputs:
            self.context.error(
                "unknown-column", f"no input is called '{star.qualifier}'", star.span
            )
        for source in inputs:
            for name, field in source.columns:
                if not field.hidden:
                    yield name, scope.as_seen(Col(field.name, field.type))

    # ---- aggregation

    def bind_aggregation(
        self, select: ast.Select, clause: FromClause, emit_empty: bool
    ) -> Rel | None:
        key_binder = ExprBinder(
            self.context, clause.scope, constants=self.constants, clause="in GROUP BY"
        )
        grouping = bind_grouping(key_binder, select.group_by)
        edges = self.edges(clause, select.source.span)
        if grouping is None:
            grouping, known_keys = Grouping(), False
        else:
            known_keys = True
            grouping.add_edges(edges)
        below, order_columns = in_stream_order(clause.rel, self.orders(clause.rel))
        clause = replace(clause, rel=below)
        aggregates = Aggregates(order_columns)
        binder = ExprBinder(
            self.context,
            clause.scope,
            grouping.aliases,
            aggregates=aggregates,
            constants=self.constants,
            clause="in a grouped query",
        )
        later = replace_aliases(binder, select)
        if any(isinstance(i, ast.Star) for i in select.items):
            self.context.error(
                "not-grouped", "SELECT * cannot be grouped: name the columns", select.span
            )
            return None
        targets = self.targets(select, clause, binder, edges)
        having = later.bind_condition(select.having) if select.having else None
        closing = later.bind_condition(select.closing_when) if select.closing_when else None
        if not known_keys:
            return None
        grouped = Grouped(self.context, grouping, aggregates)
        outputs = [(name, grouped.rewrite(expr, span), span) for name, expr, span in targets or ()]
        if having is not None and select.having is not None:
            having = grouped.rewrite(having, select.having.span)
        if closing is not None and select.closing_when is not None:
            closing = grouped.rewrite(closing, select.closing_when.span)
        order = bind_order(self.context, select, later, grouped)
        read = [expr for _, expr in grouping.keys]
        read += [arg for call in aggregates.calls.values() for arg in call.args]
        clause = replace(clause, rel=discard_failures(clause.rel, read))
        rel = self.aggregate(select, clause, grouping, aggregates, closing, emit_empty)
        if rel is None or targets is None or any(e is None for _, e, _ in outputs):
            return None
        if having is not None:
            rel = Filter(rel, having, span=select.having.span if select.having else select.span)
        if order is None:
            return None
        if order or select.limit is not None:
            orders = self.orders(rel)
            rel = rank(select, rel, order, tuple(orders), orders)
        items = tuple((name, expr) for name, expr, _ in outputs if expr is not None)
        if select.distinct:
            return self.distinct(rel, list(items), select)
        return Project(rel, items, span=select.span)

    def aggregate(
        self,
        select: ast.Select,
        clause: FromClause,
        grouping: Grouping,
        aggregates: Aggregates,
        closing: Expr | None,
        emit_empty: bool,
    ) -> Rel | None:
        span = select.group_by.span if select.group_by else select.span
        made: Rel
        if select.closing_when is not None:
            if closing is None:
                return None
            return self.running(clause, grouping, aggregates, closing, span)
        keys = tuple(grouping.keys)
        empty = empty_windows(self.context, clause, grouping, span) if emit_empty else None
        made = Aggregate(clause.rel, keys, aggregates.named, grouping.sets, empty, span=span)
        what = "aggregate" if select.group_by is None else "GROUP BY"
        return made if check_closing(self.context, made, what) else None

    def running(
        self,
        clause: FromClause,
        grouping: Grouping,
        aggregates: Aggregates,
        closing: Expr,
        span: Span,
    ) -> Rel | None:
        """CLOSING_WHEN: the epoch comes first among the keys."""
        orders = self.orders(clause.rel)
        epoch = closing_key(tuple(grouping.keys), lambda e: expression_slope(e, orders))
        keyed = dict(grouping.keys)
        if epoch is None:
            tell_unbounded(self.context, span, clause.rel)
            return None
        increasing = expression_slope(keyed[epoch], orders).trend is Trend.INCREASING
        if not keyed[epoch].type.is_integer or not increasing or grouping.sets is not None:
            self.context.error(
                "bad-epoch",
                "CLOSING_WHEN needs an epoch that counts up in integers, such as time/60, "
                "and plain keys",
                span,
            )
            return None
        keys = ((epoch, keyed[epoch]), *((n, e) for n, e in grouping.keys if n != epoch))
        return Running(clause.rel, keys, aggregates.named, closing, span=span)


def discard_failures(rel: Rel, exprs: Iterable[Expr]) -> Rel:
    """A partial function that finds no answer discards the tuple (GS-Lite's PARTIAL)."""
    calls = (e for expr in exprs for e in walk_expr(expr) if isinstance(e, Call))
    partial = dict.fromkeys(c for c in calls if c.function.partial)
    found = [build_call("not", build_call("is_null", c)) for c in partial]
    return Filter(rel, conjunction(found)) if found else rel


def replace_aliases(binder: ExprBinder, select: ast.Select) -> ExprBinder:
    """The binder for HAVING, ORDER BY and CLOSING_WHEN, which see the names SELECT gives."""
    aliases = {
        i.alias: i.expr for i in select.items if isinstance(i, ast.Item) and i.alias is not None
    }
    return replace(binder, select_aliases=aliases)


def clause_span(select: ast.Select, word: str) -> Span:
    match word:
        case "CLEANING_WHEN" if select.cleaning_when is not None:
            return select.cleaning_when.span
        case "CLEANING_BY" if select.cleaning_by is not None:
            return select.cleaning_by.span
        case _:
            return select.span
