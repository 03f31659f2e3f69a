"""The physical operators of a Job, with their places and predicted costs. Pure data.

A Job is a list of operators, each behind the operators it reads. An operator has the places where
it may run. Most have one; where the size or the shape of the data decides, the operator has all
alternatives and names the deciding fact (`choice`), so that an executor decides nothing else.

Places, in the order of the data:
- `task`: in the task that reads the source, next to the tuples;
- `merge`: in the task to which the exchange brings all partial groups of some keys;
- `close`: in a stream, in the task that takes closed slices from the store;
- `driver`: in the process that runs the set;
- `spark`: as DataFrame operations, by Catalyst.

After a run a `Measure` has the figures of each operator, by its name, summed over the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final, Literal, TypeAlias

from terascope.kernels.merge.groups import GroupFields
from terascope.physical.delivery import TaskJoin
from terascope.physical.low_plan import LowAggregate, LowSelect, Windows
from terascope.physical.row_pipeline import Regroup, RowPipeline, Top
from terascope.plan.expr import Expr
from terascope.plan.rel import Rel

Meeting: TypeAlias = Literal["keys", "epoch", "keys without the slice"]
"""The property by which partial groups are brought together in one task."""
Placement: TypeAlias = Literal["task", "partition", "host", "merge", "close", "driver", "spark"]
"""A task that reads; one that reads a partition and owns the keys of the operator; a host with
several partitions; tasks behind the exchange; a task that closes a slice; the driver; Catalyst."""


CHOICES: Final[Mapping[tuple[Placement, ...], str]] = {
    ("task", "merge"): "a task finishes the epochs it has alone, the merge the others",
    ("driver", "merge"): "few bytes are merged by the driver, more are exchanged",
    ("driver", "merge", "spark"): "few bytes are joined by the driver, more by one task, more by"
    " Spark",
    ("task", "close"): "a task finishes the slices it has alone, the closing task the others",
    ("merge", "spark"): "one task, where it reads little and Arrow has its operators, else Spark",
    ("close", "spark"): "the closing task, where the stored rows fit into its memory, else Spark",
}
"""The fact that decides between the places of an operator, by these places."""


@dataclass(frozen=True)
class PhysicalOperator:
    """The parts of every operator."""

    name: str
    """Unique in a Job: the kind and the stream or query, such as `group flows_low`."""
    inputs: tuple[str, ...]
    """The operators whose tuples, groups or rows it reads."""
    places: tuple[Placement, ...]
    cost_ns: float | None = field(default=None, kw_only=True)
    """The predicted time for one tuple or row of its input; None where nothing predicts it."""

    @property
    def choice(self) -> str:
        """The fact that decides between its places; empty where there is one."""
        return CHOICES.get(self.places, "")


@dataclass(frozen=True)
class ReadSource(PhysicalOperator):
    """Decode the columns of a source, split by split, each once for all queries."""

    columns: int
    splits: int
    bytes: int


@dataclass(frozen=True)
class PrefilterTuples(PhysicalOperator):
    """Evaluate every shared predicate once for each tuple, into a bit vector (3.4.2)."""

    predicates: tuple[Expr, ...]


@dataclass(frozen=True)
class SelectTuples(PhysicalOperator):
    """Copy some columns of the tuples that have all bits of a signature."""

    query: LowSelect


@dataclass(frozen=True)
class GroupTuples(PhysicalOperator):
    """Sub-aggregate tuples in a table, with the keys and slots of one query or of several."""

    query: LowAggregate


@dataclass(frozen=True)
class TreeEdge(PhysicalOperator):
    """Sub-aggregate the groups that leave the table of another group operator (paper 4, III-C)."""

    query: LowAggregate


@dataclass(frozen=True)
class SendTuples(PhysicalOperator):
    """Send the tuples of a partition to the tasks of their ranges of time, for the aggregations
    that it cannot finish.
    """

    columns: int
    aggregations: int


@dataclass(frozen=True)
class ReceiveTuples(PhysicalOperator):
    """Take the tuples of a range of time, which all partitions have sent."""

    column: str


@dataclass(frozen=True)
class CombineGroups(PhysicalOperator):
    """Merge the partial groups of the partitions of each host, before they leave it (paper 2,
    5.2.2).
    """

    groups: GroupFields


@dataclass(frozen=True)
class Exchange(PhysicalOperator):
    """Bring together the partial groups of a stream that no reading task could complete."""

    by: Meeting


@dataclass(frozen=True)
class StoreSlices(PhysicalOperator):
    """In a stream: write partial groups of open slices, or rows, to the slice store."""

    kept_by: str
    """The column that decides how long they are kept."""


@dataclass(frozen=True)
class MergeGroups(PhysicalOperator):
    """Merge partial groups: the super-aggregate (paper 1, 3.2)."""

    groups: GroupFields


@dataclass(frozen=True)
class AssembleWindows(PhysicalOperator):
    """Assemble the groups of windows from the groups of slices (paper 0)."""

    windows: Windows


@dataclass(frozen=True)
class RunPipeline(PhysicalOperator):
    """Filter and project the finished rows of one stream for one query."""

    pipeline: RowPipeline


@dataclass(frozen=True)
class RankRows(PhysicalOperator):
    """Keep the first rows of each window (ORDER BY with LIMIT)."""

    top: Top


@dataclass(frozen=True)
class RegroupRows(PhysicalOperator):
    """Aggregate finished rows once more: a query over a query, epoch by epoch."""

    regroup: Regroup


@dataclass(frozen=True)
class JoinGroups(PhysicalOperator):
    """Join the groups of two streams epoch by epoch, where both are complete."""

    join: TaskJoin


@dataclass(frozen=True)
class JoinLeftovers(PhysicalOperator):
    """Join the rows of epochs that no one task has on both sides."""

    rel: Rel


@dataclass(frozen=True)
class ComputeRelation(PhysicalOperator):
    """Compute a stream of the high level."""

    rel: Rel
    kept: bool
    """Several streams read it, so that it is computed once."""


@dataclass(frozen=True)
class WriteRows(PhysicalOperator):
    """Emit the rows of a visible query, in its order."""

    query: str
    columns: int
    order: tuple[tuple[str, bool], ...]


Operator: TypeAlias = (
    ReadSource
    | PrefilterTuples
    | SelectTuples
    | GroupTuples
    | TreeEdge
    | SendTuples
    | ReceiveTuples
    | CombineGroups
    | Exchange
    | StoreSlices
    | MergeGroups
    | AssembleWindows
    | RunPipeline
    | RankRows
    | RegroupRows
    | JoinGroups
    | JoinLeftovers
    | ComputeRelation
    | WriteRows
)


def without_spark(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The operators as the local engine runs them: this process computes relations for Spark."""

    def places(one: Operator) -> tuple[Placement, ...]:
        if isinstance(one, ComputeRelation) and "spark" in one.places:
            return ("driver",)
        return tuple(dict.fromkeys("driver" if p == "spark" else p for p in one.places))

    return tuple(replace(one, places=places(one)) for one in operators)


@dataclass(frozen=True)
class Measure:
    """The figures of one operator."""

    taken: int = 0
    """Tuples, groups or rows that it read."""
    given: int = 0
    """Tuples, groups or rows that it emitted."""
    probes: int = 0
    """Look-ups in its table."""
    evicted: int = 0
    """Groups that left its table before their epoch was over."""
    exchanged_bytes: int = 0
    spilled_bytes: int = 0
    seconds: float = 0.0
    """The time over all tasks, which run side by side."""

    def __add__(self, other: Measure) -> Measure:
        return Measure(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Measure)))


Measures: TypeAlias = Mapping[str, Measure]
"""Measures by the name of an operator."""


def summed(many: Iterable[Measures]) -> dict[str, Measure]:
    """The sum of the figures of several tasks or batches."""
    found: dict[str, Measure] = {}
    for measures in many:
        for name, measure in measures.items():
            found[name] = found.get(name, Measure()) + measure
    return found


def measures_from(document: Mapping[str, Mapping[str, float]]) -> dict[str, Measure]:
    """The measures of a task's report; figures of later versions are left out."""
    known = {f.name for f in fields(Measure)}
    return {
        name: Measure(**{k: v for k, v in figures.items() if k in known})  # type: ignore[arg-type]
        for name, figures in document.items()
    }
