"""Heavy hitters as text: a list of identifiers in JSON.

In: the identifiers that a state names (terascope.sketches.hitter_answers). Out: a list in JSON,
which CSV output and other programs take alike. Addresses are written as GSQL prints them, numbers
as numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from terascope.functions.base import Value, ValueMistake
from terascope.sketches.hitter_answers import Hit, Hitters
from terascope.types import format_ip

MOST: Final = 10_000


def count_of(name: str, k: Value) -> int:
    """The number of identifiers asked for."""
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST:
        raise ValueMistake(f"{name} takes a number of identifiers between 1 and {MOST}, not {k}")
    return k


def read_state(name: str, state: bytes) -> Hitters:
    """The content of a state that a query hands to a function."""
    try:
        return Hitters(state)
    except ValueError as problem:
        raise ValueMistake(f"{name}: {problem}") from problem


def written(value: Value) -> Any:
    """An identifier as JSON holds it."""
    if isinstance(value, bytes):
        return format_ip(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def listed(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    return [{"id": written(h.id), "estimate": h.estimate, "error": h.error} for h in hits]


def as_json(entries: Sequence[dict[str, Any]]) -> str:
    return json.dumps(entries, ensure_ascii=False)
