"""One SQL text for all engines: the words in which they differ are written as calls in capitals.

    SELECT DIV(time, 60) AS tb, BIGINT(SUM(len)) AS bytes FROM packets WHERE STARTS(payload, 'GET ')

In: such a text and the name of an engine. Out: the engine's own SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DIALECTS: Mapping[str, Mapping[str, str]] = {
    "duckdb": {
        "DIV": "(({0}) // ({1}))",
        "BITAND": "(({0}) & ({1}))",
        "BITOR": "bit_or({0})",
        "BIGINT": "CAST({0} AS BIGINT)",
        "STARTS": "starts_with({0}, {1})",
        "CONTAINS": "contains({0}, {1})",
        "MATCHES": "regexp_matches({0}, {1})",
        "GROUP1": "regexp_extract({0}, {1}, 1)",
    },
    "spark": {
        "DIV": "(({0}) DIV ({1}))",
        "BITAND": "(({0}) & ({1}))",
        "BITOR": "bit_or({0})",
        "BIGINT": "CAST({0} AS BIGINT)",
        "STARTS": "startswith({0}, {1})",
        "CONTAINS": "contains({0}, {1})",
        "MATCHES": "({0} RLIKE {1})",
        "GROUP1": "regexp_extract({0}, {1}, 1)",
    },
    "polars": {
        "DIV": "(({0}) // ({1}))",
        "BITAND": "(({0}) & ({1}))",
        # Its SQL has no such aggregate; this is one for the eight bits of the flags.
        "BITOR": "(" + " + ".join(f"MAX({{0}} & {1 << bit})" for bit in range(8)) + ")",
        "BIGINT": "CAST({0} AS BIGINT)",
        "STARTS": "STARTS_WITH({0}, {1})",
        "CONTAINS": "({0} LIKE '%{bare[1]}%')",
        "MATCHES": "REGEXP_LIKE({0}, {1})",
        "GROUP1": "REGEXP_REPLACE({0}, '(?s)^.*?{bare[1]}.*$', '\\1')",
    },
    "clickhouse": {
        "DIV": "intDiv({0}, {1})",
        "BITAND": "bitAnd({0}, {1})",
        "BITOR": "groupBitOr({0})",
        "BIGINT": "toInt64({0})",
        "STARTS": "startsWith({0}, {1})",
        "CONTAINS": "(position({0}, {1}) > 0)",
        "MATCHES": "match({0}, {1})",
        "GROUP1": "extract({0}, {1})",
    },
}
WORD = re.compile(r"\b(DIV|BITAND|BITOR|BIGINT|STARTS|CONTAINS|MATCHES|GROUP1)\(")


class NotInDialect(Exception):
    """An engine has no such word."""


def translate(sql: str, dialect: str) -> str:
    """The SQL of one engine.

    Raises:
        NotInDialect: it cannot say that.
    """
    words = DIALECTS[dialect]
    found = WORD.search(sql)
    if found is None:
        return sql
    arguments, end = call_arguments(sql, found.end())
    name = found.group(1)
    if name not in words:
        raise NotInDialect(f"{dialect} has no {name}")
    inside = [translate(argument, dialect) for argument in arguments]
    called = words[name].format(*inside, bare=[text.strip("'") for text in inside])
    return sql[: found.start()] + called + translate(sql[end:], dialect)


def call_arguments(sql: str, start: int) -> tuple[list[str], int]:
    """The arguments of a call whose bracket opens before `start`, and where it ends."""
    depth, quoted, begin = 1, False, start
    found: list[str] = []
    for at in range(start, len(sql)):
        letter = sql[at]
        if letter == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                return [*found, sql[begin:at].strip()], at + 1
        elif letter == "," and depth == 1:
            found.append(sql[begin:at].strip())
            begin = at + 1
    raise ValueError(f"a bracket is not closed: {sql[start:]}")
