"""From what the grammar matched to nodes of the Script: expressions, queries and FROM.

A rule of gsql.lark is a function here. It is called with everything that the rule matched, in the
order of the text: tokens, finished nodes, and parts that are not nodes of their own. So the span of
a rule runs from its first child to its last, and a rule finds its children by type or by the kind
of their token. transform_declarations.py has the rules of declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar

import lark

from terascope.diagnostic import NOWHERE, Span, mistake
from terascope.syntax import ast
from terascope.syntax.lexical import BadLiteral, Token, duration, read_duration
from terascope.types import INT_MAX, INT_MIN

T = TypeVar("T")

Children: TypeAlias = Sequence[Any]
"""Lexemes, nodes and parts, as lark hands them over."""
Rules: TypeAlias = dict[str, Callable[[Children], Any]]


class Lexeme(lark.Token):
    """A token as the parser sees it: its final kind, and the constants it stands for: one, or all
    of a list with commas between them, taken as one.
    """

    literals: tuple[ast.Literal_, ...]


def lexeme(kind: str, *tokens: Token) -> Lexeme:
    made = Lexeme(kind, tokens[0].value, start_pos=tokens[0].start, end_pos=tokens[-1].end)
    made.literals = tuple([replace(t.literal, span=t.span) for t in tokens if t.literal])
    return made


@dataclass(frozen=True)
class Matched:
    """A piece of a node that has a place in the text but no node in the Script."""

    value: Any
    span: Span = NOWHERE


def placed(rules: Rules) -> Rules:
    """The rules with results that stand where their children do."""

    def at_place(rule: Callable[[Children], Any]) -> Callable[[Children], Any]:
        def made(children: Children) -> Any:
            node = rule(children)
            # The node is new, so nobody has seen it yet; `replace` would make each node twice.
            object.__setattr__(node, "span", span_of(children))
            return node

        return made

    return {name: at_place(rule) for name, rule in rules.items()}


# ---- what a rule finds among its children --------------------------------------------------------


def span_of(children: Children) -> Span:
    head, last = children[0], children[-1]
    start = head.start_pos if isinstance(head, lark.Token) else head.span.start
    end = last.end_pos if isinstance(last, lark.Token) else last.span.end
    return Span(start or 0, end or 0)


def is_kind(child: Any, kind: str) -> bool:
    return isinstance(child, lark.Token) and child.type == kind


def has(children: Children, kind: str) -> bool:
    return any(is_kind(child, kind) for child in children)


def words(children: Children) -> list[str]:
    """All names among the tokens."""
    return [str(child) for child in children if is_kind(child, "NAME")]


def word_after(children: Children, kind: str) -> str | None:
    """The text of the token that follows the token of this kind."""
    return next((str(after) for before, after in pairwise(children) if is_kind(before, kind)), None)


def of_type(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def first(found: Sequence[T]) -> T | None:
    return found[0] if found else None


def nodes(children: Children) -> tuple[Any, ...]:
    """Everything that is not a token."""
    return tuple(child for child in children if not isinstance(child, lark.Token))


def values(children: Children) -> tuple[Any, ...]:
    """The values of the parts among the children."""
    return tuple(part.value for part in of_type(children, Matched))


# ---- expressions ---------------------------------------------------------------------------------

OPERATORS: Final[dict[str, ast.BinaryOp]] = {
    "OR": "OR", "AND": "AND", "EQ": "=", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
    "BITOR": "|", "BITXOR": "^", "BITAND": "&", "SHL": "<<", "SHR": ">>",
    "PLUS": "+", "MINUS": "-", "CONCAT": "||",
    "STAR": "*", "SLASH": "/", "PERCENT": "%", "DIV": "DIV",
}  # fmt: skip
REFERENCES: Final = {
    "PARAMETER": ast.ParameterRef,
    "CONSTANT": ast.ConstantRef,
    "PROPERTY": ast.InterfaceProperty,
}


def literal(children: Children) -> ast.Literal_:
    (token,) = children
    match token.type:
        case "NULL":
            return ast.Literal_("null", None)
        case "TRUE" | "FALSE":
            return ast.Literal_("bool", token.type == "TRUE")
        case _:
            return token.literals[0]  # type: ignore[no-any-return]


def unary(children: Children) -> ast.Expr:
    sign = children[0].type
    operand: ast.Expr = children[1]
    if sign == "PLUS":
        return operand
    if sign == "MINUS" and isinstance(operand, ast.Literal_) and operand.value == INT_MAX + 1:
        return replace(operand, value=INT_MIN)
    return ast.Unary({"MINUS": "-", "TILDE": "~"}.get(sign, "NOT"), operand)  # type: ignore[arg-type]


def in_list(children: Children) -> ast.InList:
    operand, *items = nodes(children)
    items += (each for token in of_type(children, Lexeme) for each in token.literals)
    return ast.InList(operand, tuple(items), has(children, "NOT"))


def call(children: Children) -> ast.CallExpr:
    return ast.CallExpr(
        name=str(children[0]),
        args=tuple(child for child in nodes(children) if not isinstance(child, Matched)),
        star=has(children, "STAR"),
        distinct=has(children, "DISTINCT"),
        super_=has(children, "DOLLAR"),
        strategy=first(values(children)) or "",
    )


def strategy(children: Children) -> Matched:
    """The name of a strategy behind a call."""
    _, word, name = children
    if str(word).lower() != "strategy" or not str(name):
        message = "WITH behind a call gives a strategy"
        raise mistake("syntax", message, span_of(children), "write WITH strategy 'name'")
    return Matched(str(name))


def case(children: Children) -> ast.CaseExpr:
    alone: dict[str, Any] = {
        before.type: child
        for before, child in pairwise(children)
        if isinstance(before, lark.Token) and isinstance(child, ast.SyntaxNode)
    }
    return ast.CaseExpr(alone.get("CASE"), values(children), alone.get("ELSE"))


# ---- SELECT and MERGE ----------------------------------------------------------------------------


def select(children: Children) -> ast.Select:
    start = next(i for i, child in enumerate(children) if is_kind(child, "FROM"))
    clauses: dict[str, Any] = {}
    for part in of_type(children[start:], Matched):
        word, value = part.value
        field = {"GROUP": "group_by", "ORDER": "order_by"}.get(word, word.lower())
        if field in clauses:
            called = f"{word} BY" if word in ("GROUP", "SUPERGROUP", "ORDER") else word
            message = f"this query has a second {called} clause"
            help = "write both conditions in one, with AND" if "_" not in field else None
            raise mistake("duplicate-clause", message, part.span, help)
        clauses[field] = value
    begins = start - 1 if isinstance(children[start - 1], ast.From) else start
    ends = max(i for i, child in enumerate(children) if not isinstance(child, Matched))
    written = children[begins : ends + 1]
    kind = written[0] if begins < start else ast.From(())
    sources = tuple(child for child in nodes(written) if child is not kind)
    return ast.Select(
        items=of_type(children[:start], ast.Item | ast.Star),  # type: ignore[arg-type]
        source=replace(kind, items=sources, span=span_of(written)),
        distinct=has(children[:2], "DISTINCT"),
        **clauses,
    )


def join_kind(children: Children) -> ast.From:
    """GS-Lite's word before FROM: a From still without its items."""
    length = first(of_type(children, ast.Duration))
    return ast.From((), kind_of_join(children[0].type), first(words(children)), length)


def kind_of_join(word: str) -> Any:
    """The kind of `LEFT_OUTER_JOIN`, `OUTER_JOIN`, `FILTER_JOIN`, and of the words before JOIN."""
    kind = word.removesuffix("_JOIN").removesuffix("_OUTER")
    return {"OUTER": "FULL", "JOIN": "INNER"}.get(kind, kind)


def clause(children: Children) -> Matched:
    """The first word of a clause, and what it says."""
    found = nodes(children)
    value: Any
    match word := children[0].type:
        case "GROUP":
            value = ast.GroupBy(found, span=span_of(children))
        case "SUPERGROUP" | "ORDER":
            value = found
        case "LIMIT":
            value = whole_number(children[-1])
        case _:
            value = found[0]
    return Matched((word, value))


def merge(children: Children) -> ast.MergeQuery:
    sources = tuple(child for child in nodes(children) if not isinstance(child, ast.Name))
    slack = next((whole_number(child) for child in children if is_kind(child, "NUMBER")), None)
    return ast.MergeQuery(of_type(children, ast.Name), sources, slack)


def whole_number(token: Lexeme) -> int:
    (number,) = token.literals
    assert isinstance(number.value, int)
    return number.value


# ---- FROM ----------------------------------------------------------------------------------------


def join(children: Children) -> ast.JoinRef:
    left, words_, right, *condition = children
    word = words_.value
    kind = kind_of_join(word)
    on = condition[1] if condition else None
    return ast.JoinRef(kind, left, right, on, word.endswith("_JOIN") and kind != "INNER")


def alias_and_window(children: Children) -> dict[str, Any]:
    windows = of_type(children, ast.RangeWindow | ast.SliceWindow)  # type: ignore[arg-type]
    return {"alias": first(values(children)), "window": first(windows)}


def range_window(children: Children) -> ast.RangeWindow:
    length, *slide = of_type(children, ast.Duration)
    return ast.RangeWindow(length, first(slide), word_after(children, "ON"))


def length_of_time(children: Children) -> ast.Duration:
    number, *unit = children
    try:
        if number.type == "STRING":
            return read_duration(str(number))
        return duration(number.literals[0].value, str(unit[0]) if unit else None)
    except BadLiteral as bad:
        raise mistake("bad-literal", str(bad), span_of(children), bad.help) from None


# ---- all of them ---------------------------------------------------------------------------------

BRACKETS: Final[Rules] = {"parenthesised": lambda found: nodes(found)[0]}
"""Brackets leave no trace in the tree; the printer sets them where precedence asks for them."""

QUERY_RULES: Final = BRACKETS | placed(
    {
        "name": lambda found: ast.Name(words(found)[-1], first(words(found)[:-1])),
        "literal": literal,
        "reference": lambda found: REFERENCES[found[0].type](str(found[0])),
        "unary": unary,
        "binary": lambda found: ast.Binary(OPERATORS[found[1].type], found[0], found[2]),
        "between": lambda found: ast.Between(found[0], found[-3], found[-1], has(found, "NOT")),
        "like": lambda found: ast.Like(found[0], found[-1], has(found, "NOT")),
        "in_list": in_list,
        "is_null": lambda found: ast.IsNull(found[0], has(found, "NOT")),
        "call": call,
        "strategy": strategy,
        "case": case,
        "case_branch": lambda found: Matched(nodes(found)),
        "cast": lambda found: ast.CastExpr(nodes(found)[0], *values(found)),
        "type_name": lambda found: Matched("".join(map(str, found)).upper()),
        "select": select,
        "join_kind": join_kind,
        "clause": clause,
        "merge": merge,
        "with_query": lambda found: ast.With(nodes(found)[:-1], found[-1]),
        "common_table": lambda found: ast.CommonTable(str(found[0]), found[3]),
        "item": lambda found: ast.Item(found[0], word_after(found, "AS")),
        "star": lambda found: ast.Star(first(words(found))),
        "grouping": lambda found: ast.GroupingFunction(found[0].type, values(found)),
        "group_set": lambda found: Matched(of_type(found, ast.Item)),
        "order_item": lambda found: ast.OrderItem(found[0], has(found, "DESC")),
        "join": join,
        "join_word": lambda found: Matched(found[0].type),
        "stream_source": lambda found: replace(found[0], **alias_and_window(found)),
        "subquery_source": lambda found: ast.SubqueryRef(found[1], **alias_and_window(found)),
        "alias": lambda found: Matched(str(found[-1])),
        "plain_stream": lambda found: ast.StreamRef("/".join(words(found))),
        "interface_stream": lambda found: ast.StreamRef(str(found[2]), str(found[0])),
        "set_stream": lambda found: ast.StreamRef(str(found[4]), str(found[1]), True),
        "range_window": range_window,
        "slice_window": lambda found: ast.SliceWindow(
            of_type(found, ast.Duration), word_after(found, "ON")
        ),
        "duration": length_of_time,
    }
)
