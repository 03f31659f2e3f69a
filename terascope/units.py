"""Durations, sizes, counts and moments: read from text, and printed for people.

`500ms`, `2s`, `1m`, `256MB` and `2.5M` are read; a text that makes no sense is a ValueError with a
message for a person. `readable_...` print amounts short enough for the columns of a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

NANOSECONDS: Final = 1_000_000_000
"""In a second."""
OFF: Final = "off"
UNKNOWN: Final = "-"
SECONDS: Final = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0,
}  # fmt: skip
BYTES: Final = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip
COUNTS: Final = {"k": 10**3, "m": 10**6, "g": 10**9}
AMOUNT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
SPANS: Final = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


# ---- reading -------------------------------------------------------------------------------------


def seconds(text: object) -> float:
    """`2s` -> 2.0; a number is a number of seconds.

    Raises:
        ValueError: the text is not a duration.
    """
    found = amount(text, SECONDS)
    if found is None:
        raise ValueError(f"'{text}' is no duration; write 500ms, 2s or 1m")
    return found


def seconds_or_off(text: object) -> float:
    """A duration; `off` is 0.

    Raises:
        ValueError: the text is neither.
    """
    if is_off(text):
        return 0.0
    try:
        return seconds(text)
    except ValueError as problem:
        raise ValueError(f"{problem}, or {OFF}") from None


def seconds_or_never(text: object) -> float:
    """A duration; `off` is infinite.

    Raises:
        ValueError: the text is neither.
    """
    return math.inf if text == math.inf or is_off(text) else seconds_or_off(text)


def is_off(text: object) -> bool:
    return isinstance(text, str) and text.strip().lower() == OFF


def size(text: object) -> int:
    """`256MB` -> 256,000,000; a number is a number of bytes.

    Raises:
        ValueError: the text is not a size, or the size is less than a byte.
    """
    found = amount(text, BYTES)
    if found is None or found < 1:
        raise ValueError(f"'{text}' is no size; write 64MB or 1GB")
    return int(found)


def amount(text: object, units: Mapping[str, float]) -> float | None:
    """An amount in the unit whose scale is 1; None when the text is no amount in these units."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text) if math.isfinite(text) and text >= 0 else None
    matched = AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if matched is None:
        return None
    number, unit = matched.groups()
    scale = units.get(unit)
    return None if scale is None else float(number) * scale


def scaled_number(text: str) -> float:
    """`10000`, `10k`, `2.5M` as a number.

    Raises:
        ValueError: the text is not such a number.
    """
    scale = COUNTS.get(text.strip()[-1:].lower())
    try:
        number = float(text if scale is None else text.strip()[:-1]) * (scale or 1)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"'{text}' is no number; write 10000, 10k or 2.5M")
    return number


# ---- printing ------------------------------------------------------------------------------------


def readable_bytes(size: float) -> str:
    """0 B, 3.4 MB, 512 MB."""
    return scaled(size, ("B", "kB", "MB", "GB", "TB"))


def readable_count(count: float) -> str:
    """1,204 or, from a million on, 3.4 M: at most seven letters."""
    if round(count) < 1_000_000:
        return f"{count:,.0f}"
    return scaled(count / 1_000_000, ("M", "G", "T"))


def scaled(amount: float, units: tuple[str, ...]) -> str:
    """An amount in the largest unit of which it has at least one, in steps of a thousand."""
    step = 0
    while amount >= 999.5 and step < len(units) - 1:
        amount, step = amount / 1000, step + 1
    digits = 0 if amount >= 100 or units[step] == "B" else 1
    return f"{amount:,.{digits}f} {units[step]}"


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
    size, unit, below, smaller = next(span for span in SPANS if whole >= span[0])
    # From ten minutes, hours or days on the smaller unit is of no interest.
    rest = whole % size // below if whole < 10 * size else 0
    return f"{whole // size:,} {unit}" + (f" {rest} {smaller}" if rest else "")


def readable_moment(nanoseconds: float | None) -> str:
    """A moment in UTC to the second, from nanoseconds since 1970."""
    if nanoseconds is None:
        return UNKNOWN
    seconds = int(nanoseconds // NANOSECONDS)
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"


def plural(count: int, noun: str, several: str | None = None) -> str:
    """1 row, 1,204 rows, 2 queries."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"
