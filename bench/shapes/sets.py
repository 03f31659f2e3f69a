"""Sets of many queries over one table, of one kind each: the axes of `shapes` that count queries.

In: a kind and a number. Out: the text of that many different queries. No query does more than
another of its kind, so that a set of twice the length has twice the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BY_KEY: Final = "SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/60 AS tb, k"


def threshold(number: int) -> str:
    return f"QUERY q{number}: {BY_KEY} HAVING n > {number};"


def selection(number: int) -> str:
    taken = f"v = {number % 50} AND time >= {number}"
    return f"QUERY q{number}: SELECT time, k, v FROM T WHERE {taken};"


def other_keys(number: int) -> str:
    keys = f"time/60 AS tb, k/{number + 2} AS g"
    return f"QUERY q{number}: SELECT tb, g, COUNT(*) AS n FROM T GROUP BY {keys};"


def window(number: int) -> str:
    length = 10 * (2 + number % 5)
    counted = f"SELECT k, COUNT(*) AS n FROM T [RANGE {length} SLIDE 10] GROUP BY k"
    return f"QUERY q{number}: {counted} HAVING n > {number};"


def join(number: int) -> str:
    """Each epoch with the one before; the first query also defines what all of them join."""
    joined = "FROM p a JOIN p b ON a.k = b.k AND a.tb = b.tb + 1"
    text = f"QUERY q{number}: SELECT a.tb, a.k, a.n, b.n AS m {joined} WHERE a.n > {number};"
    return text if number else f"QUERY p: {BY_KEY}; {text}"


def top(number: int) -> str:
    return f"QUERY q{number}: {BY_KEY} HAVING n > {number} ORDER BY n DESC LIMIT 3;"


KINDS: Final[dict[str, Callable[[int], str]]] = {
    "queries": threshold,
    "queries, selections": selection,
    "queries, other keys": other_keys,
    "queries, windows": window,
    "queries, joins": join,
    "queries, top-k": top,
}
"""Name of an axis -> the query of a number."""


def many(kind: str, count: int) -> str:
    """The text of `count` different queries of one kind."""
    return " ".join(KINDS[kind](number) for number in range(count))
