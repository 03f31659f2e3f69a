"""The readers of the rows of low-level streams: tasks that write or join them, and Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from terascope.files import PRIVATE, escaped
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.low_plan import LowOutput, Windows
from terascope.physical.row_pipeline import Equalities, KeptOrder, RowPipeline
from terascope.plan.rel import Field, JoinKind, Named, Rel

PartFormat: TypeAlias = Literal["parquet", "held", "csv", "ndjson"]
"""The format of parts; `held` is Parquet with values as engines hold them."""


@dataclass(frozen=True)
class Sink:
    """The destination of parts: a folder that all tasks can write to."""

    folder: str
    format: PartFormat
    compiled: bool = True
    """Whether queries over queries are grouped by machine code, or by numpy."""
    memory_bytes: int = 1 << 30
    """The memory of a task; an eighth of it is for parts that are being written."""
    mode: int = PRIVATE
    """The mode of the files."""

    def folder_of(self, query: str) -> Path:
        return Path(self.folder) / escaped(query)


@dataclass(frozen=True)
class Direct:
    """A query whose rows the tasks write themselves."""

    query: str
    program: RowPipeline
    fields: tuple[Field, ...]
    places: tuple[int, ...] | None = None
    """The places of its columns in the stream, when it only picks columns."""
    ordered: KeptOrder = ()
    """The columns whose order is checked when rows are written."""


@dataclass(frozen=True)
class Target(LowOutput):
    """A low-level stream and the readers of its rows."""

    high: bool = False
    """Whether the high level reads it."""
    inside: bool = False
    """Whether the task of each partition reads it itself, for streams above the low level."""
    later: bool = False
    """Whether a second task of each partition reads it, when all partitions have been read."""
    remote: bool = False
    """Whether its rows leave the host of the task that has them, and are compressed for that."""
    direct: tuple[Direct, ...] = ()
    feeds: tuple[tuple[int, Windows], ...] = ()
    """The streams of windows that are assembled from its groups, by number: all slices of a group
    must meet in one task."""

    @property
    def user(self) -> str:
        """The only query that reads it; empty if there are several, or it is unknown."""
        alone = len(self.direct) == 1 and not (self.handed_on or self.feeds)
        return self.direct[0].query if alone else ""

    @property
    def handed_on(self) -> bool:
        """Whether its rows are needed above the low level, there or in the tasks of partitions."""
        return self.high or self.inside or self.later

    @property
    def by_epoch(self) -> bool:
        """Whether all groups of an epoch must meet in one task, to be ranked or grouped there."""
        return any(direct.program.whole is not None for direct in self.direct)


@dataclass(frozen=True)
class Side:
    """One input of a task join: groups of a low-level stream that have an epoch."""

    stream: int
    """The low-level stream of its rows."""
    groups: GroupFields
    """The layout of its groups."""
    program: RowPipeline
    fields: tuple[Field, ...]
    leftovers: int
    """The number of the stream of its leftover rows."""


@dataclass(frozen=True)
class TaskJoin:
    """A query that joins two streams of groups; see plan.rel.Join."""

    query: str
    kind: JoinKind
    left: Side
    right: Side
    equalities: Equalities
    ahead: int
    """The left epoch minus the right epoch of each joined pair."""
    fills: tuple[Named, ...]
    after: RowPipeline
    """The row pipeline on the rows of the join."""
    fields: tuple[Field, ...]
    of_leftovers: Rel
    """The same join of leftover rows; it reads `leftover_name(query, 0)` and 1."""

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right


@dataclass(frozen=True)
class InsideStream:
    """A stream above the low level that the task of each partition computes by itself."""

    name: str
    rel: Rel
    written: tuple[Field, ...] = ()
    """The columns of the parts that the task writes; none: it writes no parts."""
    number: int | None = None
    """The number under which its rows are handed up; None: nothing above the tasks reads it."""
    later: bool = False
    """Whether it has rows up to the last tuple of its sources, which is known when all partitions
    have been read."""


def leftover_name(query: str, side: int) -> str:
    """The stream of a side's leftover rows; no query can have this name."""
    return f"#{('left', 'right')[side]} {query}"
