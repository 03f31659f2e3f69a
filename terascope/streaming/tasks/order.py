"""Parts of one query that tasks wrote independently, merged in the order of their rows.

In: the parts of a query in one micro-batch, whose rows overlap in a column that is declared to be
ordered. Out: one part in their stead. The merge runs in the job of the other work on stored rows,
which most batches have anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from terascope.execute.results.parts import Part
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.streaming.engine import Report
from terascope.streaming.state.manifest import RowFormat
from terascope.streaming.state.reordering import reordered
from terascope.streaming.stored_rows import StoredRows


@dataclass(frozen=True)
class DueMerge:
    """Parts of a query whose rows are merged."""

    fields: tuple[Field, ...]
    ordered: KeptOrder
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.path.stat().st_size for part in self.parts)

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        del stored
        format = cast(RowFormat, sink.format)
        yield "part", reordered(self.parts, format, self.fields, self.ordered).told()
