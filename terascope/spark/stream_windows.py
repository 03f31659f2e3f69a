"""Windows of closed slices, in a task (paper 0, the superqueries).

In: of one stream the closed rows of its slices, and all queries over windows of them that are due.
Out: the rows of each. The slices are read and put in the order of their groups once, for all of
these queries; each then passes over them once, whatever range and slide are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from terascope.analysis.moving import ALL
from terascope.functions.base import Value
from terascope.low.regroup import Regrouping
from terascope.low.top import Ranking, Top
from terascope.low.windows import ALWAYS, Sequences
from terascope.plan.rel import Field
from terascope.spark.stream_due import DueRange, DueRows, in_order
from terascope.spark.stream_rows import Leaf, StoredRows
from terascope.stream.windowing import Windowing


@dataclass(frozen=True)
class DueWindows:
    """A query, and which of its windows are due."""

    windowing: Windowing
    since: int
    """They end then, or later;"""
    until: int
    """and before."""

    @classmethod
    def of(cls, windowing: Windowing, due: DueRange) -> DueWindows:
        shift = windowing.windows.window.range if windowing.by_start else 0
        since = -ALWAYS if due.low is None else edge(due.low) + shift
        until = -ALWAYS if due.high is None else edge(due.high) + shift
        return cls(windowing, since, until)

    @property
    def first(self) -> int:
        """No slice that begins before is in one of them."""
        return self.since - self.windowing.windows.window.range

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.windowing.fields

    def rows(self, groups: Sequences, slices: Regrouping) -> pa.RecordBatch:
        program, windows = self.windowing.program, self.windowing.windows
        made = [
            program(batch)
            for batch in groups.batches(windows, slices.dictionaries, self.since, self.until)
        ]
        found = [rows for rows in made if rows.num_rows]
        if isinstance(program.whole, Top) and found:
            ranking = Ranking(program.whole)
            for rows in found:
                ranking.take(rows)
            found = [program.finish(ranking.result())]
        return in_order(found, self.windowing.fields, self.windowing.order)


@dataclass(frozen=True)
class DueSlices:
    """The slices of a stream, and all queries over windows of them that are due."""

    leaf: Leaf
    members: tuple[DueWindows, ...]
    compiled: bool

    @property
    def bytes(self) -> int:
        return self.leaf.bytes

    def needed(self) -> DueSlices:
        """Only with the segments that have slices of due windows."""
        first = min(due.first for due in self.members)
        until = max(due.until for due in self.members)
        segments = [s for s in self.leaf.segments if s.has_before(until)]
        kept = tuple(s for s in segments if not s.ends_before(first))
        return replace(self, leaf=replace(self.leaf, segments=kept))

    def rows(self, stored: StoredRows) -> Iterator[DueRows]:
        one = self.members[0].windowing
        slices = Regrouping(one.slices, self.compiled)
        for batch in stored.batches(self.leaf):
            slices.take(batch)
        groups = Sequences(slices.blocks(), slices.fields, one.windows.vector)
        for due in self.members:
            yield DueRows(due.windowing.query, due.fields, due.rows(groups, slices))


def edge(value: Value) -> int:
    return ALWAYS if value is ALL else int(value)
