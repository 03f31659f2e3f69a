"""Every mistake of a file is told: its code, the very text it points at, and what to do."""

from __future__ import annotations

import pytest

from terascope.diagnostic import Diagnostic, QueryError, Source
from terascope.syntax.parser import parse, parse_recovering


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(QueryError) as caught:
        parse(Source(text))
    return caught.value.diagnostics


def pointed(text: str, diagnostic: Diagnostic) -> str:
    return text[diagnostic.span.start : diagnostic.span.end]


@pytest.mark.parametrize(
    ("text", "at", "message", "help_"),
    [
        ("SELECT a GROUP BY b", "GROUP", "expected FROM after the select list, found", None),
        ("SELECT a FORM TCP", "FORM", "expected FROM after the select list", "did you mean FROM?"),
        ("SELCT a FROM b", "SELCT", "'SELCT' is not a keyword", "did you mean SELECT?"),
        ("SELECT a FROM TCP WEHRE x = 1", "WEHRE", "not a keyword", "did you mean WHERE?"),
        ("SELECT a FROM TCP GRUOP BY x", "GRUOP", "not a keyword", "did you mean GROUP?"),
        ("SELECT a FROM b WHERE x = 1 ADN y = 2", "ADN", "WHERE condition", "did you mean AND?"),
        ("SELECT a, FROM TCP", "FROM", "expected an expression after ','", "remove the comma"),
        ("SELECT a b FROM TCP", "b", "expected FROM", "comma or AS missing before 'b'"),
        ("SELECT f(a b) FROM TCP", "b", "expected ')' after 'a'", "comma missing before 'b'"),
        ("SELECT a FROM A x B y", "B", "after the FROM clause", "comma or JOIN missing before 'B'"),
        ("SELECT a FROM TCP GROUP BYtime/10 AS tb", "BYtime", "BY", "blank is missing after BY"),
        ("SELECT a FROM x GROUP BY b c", "c", "after the GROUP BY list", "comma or AS missing"),
        (
            "SELECT a FROM TCP WHERE protocol=6\n str_match_start[TCP_data, 'GET']",
            "str_match_start",
            "after the WHERE condition",
            "is AND or OR missing before 'str_match_start'?",
        ),
        ("SELECT a FROM TCP WHERE;", ";", "an expression after 'WHERE', found the end", None),
        ("SELECT a FROM b)", ")", "found ')'", "no '(' is open here"),
        ("SELECT (SELECT a FROM b) FROM c", "SELECT", "expected an expression", "stand in FROM"),
        ("SELECT order FROM x", "order", "expected an expression", "write `order`"),
        ("SELECT a == 1 FROM b", "==", "'==' is not GSQL", "write ="),
        ("SELECT a FROM b WHERE x && y", "&&", "'&&' is not GSQL", "write AND"),
        ("PROTOCOL P (a 'x')", "'x'", "expected a name, found 'x'", "`x`"),
        ("SELECT a FROM b WHERE x = \u2018y", "\u2018", "means nothing", "plain quote"),
        ("SELECT a FROM b SELECT c FROM d", "SELECT", "expected ';' before a further SELECT", ";"),
        ("foo bar", "bar", "expected a statement", None),
        ("QUERY x SELECT a FROM b", "SELECT", "expected ':' after 'x'", None),
        ("DEFINE { query_name 'x' SELECT a FROM b", "SELECT", "expected '}' after 'x'", None),
        ("PROTOCOL P (a UINT) (b UINT)", "a UINT", "parents of a protocol are names", "parent"),
        ("WATCHLIST FIELDS { ip; }", "ip", "a type and a name", "IP ip"),
        ("int UDAF char(36) f(int; int)", "(int; int)", "no second part", "EXTR"),
    ],
)  # fmt: skip
def test_one_mistake(text: str, at: str, message: str, help_: str | None) -> None:
    (found,) = mistakes(text)
    assert found.code == "syntax"
    assert message in found.message
    if help_ is not None:
        assert found.help is not None
        assert help_ in found.help
    assert pointed(text, found) == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT 12ab FROM c", "12ab"),
        ("SELECT 10.0.0.300 FROM c", "10.0.0.300"),
        ("SELECT IP 'x' FROM c", "IP 'x'"),
        ("SELECT IPV6 '10.0.0.1' FROM c", "IPV6 '10.0.0.1'"),
        ("SELECT HEX'7g' FROM c", "HEX'7g'"),
        ("SELECT X'abc' FROM c", "X'abc'"),
        ("SELECT TIMEVAL'soon' FROM c", "TIMEVAL'soon'"),
        ("SELECT 18446744073709551616 FROM c", "18446744073709551616"),
        ("SELECT a - 18446744073709551616 FROM c", "18446744073709551616"),
        ("SELECT 0x10000000000000000 FROM c", "0x10000000000000000"),
        ("SELECT 1e999 FROM c", "1e999"),
        ("SELECT a FROM c [RANGE 9223372036854775808]", "9223372036854775808"),
        ("SELECT a FROM x [RANGE 'r' SLIDE 's']", "'r'"),
        ("SELECT a FROM x [RANGE '0 sec']", "'0 sec'"),
        ("SELECT a FROM x EVERY 15 parsecs", "15 parsecs"),
    ],
)
def test_bad_literal(text: str, at: str) -> None:
    (found,) = mistakes(text)
    assert found.code == "bad-literal"
    assert pointed(text, found) == at


@pytest.mark.parametrize(
    ("text", "at", "language"),
    [
        ("SELECT Istream(S.a, count(*)) FROM S", "Istream", "CQL"),
        ("SELECT RSTREAM(a) FROM S", "RSTREAM", "CQL"),
        ("SELECT a FROM S [Rows 100]", "[Rows 100]", "CQL"),
        ("SELECT a FROM S [Now], R [RANGE 5]", "[Now]", "CQL"),
        ("SELECT a FROM S [Partition By x Rows 5]", "[Partition By x Rows 5]", "CQL"),
        (
            "SELECT a FROM S for (t = ST; t < ST + 50; t += 5) { WindowIs(S, t - 4, t); }",
            "for (t = ST; t < ST + 50; t += 5) { WindowIs(S, t - 4, t); }",
            "StreaQuel",
        ),
        ("INSERT INTO x SELECT a FROM b", "INSERT", "SQL"),
        ("SELECT a FROM b UNION ALL SELECT a FROM c", "UNION", "SQL"),
    ],
)
def test_other_languages_are_refused_by_name(text: str, at: str, language: str) -> None:
    found = mistakes(text)[0]
    assert found.code == "unsupported-language"
    assert language in found.message
    assert found.help
    assert pointed(text, found) == at


def test_names_that_only_look_foreign() -> None:
    parse(Source("SELECT istream, rows, for FROM [now].TCP WHERE f[now] AND g[rows, 5]"))


def test_unterminated_string_is_the_only_complaint_about_its_statement() -> None:
    text = "SELECT a FROM b WHERE x = 'abc;\nSELECT c FORM d;"
    string, typo = mistakes(text)
    assert (string.code, pointed(text, string)) == ("unterminated-string", "'abc;")
    assert pointed(text, typo) == "FORM"


def test_all_mistakes_of_a_file() -> None:
    text = """
QUERY good: SELECT a FROM TCP;
SELECT a GROUP BY b;
QUERY second: SELECT count( FROM TCP
QUERY third: SELECT a FROM TCP WHERE x = 12ab AND
DEFINE { query_name 'fourth' } SELECT a FROM TCP [Rows 5];
PROTOCOL P (a UINT,, b);
QUERY also_good: SELECT b FROM good
"""
    script, found = parse_recovering(Source(text))
    assert [getattr(each, "name", None) for each in script.statements] == ["good", "also_good"]
    assert [(each.code, pointed(text, each)) for each in found] == [
        ("syntax", "GROUP"),
        ("syntax", "FROM"),
        ("bad-literal", "12ab"),
        ("syntax", ""),
        ("unsupported-language", "[Rows 5]"),
        ("syntax", ","),
    ]


def test_open_bracket_is_named() -> None:
    (found,) = mistakes("SELECT a,\n  count(* FROM TCP")
    assert found.notes == ("the '(' of line 2, column 8 is still open",)


@pytest.mark.parametrize(
    "clause",
    ["WHERE a", "GROUP BY a", "HAVING a", "EVERY 5", "ORDER BY a", "LIMIT 5", "CLOSING_WHEN a"],
)
def test_duplicate_clause(clause: str) -> None:
    text = f"SELECT a FROM b {clause} {clause}"
    (found,) = mistakes(text)
    assert found.code == "duplicate-clause"
    assert pointed(text, found) == clause
    assert found.span.start > text.index(clause)


def test_two_names_for_one_query() -> None:
    (found,) = mistakes("QUERY a: DEFINE { query_name 'b'; } SELECT x FROM y")
    assert found.code == "duplicate-clause"
    parse(Source("QUERY a: DEFINE { query_name 'a'; } SELECT x FROM y"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 2000 + "a" + " + 1)" * 2000 + " FROM b",
        "SELECT a FROM b WHERE " + " OR ".join(["x = 1"] * 2000),
        "SELECT " + "- " * 2000 + "a FROM b",
        "SELECT a FROM " + "(SELECT a FROM " * 400 + "b" + ")" * 400,
    ],
)
def test_nesting_too_deep_for_anyone(text: str) -> None:
    assert [each.code for each in mistakes(text)] == ["too-deep"]


def test_deep_brackets_alone_are_harmless() -> None:
    parse(Source("SELECT " + "(" * 2000 + "a" + ")" * 2000 + " FROM b"))


def test_empty_file_is_an_empty_script() -> None:
    assert parse(Source(" -- nothing\n;;")).statements == ()
