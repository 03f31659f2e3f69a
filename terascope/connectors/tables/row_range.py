"""A range of one column: the rows of a shared row group that belong to a split.

In: an option of the split. Out: the rows of a batch that are in the range. Two splits of a row
group have ranges that do not overlap, so that every row is read by one of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.connectors.tables.convert import Bools
from terascope.connectors.tables.kernels import Int64s
from terascope.types import INT_MAX, INT_MIN

RANGE_OPTION: Final = "parquet-range"
"""The split's option that holds the range."""


@dataclass(frozen=True)
class RowRange:
    """Rows whose integer `column`, which has no NULLs, is in first..last, both included."""

    column: str
    first: int = INT_MIN
    last: int = INT_MAX

    @property
    def is_all(self) -> bool:
        return self.first == INT_MIN and self.last == INT_MAX

    @property
    def starts_inside(self) -> bool:
        """Whether the split before has the other rows of the first row group."""
        return self.first != INT_MIN

    def options(self) -> tuple[tuple[str, str], ...]:
        """The form a split carries."""
        if self.is_all:
            return ()
        return ((RANGE_OPTION, json.dumps([self.column, self.first, self.last])),)

    def select(self, batch: pa.RecordBatch, positions: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """The rows in the range, and their positions."""
        column = batch.column(batch.schema.get_field_index(self.column))
        values: Int64s = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        inside: Bools = (values >= self.first) & (values <= self.last)
        places = np.flatnonzero(inside)
        if not places.size:
            return batch.slice(0, 0), positions[:0]
        start, stop = int(places[0]), int(places[-1]) + 1
        if stop - start == places.size:  # the rows are in order of the column: nothing is copied
            return batch.slice(start, stop - start), positions[start:stop]
        return batch.filter(pa.array(inside)), positions[inside]


def range_of(options: Mapping[str, str]) -> RowRange | None:
    """The range among the options of a split."""
    text = options.get(RANGE_OPTION)
    return RowRange(*json.loads(text)) if text is not None else None
