"""From matched rules to SELECT, MERGE, WITH and what stands in FROM. One method per rule of
gsql.lark.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from terascope.diagnostic import mistake
from terascope.syntax import ast
from terascope.syntax.literals import BadLiteral, duration, read_duration
from terascope.syntax.parts import (
    Children,
    Lexeme,
    Matched,
    bad_literal,
    has,
    nodes,
    of_type,
    span_of,
    word_after,
    words,
)

INFIX_KINDS: Final[dict[str, ast.JoinKind]] = {
    "LEFT": "LEFT",
    "RIGHT": "RIGHT",
    "FULL": "FULL",
    "OUTER": "FULL",
    "INNER": "INNER",
    "JOIN": "INNER",
    "INNER_JOIN": "INNER",
    "OUTER_JOIN": "FULL",
    "LEFT_OUTER_JOIN": "LEFT",
    "RIGHT_OUTER_JOIN": "RIGHT",
    "FULL_OUTER_JOIN": "FULL",
}
KINDS_BEFORE_FROM: Final[dict[str, ast.FromKind]] = {
    "INNER_JOIN": "INNER",
    "OUTER_JOIN": "FULL",
    "LEFT_OUTER_JOIN": "LEFT",
    "RIGHT_OUTER_JOIN": "RIGHT",
    "FULL_OUTER_JOIN": "FULL",
    "WATCHLIST_JOIN": "WATCHLIST",
    "FILTER_JOIN": "FILTER",
}
CLAUSES: Final = {
    "WHERE": ("where", "WHERE"),
    "GROUP": ("group_by", "GROUP BY"),
    "EVERY": ("every", "EVERY"),
    "SUPERGROUP": ("supergroup", "SUPERGROUP BY"),
    "HAVING": ("having", "HAVING"),
    "CLEANING_WHEN": ("cleaning_when", "CLEANING_WHEN"),
    "CLEANING_BY": ("cleaning_by", "CLEANING_BY"),
    "CLOSING_WHEN": ("closing_when", "CLOSING_WHEN"),
    "ORDER": ("order_by", "ORDER BY"),
    "LIMIT": ("limit", "LIMIT"),
}
"""The first word of a clause, the field of Select that holds it, and how it is called in messages.
"""


class QueryRules:
    # ---- SELECT, MERGE, WITH

    def select(self, children: Children) -> ast.Select:
        start = next(i for i, child in enumerate(children) if getattr(child, "type", "") == "FROM")
        clauses: dict[str, Any] = {}
        for part in of_type(children[start:], Matched):
            field, value = part.value
            if field in clauses:
                called = next(text for key, text in CLAUSES.values() if key == field)
                raise mistake(
                    "duplicate-clause",
                    f"this query has a second {called} clause",
                    part.span,
                    "write both conditions in one, with AND" if "_" not in field else None,
                )
            clauses[field] = value
        first = start - 1 if isinstance(children[start - 1], ast.From) else start
        last = max(i for i, child in enumerate(children) if not isinstance(child, Matched))
        return ast.Select(
            items=tuple(of_type(children[:start], (ast.Item, ast.Star))),  # type: ignore[arg-type]
            source=self.whole_from(children[first : last + 1]),
            distinct=has(children[:2], "DISTINCT"),
            span=span_of(children),
            **clauses,
        )

    def whole_from(self, children: Children) -> ast.From:
        kind = children[0] if isinstance(children[0], ast.From) else ast.From(())
        items = [child for child in nodes(children) if not isinstance(child, ast.From)]
        return replace(kind, items=tuple(items), span=span_of(children))

    def join_kind(self, children: Children) -> ast.From:
        """GS-Lite's word before FROM: a From still without its items."""
        durations = of_type(children, ast.Duration)
        fields = words(children)
        return ast.From(
            (),
            KINDS_BEFORE_FROM[children[0].type],
            filter_field=fields[0] if fields else None,
            filter_range=durations[0] if durations else None,
            span=span_of(children),
        )

    def clause(self, children: Children) -> Matched[tuple[str, Any]]:
        field, _ = CLAUSES[children[0].type]
        span = span_of(children)
        found = nodes(children)
        value: Any
        match field:
            case "group_by":
                value = ast.GroupBy(tuple(found), span=span)
            case "supergroup" | "order_by":
                value = tuple(found)
            case "limit":
                value = whole_number(children[-1])
            case _:
                value = found[0]
        return Matched((field, value), span)

    def merge(self, children: Children) -> ast.MergeQuery:
        sources = [child for child in nodes(children) if not isinstance(child, ast.Name)]
        slack = next((child for child in of_type(children, Lexeme) if child.type == "NUMBER"), None)
        return ast.MergeQuery(
            fields=tuple(of_type(children, ast.Name)),
            sources=tuple(sources),
            slack=None if slack is None else whole_number(slack),
            span=span_of(children),
        )

    def with_query(self, children: Children) -> ast.With:
        *tables, body = nodes(children)
        return ast.With(tuple(tables), body, span=span_of(children))

    def common_table(self, children: Children) -> ast.CommonTable:
        return ast.CommonTable(str(children[0]), children[3], span=span_of(children))

    # ---- the items of lists

    def item(self, children: Children) -> ast.Item:
        return ast.Item(children[0], word_after(children, "AS"), span=span_of(children))

    def star(self, children: Children) -> ast.Star:
        qualifier = words(children)
        return ast.Star(qualifier[0] if qualifier else None, span=span_of(children))

    def grouping(self, children: Children) -> ast.GroupingFunction:
        sets = tuple(part.value for part in of_type(children, Matched))
        return ast.GroupingFunction(children[0].type, sets, span=span_of(children))

    def group_set(self, children: Children) -> Matched[tuple[ast.Item, ...]]:
        return Matched(tuple(of_type(children, ast.Item)), span_of(children))

    def order_item(self, children: Children) -> ast.OrderItem:
        return ast.OrderItem(children[0], has(children, "DESC"), span=span_of(children))

    # ---- FROM

    def join(self, children: Children) -> ast.JoinRef:
        left, word, right, *condition = children
        kind, gsql = word.value
        on = condition[1] if condition else None
        return ast.JoinRef(kind, left, right, on, gsql, span=span_of(children))

    def join_word(self, children: Children) -> Matched[tuple[ast.JoinKind, bool]]:
        word = children[0].type
        kind = INFIX_KINDS[word]
        return Matched((kind, word.endswith("_JOIN") and kind != "INNER"), span_of(children))

    def stream_source(self, children: Children) -> ast.FromItem:
        stream: ast.StreamRef = children[0]
        return replace(stream, **alias_and_window(children[1:]), span=span_of(children))

    def subquery_source(self, children: Children) -> ast.FromItem:
        return ast.SubqueryRef(
            children[1], **alias_and_window(children[3:]), span=span_of(children)
        )

    def alias(self, children: Children) -> Matched[str]:
        return Matched(str(children[-1]), span_of(children))

    def plain_stream(self, children: Children) -> ast.StreamRef:
        return ast.StreamRef("/".join(words(children)), span=span_of(children))

    def interface_stream(self, children: Children) -> ast.StreamRef:
        interface, name = words(children)
        return ast.StreamRef(name, interface, span=span_of(children))

    def set_stream(self, children: Children) -> ast.StreamRef:
        interfaces, name = words(children)
        return ast.StreamRef(name, interfaces, interface_set=True, span=span_of(children))

    # ---- windows

    def range_window(self, children: Children) -> ast.RangeWindow:
        range_, *slide = of_type(children, ast.Duration)
        on = word_after(children, "ON")
        return ast.RangeWindow(range_, slide[0] if slide else None, on, span=span_of(children))

    def slice_window(self, children: Children) -> ast.SliceWindow:
        slices = tuple(of_type(children, ast.Duration))
        return ast.SliceWindow(slices, word_after(children, "ON"), span=span_of(children))

    def duration(self, children: Children) -> ast.Duration:
        number, *unit = children
        span = span_of(children)
        try:
            if number.type == "STRING":
                length = read_duration(str(number))
            else:
                assert number.literal is not None
                length = duration(number.literal.value, str(unit[0]) if unit else None)
        except BadLiteral as bad:
            raise bad_literal(bad, span) from None
        return replace(length, span=span)


def alias_and_window(children: Children) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for child in children:
        if isinstance(child, Matched):
            found["alias"] = child.value
        else:
            found["window"] = child
    return found


def whole_number(token: Lexeme) -> int:
    assert token.literal is not None
    assert isinstance(token.literal.value, int)
    return token.literal.value
