"""Bytes in payloads: whatever way they are looked for, the same payloads have them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from terascope.functions.scalars.patterns import compiled
from terascope.kernels.columns.payload_tests import (
    contains,
    pattern_values,
    re2_pattern,
    required_text,
)

payloads = st.lists(st.one_of(st.none(), st.text("ab\n", max_size=90).map(str.encode)), max_size=40)


@settings(deadline=None)  # kernels are compiled at first
@given(payloads, st.text("ab", max_size=6).map(str.encode), st.integers(1, 12))
@example([b"x" * 63 + b"ab", b"b" * 70], b"ab", 1)  # over the end of a block of 64
@example([b"a", b"b"], b"ab", 1)  # one payload ends, the next begins
def test_a_sweep_finds_what_python_finds(
    values: list[bytes | None], wanted: bytes, step: int
) -> None:
    column = pa.array(values, pa.binary())
    rows = np.arange(0, len(values), step, dtype=np.int32)
    given_rows = rows[[values[row] is not None for row in rows]] if len(rows) else rows
    found = contains(column, given_rows, np.frombuffer(wanted, np.uint8))
    assert found.tolist() == [int(wanted in (values[row] or b"")) for row in given_rows]


def test_payloads_of_a_slice_are_its_own() -> None:
    column = pa.array([b"zone", b"none", b"zone", b"zone"], pa.binary()).slice(1, 2)
    rows = np.arange(2, dtype=np.int32)
    wanted = np.frombuffer(b"zone", np.uint8)
    assert contains(column, rows, wanted).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("Host: (shop|news)[0-9]+[.]example[.]", "example"),
        ("GET .*[.]php", "GET "),
        (r"a\.b\.c\d", "a.b.c"),
        ("abc?", "ab"),
        ("abc*", "ab"),
        ("abc{0,2}def", "def"),
        ("abc+d", "abc"),
        ("one|other", ""),
        ("(one|other)", ""),
        ("[[:digit:]]x]y", "x]y"),
        (r"[\]a]bc", "bc"),
        (r"(\)x)yz", "yz"),
        (r"\x41\x42", ""),
        ("^abc$", "abc"),
        ("", ""),
    ],
)
def test_text_that_every_match_has(pattern: str, text: str) -> None:
    assert re2_pattern(pattern) is not None
    assert required_text(pattern) == text


PIECES = r"a b ab bab . [ab] (ab) (a|b) (ab)? a* b+ a? b{0,1} ^ $ \n \x61 a{2}".split()


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), payloads)
def test_patterns_match_as_python_says(pattern: str, values: list[bytes | None]) -> None:
    try:
        meant = compiled(pattern)
    except ValueError:
        return
    assert re2_pattern(pattern) is not None
    rows = np.array([i for i, v in enumerate(values) if v is not None], np.int32)
    found = pattern_values(pattern, pa.array(values, pa.binary()), rows)
    texts = [(values[row] or b"").decode() for row in rows]
    assert found.tolist() == [int(meant.search(text) is not None) for text in texts]
    inside = required_text(pattern)
    assert all(inside in text for text, hit in zip(texts, found, strict=True) if hit)
