"""Durations and sizes as people write them: `500ms`, `2s`, `1m`, `256MB`.

In: text with a unit, or a number. Out: seconds, bytes. What makes no sense is a ValueError with a
message for a person.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

OFF: Final = "off"
SECONDS: Final = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
BYTES: Final = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip
AMOUNT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")


def seconds(told: object) -> float:
    """`2s` -> 2.0; a number is one of seconds.

    Raises:
        ValueError: it is no duration.
    """
    found = amount(told, SECONDS)
    if found is None:
        raise ValueError(f"'{told}' is no duration; write 500ms, 2s or 1m")
    return found


def seconds_or_off(told: object) -> float:
    """The same, and `off` is 0.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(told, str) and told.strip().lower() == OFF:
        return 0.0
    try:
        return seconds(told)
    except ValueError as problem:
        raise ValueError(f"{problem}, or {OFF}") from None


def seconds_or_never(told: object) -> float:
    """The same, and `off` is infinite.

    Raises:
        ValueError: it is neither.
    """
    if told == math.inf or (isinstance(told, str) and told.strip().lower() == OFF):
        return math.inf
    return seconds_or_off(told)


def size(told: object) -> int:
    """`256MB` -> 256,000,000; a number is one of bytes.

    Raises:
        ValueError: it is no size, or nothing.
    """
    found = amount(told, BYTES)
    if found is None or found < 1:
        raise ValueError(f"'{told}' is no size; write 64MB or 1GB")
    return int(found)


def amount(told: object, units: Mapping[str, float]) -> float | None:
    """Of the smallest unit; None when it is nothing of the kind."""
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told) if math.isfinite(told) and told >= 0 else None
    matched = AMOUNT.fullmatch(told) if isinstance(told, str) else None
    if matched is None:
        return None
    number, unit = matched.groups()
    scale = units.get(unit)
    return None if scale is None else float(number) * scale
