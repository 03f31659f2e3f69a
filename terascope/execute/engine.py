"""The interface of an engine: it runs tasks and moves their rows for the executor (low_level.py).

Two engines exist: terascope.spark.engine runs tasks as jobs of Spark, terascope.local.engine runs
them in this process. Both run the same reading tasks, merging tasks and joins of leftover rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

from terascope.execute.delivery import Outgoing
from terascope.execute.leftovers import LeftoverJoin
from terascope.execute.merging_task import Merging
from terascope.execute.reading_task import NativeRead
from terascope.execute.results.parts import Part
from terascope.execute.task_reports import TaskReports
from terascope.physical.delivery import Target

EngineName: TypeAlias = Literal["local", "spark"]


class Pass(Protocol):
    """The output of the tasks of one pass, over a source or over partial groups."""

    @property
    def reports(self) -> TaskReports: ...


OnePass = TypeVar("OnePass", bound=Pass)
"""An engine's form of the output of a pass."""
HighRows = TypeVar("HighRows", covariant=True)
"""An engine's form of rows for the high level."""


class BatchEngine(Protocol[OnePass, HighRows]):
    """Runs tasks and moves their rows."""

    @property
    def tasks(self) -> int:
        """The number of tasks of a pass, if its source is large enough."""
        ...

    @property
    def processes(self) -> int:
        """The number of tasks that run at once."""
        ...

    def read(self, reading: NativeRead, leftovers: Collection[int]) -> OnePass:
        """Run the reading tasks. `leftovers`: the streams of tuples that no task could join."""
        ...

    def merge(
        self,
        passes: Sequence[OnePass],
        merging: Merging,
        leftovers: Collection[int],
        size: int,
        destinations: int,
    ) -> OnePass:
        """Exchange the partial groups of some passes, so that all partials of a group meet in one
        of this many merging tasks, and run these. `size`: bytes of all partials.
        """
        ...

    def holding(self, rows: Sequence[Outgoing]) -> OnePass:
        """A pass with rows that the driver has made."""
        ...

    def join_leftovers(self, passes: Sequence[OnePass], joining: LeftoverJoin) -> list[Part]:
        """Join the leftover rows of some passes in one task."""
        ...

    def rows(self, passes: Sequence[OnePass], number: int, target: Target) -> HighRows:
        """The tuples of one low-level stream, for the high level."""
        ...
