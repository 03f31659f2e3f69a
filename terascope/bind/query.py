"""Queries: SELECT, MERGE and WITH become operator trees, from what stands in FROM upwards.

In: a query of the Script. Out: a relation of the Plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.joins import join_leaves
from terascope.bind.merge import bind_merge
from terascope.bind.protocols import declared_type
from terascope.bind.scope import FromClause, FromLeaf, Scope, ScopeInput
from terascope.bind.select import SelectBinder, bind_every, refuse_sampling
from terascope.bind.windows import bind_window
from terascope.diagnostic import Mistake, Span, each, mistake
from terascope.plan.expr import Expr, Lit
from terascope.plan.plan import Stream
from terascope.plan.rel import Field, Filter, Lookup, Read, Rel
from terascope.syntax import ast
from terascope.types import Type


@dataclass
class QueryBinder:
    """Binds one statement. Streams made on the way (WITH) are left in `streams`."""

    context: BindContext
    name: str
    constants: Mapping[str, Lit]
    outer_fill: str
    emit_empty: bool
    streams: list[Stream] = field(default_factory=list)
    local: dict[str, str] = field(default_factory=dict)
    """The streams that names of WITH became."""

    def bind(self, query: ast.Query) -> Rel | None:
        return self.context.attempt(self.rel, query)

    def rel(self, query: ast.Query) -> Rel:
        """The relation of a query."""
        match query:
            case ast.Select():
                return self.bind_select(query)
            case ast.MergeQuery():
                leaves = each(self.bind_leaf, flatten_items(query.sources))
                return bind_merge(self.context, query, leaves)
            case ast.With():
                return self.bind_with(query)
            case _:
                assert_never(query)

    def bind_select(self, select: ast.Select) -> Rel:
        before = self.context.errors
        refuse_sampling(self.context, select)
        clause = self.bind_from(select.source, select.where)
        if select.every is not None:
            clause = bind_every(self.context, select.every, clause)
        emit_empty = self.emit_empty
        rel = SelectBinder(self.context, select, clause, self.constants, emit_empty).bind()
        if self.context.errors > before:
            raise Mistake
        return rel

    def bind_with(self, query: ast.With) -> Rel:
        """Each table of WITH is a stream of its own, seen by this statement only."""
        inner = replace(self, local=dict(self.local))
        for table in query.tables:
            stream = f"{self.name}.{table.name}"
            rel = inner.bind(table.query)
            inner.local[table.name] = stream
            if rel is None:
                self.context.failed.add(stream)
                continue
            self.context.add_stream(stream, rel)
            self.streams.append(Stream(stream, rel, visible=False))
        return inner.rel(query.body)

    # ---- FROM

    def bind_from(self, clause: ast.From, where: ast.Expr | None) -> FromClause:
        """The whole clause. A mistake in a condition is recorded, and binding goes on without it,
        so that the mistakes of the other clauses are found too.
        """
        items = flatten_items(clause.items)
        leaves = each(lambda item: self.bind_leaf(item, joined=len(items) > 1), items)
        if len(leaves) == 1:
            return self.bind_single(leaves[0], where, clause.span)
        return join_leaves(
            self.context, clause, leaves, where, self.bind_condition, self.outer_fill
        )

    def bind_condition(self, node: ast.Expr, scope: Scope) -> Expr | None:
        binder = ExprBinder(self.context, scope, constants=self.constants, clause="in WHERE or ON")
        return binder.bind_condition(node)

    def bind_single(self, leaf: FromLeaf, where: ast.Expr | None, span: Span) -> FromClause:
        rel = leaf.rel
        if isinstance(rel, Lookup):
            message = f"watch list '{rel.name}' is no stream by itself"
            help = "join it with one: FROM TCP t, wl w WHERE t.srcIP = w.ip"
            raise mistake("not-a-stream", message, span, help=help)
        scope = Scope((ScopeInput(leaf.qualifier, tuple((f.name, f) for f in rel.fields)),))
        if where is not None:
            predicate = self.bind_condition(where, scope)
            if predicate is not None:
                rel = Filter(rel, predicate, span=where.span)
        return FromClause(rel, scope, leaf.windowed)

    def bind_leaf(self, item: ast.StreamRef | ast.SubqueryRef, *, joined: bool = False) -> FromLeaf:
        """An input; in a join, a window without SLIDE is left to the join."""
        if isinstance(item, ast.SubqueryRef):
            rel = self.rel(item.query)
            qualifier = item.alias or "subquery"
        else:
            rel = self.bind_stream(item)
            qualifier = item.alias or item.name
        window = item.window
        if joined and isinstance(window, ast.RangeWindow) and window.slide is None:
            return FromLeaf(rel, qualifier, False, item.span, window)
        if window is not None:
            rel = bind_window(self.context, rel, window)
        return FromLeaf(rel, qualifier, window is not None, item.span)

    def bind_stream(self, ref: ast.StreamRef) -> Rel:
        """A query of the set, a watch list, a protocol or an interface, in this order."""
        context = self.context
        name = self.local.get(ref.name, ref.name)
        if ref.interface is None and name in context.streams:
            return Read(name, context.streams[name], span=ref.span)
        if name in context.failed:
            raise Mistake  # which was recorded where it is declared
        if ref.interface is None and name in context.watchlists:
            return self.bind_watchlist(context.watchlists[name], ref.span)
        if ref.interface is None and "/" in name:
            message = f"library query '{name}': queries of a library are parsed but not read yet"
            help = "put the query into this file"
            raise mistake("not-executable", message, ref.span, help=help)
        try:
            scan = context.catalog.scan(ref)
        except Mistake as wrong:
            raise Mistake(*(replace(d, span=ref.span) for d in wrong.diagnostics)) from None
        for message in context.catalog.unseen.values():
            context.warning("missing-column", message, ref.span)
        context.catalog.unseen.clear()
        return scan

    def bind_watchlist(self, statement: ast.WatchlistStatement, span: Span) -> Rel:
        context = self.context
        fields: list[Field] = []
        for declared in statement.fields:
            type = declared_type(declared.type_name)
            if type is None:
                text = f"unknown type '{declared.type_name}'"
                context.error("unknown-type", text, declared.span)
                type = Type.STRING
            fields.append(Field(declared.name, Type.WIDE if type is Type.ULLONG else type))
        keys = tuple(f.name for f in statement.fields if any(p.name == "key" for p in f.properties))
        filename = {p.key: p.value for p in statement.define}.get("filename")
        if filename is None:
            message = "the watch list does not say which file it is read from"
            help = "add filename 'list.csv'; to its DEFINE"
            raise mistake("missing-file", message, statement.span, help=help)
        path = context.find_file(filename, statement.span)
        if not path.exists() and not context.catalog.open_world:
            raise mistake("missing-file", f"no such file: '{filename}'", statement.span)
        return Lookup(statement.name or filename, str(path), tuple(fields), keys, span=span)


def flatten_items(items: tuple[ast.FromItem, ...]) -> list[ast.StreamRef | ast.SubqueryRef]:
    """The leaves of a FROM clause, from left to right."""
    leaves: list[ast.StreamRef | ast.SubqueryRef] = []
    for item in items:
        if isinstance(item, ast.JoinRef):
            leaves += flatten_items((item.left, item.right))
        else:
            leaves.append(item)
    return leaves


def streams_read(query: ast.Query, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names in FROM that may be queries of the set; those of an enclosing WITH are not."""
    if isinstance(query, ast.With):
        for table in query.tables:
            yield from streams_read(table.query, hidden)
            hidden |= {table.name}
        yield from streams_read(query.body, hidden)
        return
    items = query.source.items if isinstance(query, ast.Select) else query.sources
    for item in flatten_items(items):
        if isinstance(item, ast.SubqueryRef):
            yield from streams_read(item.query, hidden)
        elif item.interface is None and item.name not in hidden:
            yield item.name
