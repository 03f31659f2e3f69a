"""A Script as canonical GSQL text, such that parse(print(script)) == script.

In: nodes of the Script. Out: text with upper-case keywords, aliases with AS, one clause per line.
`statement_lines` gives the lines with their places in the source, for the formatter, which puts
comments back. Long lists and conditions are broken at commas and ANDs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar, assert_never

from terascope.syntax import ast
from terascope.syntax.keywords import FIELD_PROPERTIES, RESERVED
from terascope.syntax.print_expressions import (
    AND,
    precedence,
    print_amount,
    print_expr,
    quote_name,
    quote_string,
)

__all__ = ["print_expr", "print_query", "print_script", "print_statement", "statement_lines"]

T = TypeVar("T")
Node = TypeVar("Node", bound=ast.SyntaxNode)

WIDTH: Final = 100
INDENT: Final = "    "
UNIT_WORDS: Final = {
    "ns": "ns", "us": "us", "ms": "ms", "s": "sec", "min": "min", "h": "hour", "d": "day",
}  # fmt: skip
KIND_WORDS: Final = {
    "INNER": "INNER_JOIN",
    "LEFT": "LEFT_OUTER_JOIN",
    "RIGHT": "RIGHT_OUTER_JOIN",
    "FULL": "OUTER_JOIN",
    "WATCHLIST": "WATCHLIST_JOIN",
    "FILTER": "FILTER_JOIN",
}


@dataclass(frozen=True)
class Line:
    """A printed line; `anchor` is the source offset of its content, None for a lone bracket."""

    text: str
    anchor: int | None = None


def optional(before: str, value: T | None, show: Callable[[T], str] = str) -> str:
    """A part with the words before it, or nothing."""
    return "" if value is None else before + show(value)


def listed(items: Iterable[T], show: Callable[[T], str] = str) -> str:
    return ", ".join(map(show, items))


def indented(lines: Iterable[Line]) -> list[Line]:
    return [replace(line, text=INDENT + line.text) for line in lines]


def print_script(script: ast.Script) -> str:
    """All statements, with an empty line between them."""
    return "\n".join(print_statement(statement) + "\n" for statement in script.statements)


def print_statement(statement: ast.Statement) -> str:
    """One statement, with its semicolon."""
    return "\n".join(line.text for line in statement_lines(statement))


def statement_lines(statement: ast.Statement) -> list[Line]:
    *lines, last = _lines(statement)
    return [*lines, replace(last, text=last.text + ";")]


def _lines(statement: ast.Statement) -> list[Line]:
    start = statement.span.start
    match statement:
        case ast.QueryStatement(query):
            return [*_headers(statement, statement.params), *query_lines(query)]
        case ast.WatchlistStatement():
            head = Line("WATCHLIST FIELDS {")
            return [*_headers(statement), head, *_block(statement.fields, _block_field), Line("}")]
        case ast.ProtocolStatement():
            return _protocol(statement)
        case ast.UnpackStatement(functions):
            return [Line("UNPACK_FCNS {", start), *_block(functions, _unpack_function), Line("}")]
        case ast.UdafDeclaration():
            return [Line(_udaf(statement), start)]
        case ast.ExtractorDeclaration():
            return [Line(_extractor(statement), start)]
        case _:
            assert_never(statement)


def _block(items: Iterable[Node], show: Callable[[Node], str]) -> list[Line]:
    return [Line(f"{INDENT}{show(each)};", each.span.start) for each in items]


def _headers(
    statement: ast.QueryStatement | ast.WatchlistStatement,
    params: tuple[ast.ParamDeclaration, ...] = (),
) -> Iterator[Line]:
    """`QUERY name:` where a name is all there is to say; otherwise the name goes into DEFINE."""
    start = statement.span.start
    if statement.define:
        yield Line("DEFINE {", start)
        if statement.name is not None:
            yield Line(f"{INDENT}query_name {quote_string(statement.name)};")
        yield from _block(
            statement.define, lambda each: f"{quote_name(each.key)} {quote_string(each.value)}"
        )
        yield Line("}")
    elif statement.name is not None:
        yield Line(f"QUERY {quote_name(statement.name)}:", start)
    if params:
        yield Line("PARAM {")
        yield from _block(params, lambda each: f"{quote_name(each.name)} {each.type_name}")
        yield Line("}")


# ---- queries -------------------------------------------------------------------------------------


def print_query(query: ast.Query) -> str:
    """The canonical text of a query, without a semicolon."""
    return "\n".join(line.text for line in query_lines(query))


def query_lines(query: ast.Query) -> list[Line]:
    match query:
        case ast.Select():
            return list(_select_lines(query))
        case ast.MergeQuery(fields, sources, slack):
            merged = " : ".join(map(print_expr, fields)) + optional(" SLACK ", slack)
            return [
                Line(f"MERGE {merged}", query.span.start),
                *filled("FROM", sources, _from_item),
            ]
        case ast.With():
            return _with_lines(query)
        case _:
            assert_never(query)


def _with_lines(query: ast.With) -> list[Line]:
    lines: list[Line] = []
    for table in query.tables:
        if lines:
            lines[-1] = replace(lines[-1], text=lines[-1].text + ",")
        first = "" if lines else "WITH "
        lines.append(Line(f"{first}{quote_name(table.name)} AS (", table.span.start))
        lines += [*indented(query_lines(table.query)), Line(")")]
    body = query_lines(query.body)
    if isinstance(query.body, ast.With):
        return [*lines, Line("("), *indented(body), Line(")")]
    return [*lines, *body]


def _select_lines(select: ast.Select) -> Iterator[Line]:
    first = "SELECT DISTINCT" if select.distinct else "SELECT"
    head = filled(first, select.items, _item)
    yield replace(head[0], anchor=select.span.start)
    yield from head[1:]
    yield from _from_lines(select.source)
    yield from _condition("WHERE", select.where)
    if select.group_by is not None:
        yield from filled("GROUP BY", select.group_by.items, _group_item)
    if select.every is not None:
        yield Line(f"EVERY {bare_duration(select.every)}", select.every.span.start)
    if select.supergroup:
        yield from filled("SUPERGROUP BY", select.supergroup, _item)
    yield from _condition("HAVING", select.having)
    yield from _condition("CLEANING_WHEN", select.cleaning_when)
    yield from _condition("CLEANING_BY", select.cleaning_by)
    yield from _condition("CLOSING_WHEN", select.closing_when)
    if select.order_by:
        yield from filled(
            "ORDER BY", select.order_by, lambda o: print_expr(o.expr) + " DESC" * o.descending
        )
    if select.limit is not None:
        yield Line(f"LIMIT {select.limit}")


def filled(first: str, items: Sequence[Node], show: Callable[[Node], str]) -> list[Line]:
    """`first a, b, c`, going on to an indented line where it would get too long."""
    return _broken(first, [(show(item), item.span.start) for item in items], ", ", ",")


def _condition(first: str, condition: ast.Expr | None) -> list[Line]:
    """A condition; when it is long, one line for each few of its conjuncts. An AND on the right
    stands in brackets and stays whole.
    """
    if condition is None:
        return []
    conjuncts: list[ast.Expr] = []
    rest = condition
    while isinstance(rest, ast.Binary) and rest.op == "AND":
        conjuncts.insert(0, rest.right)
        rest = rest.left
    if not conjuncts:
        return [Line(f"{first} {print_expr(condition)}", condition.span.start)]
    parts = [
        (f"({print_expr(part)})" if precedence(part) < AND else print_expr(part), part.span.start)
        for part in (rest, *conjuncts)
    ]
    return _broken(first, parts, " AND ", " AND")


def _broken(first: str, parts: Sequence[tuple[str, int]], between: str, at_end: str) -> list[Line]:
    lines: list[Line] = []
    text, anchor = f"{first} {parts[0][0]}", parts[0][1]
    for part, start in parts[1:]:
        if len(text) + len(between) + len(part) > WIDTH:
            lines.append(Line(text + at_end, anchor))
            text, anchor = INDENT + part, start
        else:
            text += between + part
    return [*lines, Line(text, anchor)]


def _item(item: ast.Item | ast.Star) -> str:
    if isinstance(item, ast.Star):
        return optional("", item.qualifier, lambda name: f"{quote_name(name)}.") + "*"
    return print_expr(item.expr) + optional(" AS ", item.alias, quote_name)


def _group_item(item: ast.GroupItem) -> str:
    if isinstance(item, ast.Item):
        return _item(item)
    sets = listed(f"({listed(items, _item)})" for items in item.sets)
    return f"GROUPING_SETS({sets})" if item.kind == "GROUPING_SETS" else f"{item.kind}{sets}"


# ---- FROM ----------------------------------------------------------------------------------------


def _from_lines(source: ast.From) -> list[Line]:
    kind = "" if source.kind is None else KIND_WORDS[source.kind] + " "
    if source.filter_field is not None and source.filter_range is not None:
        window = f"{quote_name(source.filter_field)}, {bare_duration(source.filter_range)}"
        kind = f"{kind.strip()}({window}) "
    lines = filled(f"{kind}FROM", source.items, _from_item)
    return [replace(lines[0], anchor=source.span.start), *lines[1:]]


def _from_item(item: ast.FromItem) -> str:
    match item:
        case ast.StreamRef():
            return _stream(item) + _alias_and_window(item)
        case ast.SubqueryRef(query):
            inline = " ".join(line.text.strip() for line in query_lines(query))
            return f"({inline})" + _alias_and_window(item)
        case ast.JoinRef(kind, left, right, condition, gsql):
            sql = "JOIN" if kind == "INNER" else f"{kind} OUTER JOIN"
            joined = _from_item(right)
            if isinstance(right, ast.JoinRef):
                joined = f"({joined})"
            on = "" if condition is None else f" ON {print_expr(condition)}"
            return f"{_from_item(left)} {KIND_WORDS[kind] if gsql else sql} {joined}{on}"
        case _:
            assert_never(item)


def _stream(ref: ast.StreamRef) -> str:
    name = "/".join(map(quote_name, ref.name.split("/")))
    if ref.interface is None:
        return name
    interface = quote_name(ref.interface)
    return f"[{interface}].{name}" if ref.interface_set else f"{interface}.{name}"


def _alias_and_window(item: ast.StreamRef | ast.SubqueryRef) -> str:
    window = "" if item.window is None else f" {_window(item.window)}"
    return optional(" AS ", item.alias, quote_name) + window


def _window(window: ast.Window) -> str:
    on = optional(" ON ", window.on, quote_name)
    match window:
        case ast.RangeWindow(range_, slide):
            return f"[RANGE {_duration(range_)}{optional(' SLIDE ', slide, _duration)}{on}]"
        case ast.SliceWindow(slices):
            return f"[SLICES {listed(slices, _duration)}{on}]"
        case _:
            assert_never(window)


def bare_duration(duration: ast.Duration) -> str:
    """`15 min`."""
    return print_amount(duration.amount) + optional(" ", duration.unit, lambda u: UNIT_WORDS[u])


def _duration(duration: ast.Duration) -> str:
    """`'18 sec'`, as windows have it; a number without unit needs no quotes."""
    text = bare_duration(duration)
    return text if duration.unit is None else f"'{text}'"


# ---- PROTOCOL and WATCHLIST ----------------------------------------------------------------------


def _protocol(statement: ast.ProtocolStatement) -> list[Line]:
    """GS-Lite's form when there are accessors to keep, ours otherwise."""
    fields = statement.fields
    parents = f" ({listed(statement.parents, quote_name)})" if statement.parents else ""
    head = f"{statement.kind} {quote_name(statement.name)}{parents}"
    head += _access_list(statement.unpacked_by)
    theirs = statement.unpacked_by is not None and not parents
    if not fields or theirs or any(each.accessor is not None for each in fields):
        first = Line(f"{head} {{", statement.span.start)
        return [first, *_block(fields, _block_field), Line("}")]
    lines = [
        Line(f"{INDENT}{_field(each)}{',' if each is not fields[-1] else ''}", each.span.start)
        for each in fields
    ]
    return [Line(f"{head} (", statement.span.start), *lines, Line(")")]


def _field(each: ast.FieldDeclaration) -> str:
    words = [quote_name(each.name)]
    properties = [*map(_field_property, each.properties)]
    if each.type_name is not None:
        words.append(each.type_name)
    elif properties and each.properties[0].name.upper() not in FIELD_PROPERTIES:
        properties = [f"({', '.join(properties)})"]  # or it would be taken for a type
    return " ".join(words + properties) + _access_list(each.unpacked_by)


def _block_field(each: ast.FieldDeclaration) -> str:
    text = f"{each.type_name or ''} {quote_name(each.name)}"
    text += optional(" ", each.accessor, quote_name)
    if each.properties:
        text += f" ({listed(each.properties, _field_property)})"
    return text + _access_list(each.unpacked_by)


def _access_list(each: ast.AccessList | None) -> str:
    return optional("", each, lambda some: f" [{listed(some.names, quote_name)}]")


def _unpack_function(each: ast.UnpackFunction) -> str:
    return f"{quote_name(each.name)} {quote_name(each.function)} {each.cost}"


def _field_property(each: ast.FieldProperty) -> str:
    if each.argument is None:
        return each.name
    plain = re.fullmatch(r"\d+|[^\W\d]\w*", each.argument) and each.argument.upper() not in RESERVED
    return f"{each.name}({each.argument if plain else quote_string(each.argument)})"


# ---- aggregates ----------------------------------------------------------------------------------


def _udaf(each: ast.UdafDeclaration) -> str:
    halves = ""
    if each.sub_aggregate is not None and each.super_aggregate is not None:
        halves = f" [{quote_name(each.sub_aggregate)}, {quote_name(each.super_aggregate)}]"
    declared = f"{_declared(each.name)}({listed(each.parameters)})"
    return f"{each.returns} UDAF {each.scratchpad}{halves} {declared}"


def _declared(name: str) -> str:
    """UDAF and EXTR behind another name would begin a declaration of their own."""
    return quote_name(name, always=name.upper() in ("UDAF", "EXTR"))


def _extractor(each: ast.ExtractorDeclaration) -> str:
    names = " ".join(map(_declared, (each.function, each.aggregate, each.name)))
    extra = "; " + listed(each.extra_parameters) if each.extra_parameters else ""
    return f"{each.returns} EXTR {names}({listed(each.aggregate_parameters)}{extra})"
