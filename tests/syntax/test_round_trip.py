"""parse(print(x)) == x, and printing again changes nothing: for the corpus and random Scripts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from terascope.diagnostic import Source
from terascope.syntax.ast import Expr, Query, QueryStatement, Script
from terascope.syntax.format import format_source
from terascope.syntax.parser import parse
from terascope.syntax.printer import print_expr, print_query, print_script
from tests.settings import SOAK
from tests.syntax.corpus import EXPRESSIONS, STATEMENTS, parse_expression
from tests.syntax.strategies import expressions, queries, scripts

QUICK = settings(
    max_examples=150 if SOAK else 75, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement_of_the_corpus(text: str) -> None:
    script = parse(Source(text))
    assert len(script.statements) == 1
    printed = print_script(script)
    again = parse(Source(printed))
    assert again == script
    assert print_script(again) == printed
    assert format_source(Source(text)) == printed


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression_of_the_corpus(text: str) -> None:
    expr = parse_expression(text)
    printed = print_expr(expr)
    assert parse_expression(printed) == expr
    assert print_expr(parse_expression(printed)) == printed


@settings(QUICK, max_examples=400 if SOAK else 200)
@given(expressions)
def test_random_expression(expr: Expr) -> None:
    printed = print_expr(expr)
    assert parse_expression(printed) == expr
    assert print_expr(parse_expression(printed)) == printed


@QUICK
@given(queries)
def test_random_query(query: Query) -> None:
    printed = print_query(query)
    (statement,) = parse(Source(printed)).statements
    assert isinstance(statement, QueryStatement)
    assert statement.query == query
    assert print_query(statement.query) == printed


@QUICK
@given(scripts)
def test_random_script(script: Script) -> None:
    printed = print_script(script)
    again = parse(Source(printed))
    assert again == script
    assert print_script(again) == printed
    assert format_source(Source(printed)) == printed


def test_the_whole_corpus_is_one_script() -> None:
    text = ";\n".join(statement.rstrip(";") for statement in STATEMENTS)
    script = parse(Source(text))
    assert len(script.statements) == len(STATEMENTS)
    assert parse(Source(print_script(script))) == script
