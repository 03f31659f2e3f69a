"""FROM: what a query reads.

In: the FROM clause and WHERE. Out: one relation, with everything that restricts or joins the inputs
in it, and the scope in which the other clauses stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from terascope.bind.context import BindContext
from terascope.bind.declared_fields import declared_type
from terascope.bind.joins import BindCondition, FromClause, FromLeaf, join_leaves
from terascope.bind.provided_fields import UnknownSource
from terascope.bind.scope import Scope, ScopeInput
from terascope.bind.windows import bind_window
from terascope.diagnostic import Span
from terascope.plan.rel import Field, Filter, Lookup, Read, Rel
from terascope.syntax import ast
from terascope.types import Type

BindQuery = Callable[[ast.Query], Rel | None]


@dataclass(frozen=True)
class SourceBinder:
    """Binds FROM clauses of one query. `local`: names of WITH -> streams they became."""

    context: BindContext
    local: Mapping[str, str]
    bind_query: BindQuery
    bind_condition: BindCondition
    outer_fill: str = "null"

    def bind(self, clause: ast.From, where: ast.Expr | None) -> FromClause | None:
        """The whole clause, or None when not even its columns are known.

        A mistake in a condition is told, and binding goes on without it, so that the mistakes of
        the other clauses are found too.
        """
        items = flatten_items(clause.items)
        leaves = [self.bind_leaf(item, joined=len(items) > 1) for item in items]
        kept = [leaf for leaf in leaves if leaf is not None]
        if len(kept) != len(leaves):
            return None
        if len(kept) == 1:
            return self.bind_single(kept[0], where, clause.span)
        return join_leaves(self.context, clause, kept, where, self.bind_condition, self.outer_fill)

    def bind_single(self, leaf: FromLeaf, where: ast.Expr | None, span: Span) -> FromClause | None:
        rel = leaf.rel
        if isinstance(rel, Lookup):
            self.context.error(
                "not-a-stream",
                f"watch list '{rel.name}' is no stream by itself",
                span,
                help="join it with one: FROM TCP t, wl w WHERE t.srcIP = w.ip",
            )
            return None
        scope = Scope((ScopeInput(leaf.qualifier, tuple((f.name, f) for f in rel.fields)),))
        if where is not None:
            predicate = self.bind_condition(where, scope)
            if predicate is not None:
                rel = Filter(rel, predicate, span=where.span)
        return FromClause(rel, scope, leaf.windowed)

    def bind_leaf(
        self, item: ast.StreamRef | ast.SubqueryRef, *, joined: bool = False
    ) -> FromLeaf | None:
        """An input; in a join, a window without SLIDE is left to the join."""
        if isinstance(item, ast.SubqueryRef):
            rel = self.bind_query(item.query)
            qualifier = item.alias or "subquery"
        else:
            rel = self.bind_stream(item)
            qualifier = item.alias or item.name
        if rel is None:
            return None
        window = item.window
        if joined and isinstance(window, ast.RangeWindow) and window.slide is None:
            return FromLeaf(rel, qualifier, False, item.span, window)
        if item.window is not None:
            rel = self.context.attempt(bind_window, self.context, rel, item.window)
            if rel is None:
                return None
        return FromLeaf(rel, qualifier, item.window is not None, item.span)

    def bind_stream(self, ref: ast.StreamRef) -> Rel | None:
        """A query of the set, a watch list, a protocol or an interface, in this order."""
        context = self.context
        name = self.local.get(ref.name, ref.name)
        if ref.interface is not None and name in context.failed:
            return None  # a PROTOCOL with mistakes
        if ref.interface is None:
            if name in context.streams:
                return Read(name, context.streams[name].fields, span=ref.span)
            if name in context.failed:
                return None
            if name in context.watchlists:
                return self.bind_watchlist(context.watchlists[name], ref.span)
            if "/" in name:
                context.error(
                    "not-executable",
                    f"library query '{name}': queries of a library are parsed but not read yet",
                    ref.span,
                    help="put the query into this file",
                )
                return None
        try:
            scan = context.catalog.scan(ref)
        except UnknownSource as mistake:
            context.error(mistake.code, mistake.message, ref.span, help=mistake.help)
            return None
        for message in context.catalog.unseen.values():
            context.warning("missing-column", message, ref.span)
        context.catalog.unseen.clear()
        return scan

    def bind_watchlist(self, statement: ast.WatchlistStatement, span: Span) -> Rel | None:
        context = self.context
        options = {p.key: p.value for p in statement.define}
        fields: list[Field] = []
        for declared in statement.fields:
            type = declared_type(declared.type_name)
            if type is None:
                text = f"unknown type '{declared.type_name}'"
                context.error("unknown-type", text, declared.span)
                type = Type.STRING
            fields.append(Field(declared.name, Type.WIDE if type is Type.ULLONG else type))
        keys = tuple(f.name for f in statement.fields if any(p.name == "key" for p in f.properties))
        filename = options.get("filename")
        if filename is None:
            context.error(
                "missing-file",
                "the watch list does not say which file it is read from",
                statement.span,
                help="add filename 'list.csv'; to its DEFINE",
            )
            return None
        path = context.attempt(context.find_file, filename, statement.span)
        if path is None:
            return None
        if not path.exists() and not context.catalog.open_world:
            context.error("missing-file", f"no such file: '{filename}'", statement.span)
            return None
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
