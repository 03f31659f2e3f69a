"""What texts parse to: precedence, literals, names, statement headers, spans."""

from __future__ import annotations

import logging

import lark
import pytest

from terascope.diagnostic import Source
from terascope.syntax.ast import (
    AccessList,
    Binary,
    CallExpr,
    ConstantRef,
    Duration,
    ExtractorDeclaration,
    FieldDeclaration,
    FieldProperty,
    From,
    JoinRef,
    Literal_,
    Name,
    Property,
    ProtocolStatement,
    QueryStatement,
    RangeWindow,
    Select,
    SliceWindow,
    Statement,
    StreamRef,
    UdafDeclaration,
    Unary,
    UnpackFunction,
    UnpackStatement,
    WatchlistStatement,
    With,
)
from terascope.syntax.parser import __file__ as parser_file
from terascope.syntax.parser import parse
from terascope.types import parse_ip
from tests.syntax.corpus import parse_expression as expression


def only(text: str) -> Statement:
    (statement,) = parse(Source(text)).statements
    return statement


def select(text: str) -> Select:
    statement = only(text)
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, Select)
    return statement.query


LADDER = ["OR", "AND", "NOT", "=", "|", "^", "&", "<<", "+", "*", "-"]
"""The operators of language.md from loosest to tightest; NOT and the last minus are unary."""


@pytest.mark.parametrize(
    ("looser", "tighter"),
    [
        (a, b)
        for i, a in enumerate(LADDER)
        for b in LADDER[i + 1 :]
        if "NOT" not in (a, b) and b != "-"
    ],
)
def test_precedence(looser: str, tighter: str) -> None:
    right = expression(f"a {looser} b {tighter} c")
    assert isinstance(right, Binary)
    assert right.op == looser
    left = expression(f"a {tighter} b {looser} c")
    assert isinstance(left, Binary)
    assert left.op == looser


def test_not_stands_between_and_and_comparison() -> None:
    assert expression("NOT a = b") == Unary("NOT", Binary("=", Name("a"), Name("b")))
    assert expression("NOT a AND b") == Binary("AND", Unary("NOT", Name("a")), Name("b"))


def test_an_exclamation_mark_is_not_but_binds_tightest() -> None:
    assert expression("!a = b") == Binary("=", Unary("NOT", Name("a")), Name("b"))
    assert expression("!(a = b)") == expression("NOT a = b")
    assert expression("a != b") == expression("a <> b")


def test_a_stream_is_declared_like_a_protocol_with_lists_of_unpacking_functions() -> None:
    text = "STREAM s (base) [tcp] { uint time get (increasing) [tcp, http]; }"
    time = FieldDeclaration(
        "time", "UINT", (FieldProperty("increasing"),), "get", AccessList(("tcp", "http"))
    )
    expected = ProtocolStatement("s", ("base",), (time,), "STREAM", AccessList(("tcp",)))
    assert only(text) == expected
    assert only("UNPACK_FCNS { tcp f 5; }") == UnpackStatement((UnpackFunction("tcp", "f", 5),))


def test_schemas_need_no_semicolons_between_them() -> None:
    text = "UNPACK_FCNS { t f 5 } PROTOCOL a [t] { uint x; } STREAM b { uint y; } PROTOCOL c { }"
    unpacking, *schemas = parse(Source(text)).statements
    assert isinstance(unpacking, UnpackStatement)
    assert [s.name for s in schemas if isinstance(s, ProtocolStatement)] == ["a", "b", "c"]


def test_supergroup_needs_no_by() -> None:
    with_by = select("SELECT a FROM x GROUP BY a, b SUPERGROUP BY a, b HAVING c")
    assert select("SELECT a FROM x GROUP BY a, b SUPERGROUP a, b HAVING c") == with_by


def test_unary_binds_tightest() -> None:
    assert expression("-a * b") == Binary("*", Unary("-", Name("a")), Name("b"))
    assert expression("~a & b") == Binary("&", Unary("~", Name("a")), Name("b"))


@pytest.mark.parametrize("op", ["-", "/", "%", "DIV", "<<", ">>", "=", "||"])
def test_operators_of_one_level_group_to_the_left(op: str) -> None:
    assert expression(f"a {op} b {op} c") == expression(f"(a {op} b) {op} c")
    assert expression(f"a {op} (b {op} c)") != expression(f"a {op} b {op} c")


def test_masked_flags_are_compared() -> None:
    assert expression("flags & 0x12 = 2") == expression("(flags & 18) = 2")


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("42", Literal_("int", 42)),
        ("0xFFF0", Literal_("int", 0xFFF0)),
        ("1.5", Literal_("float", 1.5)),
        ("1e9", Literal_("float", 1e9)),
        ("5.", Literal_("float", 5.0)),
        ("1.e3", Literal_("float", 1000.0)),
        ("0xFE", Literal_("int", 0xFE)),
        ("'it''s'", Literal_("string", "it's")),
        ('"say ""hi"""', Literal_("string", 'say "hi"')),
        (r"'[0-9A-Z\\.\.: ]*'", Literal_("string", r"[0-9A-Z\\.\.: ]*")),
        ("10.0.0.1", Literal_("ip", parse_ip("10.0.0.1"))),
        ("IP '10.0.0.1'", Literal_("ip", parse_ip("10.0.0.1"))),
        ("ip_val'10.0.0.1'", Literal_("ip", parse_ip("10.0.0.1"))),
        ("IPV6 '::1'", Literal_("ipv6", parse_ip("::1"))),
        ("IPV6_VAL'::1'", Literal_("ipv6", parse_ip("::1"))),
        ("17UL", Literal_("int", 17, "UINT")),
        ("5ULL", Literal_("int", 5, "ULLONG")),
        ("5ll", Literal_("int", 5, "LLONG")),
        ("HEX'7f'", Literal_("int", 127, "UINT")),
        ("LHEX'7f'", Literal_("int", 127, "ULLONG")),
        ("TIMEVAL'1.000000001'", Literal_("int", 1_000_000_001, "ULLONG")),
        ("X'00ff'", Literal_("binary", b"\x00\xff")),
        ("true", Literal_("bool", True)),
        ("null", Literal_("null", None)),
        ("-9223372036854775808", Literal_("int", -(2**63))),
    ],
)
def test_literals(text: str, literal: Literal_) -> None:
    assert expression(text) == literal


def test_hexadecimal_subtraction_is_no_exponent() -> None:
    assert expression("0xFE-5") == Binary("-", Literal_("int", 0xFE), Literal_("int", 5))


def test_constants_with_one_or_two_signs() -> None:
    assert expression("#NAME#") == expression("#NAME") == ConstantRef("NAME")
    assert expression("#a#+#b#") == Binary("+", ConstantRef("a"), ConstantRef("b"))


def test_brackets_call_too() -> None:
    assert expression("f[a, 1]") == expression("f(a, 1)")
    assert expression("count_distinct$(x)") == CallExpr("count_distinct", (Name("x"),), super_=True)
    assert expression("COUNT(DISTINCT x)") == CallExpr("COUNT", (Name("x"),), distinct=True)


def test_keywords_ignore_case_and_names_do_not() -> None:
    assert select("sElEcT A from b wHeRe C") == select("SELECT A FROM b WHERE C")
    assert select("SELECT A FROM b") != select("SELECT a FROM b")


def test_comments_of_both_kinds() -> None:
    assert select("SELECT a -- one, 'x\nFROM b // two;\n") == select("SELECT a FROM b")


def test_join_spellings() -> None:
    sql = select("SELECT a FROM A FULL OUTER JOIN B ON x").source
    assert sql == select("SELECT a FROM A OUTER JOIN B ON x").source
    assert sql == From((JoinRef("FULL", StreamRef("A"), StreamRef("B"), Name("x")),))
    own = select("SELECT a FROM A OUTER_JOIN B ON x").source
    assert own == select("SELECT a FROM A FULL_OUTER_JOIN B ON x").source
    assert own == From((JoinRef("FULL", StreamRef("A"), StreamRef("B"), Name("x"), gsql=True),))
    inner = select("SELECT a FROM A INNER_JOIN B ON x").source
    assert inner == select("SELECT a FROM A JOIN B ON x").source
    before = select("SELECT a FILTER_JOIN(ts, 15) FROM A, B").source
    assert before == From((StreamRef("A"), StreamRef("B")), "FILTER", "ts", Duration(15))


def test_left_is_a_join_and_a_name() -> None:
    query = select("SELECT left, LEFT(a, 2) FROM A LEFT JOIN left ON left.x = A.left")
    assert query.source.items[0] == JoinRef(
        "LEFT",
        StreamRef("A"),
        StreamRef("left"),
        Binary("=", Name("x", "left"), Name("left", "A")),
    )


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("'18 sec'", Duration(18, "s")),
        ("18 seconds", Duration(18, "s")),
        ("15 minutes", Duration(15, "min")),
        ("'1.5 h'", Duration(1.5, "h")),
        ("'500ms'", Duration(500, "ms")),
        ("'3'", Duration(3)),
        ("18", Duration(18)),
        ("2 days", Duration(2, "d")),
    ],
)
def test_durations(text: str, duration: Duration) -> None:
    assert select(f"SELECT a FROM b EVERY {text}").every == duration
    query = select(f"SELECT a FROM b [RANGE {text} SLIDE {text} ON ts]")
    assert query.source.items[0] == StreamRef("b", window=RangeWindow(duration, duration, "ts"))


def test_paired_window() -> None:
    statement = only(
        "WITH SpairSub as (SELECT count(*) as cnt FROM Snort [SLICES '12 sec','3 sec']) "
        "(SELECT sum(cnt) FROM SpairSub [RANGE '18 sec' SLIDE '15 sec'])"
    )
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, With)
    table = statement.query.tables[0].query
    assert isinstance(table, Select)
    window = SliceWindow((Duration(12, "s"), Duration(3, "s")))
    assert table.source.items == (StreamRef("Snort", window=window),)


def test_define_and_query_name() -> None:
    named = only("QUERY q: SELECT a FROM b")
    assert named == only("DEFINE { query_name 'q'; } SELECT a FROM b")
    statement = only("PARAM { x UINT } DEFINE { query_name 'q'; P 0x29; n -5 } SELECT a FROM b")
    assert isinstance(statement, QueryStatement)
    assert statement.name == "q"
    assert statement.define == (Property("P", "0x29"), Property("n", "-5"))
    assert [each.type_name for each in statement.params] == ["UINT"]


def test_protocol_forms() -> None:
    clock = FieldProperty("clock", "s")
    fields = (
        FieldDeclaration("time", "UINT", (FieldProperty("increasing"), clock)),
        FieldDeclaration("ip", "IP"),
    )
    expected = ProtocolStatement("P", ("base",), fields)
    assert only("PROTOCOL P (base) (time UINT increasing clock(s), ip IP)") == expected
    assert only("PROTOCOL P (base) { uint time (increasing, clock(s)); IP ip; }") == expected
    theirs = only("PROTOCOL P { uint time get_time (required, snap_len 134); }")
    assert isinstance(theirs, ProtocolStatement)
    assert theirs.fields[0].accessor == "get_time"
    assert theirs.fields[0].properties == (
        FieldProperty("required"),
        FieldProperty("snap_len", "134"),
    )


def test_watchlist() -> None:
    statement = only("DEFINE{query_name 'wl'; filename 'w.csv';} WATCHLIST FIELDS { IP ip (key); }")
    assert statement == WatchlistStatement(
        (FieldDeclaration("ip", "IP", (FieldProperty("key"),)),),
        "wl",
        (Property("filename", "w.csv"),),
    )


def test_declarations_of_paper_1_need_no_semicolon() -> None:
    script = parse(
        Source(
            """
int UDAF char(36) [low_approx_med, high_approx_med]
    approx_median(int)
vstring UDAF char(2800) low_approx_med(int)
int UDAF char(36) high_approx_med(vstring)
int EXTR percentile_fcn approx_quantile percentile(int; int)
"""
        )
    )
    assert script.statements == (
        UdafDeclaration(
            "approx_median", "INT", "CHAR(36)", ("INT",), "low_approx_med", "high_approx_med"
        ),
        UdafDeclaration("low_approx_med", "VSTRING", "CHAR(2800)", ("INT",)),
        UdafDeclaration("high_approx_med", "INT", "CHAR(36)", ("VSTRING",)),
        ExtractorDeclaration(
            "percentile", "INT", "percentile_fcn", "approx_quantile", ("INT",), ("INT",)
        ),
    )


def test_spans_cover_the_text_of_their_nodes() -> None:
    text = "QUERY q:\nSELECT a+1 AS x FROM eth0.TCP t WHERE len > 5 GROUP BY time/60 AS tb"
    statement = only(text)
    assert isinstance(statement, QueryStatement)
    query = statement.query
    assert isinstance(query, Select)
    assert query.where is not None
    assert query.group_by is not None

    def shown(span_start: int, span_end: int) -> str:
        return text[span_start:span_end]

    assert shown(query.items[0].span.start, query.items[0].span.end) == "a+1 AS x"
    assert shown(query.where.span.start, query.where.span.end) == "len > 5"
    assert shown(query.source.span.start, query.source.span.end) == "FROM eth0.TCP t"
    group = query.group_by
    assert shown(group.span.start, group.span.end) == "GROUP BY time/60 AS tb"
    assert shown(statement.span.start, statement.span.end) == text


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    """Lark settles a shift/reduce conflict silently unless it is asked to tell."""
    from pathlib import Path

    with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
        lark.Lark(
            Path(parser_file).with_name("gsql.lark").read_text(encoding="utf-8"),
            parser="lalr",
            lexer="basic",
            start="statement",
            debug=True,
        )
    assert not [record for record in caplog.records if "onflict" in record.getMessage()]
