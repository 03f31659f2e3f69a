"""Queries: SELECT, MERGE and WITH become operator trees.

In: a query of the Script. Out: a relation of the Plan, or None after all its mistakes were told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from terascope.analysis.order import Orders, column_orders
from terascope.bind.context import BindContext, Known
from terascope.bind.expressions import ExprBinder
from terascope.bind.merge import bind_merge
from terascope.bind.scope import Scope
from terascope.bind.select import SelectBinder
from terascope.bind.sources import SourceBinder
from terascope.plan.expr import Expr, Lit
from terascope.plan.plan import Stream
from terascope.plan.rel import Rel
from terascope.syntax import ast


@dataclass(frozen=True)
class Options:
    """What the DEFINE block of a statement asks for."""

    constants: Mapping[str, Lit] = field(default_factory=dict)
    outer_fill: str = "null"
    emit_empty: bool = False


@dataclass
class QueryBinder:
    """Binds one statement. Streams made on the way (WITH) are left in `streams`."""

    context: BindContext
    name: str
    options: Options
    streams: list[Stream] = field(default_factory=list)
    local: dict[str, str] = field(default_factory=dict)

    def bind(self, query: ast.Query) -> Rel | None:
        match query:
            case ast.Select():
                return SelectBinder(self.context, self.sources(), self.options.constants).bind(
                    query, emit_empty=self.options.emit_empty
                )
            case ast.MergeQuery():
                return self.context.attempt(bind_merge, self.context, self.sources(), query)
            case ast.With():
                return self.bind_with(query)
            case _:
                assert_never(query)

    def sources(self) -> SourceBinder:
        return SourceBinder(
            self.context, self.local, self.bind, self.bind_condition, self.options.outer_fill
        )

    def bind_condition(self, node: ast.Expr, scope: Scope) -> Expr | None:
        binder = ExprBinder(
            self.context, scope, constants=self.options.constants, clause="in WHERE or ON"
        )
        return binder.bind_condition(node)

    def bind_with(self, query: ast.With) -> Rel | None:
        """Each table of WITH is a stream of its own, seen by this statement only."""
        outer = dict(self.local)
        for table in query.tables:
            stream = f"{self.name}.{table.name}"
            rel = self.bind(table.query)
            self.local[table.name] = stream
            if rel is None:
                self.context.failed.add(stream)
                continue
            self.context.streams[stream] = Known(rel.fields, self.orders(rel))
            self.streams.append(Stream(stream, rel, visible=False))
        body = self.bind(query.body)
        self.local = outer
        return body

    def orders(self, rel: Rel) -> Orders:
        return column_orders(rel, self.context.stream_orders)


def streams_read(query: ast.Query, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names in FROM that may be queries of the set; those of an enclosing WITH are not."""
    match query:
        case ast.With(tables=tables, body=body):
            for table in tables:
                yield from streams_read(table.query, hidden)
                hidden |= {table.name}
            yield from streams_read(body, hidden)
        case ast.Select(source=source):
            yield from items_read(source.items, hidden)
        case ast.MergeQuery(sources=sources):
            yield from items_read(sources, hidden)
        case _:
            assert_never(query)


def items_read(items: tuple[ast.FromItem, ...], hidden: frozenset[str]) -> Iterator[str]:
    for item in items:
        match item:
            case ast.StreamRef(name=name, interface=interface):
                if interface is None and name not in hidden:
                    yield name
            case ast.SubqueryRef(query=query):
                yield from streams_read(query, hidden)
            case ast.JoinRef(left=left, right=right):
                yield from items_read((left, right), hidden)
            case _:
                assert_never(item)
