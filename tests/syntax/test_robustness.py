"""Whatever the text, parsing gives a Script or a QueryError, and it is quick."""

from __future__ import annotations

import random
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.diagnostic import QueryError, Source, render
from terascope.syntax.format import format_source
from terascope.syntax.lexical import TokenScan
from terascope.syntax.parser import parse, parse_recovering
from terascope.syntax.printer import print_script
from tests.syntax.corpus import EXPRESSIONS, STATEMENTS

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def examine(text: str) -> None:
    """Parse with recovery; spans lie within the text, and what was read prints and parses."""
    source = Source(text)
    script, diagnostics = parse_recovering(source)
    for each in diagnostics:
        assert 0 <= each.span.start <= each.span.end <= len(text)
    assert render(diagnostics, source).count("error[") >= len(diagnostics)
    assert parse(Source(print_script(script))) == script
    try:
        format_source(source)
    except QueryError:
        assert diagnostics


def test_statements_with_tokens_deleted_doubled_and_swapped() -> None:
    chance = random.Random(20040613)
    for text in STATEMENTS:
        tokens = [token.text for token in TokenScan(Source(text)).tokens]
        for _ in range(6):
            damaged = list(tokens)
            for _ in range(chance.randint(1, 3)):
                place = chance.randrange(len(damaged) or 1)
                match chance.randrange(3):
                    case 0:
                        del damaged[place : place + 1]
                    case 1:
                        damaged[place:place] = damaged[place : place + 1]
                    case _:
                        chance.shuffle(damaged[place : place + 3])
                        damaged.insert(place, chance.choice(tokens))
            examine(" ".join(damaged))


def test_characters_deleted() -> None:
    chance = random.Random(20080609)
    for text in (*STATEMENTS, *(f"SELECT {each} FROM x" for each in EXPRESSIONS)):
        place = chance.randrange(len(text))
        examine(text[:place] + text[place + chance.randint(1, 3) :])


@QUICK
@given(
    st.lists(
        st.sampled_from(" ".join(STATEMENTS).split() + list(";(){}[],.:#$@'\"`-")), max_size=25
    )
)
def test_words_in_any_order(words: list[str]) -> None:
    examine(" ".join(words))


@QUICK
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    examine(text)


def test_two_hundred_queries_in_a_second() -> None:
    query = (
        "QUERY q{n}: SELECT tb, srcIP, destIP, COUNT(*) AS cnt, SUM(len) AS bytes, MAX(ts - {n}) "
        "FROM TCP WHERE protocol = 6 AND (flags & 0x12) = 2 AND srcPort IN (22, 25, {n}) "
        "GROUP BY time/60 AS tb, srcIP, destIP HAVING COUNT(*) > {n};\n"
    )
    text = "".join(query.format(n=n) for n in range(200))
    parse(Source("SELECT a FROM b"))  # builds the parser
    start = time.process_time()
    script = parse(Source(text))
    elapsed = time.process_time() - start
    assert len(script.statements) == 200
    assert elapsed < 2
