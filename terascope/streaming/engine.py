"""The interface between micro-batches and the engine that runs them.

A `StreamEngine` runs the tasks of a batch and computes the queries that are not placed in tasks.
Spark is the engine of the product (terascope.spark.stream.engine); tests drive streams with a plain
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from terascope.execute.results.parts import Part
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.stream.plan import RunningStream, StreamOutput
from terascope.plan.evaluate import Parameters
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Rel, Running
from terascope.streaming.stored_rows import StoredRows, StoredStream

Report: TypeAlias = tuple[str, str]
"""A line that a task reports to the driver: its kind (`part`, `segment`, `heartbeat`, ..) and its
text."""

TaskWork: TypeAlias = Callable[[], Iterator[Report]]
"""The work of one task. It is sent to the task, and yields its reports there."""


class HighLevel(Protocol):
    """Computes relations over stored rows."""

    def query(self, output: StreamOutput, trees: Mapping[str, Rel], sink: Sink) -> Any:
        """The rows of a query, computed only when `StreamEngine.write` gets them."""
        ...

    def last(self, rel: Rel, name: str, below: Value, trees: Mapping[str, Rel]) -> Value:
        """The largest value of a column that is below another value."""
        ...

    def furthest_epoch(self, rel: Running, trees: Mapping[str, Rel]) -> int | None:
        """The last epoch of a running aggregate with tuples; None: there is none."""
        ...

    def running_step(
        self,
        running: RunningStream,
        alive: StoredStream,
        low: int | None,
        until: int,
        trees: Mapping[str, Rel],
        store: Path,
    ) -> list[Report]:
        """Compute the epochs of a running aggregate from `low` up to, and without, `until`."""
        ...


class StreamEngine(Protocol):
    def run_tasks(self, work: Sequence[TaskWork]) -> list[Report]:
        """Run every piece of work in a task of its own, and return all reports."""
        ...

    def high_level(
        self,
        stored: StoredRows,
        leaves: Mapping[str, StoredStream],
        parameters: Parameters,
        horizons: Horizons,
    ) -> HighLevel:
        """The high level over stored streams, by name."""
        ...

    def write(self, queries: Sequence[Any]) -> list[Part]:
        """Compute queries of the high level together, and write their parts."""
        ...
