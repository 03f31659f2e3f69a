"""Stream languages that are not GSQL, refused by name (dissertation 2.1 describes them).

In: the tokens of one statement. Out: a diagnostic `unsupported-language` that says which language
this is and what GSQL writes instead, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from terascope.diagnostic import Diagnostic, Span
from terascope.syntax.lexical import Token

CQL_WINDOWS: Final = frozenset({"ROWS", "NOW", "UNBOUNDED", "PARTITION"})
RELATION_TO_STREAM: Final = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})
SQL_STATEMENTS: Final = frozenset({"INSERT", "CREATE", "UPDATE", "DELETE", "ALTER", "DROP"})
SET_OPERATORS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})


def refuse_foreign(tokens: Sequence[Token]) -> Iterator[Diagnostic]:
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
