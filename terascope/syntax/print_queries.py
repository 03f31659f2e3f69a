"""Queries as canonical GSQL, one clause per line.

In: a query. Out: `Line`s. Each remembers where in the source its content began, so that comments
can find their way back to it; long lists and conditions are broken at commas and ANDs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar, assert_never

from terascope.syntax import ast
from terascope.syntax.print_expressions import AND, precedence, print_amount, print_expr, quote_name

T = TypeVar("T", bound=ast.SyntaxNode)

WIDTH: Final = 100
INDENT: Final = "    "
UNIT_WORDS: Final = {
    "ns": "ns", "us": "us", "ms": "ms", "s": "sec", "min": "min", "h": "hour", "d": "day",
}  # fmt: skip
KIND_WORDS: Final = {
    None: "",
    "INNER": "INNER_JOIN ",
    "LEFT": "LEFT_OUTER_JOIN ",
    "RIGHT": "RIGHT_OUTER_JOIN ",
    "FULL": "OUTER_JOIN ",
    "WATCHLIST": "WATCHLIST_JOIN ",
    "FILTER": "FILTER_JOIN",
}
JOIN_WORDS: Final = {
    "INNER": "JOIN",
    "LEFT": "LEFT OUTER JOIN",
    "RIGHT": "RIGHT OUTER JOIN",
    "FULL": "FULL OUTER JOIN",
}


@dataclass(frozen=True)
class Line:
    """A printed line; `anchor` is the source offset of its content, None for a lone bracket."""

    text: str
    anchor: int | None = None


def print_query(query: ast.Query) -> str:
    """The canonical text of a query, without a semicolon."""
    return "\n".join(line.text for line in query_lines(query))


def inline(query: ast.Query) -> str:
    """The same on one line, for sub-queries in FROM."""
    return " ".join(line.text.strip() for line in query_lines(query))


def query_lines(query: ast.Query) -> list[Line]:
    match query:
        case ast.Select():
            return list(_select_lines(query))
        case ast.MergeQuery():
            return _merge_lines(query)
        case ast.With():
            return _with_lines(query)
        case _:
            assert_never(query)


def indented(lines: Iterable[Line]) -> list[Line]:
    return [replace(line, text=INDENT + line.text) for line in lines]


def _with_lines(query: ast.With) -> list[Line]:
    lines: list[Line] = []
    for index, table in enumerate(query.tables):
        if index:
            lines[-1] = replace(lines[-1], text=lines[-1].text + ",")
        lines.append(
            Line(f"{'' if index else 'WITH '}{quote_name(table.name)} AS (", table.span.start)
        )
        lines += indented(query_lines(table.query))
        lines.append(Line(")"))
    body = query_lines(query.body)
    if isinstance(query.body, ast.With):
        return [*lines, Line("("), *indented(body), Line(")")]
    return [*lines, *body]


def _merge_lines(merge: ast.MergeQuery) -> list[Line]:
    fields = " : ".join(map(print_expr, merge.fields))
    slack = "" if merge.slack is None else f" SLACK {merge.slack}"
    return [
        Line(f"MERGE {fields}{slack}", merge.span.start),
        *filled("FROM", merge.sources, _from_item),
    ]


def _select_lines(select: ast.Select) -> Iterable[Line]:
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
        yield from filled("ORDER BY", select.order_by, _order_item)
    if select.limit is not None:
        yield Line(f"LIMIT {select.limit}")


def filled(first: str, items: Sequence[T], show: Callable[[T], str]) -> list[Line]:
    """`first a, b, c`, going on to an indented line where it would get too long."""
    return _broken(first, [(show(item), item.span.start) for item in items], ", ", ",")


def _condition(first: str, condition: ast.Expr | None) -> list[Line]:
    """A condition; when it is long, one line for each few of its conjuncts."""
    if condition is None:
        return []
    parts = [
        (f"({print_expr(part)})" if precedence(part) < AND else print_expr(part), part.span.start)
        for part in _conjuncts(condition)
    ]
    if len(parts) == 1:
        return [Line(f"{first} {print_expr(condition)}", condition.span.start)]
    return _broken(first, parts, " AND ", " AND")


def _conjuncts(expr: ast.Expr) -> list[ast.Expr]:
    """The parts of `a AND b AND c`; an AND on the right stands in brackets and stays whole."""
    parts: list[ast.Expr] = []
    while isinstance(expr, ast.Binary) and expr.op == "AND":
        parts.append(expr.right)
        expr = expr.left
    return [expr, *reversed(parts)]


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


# ---- items ---------------------------------------------------------------------------------------


def _item(item: ast.Item | ast.Star) -> str:
    if isinstance(item, ast.Star):
        return "*" if item.qualifier is None else f"{quote_name(item.qualifier)}.*"
    text = print_expr(item.expr)
    return text if item.alias is None else f"{text} AS {quote_name(item.alias)}"


def _group_item(item: ast.GroupItem) -> str:
    if isinstance(item, ast.Item):
        return _item(item)
    return _grouping(item)


def _grouping(grouping: ast.GroupingFunction) -> str:
    sets = [f"({', '.join(map(_item, items))})" for items in grouping.sets]
    if grouping.kind == "GROUPING_SETS":
        return f"GROUPING_SETS({', '.join(sets)})"
    return f"{grouping.kind}{sets[0]}"


def _order_item(item: ast.OrderItem) -> str:
    return print_expr(item.expr) + (" DESC" if item.descending else "")


# ---- FROM ----------------------------------------------------------------------------------------


def _from_lines(source: ast.From) -> list[Line]:
    kind = KIND_WORDS[source.kind]
    if source.filter_field is not None and source.filter_range is not None:
        kind += f"({quote_name(source.filter_field)}, {bare_duration(source.filter_range)}) "
    lines = filled(f"{kind}FROM", source.items, _from_item)
    return [replace(lines[0], anchor=source.span.start), *lines[1:]]


def _from_item(item: ast.FromItem) -> str:
    match item:
        case ast.StreamRef():
            return _stream(item) + _alias_and_window(item)
        case ast.SubqueryRef(query):
            return f"({inline(query)})" + _alias_and_window(item)
        case ast.JoinRef(kind, left, right, condition, gsql):
            joined = (
                f"({_from_item(right)})" if isinstance(right, ast.JoinRef) else _from_item(right)
            )
            on = "" if condition is None else f" ON {print_expr(condition)}"
            word = KIND_WORDS[kind].strip() if gsql else JOIN_WORDS[kind]
            return f"{_from_item(left)} {word} {joined}{on}"
        case _:
            assert_never(item)


def _stream(ref: ast.StreamRef) -> str:
    name = "/".join(map(quote_name, ref.name.split("/")))
    if ref.interface is None:
        return name
    interface = quote_name(ref.interface)
    return f"[{interface}].{name}" if ref.interface_set else f"{interface}.{name}"


def _alias_and_window(item: ast.StreamRef | ast.SubqueryRef) -> str:
    alias = "" if item.alias is None else f" AS {quote_name(item.alias)}"
    window = "" if item.window is None else f" {print_window(item.window)}"
    return alias + window


def print_window(window: ast.Window) -> str:
    on = "" if window.on is None else f" ON {quote_name(window.on)}"
    match window:
        case ast.RangeWindow(range_, slide):
            sliding = "" if slide is None else f" SLIDE {print_duration(slide)}"
            return f"[RANGE {print_duration(range_)}{sliding}{on}]"
        case ast.SliceWindow(slices):
            return f"[SLICES {', '.join(map(print_duration, slices))}{on}]"
        case _:
            assert_never(window)


def bare_duration(duration: ast.Duration) -> str:
    """`15 min`."""
    amount = print_amount(duration.amount)
    return amount if duration.unit is None else f"{amount} {UNIT_WORDS[duration.unit]}"


def print_duration(duration: ast.Duration) -> str:
    """`'18 sec'`, as windows have it; a number without unit needs no quotes."""
    text = bare_duration(duration)
    return text if duration.unit is None else f"'{text}'"
