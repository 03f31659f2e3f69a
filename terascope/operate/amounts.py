"""Amounts in a person's words: bytes, seconds, rates and moments. In: numbers. Out: short text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

NANOSECONDS: Final = 1_000_000_000
SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""By the unit of a clock."""
UNKNOWN: Final = "-"
SPANS: Final = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def readable_bytes(size: int) -> str:
    """1.2 MB."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return (
                f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
            )
        amount /= 1000
    return f"{amount:.1f} TB"


def readable_seconds(seconds: float | None) -> str:
    """0.31 s, 2.1 s, 48 s, 9 min 5 s, 20 min, 3 h 20 min, 4 d 7 h: at most ten letters."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return f"-{readable_seconds(-seconds)}"
    if seconds < 59.5:
        digits = 2 if seconds < 0.995 else 1 if seconds < 9.95 else 0
        return f"{seconds:.{digits}f} s"
    whole = round(seconds)
    for size, unit, below, smaller in SPANS:
        if whole >= size:
            # Of ten minutes or hours the smaller unit is no longer of interest.
            rest = whole % size // below if whole < 10 * size else 0
            return f"{whole // size:,} {unit}" + (f" {rest} {smaller}" if rest else "")
    raise AssertionError(whole)


def readable_count(count: float) -> str:
    """1,204 or, from a million on, 3.4 M: at most seven letters up to a thousand billions."""
    if round(count) < 1_000_000:
        return f"{count:,.0f}"
    amount = count / 1_000_000
    for unit in ("M", "G"):
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} T"


def readable_moment(nanoseconds: int | None) -> str:
    """A moment in UTC to the second."""
    if nanoseconds is None:
        return UNKNOWN
    seconds = nanoseconds // NANOSECONDS
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"
