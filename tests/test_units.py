"""Durations and sizes as people write them."""

from __future__ import annotations

import pytest

from terascope.units import seconds, seconds_or_off, size


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
