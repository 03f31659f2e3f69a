"""Columns that a file holds as a dictionary and codes: each distinct value is converted once.

In: dictionary-encoded Arrow columns, batch after batch. Out: `Converted`. The batches of a row
group have equal dictionaries; what became of the last one is kept for the next batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import Column
from terascope.connectors.tables.convert import Converted


class Dictionaries:
    """The last dictionary of each column, and its values as the declared type."""

    def __init__(self, convert: Callable[[pa.Array, Column], Converted]) -> None:
        self._convert = convert
        self._known: dict[Column, tuple[pa.Array, Converted]] = {}

    def convert(self, array: pa.DictionaryArray, column: Column) -> Converted:
        """A column of codes as values."""
        distinct = array.dictionary
        known = self._known.get(column)
        if known is None or not known[0].equals(distinct):
            known = (distinct, self._convert(distinct, column))
            self._known[column] = known
        return looked_up(known[1], array.indices)


def looked_up(distinct: Converted, codes: pa.Array) -> Converted:
    """The converted value of each code; NULL where the code is."""
    values = distinct.values.take(codes)
    if distinct.faults is None:
        return Converted(values)
    # One more entry than there are values: index -1 of a NULL finds a zero there.
    faults = np.append(distinct.faults, np.uint8(0))
    return Converted(values, faults[pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)])
