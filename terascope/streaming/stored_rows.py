"""Rows of the slice store, read back in tasks, and the names of stored streams.

In: segments of stored rows. Out: Arrow batches with the columns that the set has now. Beside the
rows of a stream the store has spans of its slices, by tier (terascope.streaming.tasks.windows), and
the living groups of a running aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.execute.rows.collect import plain
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.stream.plan import LowStream, StreamPlan
from terascope.physical.stream.windows import Length
from terascope.plan.rel import Field, Running
from terascope.streaming.state.segments import Layouts, Segment, read_segment
from terascope.types import Type

ALIVE: Final = "#alive"
"""The column with the state of a group."""
ALIVE_STREAM: Final = ".alive"
"""The suffix of a stream's key for the stored stream of its living groups."""
MARK: Final = "+"
"""Between the key of a stream and the length of the spans of a tier."""
SLICES: Final[Length] = 0
"""The tier of the slices themselves."""


@dataclass(frozen=True)
class StoredStream:
    """A stream that is read from the store."""

    fields: tuple[Field, ...]
    segments: tuple[Segment, ...]
    texts: tuple[str, ...] = ()
    """The expressions of the columns of a low-level stream as text."""

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        return sum(segment.length for segment in self.segments)

    def of_home(self, home: int) -> StoredStream:
        """The rows that one partition has stored."""
        segments = tuple(s for s in self.segments if s.destination == home)
        return replace(self, segments=segments)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(f.name, arrow_type(f.type)) for f in self.fields])


@dataclass(frozen=True)
class StoredRows:
    store: str
    layouts: Layouts

    def batches(self, leaf: StoredStream) -> Iterator[pa.RecordBatch]:
        """The rows of all segments of a stored stream, with its columns."""
        for segment in leaf.segments:
            for rows in unpack_tuples(read_segment(Path(self.store), segment)):
                yield self.with_columns(leaf, rows, segment.layout)

    def with_columns(self, leaf: StoredStream, rows: pa.RecordBatch, layout: str) -> pa.RecordBatch:
        schema, columns = leaf.schema, list(rows.columns)
        if leaf.texts:
            columns = self.layouts.rows(rows, layout, leaf.texts, schema.types)
        return plain(pa.RecordBatch.from_arrays(columns, schema.names)).cast(schema)


def stored_leaves(plan: StreamPlan, segments: Sequence[Segment]) -> dict[str, StoredStream]:
    """The stored streams of a plan with their rows in some segments, by name."""
    rows = rows_by_stream(segments)
    found = {
        stream.name: StoredStream(
            plan.deliveries.targets[stream.number].fields, rows.get(stream.key, ()), stream.texts
        )
        for stream in plan.low
    }
    for running in plan.running:
        found[running.name] = StoredStream(running.rel.fields, rows.get(running.key, ()))
    return found


def stored_tiers(
    plan: StreamPlan, stream: LowStream, shown: LowStream, rows: Mapping[str, tuple[Segment, ...]]
) -> dict[Length, StoredStream]:
    """The stored slices and spans of a stream, with the columns of another stream that differs only
    in its slices.
    """
    fields = plan.deliveries.targets[shown.number].fields
    texts = tuple(stream.epoch_text if t == shown.epoch_text else t for t in shown.texts)
    return {
        tier: StoredStream(fields, rows.get(tier_stream(stream.key, tier), ()), texts)
        for tier in (SLICES, *plan.windows[stream.name].tiers)
    }


def rows_by_stream(segments: Sequence[Segment]) -> dict[str, tuple[Segment, ...]]:
    """The segments of rows of each stored stream, by its key."""
    found: dict[str, list[Segment]] = {}
    for segment in segments:
        if segment.kind == "rows":
            found.setdefault(segment.stream, []).append(segment)
    return {stream: tuple(some) for stream, some in found.items()}


def state_fields(rel: Running) -> tuple[Field, ...]:
    """The columns of living groups."""
    groups = tuple(Field(name, expr.type) for name, expr in rel.keys[1:])
    return (*groups, Field(ALIVE, Type.BINARY))


def state_stream(key: str) -> str:
    """The stored stream of the living groups of a running aggregate."""
    return key + ALIVE_STREAM


def tier_stream(key: str, tier: Length) -> str:
    """The stored stream with the spans of a tier."""
    return key if tier == SLICES else f"{key}{MARK}{tier}"


def base_stream(key: str) -> str:
    """The stream of the slices of a stored stream."""
    return key.partition(MARK)[0]
