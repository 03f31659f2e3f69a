"""What the grammar's rules are handed: tokens, finished nodes, and parts that are not nodes of
their own.

Each rule gets the list of everything it matched, in the order of the text. So the span of a rule
runs from its first child to its last, and a rule finds its children by type or by the kind of their
token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, TypeAlias, TypeVar

import lark

from terascope.diagnostic import Mistake, Span, mistake
from terascope.syntax.ast import Literal_, SyntaxNode
from terascope.syntax.lexical import Token
from terascope.syntax.literals import BadLiteral

T = TypeVar("T")

Children: TypeAlias = Sequence[Any]
"""Lexemes, Nodes and Parts, as lark hands them over."""


class Lexeme(lark.Token):
    """A token as the parser sees it: its final kind, and the constant it stands for."""

    literal: Literal_ | None


def lexeme(kind: str, token: Token) -> Lexeme:
    made = Lexeme(kind, token.value, start_pos=token.start, end_pos=token.end)
    made.literal = token.literal
    return made


class LexemeList(lark.Token):
    """Literals with commas between them, taken as one."""

    literals: tuple[Literal_, ...]


def lexeme_list(tokens: Sequence[Token]) -> LexemeList:
    """The literals among some tokens; all others are commas."""
    made = LexemeList("LITERALS", "", start_pos=tokens[0].start, end_pos=tokens[-1].end)
    made.literals = tuple(
        replace(token.literal, span=Span(token.start, token.end))
        for token in tokens
        if token.literal is not None
    )
    return made


@dataclass(frozen=True)
class Matched(Generic[T]):
    """A piece of a node that has a place in the text but no node in the Script."""

    value: T
    span: Span


def bad_literal(bad: BadLiteral, span: Span) -> Mistake:
    return mistake("bad-literal", str(bad), span, bad.help)


def place(child: Any) -> Span:
    if isinstance(child, lark.Token):
        return Span(child.start_pos or 0, child.end_pos or 0)
    assert isinstance(child, SyntaxNode | Matched)
    return child.span


def span_of(children: Children) -> Span:
    return place(children[0]).to(place(children[-1]))


def has(children: Children, kind: str) -> bool:
    return any(isinstance(child, lark.Token) and child.type == kind for child in children)


def words(children: Children, kind: str = "NAME") -> list[str]:
    """The text of the tokens of one kind."""
    return [
        str(child) for child in children if isinstance(child, lark.Token) and child.type == kind
    ]


def word_after(children: Children, kind: str) -> str | None:
    """The text of the token that follows the token of this kind."""
    for before, after in pairwise(children):
        if isinstance(before, lark.Token) and before.type == kind:
            return str(after)
    return None


def of_type(children: Children, kind: type[T]) -> list[T]:
    return [child for child in children if isinstance(child, kind)]


def nodes(children: Children) -> list[Any]:
    """Everything that is not a token."""
    return [child for child in children if not isinstance(child, lark.Token)]
