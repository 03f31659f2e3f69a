"""The Job: what will really be done, as pure data.

In: an optimised Plan and the interfaces it reads. Out: one `SourceRead` per physical source,
however many queries look at it; the streams in the order they are computed, each marked kept when
it is used more than once; and the outputs. With a native low level a read also carries what its
tasks do to the tuples, and the streams begin above it. `explain --stage job` prints it;
terascope.spark runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from terascope.connectors.base import Column, Edge, Split
from terascope.connectors.registry import Interface
from terascope.functions.base import Value
from terascope.kernels.merge.groups import GroupFields
from terascope.kernels.tables.slots import Shape
from terascope.physical.delivery import Direct, Joining, Target, TaskJoin
from terascope.physical.low_plan import LowPlan, LowQuery, Slot, Windows
from terascope.physical.operators import Operator
from terascope.physical.row_pipeline import KeptOrder
from terascope.physical.settings import Destination
from terascope.physical.statistics.prospects import Prospect
from terascope.plan.expr import Expr
from terascope.plan.rel import Field, Rel
from terascope.sharing.model import Tree


@dataclass(frozen=True)
class SourceRead:
    """One physical source, read once for the whole set.

    All packet interfaces together are one read, told apart by the column `interface`; every other
    interface is a read of its own.
    """

    name: str
    interfaces: tuple[Interface, ...]
    columns: tuple[Column, ...]
    """What is decoded: the columns somebody uses, and no others."""
    predicate: Expr | None
    """Over `columns`: tuples for which it is not TRUE are of no use to any query and are dropped at
    the source."""
    splits: tuple[Split, ...]
    clocks: tuple[str, ...] = ()
    """Columns whose largest value over all tuples is reported: how far time has moved."""
    notes: tuple[str, ...] = ()
    """What a person should know, such as a .gz file that cannot be split."""
    low: LowPlan | None = None
    """What the tasks that read it do to the tuples. None: the tuples themselves go up."""
    edge: Edge | None = None
    """Where tasks like to end, so that each has whole epochs."""
    arrival_ns: int = 0
    """When the tuples of a batch arrive, if anybody asks; the splits of a live source say so."""

    @property
    def queries(self) -> tuple[LowQuery, ...]:
        """What its tasks compute of the tuples; nothing where the tuples themselves go up."""
        return () if self.low is None else self.low.queries


@dataclass(frozen=True)
class LowOutput:
    """A low-level stream as those above see it: tuples, or groups that are merged on their way."""

    name: str
    fields: tuple[Field, ...]
    groups: GroupFields | None
    """None for a selection, and for windows."""
    windows: Windows | None = None
    """Made of another low-level stream, after its merge."""
    merged_above: bool = False
    """Those above merge its groups once more, so that a group may come in several rows."""

    def with_slots(self, slots: Sequence[Slot]) -> LowOutput:
        """The same groups with other slots."""
        assert self.groups is not None
        wide = GroupFields(
            self.groups.keys,
            tuple(Field(slot.name, slot.type) for slot in slots),
            Shape(self.groups.shape.keys, tuple(slot.kept for slot in slots)),
            self.groups.epoch,
            tuple(slot.sum_text for slot in slots),
        )
        return replace(self, fields=wide.fields, groups=wide)


@dataclass(frozen=True)
class StreamStage:
    """A stream to compute: a query, or a low-level stream of tuples that are Spark's already. One
    that `Job.low` has, too, is the union of both.
    """

    name: str
    rel: Rel
    keep: bool
    """Read by more than one other stream or output: compute once, keep."""


@dataclass(frozen=True)
class Output:
    """A visible stream: its columns without the hidden ones, and the order its rows are delivered
    in.
    """

    stream: str
    columns: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    """Column names, hidden ones included, with True for descending."""
    ordered: KeptOrder = ()
    """The columns that are declared to be in order, without a band."""

    def part_fields(self, rel: Rel, sorted_later: bool) -> tuple[Field, ...]:
        """The columns of parts; those that are sorted later have the hidden ones that takes."""
        names = [*self.columns]
        if sorted_later:
            names += [name for name, _ in self.order if name not in self.columns]
        return tuple(Field(name, rel.type_of(name)) for name in names)


@dataclass(frozen=True)
class TreeDecision:
    """What was decided about some aggregations, for explain."""

    read: str
    queries: tuple[str, ...]
    tree: Tree
    unit: str
    cost: float
    flat_cost: float
    operations: float
    flat_operations: float
    memory_bytes: float
    """Of inner tables."""
    seconds: float
    exchanged: float = 0.0
    """Hash operations in our accounting: the exchange of what leaves the queries' tables is paid,
    and these tables have the memory they are given. `operations` is the paper's, in which they have
    all they want and nothing is exchanged."""
    flat_exchanged: float = 0.0
    partials: float = 0.0
    """Rows that leave the tables of queries in an epoch."""
    query_bytes: float = 0.0
    """Memory of these tables."""
    used: bool = False
    bounded_flat: Tree | None = None
    """The flat plan within the memory that is given; None where tables grow."""

    @property
    def gain(self) -> float:
        return 1 - self.cost / max(1.0, self.flat_cost)


@dataclass(frozen=True)
class Deliveries:
    """How the rows of a job's low level are delivered."""

    direct: Mapping[str, Direct] = field(default_factory=dict)
    joined: Mapping[str, Joining] = field(default_factory=dict)
    targets: Mapping[int, Target] = field(default_factory=dict)
    reads: tuple[SourceRead, ...] = ()
    """The reads with a low level, which does what it can for its targets."""

    @property
    def joins(self) -> tuple[TaskJoin, ...]:
        return tuple(made.pairing for made in self.joined.values())

    @property
    def fields(self) -> dict[str, tuple[Field, ...]]:
        """The columns of the queries that tasks write."""
        found = {name: made.fields for name, made in self.direct.items()}
        return found | {name: made.pairing.fields for name, made in self.joined.items()}


@dataclass(frozen=True)
class Job:
    reads: tuple[SourceRead, ...]
    streams: tuple[StreamStage, ...]
    outputs: tuple[Output, ...]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    low: tuple[LowOutput, ...] = ()
    """The streams that the native low level delivers."""
    trees: Mapping[str, Rel] = field(default_factory=dict)
    """Every stream of the plan as it is meant, low-level ones included: what time is told by."""
    decisions: tuple[TreeDecision, ...] = ()
    """What was decided about intermediate aggregates."""
    prospect: Prospect | None = None
    """What samples of the sources could gain, where that was asked."""
    destination: Destination = "frames"
    deliveries: Deliveries = field(default_factory=Deliveries)
    """What tasks finish themselves, and who takes the rows of the low-level streams."""
    operators: tuple[Operator, ...] = ()
    """Everything that is done, in the order of the data."""

    def read_of(self, interface: str) -> SourceRead:
        return next(r for r in self.reads if any(i.name == interface for i in r.interfaces))
