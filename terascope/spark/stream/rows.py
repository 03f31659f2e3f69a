"""Rows of the slice store, read back in tasks.

In: segments of closed rows. Out: Arrow batches with the columns that the set has now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.kernels.merge.payload import unpack_tuples
from terascope.plan.rel import Field
from terascope.spark.native import plain
from terascope.streaming.state.layouts import Layouts
from terascope.streaming.state.segments import Segment, read_segment


@dataclass(frozen=True)
class Leaf:
    """A stream that is read from the store."""

    fields: tuple[Field, ...]
    segments: tuple[Segment, ...]
    texts: tuple[str, ...] = ()
    """What its columns are, of a low-level stream."""

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        return sum(segment.length for segment in self.segments)


@dataclass(frozen=True)
class StoredRows:
    """Reads rows of the store."""

    store: str
    layouts: Layouts

    def batches(self, leaf: Leaf) -> Iterator[pa.RecordBatch]:
        """The rows of all its segments, by the names of its columns."""
        names = [f.name for f in leaf.fields]
        for segment in leaf.segments:
            for rows in unpack_tuples(read_segment(Path(self.store), segment)):
                yield pa.RecordBatch.from_arrays(self.columns(leaf, rows, segment.layout), names)

    def columns(self, leaf: Leaf, rows: pa.RecordBatch, layout: str) -> list[pa.Array]:
        """As the set has them that runs now."""
        types = [arrow_type(f.type) for f in leaf.fields]
        columns = list(rows.columns)
        if leaf.texts:
            columns = self.layouts.rows(rows, layout, leaf.texts, types)
        return [plain(column, f) for column, f in zip(columns, leaf.fields, strict=True)]
