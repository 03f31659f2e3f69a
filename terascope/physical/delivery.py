"""Who takes the rows of a low-level stream, and where tasks write results. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from terascope.files import PRIVATE, escaped
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.job_windows import Windows
from terascope.physical.row_pipeline import KeptOrder, RowPipeline
from terascope.plan.rel import Field

PartFormat: TypeAlias = Literal["parquet", "held", "csv", "ndjson"]
"""`held` is Parquet with values as engines hold them: parts that will be put together."""


@dataclass(frozen=True)
class Sink:
    """Where parts go: a folder that all tasks can write to."""

    folder: str
    format: PartFormat
    compiled: bool = True
    """Whether queries over queries are grouped by machine code, or by numpy."""
    memory_bytes: int = 1 << 30
    """Of a task; an eighth of it is for parts that are being written."""
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
    """When it merely picks columns of the stream: which."""
    ordered: KeptOrder = ()
    """The columns whose order is looked at when rows are written."""


@dataclass(frozen=True)
class Target:
    """A low-level stream, and who takes its rows."""

    name: str
    fields: tuple[Field, ...]
    groups: GroupFields | None
    """None for a selection."""
    high: bool
    """Spark's high level reads it."""
    direct: tuple[Direct, ...] = ()
    feeds: tuple[tuple[int, Windows], ...] = ()
    """The streams of windows that are made of its groups, by number: all slices of a group must
    meet in one task."""
    of_windows: bool = False
    """It is such a stream."""
    merged_above: bool = False
    """Its readers merge its groups, so that a group may have several rows."""

    @property
    def user(self) -> str:
        """The query that it is there for; empty if there are several, or nobody here knows."""
        alone = len(self.direct) == 1 and not self.high and not self.feeds
        return self.direct[0].query if alone else ""

    @property
    def by_epoch(self) -> bool:
        """Whether all groups of an epoch must meet in one task, to be ranked or grouped there."""
        return any(direct.program.whole is not None for direct in self.direct)
