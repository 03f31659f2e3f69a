from __future__ import annotations

import pytest

from terascope.functions.base import ValueMistake
from terascope.functions.scalars.patterns import compiled, java_pattern, portable


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"[Hh]ost:[0-9A-Z\\.\.: ]*", r"[Hh]ost:[0-9A-Z\\.\.: ]*"),
        (r"[[:digit:]_]{2,3}", r"[0-9_]{2,3}"),
        (r"[^[:space:]]+", r"[^ \t\n\r\f\x0b]+"),
        (r"a\vb[\b]", r"a\x0bb[\x08]"),
        (r"[\]]", r"[\]]"),
        (r"(?i:get) \[x\] \{", r"(?i:get) \[x\] \{"),
        (r"a-b--c]", r"a-b--c]"),
    ],
)
def test_portable(pattern: str, expected: str) -> None:
    assert portable(pattern) == expected
    assert java_pattern(pattern) == "(?dm)" + expected
    assert portable(expected) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(?P<n>a)",
        "(?u)a",
        "[]a]",
        "[^]a]",
        "[a[b]",
        "[[:word:]]",
        "[a&&b]",
        "[a--b]",
        "x{,3}",
        "{",
        r"a\Z",
        r"\0",
        r"\p{L}",
        "a**",
        "(",
        "[a",
        "x{99999999999}",
    ],
)
def test_refused(pattern: str) -> None:
    with pytest.raises(ValueMistake) as caught:
        compiled(pattern)
    assert str(caught.value).startswith(f"bad regular expression '{pattern}': ")


def test_meaning() -> None:
    assert compiled(r"[[:upper:]]+").findall("abCDe\nF") == ["CD", "F"]
    assert compiled(r"^[[:punct:]]$").search("x\n[\ny")
    assert not compiled(r"(?i)É").search("é"), "letters beyond ASCII have no other case, as in Java"
