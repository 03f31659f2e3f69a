"""Parts of a micro-batch that tasks wrote apart from each other, merged in the order of their rows.

In: the parts of a query whose rows overlap in a column that is declared to be ordered. Out: one
part in their stead. It is made in the job of the queries that tasks compute, of which most batches
have one anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from terascope.execute.results.parts import Part
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.spark.stream.due import Told
from terascope.spark.stream.rows import StoredRows
from terascope.streaming.state.manifest import RowFormat
from terascope.streaming.state.reordering import reordered


@dataclass(frozen=True)
class DueMerge:
    """The parts of a query that are merged."""

    fields: tuple[Field, ...]
    ordered: KeptOrder
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.path.stat().st_size for part in self.parts)

    def tell(self, stored: StoredRows, sink: Sink) -> Iterator[Told]:
        del stored
        format = cast(RowFormat, sink.format)
        yield "part", reordered(self.parts, format, self.fields, self.ordered).told()
