"""Rows: what a stream is in the reference interpreter, and how its values are told apart and put
in order.

In: tuples of held values (terascope.types). Out: `Rows`, keys that say which values are the same
one, and sort keys that place NULLs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from terascope.functions.base import Value
from terascope.functions.values import order_key
from terascope.plan.rel import Field

Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True)
class Rows:
    """The tuples of one stream. Their order means nothing unless somebody sorted them."""

    fields: tuple[Field, ...]
    tuples: list[Row]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def __len__(self) -> int:
        return len(self.tuples)

    def visible(self) -> Rows:
        """The same rows without hidden columns."""
        places = [i for i, f in enumerate(self.fields) if not f.hidden]
        return Rows(
            tuple(self.fields[i] for i in places),
            [tuple(row[i] for i in places) for row in self.tuples],
        )

    def canonical(self) -> Rows:
        """The same rows in the one order that depends on nothing but their values."""
        return Rows(self.fields, canonical_order(self.tuples))


def same(value: Value) -> Value:
    """The value itself, but always the same NaN: then Python, too, puts all NaNs in one group. It
    does so with -0.0 and 0.0; the group is that of 0.0, whichever comes first.
    """
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0


def same_row(values: Iterable[Value]) -> Row:
    return tuple(same(v) for v in values)


def sort_key(value: Value) -> tuple[Any, ...]:
    """Ascending order of the values of a column: NULL is above everything."""
    return (1,) if value is None else (0, order_key(value))


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
