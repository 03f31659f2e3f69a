"""A statement the grammar cannot take, explained in the user's words.

In: where the parser stopped and what it could have taken there. Out: one `Diagnostic`: what was
expected, after what, what was found, and, where the cause can be guessed (a misspelt keyword, a
missing comma or AND), what to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from terascope.diagnostic import Diagnostic, Source, Span
from terascope.syntax.keywords import ALL, RESERVED
from terascope.syntax.lexical import SIGNS, Token
from terascope.syntax.split import CLOSING, OPENING

CLAUSES: Final = {
    "SELECT": "the select list",
    "FROM": "the FROM clause",
    "ON": "the join condition",
    "WHERE": "the WHERE condition",
    "GROUP": "the GROUP BY list",
    "SUPERGROUP": "the SUPERGROUP BY list",
    "HAVING": "the HAVING condition",
    "CLOSING_WHEN": "the CLOSING_WHEN condition",
    "CLEANING_WHEN": "the CLEANING_WHEN condition",
    "CLEANING_BY": "the CLEANING_BY condition",
    "ORDER": "the ORDER BY list",
    "MERGE": "the merge fields",
}
CONDITIONS: Final = frozenset(
    {"ON", "WHERE", "HAVING", "CLOSING_WHEN", "CLEANING_WHEN", "CLEANING_BY"}
)
EXPRESSION: Final = frozenset({"NAME", "NUMBER", "STRING", "LPAR", "MINUS"})
STATEMENT: Final = frozenset({"SELECT", "MERGE", "WITH", "PROTOCOL", "DEFINE"})
ANY_STATEMENT: Final = "a statement (SELECT, MERGE, WITH, QUERY name:, DEFINE, PROTOCOL)"
SPELLING: Final = {terminal: sign for sign, terminal in SIGNS.items() if sign != "<>"}
SHOWN: Final = {
    "NAME": "a name", "NUMBER": "a whole number", "FLOAT": "a number", "STRING": "a string",
    "LITERAL": "a constant", "$END": "the end of the statement",
}  # fmt: skip
LIKENESS: Final = 0.75


@dataclass(frozen=True)
class Failure:
    """The parser stopped at `tokens[index]` (or at the end); `expected` is what it would have
    taken.
    """

    tokens: Sequence[Token]
    index: int
    semicolon: Token | None
    expected: frozenset[str]
    expected_before: frozenset[str]
    """The terminals that it would have taken one token earlier."""
    source: Source

    @property
    def found(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def before(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index else None

    @property
    def span(self) -> Span:
        if self.found:
            return self.found.span
        if self.semicolon:
            return self.semicolon.span
        return Span(self.before.end, self.before.end) if self.before else Span(0, 0)

    @cached_property
    def surroundings(self) -> tuple[str, list[Token]]:
        """The clause that the mistake is in, and the brackets open around it."""
        clauses = [""]
        brackets: list[Token] = []
        for token in self.tokens[: self.index]:
            if token.kind in OPENING:
                brackets.append(token)
                clauses.append("")
            elif token.kind in CLOSING and brackets:
                brackets.pop()
                clauses.pop()
            elif token.word in CLAUSES or token.word in ("EVERY", "LIMIT"):
                clauses[-1] = token.word
            elif token.word in ("JOIN", "INNER_JOIN", "OUTER_JOIN"):
                clauses[-1] = "FROM"
        return clauses[-1], brackets


def explain(failure: Failure) -> Diagnostic:
    if misspelt := _misspelt_before(failure):
        return misspelt
    found = _quoted(failure.found) if failure.found else "the end of the statement"
    message = f"expected {_expected(failure)}, found {found}"
    help = _help(failure)
    return Diagnostic("syntax", message, failure.span, notes=_notes(failure), help=help)


def _misspelt_before(failure: Failure) -> Diagnostic | None:
    """`FROM TCP WEHRE x = 1`: the word was taken for a name, and the mistake only shows one token
    later.
    """
    before = failure.before
    if before is None or before.kind != "WORD" or before.word in RESERVED:
        return None
    keyword = _alike(before.word, failure.expected_before)
    if keyword is None or not _continues(keyword, failure.found):
        return None
    message = f"'{before.text}' is not a keyword of GSQL"
    help = f"did you mean {keyword}?"
    return Diagnostic("syntax", message, before.span, help=help)


def _continues(keyword: str, found: Token | None) -> bool:
    """Whether what follows would suit the keyword: BY after GROUP and ORDER, no keyword after the
    others.
    """
    if found is None:
        return False
    if keyword in ("GROUP", "ORDER", "SUPERGROUP"):
        return found.word == "BY"
    return found.word not in RESERVED or keyword in ("SELECT", "LEFT", "RIGHT", "FULL")


def _quoted(token: Token) -> str:
    return token.text if token.kind == "STRING" else f"'{token.text}'"


def _expected(failure: Failure) -> str:
    """The words for the expected part, and for the part before it."""
    expected, before = failure.expected, failure.before
    clause, brackets = failure.surroundings
    after = f" after {_quoted(before)}" if before else ""
    part = f" after {CLAUSES[clause]}" if clause in CLAUSES else after
    if expected >= STATEMENT:
        return ANY_STATEMENT
    if failure.index <= 1 and "UDAF" in expected:
        return f"{ANY_STATEMENT} or UDAF or EXTR{after}"
    if failure.expected >= EXPRESSION:
        return f"an expression{after}"
    if "SELECT" in expected:
        return f"SELECT{after}"
    if "FROM" in expected:
        return f"FROM{part}"
    for closing in ("RPAR", "RSQB", "RBRACE"):
        if closing in expected and brackets:
            return f"'{SPELLING[closing]}'{after}"
    if "$END" in expected:
        return f"';' or a further clause{part}"
    signs = {each: f"'{SPELLING[each]}'" for each in expected & SPELLING.keys()}
    names = sorted(SHOWN.get(each) or signs.get(each, each) for each in expected)
    return " or ".join(names[:6] + ["..."] * (len(names) > 6)) + after


def _notes(failure: Failure) -> tuple[str, ...]:
    _, brackets = failure.surroundings
    if not brackets or not failure.expected & {"RPAR", "RSQB", "RBRACE"}:
        return ()
    bracket = brackets[-1]
    line, column = failure.source.position(bracket.start)
    return (f"the '{bracket.text}' of line {line}, column {column} is still open",)


def _help(failure: Failure) -> str | None:
    found, expected = failure.found, failure.expected
    clause, brackets = failure.surroundings
    if found is None:
        return None
    if found.kind == "WORD" and found.word not in RESERVED:
        glued = [each for each in sorted(expected & ALL) if found.word.startswith(each)]
        if glued:  # such as `BYtime`
            return f"a blank is missing after {glued[0]}"
        if keyword := _alike(found.word, expected):
            return f"did you mean {keyword}?"
    if failure.expected >= EXPRESSION:
        return _help_for_expression(failure, found)
    if _starts_expression(found):
        if "AND" in expected and clause in CONDITIONS:
            return f"is AND or OR missing before '{found.text}'?"
        if "COMMA" in expected and clause == "FROM" and not brackets:
            return f"is a comma or JOIN missing before '{found.text}'?"
        if "COMMA" in expected and "AS" in expected:
            return f"is a comma or AS missing before '{found.text}'?"
        if "COMMA" in expected:
            return f"is a comma missing before '{found.text}'?"
    if found.word in ("SELECT", "MERGE", "WITH") and "$END" in expected:
        return f"is ';' missing before {found.text}?"
    if found.kind in CLOSING and "$END" in expected and not brackets:
        return f"no '{SPELLING[CLOSING[found.kind]]}' is open here"
    if found.word in RESERVED and expected & {"NAME"}:
        return f"to use {found.word} as a name, write `{found.text}`"
    return None


def _help_for_expression(failure: Failure, found: Token) -> str | None:
    before = failure.before
    if before and before.kind == "COMMA" and (found.word in CLAUSES or found.kind in CLOSING):
        return "remove the comma before it"
    if found.word == "SELECT" and before and before.kind == "LPAR":
        return "sub-queries stand in FROM: join with one, or name it with WITH"
    following = failure.tokens[failure.index + 1 : failure.index + 2]
    follows_a_name = any(
        token.word in ("FROM", "AS") or token.kind in ("COMMA", "RPAR", "EQ", "SLASH")
        for token in following
    )
    if found.word in RESERVED and follows_a_name:
        return f"to use {found.word} as a name, write `{found.text}`"
    return None


def _starts_expression(token: Token) -> bool:
    if token.kind == "WORD":
        return token.word not in RESERVED or token.word in ("NOT", "CASE", "NULL", "TRUE", "FALSE")
    return token.kind in {
        "NAME", "NUMBER", "FLOAT", "STRING", "LITERAL", "LPAR", "PARAMETER", "CONSTANT", "PROPERTY",
    }  # fmt: skip


def _alike(word: str, expected: frozenset[str]) -> str | None:
    """The expected keyword that this word is a slip of, if any."""
    scored = [
        (1.0 if sorted(word) == sorted(each) else SequenceMatcher(None, word, each).ratio(), each)
        for each in expected & ALL
        if each != word and len(word) > 2
    ]
    best = max(scored, default=(0.0, ""))
    return best[1] if best[0] >= LIKENESS else None
