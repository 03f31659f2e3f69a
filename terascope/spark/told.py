"""What tasks tell the driver, and the little of their rows that it can finish by itself.

In: the rows of a low level, kept by Spark. Out: lines of JSON by their kind; packed groups and
tuples, as long as they are little. A job of Spark takes a tenth of a second and more, whatever it
has to do: what would be merged or joined in milliseconds comes with the lines, in the same job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from terascope.execute.delivery import Kind, Outgoing

LITTLE_BYTES: Final = 1 << 16
"""A payload up to this size comes along."""
ENOUGH_BYTES: Final = 8 << 20
"""All that the driver works on itself. Tuples to be joined come along in larger payloads, as long
as one of each task and stream is not more than this."""


@dataclass(frozen=True)
class ToldRow:
    """A line, or a payload: None when it is too large to come along."""

    stream: int
    kind: Kind
    told: str | None
    payload: bytes | None
    size: int = 0
    """Bytes of the payload."""


@dataclass(frozen=True)
class Told:
    """What the tasks of one job said."""

    rows: Sequence[ToldRow]

    @classmethod
    def of(cls, rows: Iterable[Outgoing]) -> Told:
        """Rows that were made here."""
        return cls([told_row(row, row.payload) for row in rows])

    def lines(self, kind: Kind) -> list[str]:
        return [row.told for row in self.rows if row.kind == kind and row.told is not None]

    def packed(self, kind: Kind) -> list[ToldRow]:
        return [row for row in self.rows if row.kind == kind and row.told is None]

    def streams(self, kind: Kind) -> set[int]:
        return {row.stream for row in self.packed(kind)}


@dataclass(frozen=True)
class Little:
    """Selects the rows of tasks that are sent to the driver: lines of JSON, packed groups that have
    to be merged, and packed tuples that no task could join. A row whose payload is larger than
    allowed is sent without it.
    """

    rests: frozenset[int]
    groups_bytes: int
    """The largest payload of groups that is sent."""
    rows_bytes: int
    """The largest payload of tuples that is sent."""

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
        return told_row(row, None if len(row.payload or b"") > most else row.payload)


def told_row(row: Outgoing, payload: bytes | None) -> ToldRow:
    return ToldRow(row.stream, row.kind, row.told, payload, len(row.payload or b""))


def told_rows(df: DataFrame, little: Little) -> Told:
    """The same, of the rows of a DataFrame."""
    kind, stream, payload = F.col("kind"), F.col("stream"), F.col("payload")
    wanted = F.col("told").isNotNull() | (kind == "groups")
    most = F.lit(little.groups_bytes)
    if little.rests:
        wanted |= (kind == "rows") & stream.isin(*little.rests)
        most = F.when(kind == "rows", little.rows_bytes).otherwise(most)
    size = F.coalesce(F.length(payload), F.lit(0))
    payloads = F.when(size <= most, payload)
    rows = df.filter(wanted).select(stream, kind, "told", payloads, size).collect()
    return Told([ToldRow(s, k, t, None if p is None else bytes(p), n) for s, k, t, p, n in rows])


@dataclass
class Packed:
    """Packed groups, or packed tuples, of all reads."""

    rows: list[ToldRow] = field(default_factory=list)

    def add(self, rows: Sequence[ToldRow]) -> None:
        self.rows += rows

    @property
    def size(self) -> int:
        """Bytes of all payloads."""
        return sum(row.size for row in self.rows)

    @property
    def is_little(self) -> bool:
        """Whether all of them are here, and few enough to be worked on here."""
        return self.size <= ENOUGH_BYTES and all(row.payload is not None for row in self.rows)

    def pairs(self) -> Iterator[tuple[int, bytes]]:
        """The stream and the payload of each row."""
        for row in self.rows:
            assert row.payload is not None, "it is little"
            yield row.stream, row.payload


def packed_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The same of rows as Spark gives them to a task."""
    for batch in batches:
        for stream, payload in zip(batch["stream"], batch["payload"], strict=True):
            yield stream.as_py(), payload.as_py()
