from __future__ import annotations

import pytest

from bench.dialects import DIALECTS, NotInDialect, translate

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("duckdb", "SELECT ((time) // (60)) AS tb, CAST(SUM(((len) & (255))) AS BIGINT)"),
        ("spark", "SELECT ((time) DIV (60)) AS tb, CAST(SUM(((len) & (255))) AS BIGINT)"),
        ("clickhouse", "SELECT intDiv(time, 60) AS tb, toInt64(SUM(bitAnd(len, 255)))"),
    ],
)
def test_words_inside_words(dialect: str, expected: str) -> None:
    assert (
        translate("SELECT DIV(time, 60) AS tb, BIGINT(SUM(BITAND(len, 255)))", dialect) == expected
    )


def test_text_in_quotes_is_left_alone() -> None:
    sql = "SELECT x WHERE MATCHES(p, 'a, (b)') AND STARTS(p, 'DIV')"
    assert translate(sql, "duckdb") == (
        "SELECT x WHERE regexp_matches(p, 'a, (b)') AND starts_with(p, 'DIV')"
    )


def test_all_speak_all_words() -> None:
    words = [set(each) for each in DIALECTS.values()]
    assert all(each == words[0] for each in words)


def test_what_an_engine_cannot_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS, "mute", {})
    with pytest.raises(NotInDialect, match="mute has no DIV"):
        translate("SELECT DIV(a, b)", "mute")
    assert translate("SELECT a", "mute") == "SELECT a"


def test_a_bracket_that_is_not_closed() -> None:
    with pytest.raises(ValueError, match="not closed"):
        translate("SELECT DIV(a, b", "duckdb")
