"""From GSQL text to a Script, with every syntax mistake of the file.

In: a `Source`. Out: a `Script`; or a `QueryError` with at least one diagnostic for each statement
that cannot be read. `parse_recovering` gives both the statements that can be read and the mistakes,
so that later stages can add theirs.

A file is cut into tokens (lexical), the tokens into statements (split), and each statement goes
through an LALR parser (gsql.lark) whose actions build the nodes (transform).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lark
from lark.parsers.lalr_interactive_parser import InteractiveParser

from terascope.diagnostic import Diagnostic, Mistake, QueryError, Source, Span
from terascope.files import private_cache
from terascope.syntax.ast import Literal_, Script, Statement, SyntaxNode, children, walk
from terascope.syntax.keywords import BEFORE_PARENTHESIS, CONTEXTUAL, RESERVED
from terascope.syntax.lexical import Token, TokenScan
from terascope.syntax.mistakes import Failure, explain
from terascope.syntax.split import OPENING, SCHEMA_WORDS, StatementTokens, refuse_foreign, split
from terascope.syntax.transform import QUERY_RULES, lexeme
from terascope.syntax.transform_declarations import DECLARATION_RULES
from terascope.types import INT_MAX

DEEPEST = 250
"""The deepest nesting of expressions: later stages walk them recursively."""
SHORT_LIST = 32


def parse(source: Source) -> Script:
    """The Script of a file, or all its syntax mistakes."""
    script, diagnostics = parse_recovering(source)
    if diagnostics:
        raise QueryError(diagnostics, source)
    return script


def parse_recovering(source: Source) -> tuple[Script, tuple[Diagnostic, ...]]:
    """The statements that can be read, and the mistakes in the others. No statement goes on in the
    next file.
    """
    statements: list[Statement] = []
    diagnostics: list[Diagnostic] = []
    unread: set[str] = set()
    for stretch, _ in source.stretches():
        scanned = TokenScan(source, stretch)
        diagnostics += scanned.diagnostics
        for chunk in split(scanned.tokens):
            statement, mistakes = parse_chunk(chunk, scanned, source)
            diagnostics += mistakes
            if statement is not None:
                statements.append(statement)
            else:
                unread |= set(declared_names(chunk.tokens))
    diagnostics.sort(key=lambda each: each.span)
    script = Script(tuple(statements), frozenset(unread), span=Span(0, len(source.text)))
    return script, tuple(diagnostics)


def declared_names(tokens: Sequence[Token]) -> Iterator[str]:
    """The names that a statement would have given, whatever else is wrong with it."""
    for word, name, *rest in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        follows = rest[0].kind if rest[0] is not None else ""
        named = (word.word == "QUERY" and follows == "COLON") or (
            word is tokens[0] and word.word in SCHEMA_WORDS
        )
        if named and name.kind in ("WORD", "NAME"):
            yield name.text.strip("`")
        elif word.word == "QUERY_NAME" and name.literal and isinstance(name.literal.value, str):
            yield name.literal.value


def parse_chunk(
    chunk: StatementTokens, scanned: TokenScan, source: Source
) -> tuple[Statement | None, tuple[Diagnostic, ...]]:
    """One statement. It is withheld when one of its tokens is mistaken, even if its grammar is
    right.
    """
    if not chunk.tokens:
        return None, ()
    if foreign := tuple(refuse_foreign(chunk.tokens)):
        return None, foreign
    start, end = chunk.tokens[0].start, chunk.tokens[-1].end
    known = [each for each in scanned.diagnostics if start <= each.span.start <= end]
    if any(each.code == "unterminated-string" for each in known):
        # It swallowed the rest of its line; what else seems wrong follows from that.
        return None, ()
    statement, mistakes = _run(chunk.tokens, chunk.semicolon, source)
    return (None if known else statement), (*chunk.diagnostics, *mistakes)


@cache
def grammar() -> lark.Lark:
    """The parser, built at first use. Its tables are kept on disk: to compute them takes longer
    than to parse most sets.
    """
    text = Path(__file__).with_name("gsql.lark").read_text(encoding="utf-8")
    folder = private_cache(f"grammar-{lark.__version__}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return lark.Lark(
        text,
        parser="lalr",
        lexer="basic",
        start="statement",
        keep_all_tokens=True,
        maybe_placeholders=False,
        cache=False if folder is None else str(folder / digest),
        transformer=SimpleNamespace(**QUERY_RULES, **DECLARATION_RULES),
    )


def _run(
    tokens: Sequence[Token], semicolon: Token | None, source: Source
) -> tuple[Any, tuple[Diagnostic, ...]]:
    """Feed the tokens to the parser one by one; on a mistake, say what it could have taken."""
    parser = grammar().parse_interactive("")
    index = 0
    try:
        while index < len(tokens):
            end = _literals_end(tokens, index)
            if end > index:
                parser.feed_token(lexeme("LITERALS", *tokens[index:end]))
                index = end
            else:
                parser.feed_token(lexeme(_terminal(parser, tokens, index), tokens[index]))
                index += 1
        result = parser.feed_eof()
    except Mistake as mistake:
        return None, mistake.diagnostics
    except lark.UnexpectedToken:
        expected = tuple(_accepted(tokens, upto) for upto in (index - 1, index))
        failure = Failure(tokens, index, semicolon, expected[1], expected[0], source)
        return None, (explain(failure),)
    if len(tokens) > DEEPEST and (deep := _too_deep(result)):
        return None, (deep,)
    if any(t.literal and _is_too_large(t.literal.value) for t in tokens):
        return result, tuple(_too_large(result))
    return result, ()


def _literals_end(tokens: Sequence[Token], index: int) -> int:
    """Where a long list of literals ends that begins here, behind IN and a bracket: the grammar
    need not look at each of them. Else here.
    """
    opened = (
        index >= 2 and tokens[index - 1].kind in ("LPAR", "LSQB") and tokens[index - 2].word == "IN"
    )
    if not opened:
        return index
    end = index
    while end + 1 < len(tokens) and tokens[end].literal and tokens[end + 1].kind == "COMMA":
        end += 2
    closed = end + 1 < len(tokens) and tokens[end].literal
    if not closed or tokens[end + 1].kind != OPENING[tokens[index - 1].kind]:
        return index
    return end + 1 if end - index > SHORT_LIST else index


def _terminal(parser: InteractiveParser, tokens: Sequence[Token], index: int) -> str:
    """The kind of a token here: a contextual keyword is one only where the grammar can take it."""
    token = tokens[index]
    word = token.word
    if not word or word in RESERVED:
        return word or token.kind
    if word in CONTEXTUAL and word in parser.choices():
        following = tokens[index + 1].kind if index + 1 < len(tokens) else ""
        if word not in BEFORE_PARENTHESIS or following == "LPAR":
            return word
    return "NAME"


def _accepted(tokens: Sequence[Token], count: int) -> frozenset[str]:
    """The terminals that could have followed the first `count` tokens."""
    parser = grammar().parse_interactive("")
    for index in range(max(count, 0)):
        parser.feed_token(lexeme(_terminal(parser, tokens, index), tokens[index]))
    return frozenset(parser.accepts()) - {"LITERALS"}


def _is_too_large(value: object) -> bool:
    return isinstance(value, int) and value > INT_MAX


def _too_large(root: SyntaxNode) -> Iterator[Diagnostic]:
    """Numbers above 2^63 - 1 that are no constants of an expression, such as that of LIMIT."""
    for node in walk(root):
        for value in (getattr(node, each.name) for each in fields(node)):
            if _is_too_large(value) and not isinstance(node, Literal_):
                text = f"'{value}' is too large here"
                yield Diagnostic("bad-literal", text, node.span, help=f"the largest is {INT_MAX}")


def _too_deep(root: SyntaxNode) -> Diagnostic | None:
    """A mistake if nodes nest too deeply, found without recursion."""
    pending: list[tuple[SyntaxNode, int]] = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > DEEPEST:
            message = f"this expression nests more than {DEEPEST} levels deep"
            help = "write IN (...) for a chain of OR, or split the query in two"
            return Diagnostic("too-deep", message, node.span, help=help)
        pending += ((child, depth + 1) for child in children(node))
    return None
