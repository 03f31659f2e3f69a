"""SELECT: selection, projection, aggregation, top-k.

In: a SELECT of the Script, and its FROM and WHERE as a relation. Out: its operator tree: the
aggregation, HAVING, ORDER BY, and the columns it names. Columns that tell where a tuple came
from travel along hidden until an aggregation ends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from terascope.analysis.bounded import closing_key
from terascope.analysis.merging import needs_merge, without_merge
from terascope.analysis.order import knows_place
from terascope.analysis.slopes import expression_slope
from terascope.bind.aggregates import Aggregates
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.grouping import (
    Grouping,
    UniqueNames,
    bind_grouping,
    check_closing,
    empty_windows,
    unbounded,
)
from terascope.bind.ranking import bind_order, bind_rank, in_stream_order, rank
from terascope.bind.scope import FromClause, ScopeInput
from terascope.bind.windows import bind_window
from terascope.diagnostic import Mistake, Span, each, mistake
from terascope.functions.base import Trend
from terascope.plan.build import call as build_call
from terascope.plan.build import conjunction
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.plan.expr import walk as walk_expr
from terascope.plan.rel import WEND, WSTART, Aggregate, Filter, Named, Project, Rel, Running
from terascope.syntax import ast

Target = tuple[str, Expr, Span]
"""An output column: name, value, where it stands."""


def refuse_sampling(context: BindContext, select: ast.Select) -> None:
    parts = {
        "SUPERGROUP BY": select.supergroup[0] if select.supergroup else None,
        "CLEANING_WHEN": select.cleaning_when,
        "CLEANING_BY": select.cleaning_by,
    }
    for word, part in parts.items():
        if part is not None:
            context.error(
                "not-executable",
                f"{word} belongs to the sampling operator, which is parsed but not executed yet",
                part.span,
            )


def bind_every(context: BindContext, length: ast.Duration, clause: FromClause) -> FromClause:
    """`EVERY x` is `[RANGE x SLIDE x]` over the whole FROM clause."""
    if clause.windowed:
        message = "EVERY and a window in FROM exclude each other"
        raise mistake("two-windows", message, length.span)
    window = ast.RangeWindow(length, length, span=length.span)
    rel = bind_window(context, clause.rel, window)
    edges = ScopeInput("", tuple((f.name, f) for f in rel.fields if f.name in (WSTART, WEND)))
    inputs = tuple(
        replace(i, columns=tuple(c for c in i.columns if c[1].name not in (WSTART, WEND)))
        for i in clause.scope.inputs
    )
    return FromClause(rel, replace(clause.scope, inputs=(*inputs, edges)), True)


@dataclass(frozen=True)
class SelectBinder:
    """Binds one SELECT over its FROM clause."""

    context: BindContext
    select: ast.Select
    clause: FromClause
    constants: Mapping[str, Lit]
    emit_empty: bool

    def bind(self) -> Rel:
        """The relation of the query."""
        return self.bind_aggregation() if self.is_aggregation() else self.bind_projection()

    def is_aggregation(self) -> bool:
        select = self.select
        if select.group_by is not None or select.having is not None:
            return True
        exprs = [i.expr for i in select.items if isinstance(i, ast.Item)]
        exprs += [o.expr for o in select.order_by]
        return any(
            isinstance(node, ast.CallExpr) and self.is_aggregate(node)
            for expr in exprs
            for node in ast.walk(expr)
        )

    def is_aggregate(self, call: ast.CallExpr) -> bool:
        functions = self.context.functions
        if call.name.lower() in self.context.extractors or call.star or call.distinct:
            return True
        if functions.extractor(call.name) is not None:
            return True
        return functions.scalar(call.name) is None and (
            self.context.aggregate(call.name) is not None
            or functions.deferred(call.name) is not None
            or call.name.lower() in self.context.udafs
        )

    def binder(self, clause: str) -> ExprBinder:
        scope = self.clause.scope
        return ExprBinder(self.context, scope, constants=self.constants, clause=clause)

    def seeing_aliases(self, binder: ExprBinder) -> ExprBinder:
        """The binder for HAVING, ORDER BY and CLOSING_WHEN, which see the names SELECT gives."""
        items = (i for i in self.select.items if isinstance(i, ast.Item))
        aliases = {i.alias: i.expr for i in items if i.alias is not None}
        return replace(binder, select_aliases=aliases)

    def edges(self) -> tuple[Col, ...]:
        """The columns wstart and wend of a windowed query."""
        if not self.clause.windowed:
            return ()
        span = self.select.source.span
        try:
            return tuple(self.clause.scope.find_shared(n, span)[0] for n in (WSTART, WEND))
        except Mistake:
            message = "several inputs have windows, and the condition does not say how they meet"
            help = "equate them: a.wstart = b.wstart AND a.wend = b.wend"
            self.context.error("ambiguous-window", message, span, help=help)
            return ()

    # ---- selection and projection

    def bind_projection(self) -> Rel:
        select = self.select
        binder = self.binder("in a plain selection")
        if select.closing_when is not None:
            span = select.closing_when.span
            self.context.error("misplaced-closing", "CLOSING_WHEN needs a GROUP BY", span)
        attempt = self.context.attempt
        targets = attempt(self.targets, binder, self.edges())
        rel: Rel | None = self.clause.rel
        if select.order_by or select.limit is not None:
            later = self.seeing_aliases(binder)
            rel = attempt(bind_rank, self.context, select, self.clause.rel, later)
        if rel is None or targets is None:
            raise Mistake
        items: list[Named] = [(name, expr) for name, expr, _ in targets]
        rel = discard_failures(rel, (expr for _, expr in items))
        if select.distinct:
            return self.distinct(rel, items)
        if knows_place(rel):
            items += [(f.name, Col(f.name, f.type)) for f in rel.fields if f.hidden]
        return Project(rel, tuple(items), span=select.span)

    def distinct(self, rel: Rel, items: Iterable[Named]) -> Rel:
        below = Project(rel, tuple(items), span=self.select.span)
        keys = tuple((f.name, Col(f.name, f.type)) for f in below.fields)
        made = Aggregate(below, keys, (), span=self.select.span)
        check_closing(self.context, made, "SELECT DISTINCT")
        return made

    def targets(self, binder: ExprBinder, edges: tuple[Col, ...]) -> list[Target]:
        """The output columns, named and told apart, with the window's edges last."""
        names = UniqueNames()

        def bound(position: int, item: ast.Item | ast.Star) -> list[Target]:
            if isinstance(item, ast.Star):
                return [(names.take(n), c, item.span) for n, c in self.star(item)]
            name = names.take(item.alias or default_name(item.expr, position))
            return [(name, binder.expr(item.expr), item.span)]

        parts = each(lambda numbered: bound(*numbered), enumerate(self.select.items, 1))
        found = [target for part in parts for target in part]
        for edge in edges:
            if not any(expr == edge for _, expr, _ in found):
                name = names.take(edge.name.rpartition(".")[2])
                found.append((name, edge, self.select.span))
        return found

    def star(self, star: ast.Star) -> Iterator[tuple[str, Expr]]:
        scope = self.clause.scope
        inputs = [i for i in scope.inputs if star.qualifier in (None, i.qualifier)]
        if not inputs:
            message = f"no input is called '{star.qualifier}'"
            raise mistake("unknown-column", message, star.span)
        for source in inputs:
            for name, field in source.columns:
                if not field.hidden:
                    yield name, scope.as_seen(Col(field.name, field.type))

    # ---- aggregation

    def bind_aggregation(self) -> Rel:
        select, context, attempt = self.select, self.context, self.context.attempt
        keys = attempt(bind_grouping, self.binder("in GROUP BY"), select.group_by)
        edges = self.edges()
        grouping = keys or Grouping()
        grouping.add_edges(edges)
        source, order_columns = in_stream_order(self.clause.rel, context.orders(self.clause.rel))
        aggregates = Aggregates(order_columns)
        binder = replace(
            self.binder("in a grouped query"), aliases=grouping.aliases, aggregates=aggregates
        )
        later = self.seeing_aliases(binder)
        if any(isinstance(i, ast.Star) for i in select.items):
            message = "SELECT * cannot be grouped: name the columns"
            raise mistake("not-grouped", message, select.span)

        def over_groups(condition: ast.Expr | None) -> Expr | None:
            bound = None if condition is None else later.bind_condition(condition)
            if bound is None or condition is None or keys is None:
                return None
            return attempt(grouping.rewrite, bound, condition.span, aggregates)

        def output(target: Target) -> Named:
            name, expr, span = target
            return name, grouping.rewrite(expr, span, aggregates)

        def order_expr(node: ast.Expr, span: Span) -> Expr:
            return grouping.rewrite(later.expr(node), span, aggregates)

        targets = attempt(self.targets, binder, edges)
        having, closing = over_groups(select.having), over_groups(select.closing_when)
        if keys is None:
            raise Mistake
        items = attempt(each, output, targets or ())
        order = attempt(bind_order, context, select, order_expr)
        read = [expr for _, expr in grouping.keys]
        read += [arg for call in aggregates.calls.values() for arg in call.args]
        below = discard_failures(source, read)
        rel = attempt(self.aggregate, below, grouping, aggregates, closing)
        if rel is None or targets is None or items is None or order is None:
            raise Mistake
        if having is not None:
            rel = Filter(rel, having, span=select.having.span if select.having else select.span)
        if order or select.limit is not None:
            orders = context.orders(rel)
            rel = rank(select, rel, order, tuple(orders), orders)
        return (
            self.distinct(rel, items) if select.distinct else Project(rel, items, span=select.span)
        )

    def aggregate(
        self, source: Rel, grouping: Grouping, aggregates: Aggregates, closing: Expr | None
    ) -> Rel:
        select, context = self.select, self.context
        span = select.group_by.span if select.group_by else select.span
        if self.clause.windowed or select.closing_when is not None:
            for call in without_merge(aggregates.named):
                word = "windows" if self.clause.windowed else "the epochs of CLOSING_WHEN"
                reason = f"{word} are merged of parts"
                raise Mistake(needs_merge(call, reason, span))
        if select.closing_when is not None:
            if closing is None:
                raise Mistake
            return self.running(source, grouping, aggregates, closing, span)
        empty = None
        if self.emit_empty:
            empty = context.attempt(empty_windows, context, source, grouping, span)
        keys = tuple(grouping.keys)
        made = Aggregate(source, keys, aggregates.named, grouping.sets, empty, span=span)
        check_closing(context, made, "aggregate" if select.group_by is None else "GROUP BY")
        return made

    def running(
        self, source: Rel, grouping: Grouping, aggregates: Aggregates, closing: Expr, span: Span
    ) -> Rel:
        """CLOSING_WHEN: the epoch comes first among the keys."""
        orders = self.context.orders(source)
        epoch = closing_key(tuple(grouping.keys), orders)
        if epoch is None:
            raise unbounded(self.context, span, source)
        key = dict(grouping.keys)[epoch]
        increasing = expression_slope(key, orders).trend is Trend.INCREASING
        if not key.type.is_integer or not increasing or grouping.sets is not None:
            message = (
                "CLOSING_WHEN needs an epoch that counts up in integers, such as time/60, "
                "and plain keys"
            )
            raise mistake("bad-epoch", message, span)
        keys = ((epoch, key), *((n, e) for n, e in grouping.keys if n != epoch))
        return Running(source, keys, aggregates.named, closing, span=span)


def default_name(expr: ast.Expr, position: int) -> str:
    """The name without AS of the item at `position`, counted from 1: a plain column keeps its
    name, `f(x)` is `f_x`, `f(*)` is `f`, anything else `exprN`.
    """
    match expr:
        case ast.Name(name=name):
            return name
        case ast.CallExpr(name=name, star=True):
            return name.lower()
        case ast.CallExpr(name=name, args=(ast.Name(name=argument),)):
            return f"{name.lower()}_{argument}"
        case _:
            return f"expr{position}"


def discard_failures(rel: Rel, exprs: Iterable[Expr]) -> Rel:
    """A partial function that finds no answer discards the tuple (GS-Lite's PARTIAL)."""
    calls = (e for expr in exprs for e in walk_expr(expr) if isinstance(e, Call))
    partial = dict.fromkeys(c for c in calls if c.function.partial)
    found = [build_call("not", build_call("is_null", c)) for c in partial]
    return Filter(rel, conjunction(found)) if found else rel
