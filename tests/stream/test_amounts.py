"""Amounts in words."""

from __future__ import annotations

import pytest

from terascope.operate.amounts import (
    readable_bytes,
    readable_count,
    readable_moment,
    readable_seconds,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0.00 s"),
        (0.314, "0.31 s"),
        (0.999, "1.0 s"),
        (2.14, "2.1 s"),
        (48.2, "48 s"),
        (59.7, "1 min"),
        (545, "9 min 5 s"),
        (1250, "20 min"),
        (12_000, "3 h 20 min"),
        (39_000, "10 h"),
        (371_000, "4 d 7 h"),
        (-2.0, "-2.0 s"),
    ],
)
def test_seconds(seconds: float | None, text: str) -> None:
    assert readable_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (1204, "1,204"), (999_999.7, "1.0 M"), (3_440_000, "3.4 M"), (2.5e9, "2.5 G")],
)
def test_counts(count: float, text: str) -> None:
    assert readable_count(count) == text


def test_bytes_and_moments() -> None:
    assert [readable_bytes(n) for n in (0, 999, 3_400_000, 512_000_000)] == [
        *("0 B", "999 B", "3.4 MB", "512 MB")
    ]
    assert readable_moment(None) == "-"
    assert readable_moment(1_700_000_000_999_999_999) == "2023-11-14 22:13:20"
    assert readable_moment(10**30) == f"{10**21} s"
