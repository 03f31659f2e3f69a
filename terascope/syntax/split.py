"""Where one statement ends and the next begins.

In: the tokens of a file. Out: a list of `StatementTokens`. A mistake stays within its
chunk, so that the other statements are still read. A statement ends at `;`, and before `QUERY
name:`, `DEFINE {`, `PARAM {`, `PROTOCOL name`, `STREAM name`, `UNPACK_FCNS {`, a UDAF or EXTR
declaration, or a further SELECT that cannot belong to it. Statements of stream languages that are
not GSQL (dissertation 2.1 describes them) are refused by name, with what GSQL writes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from terascope.diagnostic import Diagnostic, Span
from terascope.syntax.keywords import ALL
from terascope.syntax.lexical import Token

QUERY_WORDS: Final = ("SELECT", "MERGE", "WITH")
SCHEMA_WORDS: Final = ("PROTOCOL", "STREAM")
BODY_WORDS: Final = frozenset(
    {*QUERY_WORDS, *SCHEMA_WORDS, "UNPACK_FCNS", "WATCHLIST", "UDAF", "EXTR"}
)
OPENING: Final = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
CLOSING: Final = {closing: opening for opening, closing in OPENING.items()}
CQL_WINDOWS: Final = frozenset({"ROWS", "NOW", "UNBOUNDED", "PARTITION"})
RELATION_TO_STREAM: Final = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})
SQL_STATEMENTS: Final = frozenset({"INSERT", "CREATE", "UPDATE", "DELETE", "ALTER", "DROP"})
SET_OPERATORS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})


@dataclass(frozen=True)
class StatementTokens:
    """The tokens of one statement, without its semicolon."""

    tokens: tuple[Token, ...]
    semicolon: Token | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def split(tokens: Sequence[Token]) -> list[StatementTokens]:
    """Cut a file into statements; an empty one (`;;`) is none."""
    chunks: list[StatementTokens] = []
    start = 0
    current = _State()

    def end(index: int, semicolon: Token | None = None, noted: tuple[Diagnostic, ...] = ()) -> None:
        nonlocal start, current
        if index > start or noted:
            chunks.append(StatementTokens(tuple(tokens[start:index]), semicolon, noted))
        start = index if semicolon is None else index + 1
        current = _State()

    for index, token in enumerate(tokens):
        if token.kind == "SEMICOLON" and not current.keeps_semicolon:
            end(index, token)
            continue
        if current.started and _starts_statement(tokens, index, current):
            end(index)
        elif current.complete_before(token):
            missing = Diagnostic(
                "syntax",
                f"expected ';' before a further {token.text}",
                token.span,
                help=f"end the statement before {token.word} with ';'",
            )
            end(index, noted=(missing,))
        current.take(token)
    end(len(tokens))
    return chunks


class _State:
    """The part of a statement that was seen so far."""

    def __init__(self) -> None:
        self.started = False
        self.first_body: str | None = None
        self.named = False
        self.open: list[str] = []
        self.semicolons_inside = 0
        """The depth of brackets at which a list opened that may hold semicolons; or 0."""
        self.last_word = ""
        self.awaits_parameters = False
        """A UDAF or EXTR declaration without its list of parameters yet: all words are names."""

    @property
    def keeps_semicolon(self) -> bool:
        return "LBRACE" in self.open or 0 < self.semicolons_inside <= len(self.open)

    def take(self, token: Token) -> None:
        self.started = True
        if token.kind in OPENING:
            self.open.append(token.kind)
            declares = self.first_body in ("UDAF", "EXTR")
            if token.kind == "LPAR" and (self.last_word == "FOR" or declares):
                self.semicolons_inside = self.semicolons_inside or len(self.open)
                self.awaits_parameters = False
        elif token.kind in CLOSING:
            self.close(CLOSING[token.kind])
        elif token.word == "QUERY" and not self.first_body:
            self.named = True
        elif self.last_word == "QUERY" and self.named and not self.first_body:
            pass  # the query's name, whatever word it is
        elif token.word in BODY_WORDS and self.first_body is None:
            self.body(token.word)
        self.last_word = token.word

    def body(self, word: str) -> None:
        if "LBRACE" in self.open and word in QUERY_WORDS:
            self.open.clear()  # a DEFINE block that was never closed
        if not self.open or word in ("SELECT", "MERGE"):
            self.first_body = word
            self.awaits_parameters = word in ("UDAF", "EXTR")

    def close(self, opening: str) -> None:
        while self.open and self.open.pop() != opening:
            pass
        if len(self.open) < self.semicolons_inside:
            self.semicolons_inside = 0

    def complete_before(self, token: Token) -> bool:
        """Whether a SELECT here cannot belong to the statement: it has its own, and no bracket is
        open.
        """
        return (
            token.word in ("SELECT", "MERGE")
            and self.first_body in ("SELECT", "MERGE", *SCHEMA_WORDS, "UNPACK_FCNS", "WATCHLIST")
            and not self.open
            and self.last_word not in (*SET_OPERATORS, "ALL")
        )


def _starts_statement(tokens: Sequence[Token], index: int, state: _State) -> bool:
    following = [*tokens[index + 1 : index + 5]]
    kinds = [token.kind for token in following]
    words = [token.word for token in following]
    match tokens[index].word:
        case "PROTOCOL" | "STREAM" if state.awaits_parameters:
            return False
        case "QUERY" if kinds[:2] in (["WORD", "COLON"], ["NAME", "COLON"]):
            return bool(state.first_body) or state.named
        case "DEFINE" | "PARAM" if kinds[:1] == ["LBRACE"]:
            return bool(state.first_body) and state.last_word not in SCHEMA_WORDS
        case "PROTOCOL" | "STREAM" if _is_name(following, 0) and kinds[1:2] == ["LSQB"]:
            return state.first_body not in QUERY_WORDS  # FROM stream s [RANGE ...]
        case "PROTOCOL" | "STREAM" if _is_name(following, 0):
            return kinds[1:2] in (["LPAR"], ["LBRACE"])
        case "UNPACK_FCNS" if kinds[:1] == ["LBRACE"]:
            return state.last_word not in SCHEMA_WORDS
        case "":
            return False
        case "SELECT" | "MERGE" | "WITH" if state.first_body in ("UDAF", "EXTR"):
            return True  # paper 1 prints its declarations without semicolons
        case _:
            declares = words[:1] in (["UDAF"], ["EXTR"]) and _is_name(following, 1)
            sized = kinds[:3] == ["LPAR", "NUMBER", "RPAR"] and words[3:] in (["UDAF"], ["EXTR"])
            return (declares or sized) and not state.open


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    """Whether this is a name and not a word of the grammar."""
    if index >= len(tokens):
        return False
    token = tokens[index]
    return token.kind == "NAME" or (token.kind == "WORD" and token.word not in ALL)


# ---- other languages -----------------------------------------------------------------------------


def refuse_foreign(tokens: Sequence[Token]) -> Iterator[Diagnostic]:
    """Find words of other stream languages in a statement."""
    if tokens and tokens[0].word in SQL_STATEMENTS and tokens[1:2] and tokens[1].kind == "WORD":
        yield _refusal(
            f"{tokens[0].word} is SQL, not GSQL: a query set only reads streams",
            tokens[0].span,
            "write the query as SELECT; where its rows go is said outside the query",
        )
        return
    clause = ""
    for index, token in enumerate(tokens):
        before = tokens[index - 1].word if index else ""
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.word in ("SELECT", "FROM", "WHERE", "GROUP", "HAVING"):
            clause = token.word
        elif after is None:
            continue
        elif token.word in RELATION_TO_STREAM and (
            after.kind == "LPAR" or (before == "SELECT" and _is_item(after))
        ):
            yield _refusal(
                f"{token.text} is CQL, not GSQL: every GSQL query already gives a stream",
                token.span,
                f"leave {token.text} out and select its arguments",
            )
        elif token.kind == "LSQB" and clause == "FROM" and after.word in CQL_WINDOWS:
            kinds = [each.kind for each in tokens[index : index + 4]]
            names_a_set = kinds == ["LSQB", "WORD", "RSQB", "DOT"]
            if after.word == "ROWS" or not names_a_set:
                closing = next((each for each in tokens[index:] if each.kind == "RSQB"), token)
                yield _refusal(
                    f"[{after.text} ...] is a CQL window, not GSQL",
                    token.span.to(closing.span),
                    "GSQL windows are lengths of time: [RANGE '18 sec' SLIDE '15 sec']",
                )
        elif token.word == "FOR" and after.kind == "LPAR":
            yield _refusal(
                "a for-loop over windows is StreaQuel, not GSQL",
                Span(token.start, tokens[-1].end),
                "write a window after the stream: [RANGE '18 sec' SLIDE '15 sec']",
            )
            return
        elif token.word in SET_OPERATORS and after.word in ("SELECT", "ALL", "DISTINCT"):
            yield _refusal(
                f"{token.word} is SQL, not GSQL",
                token.span,
                "MERGE a.ts : b.ts FROM a, b is the ordered union of two streams",
            )


def _is_item(token: Token) -> bool:
    """Whether a select list starts here, so that the word before it is no column."""
    return token.kind == "STAR" or (token.kind == "WORD" and token.word not in ("FROM", "AS"))


def _refusal(message: str, span: Span, help_: str) -> Diagnostic:
    return Diagnostic("unsupported-language", message, span, help=help_)
