"""`terascope fmt`: canonical text, every comment kept, nothing to change the second time."""

from __future__ import annotations

import random

import pytest

from terascope.diagnostic import QueryError, Source
from terascope.syntax.format import format_source
from terascope.syntax.lexical import TokenScan
from terascope.syntax.parser import parse
from tests.syntax.corpus import STATEMENTS

BEFORE = """\
-- Flows of a minute.
-- Second line.

// about flows
query flows:   -- named
select tb, srcIP, -- key
   count(*) as cnt   // how many
-- where it comes from
from TCP
where len > 40 and -- small ones
  len < 1500
group by time/60 as tb, srcIP; -- done

-- about the next
DEFINE { query_name 'x'; -- its name
  visibility 'internal'; -- hidden
}
select a from flows
-- the end
"""

AFTER = """\
-- Flows of a minute.
-- Second line.

// about flows
QUERY flows:  -- named
-- key
SELECT tb, srcIP, count(*) AS cnt  // how many
-- where it comes from
FROM TCP
WHERE len > 40 AND len < 1500  -- small ones
GROUP BY time / 60 AS tb, srcIP;  -- done

-- about the next
DEFINE {  -- its name
    query_name 'x';
    visibility 'internal';  -- hidden
}
SELECT a
FROM flows;

-- the end
"""


def formatted(text: str) -> str:
    return format_source(Source(text))


def comments(text: str) -> list[str]:
    return sorted(comment.text for comment in TokenScan(Source(text)).comments)


def test_comments_find_their_clauses() -> None:
    once = formatted(BEFORE)
    assert once == AFTER
    assert parse(Source(once)) == parse(Source(BEFORE))
    assert comments(once) == comments(BEFORE)
    assert formatted(once) == once


def test_long_lists_and_conditions_are_broken() -> None:
    columns = ", ".join(f"a_rather_long_column_{n}" for n in range(12))
    condition = " AND ".join(f"a_rather_long_column_{n} > {n}" for n in range(12))
    text = f"SELECT {columns} FROM TCP WHERE {condition}"
    once = formatted(text)
    assert max(map(len, once.splitlines())) <= 104
    assert len(once.splitlines()) > 6
    assert parse(Source(once)) == parse(Source(text))
    assert formatted(once) == once


def test_only_comments() -> None:
    assert formatted("-- a\n\n\n-- b") == "-- a\n\n-- b\n"
    assert formatted("") == ""


def test_mistakes_are_not_formatted_away() -> None:
    with pytest.raises(QueryError):
        formatted("SELECT a FORM b")


@pytest.mark.parametrize("seed", range(40))
def test_no_comment_is_ever_lost(seed: int) -> None:
    """Comments strewn between any two tokens of any statements."""
    chance = random.Random(seed)
    pieces: list[str] = []
    for number, text in enumerate(chance.sample(STATEMENTS, 4)):
        for position, token in enumerate(TokenScan(Source(text.rstrip(";") + ";")).tokens):
            pieces.append(token.text)
            match chance.randrange(8):
                case 0:
                    pieces.append(f" -- behind {number}.{position}\n")
                case 1:
                    pieces.append(f"\n\n// alone {number}.{position}\n")
                case 2:
                    pieces.append("\n")
                case _:
                    pieces.append(" ")
    text = "".join(pieces)
    once = formatted(text)
    assert parse(Source(once)) == parse(Source(text))
    assert comments(once) == comments(text)
    assert formatted(once) == once
