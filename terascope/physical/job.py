"""The Job: the physical plan of a query set, as pure data.

In: an optimised Plan and the interfaces it reads. Out: one `SourceRead` per physical source,
however many queries read it; the streams in the order they are computed, and those that are kept
because they are read more than once; and the outputs. With a native low level a read also carries
the low-level plan of its tasks, and the streams begin above it. `explain --stage job` prints a Job;
terascope.spark and terascope.local run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from terascope.connectors.base import Column, Edge, Split
from terascope.connectors.registry import Interface
from terascope.functions.base import Value
from terascope.partitioning.sets import PartitionSet
from terascope.physical.delivery import Direct, InsideStream, Target, TaskJoin
from terascope.physical.low_plan import LowAggregate, LowOutput, LowPlan, LowQuery
from terascope.physical.operators import Operator
from terascope.physical.ownership import KeyOwnership
from terascope.physical.row_pipeline import KeptOrder
from terascope.physical.settings import Destination
from terascope.physical.statistics.prospects import Prospect
from terascope.plan.expr import Expr
from terascope.plan.rel import Field, Rel
from terascope.sharing.model import Tree


@dataclass(frozen=True)
class SourceRead:
    """One physical source, read once for the whole set.

    All packet interfaces together are one read, distinguished by the column `interface`; every
    other interface is a read of its own.
    """

    name: str
    interfaces: tuple[Interface, ...]
    columns: tuple[Column, ...]
    """The columns that are decoded: only those that a query uses."""
    predicate: Expr | None
    """A predicate over `columns`. The source drops tuples for which it is not TRUE: no query takes
    them."""
    splits: tuple[Split, ...]
    clocks: tuple[str, ...] = ()
    """The columns whose largest value over all tuples is reported."""
    notes: tuple[str, ...] = ()
    """Notes for the user, such as a .gz file that cannot be split."""
    low: LowPlan | None = None
    """The low-level plan of the reading tasks. None: the tuples themselves go to the high level."""
    edge: Edge | None = None
    """The edge between epochs at which tasks should end, so that each has whole epochs."""
    arrival_ns: int = 0
    """The arrival time of the tuples of a batch, where a query reads it."""
    partitioned_by: PartitionSet | None = None
    """The partitioning set of a DataFrame whose partitions are declared to be by it."""

    @property
    def queries(self) -> tuple[LowQuery, ...]:
        """The low-level queries of its tasks; none where its tuples go to the high level."""
        return () if self.low is None else self.low.queries

    @property
    def aggregations(self) -> tuple[LowAggregate, ...]:
        return () if self.low is None else self.low.aggregations


@dataclass(frozen=True)
class Output:
    """A visible stream: its columns without the hidden ones, and the order of its rows."""

    stream: str
    columns: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    """Column names, hidden columns included, with True for descending."""
    ordered: KeptOrder = ()
    """The columns that are declared to be in order, without a band."""

    def part_fields(self, rel: Rel, sorted_later: bool) -> tuple[Field, ...]:
        """The columns of parts; where these are sorted later, with hidden sort columns."""
        names = [*self.columns]
        if sorted_later:
            names += [name for name, _ in self.order if name not in self.columns]
        return tuple(Field(name, rel.type_of(name)) for name in names)


@dataclass(frozen=True)
class TreeDecision:
    """The tree chosen for some aggregations, with its costs, for explain."""

    read: str
    queries: tuple[str, ...]
    tree: Tree
    unit: str
    cost: float
    flat_cost: float
    seconds: float
    operations: float = 0.0
    flat_operations: float = 0.0
    memory_bytes: float = 0.0
    """The memory of intermediate tables."""
    exchanged: float = 0.0
    """Hash operations with the exchange of the rows that leave the queries' tables, in tables of
    the given memory. `operations` is the paper's accounting, in which these tables have all the
    memory they can use and the exchange is free."""
    flat_exchanged: float = 0.0
    partials: float = 0.0
    """Rows that leave the tables of queries in an epoch."""
    query_bytes: float = 0.0
    """The memory of the queries' tables."""
    used: bool = False
    bounded_flat: Tree | None = None
    """The flat plan within the given memory; None where tables grow."""

    @property
    def gain(self) -> float:
        return 1 - self.cost / max(1.0, self.flat_cost)


@dataclass(frozen=True)
class Deliveries:
    """The delivery of the rows of a job's low level."""

    direct: Mapping[str, Direct] = field(default_factory=dict)
    joined: Mapping[str, TaskJoin] = field(default_factory=dict)
    targets: Mapping[int, Target] = field(default_factory=dict)
    reads: tuple[SourceRead, ...] = ()
    """The reads with a low-level plan that serves their targets."""
    inside: Mapping[str, InsideStream] = field(default_factory=dict)
    """The streams that the task of each partition computes above the low level, in the order they
    are computed."""

    above: tuple[InsideStream, ...] = ()
    """The other streams above the low level, in the order they are computed: one task computes
    those that read little, Spark the others."""

    @property
    def above_names(self) -> frozenset[str]:
        return frozenset(one.name for one in self.above)

    @property
    def joins(self) -> tuple[TaskJoin, ...]:
        return tuple(self.joined.values())

    @property
    def fields(self) -> dict[str, tuple[Field, ...]]:
        """The columns of the queries that tasks write."""
        found = {name: made.fields for name, made in self.direct.items()}
        found |= {name: made.fields for name, made in self.joined.items()}
        return found | {n: made.written for n, made in self.inside.items() if made.written}


@dataclass(frozen=True)
class Job:
    reads: tuple[SourceRead, ...] = ()
    streams: Mapping[str, Rel] = field(default_factory=dict)
    """The streams above the low level, in the order they are computed: queries, and low-level
    streams of tuples that are Spark's already. A stream that `low` also contains is the union of
    both."""
    outputs: tuple[Output, ...] = ()
    parameters: Mapping[str, Value] = field(default_factory=dict)
    low: tuple[LowOutput, ...] = ()
    """The streams that the native low level emits."""
    trees: Mapping[str, Rel] = field(default_factory=dict)
    """The relation of every stream, low-level streams included; watermarks are derived from it."""
    decisions: tuple[TreeDecision, ...] = ()
    """The aggregate trees that were chosen."""
    prospect: Prospect | None = None
    """The possible gain of samples of the sources, where it was estimated."""
    destination: Destination = "frames"
    deliveries: Deliveries = field(default_factory=Deliveries)
    """The queries that tasks finish, and the readers of the low-level streams."""
    operators: tuple[Operator, ...] = ()
    """The physical operators, in the order of the data."""
    ownership: KeyOwnership | None = None
    """The streams that partitions of sources compute by themselves; None: no source has any."""
    kept: frozenset[str] = frozenset()
    """The streams that several streams or outputs read: each is computed once and kept."""

    def read_of(self, interface: str) -> SourceRead:
        return next(r for r in self.reads if any(i.name == interface for i in r.interfaces))
