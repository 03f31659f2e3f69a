"""Are two lots of rows the same? As multisets, and exactly; only FLOATs of an engine that is not
ours to 1e-9.

In: rows of two engines. Out: nothing, or an AssertionError that shows what is missing and what is
too much.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from terascope.functions.base import Value
from terascope.functions.values import order_key
from terascope.plan.rel import Field
from terascope.reference.rows import Row, same_row
from terascope.types import Type

TOLERANCE = 1e-9
SHOWN = 20


def assert_same_rows(
    expected: Iterable[Row], actual: Iterable[Row], fields: Sequence[Field], rounding: bool = False
) -> None:
    """Both have the same rows, each as often; with `rounding`, FLOATs may differ by as much.

    Raises:
        AssertionError: with the rows that differ.
    """
    missing = Counter(checked_row(row, fields) for row in expected)
    extra = Counter(checked_row(row, fields) for row in actual)
    missing, extra = missing - extra, extra - missing
    lost, found = canonical_order(missing.elements()), canonical_order(extra.elements())
    if rounding and any(field.type is Type.FLOAT for field in fields):
        lost, found = without_close_pairs(lost, found, fields)
    if not lost and not found:
        return
    names = ", ".join(field.name for field in fields)
    raise AssertionError(
        f"rows ({names}) differ:\n{shown('missing', lost)}\n{shown('not expected', found)}"
    )


def checked_row(row: Row, fields: Sequence[Field]) -> Row:
    """To Python, True is 1 is 1.0: whether a value is held as its type says is asked first."""
    assert len(row) == len(fields), f"{row!r} is not of the columns {[f.name for f in fields]}"
    for value, field in zip(row, fields, strict=True):
        if value is not None and type(value) is not held_as(field.type):
            raise AssertionError(f"{field.name} is {field.type.name}, but holds {value!r}")
    return same_row(row)


def held_as(type: Type) -> object:
    match type:
        case Type.BOOL:
            return bool
        case Type.INT | Type.UINT | Type.LLONG | Type.ULLONG | Type.WIDE:
            return int
        case Type.FLOAT:
            return float
        case Type.STRING:
            return str
        case Type.IP | Type.IPV6 | Type.BINARY:
            return bytes
        case Type.NULL:
            return None


def without_close_pairs(
    lost: list[Row], found: list[Row], fields: Sequence[Field]
) -> tuple[list[Row], list[Row]]:
    """Take out the pairs that differ by no more than rounding."""
    exact = [i for i, field in enumerate(fields) if field.type is not Type.FLOAT]
    candidates: dict[Row, list[Row]] = {}
    for row in found:
        candidates.setdefault(same_row(row[i] for i in exact), []).append(row)
    unpaired: list[Row] = []
    for row in lost:
        others = candidates.get(same_row(row[i] for i in exact), [])
        partner = next((other for other in others if close_rows(row, other)), None)
        if partner is None:
            unpaired.append(row)
        else:
            others.remove(partner)
    return unpaired, [row for others in candidates.values() for row in others]


def close_rows(left: Row, right: Row) -> bool:
    return all(close(a, b) for a, b in zip(left, right, strict=True))


def close(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=1e-12)
    return bool(left == right)


def shown(title: str, rows: list[Row]) -> str:
    lines = [f"  {row!r}" for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        lines.append(f"  ... and {len(rows) - SHOWN} more")
    return "\n".join([f"{title}: {len(rows)}", *lines])


def canonical_key(value: Value) -> tuple[Any, ...]:
    """As `sort_key`, but also orders values of different types: numbers, text, bytes, NULL."""
    match value:
        case None:
            return (3,)
        case bytes():
            return (2, value)
        case str():
            return (1, value)
        case _:
            return (0, order_key(float(value)), 0 if isinstance(value, float) else value)


def canonical_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: tuple(canonical_key(v) for v in row))
