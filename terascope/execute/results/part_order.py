"""Whether the rows of parts are in the declared order of their columns.

In: the columns of a part that are declared to be ordered, page by page. Out: for each of them an
`Extent`: its first and its last value, and whether the rows between them are in order; and for
several parts the sequence in which all rows are in order, if there is one. Each ordered column of a
part is read once, so that parts are rewritten only when they have to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from terascope.kernels.merge.finish import ConstantColumn, Numbers, ResultColumn, arrow_column
from terascope.types import Type

if TYPE_CHECKING:
    from terascope.execute.results.parts import Part


@dataclass(frozen=True)
class Extent:
    """An ordered column of a part. For a falling column the values have the other sign, so that
    later values are larger.
    """

    low: int | float | None = None
    high: int | float | None = None
    """The last value; None: no row has a value."""
    in_order: bool = True

    def then(self, later: Extent) -> Extent:
        """The extent of these rows followed by those of another extent."""
        if self.high is None or self.low is None:
            return Extent(later.low, later.high, self.in_order and later.in_order)
        if later.high is None or later.low is None:
            return Extent(self.low, self.high, self.in_order and later.in_order)
        in_order = self.in_order and later.in_order and self.high <= later.low
        return Extent(min(self.low, later.low), max(self.high, later.high), in_order)


def extent_of(column: ResultColumn, type: Type, descending: bool) -> Extent:
    """The extent of a page of a column; rows without a value are ignored."""
    sign = -1 if descending else 1
    match column:
        case ConstantColumn(value, _):
            return Extent() if value is None else Extent(sign * value, sign * value)
        case Numbers(values, None):
            found = values
        case _:
            found = arrow_column(column, type, True).drop_null().to_numpy(zero_copy_only=False)
    if not len(found):
        return Extent()
    in_order = found[:-1] >= found[1:] if descending else found[:-1] <= found[1:]
    low, high = sorted((sign * found.min().item(), sign * found.max().item()))
    return Extent(low, high, bool(np.all(in_order)))


class OrderWatch:
    """Tracks the ordered columns of a part while it is written."""

    def __init__(self, ordered: Sequence[tuple[int, Type, bool]]) -> None:
        """`ordered`: for each column its place in the part, its type, and whether it falls."""
        self._ordered = tuple(ordered)
        self.extents = tuple(Extent() for _ in self._ordered)

    def see(self, page: Sequence[ResultColumn]) -> None:
        """Add the next page of the part."""
        seen = (extent_of(page[place], type, down) for place, type, down in self._ordered)
        self.extents = tuple(a.then(b) for a, b in zip(self.extents, seen, strict=True))


def in_sequence(parts: Sequence[Part]) -> list[Part] | None:
    """The sequence of the parts of a result in which all rows are in order; None: there is none,
    and their rows have to be merged.
    """
    if len(parts) <= 1:
        placed = list(parts)
    else:
        placed = sorted(parts, key=lambda part: [place_of(extent) for extent in part.extents])
    whole: tuple[Extent, ...] | None = None
    for part in placed:
        pairs = zip(whole, part.extents, strict=True) if whole is not None else None
        whole = part.extents if pairs is None else tuple(a.then(b) for a, b in pairs)
    return placed if whole is None or all(extent.in_order for extent in whole) else None


def place_of(extent: Extent) -> tuple[Any, ...]:
    """The sort key of a part; a part without values comes last."""
    return (extent.low is None, extent.low or 0, extent.high or 0)
