"""What tasks tell the driver, and the little of their rows that it can finish by itself.

In: the rows of a low level, kept by Spark. Out: lines of JSON by their kind; packed groups and
tuples, as long as they are little. A job of Spark takes a tenth of a second and more, whatever it
has to do: what would be merged or joined in milliseconds comes with the lines, in the same job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from terascope.low.delivery import Kind, Outgoing

LITTLE_BYTES: Final = 1 << 16
"""A payload up to this size comes along."""
ENOUGH_BYTES: Final = 8 << 20
"""All that the driver works on itself. Tuples to be joined come along in larger payloads, as long
as one of each task and stream is not more than this."""
PACKED: Final = pa.schema([("stream", pa.int32()), ("payload", pa.binary())])


@dataclass(frozen=True)
class ToldRow:
    """A line, or a payload: None when it is too large to come along."""

    stream: int
    kind: Kind
    told: str | None
    payload: bytes | None


@dataclass(frozen=True)
class Told:
    """What the tasks of one job said."""

    rows: Sequence[ToldRow]

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> Told:
        """Rows that were made here."""
        columns = ("stream", "kind", "told", "payload")
        return cls(
            [
                ToldRow(*(row[name] for name in columns))
                for batch in batches
                for row in batch.to_pylist()
            ]
        )

    def lines(self, kind: Kind) -> list[str]:
        return [row.told for row in self.rows if row.kind == kind and row.told is not None]

    def packed(self, kind: Kind) -> list[ToldRow]:
        return [row for row in self.rows if row.kind == kind and row.told is None]

    def streams(self, kind: Kind) -> set[int]:
        return {row.stream for row in self.packed(kind)}


@dataclass(frozen=True)
class Little:
    """Which rows of tasks come along: the lines, the groups to be merged, and the tuples of some
    streams, those that no task could join. Payloads only as long as they are little.
    """

    rests: frozenset[int]
    groups_bytes: int
    """What a row of groups may have."""
    rows_bytes: int
    """What a row of tuples may have."""

    @classmethod
    def of(cls, rests: Collection[int], tasks: int) -> Little:
        share = ENOUGH_BYTES // (tasks * len(rests)) if rests else 0
        return cls(frozenset(rests), LITTLE_BYTES, max(LITTLE_BYTES, share))

    def wants(self, row: Outgoing) -> bool:
        if row.told is not None or row.kind == "groups":
            return True
        return row.kind == "rows" and row.stream in self.rests

    def told(self, row: Outgoing) -> ToldRow:
        most = self.rows_bytes if row.kind == "rows" else self.groups_bytes
        payload = row.payload if row.payload is None or len(row.payload) <= most else None
        return ToldRow(row.stream, row.kind, row.told, payload)


def told_rows(df: DataFrame, little: Little) -> Told:
    """The same, of the rows of a DataFrame."""
    kind, stream, payload = F.col("kind"), F.col("stream"), F.col("payload")
    wanted = F.col("told").isNotNull() | (kind == "groups")
    most = F.lit(little.groups_bytes)
    if little.rests:
        wanted |= (kind == "rows") & stream.isin(*little.rests)
        most = F.when(kind == "rows", little.rows_bytes).otherwise(most)
    payloads = F.when(F.length(payload) <= most, payload)
    rows = df.filter(wanted).select(stream, kind, "told", payloads).collect()
    return Told([ToldRow(s, k, t, None if p is None else bytes(p)) for s, k, t, p in rows])


@dataclass
class Packed:
    """Packed groups, or packed tuples, of all reads."""

    rows: list[ToldRow] = field(default_factory=list)

    def add(self, rows: Sequence[ToldRow]) -> None:
        self.rows += rows

    @property
    def is_little(self) -> bool:
        """Whether all of them are here, and few enough to be worked on here."""
        sizes = [None if row.payload is None else len(row.payload) for row in self.rows]
        known = [size for size in sizes if size is not None]
        return len(known) == len(sizes) and sum(known) <= ENOUGH_BYTES

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As tasks would get them."""
        columns = [[row.stream for row in self.rows], [row.payload for row in self.rows]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, PACKED, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=PACKED)
