"""Reports of tasks to the driver, and small rows that the driver processes itself.

In: the output rows of the tasks of one pass. Out: lines of JSON by their kind; packed groups and
tuples, as long as they are small. A job of Spark takes a tenth of a second and more, whatever its
work: groups and tuples that are merged or joined in milliseconds travel with the reports, in the
same job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from terascope.execute.delivery import Kind, Outgoing

SMALL_PAYLOAD_BYTES: Final = 1 << 16
"""A payload up to this size is sent to the driver."""
DRIVER_BYTES: Final = 8 << 20
"""The bytes that the driver processes itself. Tuples to be joined are sent in larger payloads, as
long as one of each task and stream is not more than this."""


@dataclass(frozen=True)
class ReportRow:
    """A line of JSON, or a payload; None when it is too large to be sent to the driver."""

    stream: int
    kind: Kind
    told: str | None
    payload: bytes | None
    size: int = 0
    """The bytes of the payload."""


@dataclass(frozen=True)
class TaskReports:
    """The reports of the tasks of one pass."""

    rows: Sequence[ReportRow]

    @classmethod
    def of(cls, rows: Iterable[Outgoing]) -> TaskReports:
        """The reports of rows that were made in this process."""
        return cls([report_row(row, row.payload) for row in rows])

    def lines(self, kind: Kind) -> list[str]:
        return [row.told for row in self.rows if row.kind == kind and row.told is not None]

    def packed(self, kind: Kind) -> list[ReportRow]:
        return [row for row in self.rows if row.kind == kind and row.told is None]

    def streams(self, kind: Kind) -> set[int]:
        return {row.stream for row in self.packed(kind)}


@dataclass(frozen=True)
class ReportFilter:
    """Selects the rows of tasks that are sent to the driver: lines of JSON, packed groups that have
    to be merged, and packed tuples that no task could join. A row whose payload is larger than
    allowed is sent without it.
    """

    leftovers: frozenset[int]
    """The streams of tuples that no task could join."""
    groups_bytes: int
    """The largest payload of groups that is sent."""
    rows_bytes: int
    """The largest payload of tuples that is sent."""

    @classmethod
    def of(cls, leftovers: Collection[int], tasks: int) -> ReportFilter:
        share = DRIVER_BYTES // (tasks * len(leftovers)) if leftovers else 0
        return cls(frozenset(leftovers), SMALL_PAYLOAD_BYTES, max(SMALL_PAYLOAD_BYTES, share))

    def selects(self, row: Outgoing) -> bool:
        if row.told is not None or row.kind == "groups":
            return True
        return row.kind == "rows" and row.stream in self.leftovers

    def report(self, row: Outgoing) -> ReportRow:
        most = self.rows_bytes if row.kind == "rows" else self.groups_bytes
        return report_row(row, None if len(row.payload or b"") > most else row.payload)


def report_row(row: Outgoing, payload: bytes | None) -> ReportRow:
    return ReportRow(row.stream, row.kind, row.told, payload, len(row.payload or b""))


@dataclass
class Packed:
    """Packed groups, or packed tuples, of all reads."""

    rows: list[ReportRow] = field(default_factory=list)

    def add(self, rows: Sequence[ReportRow]) -> None:
        self.rows += rows

    @property
    def size(self) -> int:
        """Bytes of all payloads."""
        return sum(row.size for row in self.rows)

    @property
    def is_small(self) -> bool:
        """Whether the driver has all payloads, and can work on them itself."""
        return self.size <= DRIVER_BYTES and all(row.payload is not None for row in self.rows)

    def pairs(self) -> Iterator[tuple[int, bytes]]:
        """The stream and the payload of each row."""
        for row in self.rows:
            assert row.payload is not None, "the payload is small"
            yield row.stream, row.payload
