"""Durations, sizes and counts, read and printed."""

from __future__ import annotations

import pytest

from terascope.units import (
    plural,
    readable_bytes,
    readable_count,
    readable_moment,
    readable_seconds,
    scaled_number,
    seconds,
    seconds_or_off,
    size,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2s", 2.0), ("500ms", 0.5), (" 1.5 min ", 90.0), ("1h", 3600.0), (3, 3.0), ("0s", 0.0)],
)
def test_durations(text: object, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)
    assert seconds_or_off(text) == pytest.approx(expected)


def test_off_is_never() -> None:
    assert seconds_or_off("Off") == 0.0
    with pytest.raises(ValueError, match="'off' is no duration; write 500ms, 2s or 1m"):
        seconds("off")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("256MB", 256_000_000), ("1.5GB", 1_500_000_000), ("64KiB", 65_536), ("7B", 7), (12, 12)],
)
def test_sizes(text: object, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "2", "s", "-1s", "1 day", "1e3s", True, None, -4, 1e400])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        seconds_or_off(text)


@pytest.mark.parametrize("text", ["", "256", "0MB", "MB", "256mb", "1TB", 0])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="is no size"):
        size(text)


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
def test_readable_seconds(seconds: float | None, text: str) -> None:
    assert readable_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (1204, "1,204"), (999_999.7, "1.0 M"), (3_440_000, "3.4 M"), (2.5e9, "2.5 G")],
)
def test_readable_counts(count: float, text: str) -> None:
    assert readable_count(count) == text


def test_bytes_and_moments() -> None:
    assert [readable_bytes(n) for n in (0, 999, 3_400_000, 512_000_000)] == [
        *("0 B", "999 B", "3.4 MB", "512 MB")
    ]
    assert readable_moment(None) == "-"
    assert readable_moment(1_700_000_000_999_999_999) == "2023-11-14 22:13:20"
    assert readable_moment(10**30) == f"{10**21} s"


@pytest.mark.parametrize(("text", "number"), [("10000", 1e4), ("10k", 1e4), ("2.5M", 2.5e6)])
def test_numbers_with_a_suffix(text: str, number: float) -> None:
    assert scaled_number(text) == number


@pytest.mark.parametrize("text", ["", "k", "10q", "1 000", "inf"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="is no number; write 10000, 10k"):
        scaled_number(text)


def test_plurals_and_steps() -> None:
    assert [plural(n, "row") for n in (0, 1, 1204)] == ["0 rows", "1 row", "1,204 rows"]
    assert plural(2, "query", "queries") == "2 queries"
    assert [readable_bytes(n) for n in (999_499, 999_999)] == ["999 kB", "1.0 MB"]
