"""The plan of a Job that runs as a stream: the stored rows, and the placement of each query. Pure
data.

A `LowStream` says how the groups or rows of a low-level stream are stored and for how long. A
`StreamOutput` is the plan of one query: how its rows are released, and by whom they are computed.
The plan is made by the rules of terascope.physical.stream.rules, and nothing is decided after it.

The five ways to compute a query, with their placements:

- `WrittenByTasks`: tasks write the rows while they read ("task") or when a slice closes ("close").
- `RowPipelines`: a task filters, projects and merges stored rows ("close").
- `StoredJoin`: a task joins the stored groups of two streams ("close").
- `StoredWindows`: a task assembles windows from stored slices ("close").
- `InSpark`: Catalyst computes the query from stored rows ("spark").

Where a query of placement "close" has more stored rows than the memory of a task holds, Spark
computes it for that micro-batch: `StreamOutput.when_large` says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from terascope.analysis.order import Trees
from terascope.analysis.release import Release
from terascope.analysis.retention import Leaf, RetentionBounds
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.delivery import TaskJoin
from terascope.physical.job import Deliveries, Job, Output
from terascope.physical.operators import Operator, Placement
from terascope.physical.row_pipeline import KeptOrder, RowPipeline
from terascope.physical.split.slicing import SliceFamily, Slicing
from terascope.physical.stream.slice_streams import SliceStream, keys_of_family, tuples_of_family
from terascope.physical.stream.windows import StoredWindows, WindowFamily
from terascope.plan.expr import Expr
from terascope.plan.plan import reads
from terascope.plan.rel import Field, Read, Rel, Running, Scan


@dataclass(frozen=True)
class LowStream:
    """A low-level stream in the slice store."""

    number: int
    name: str
    key: str
    """The identity of the stream: its tuples and keys. A changed query set finds its
    slices by it."""
    scan: Scan
    groups: GroupFields | None
    """The layout of its groups; None for a selection."""
    texts: tuple[str, ...]
    """The expression of each column as text: of groups, keys first and then slots."""
    value: str | None
    """The column that distinguishes slices; None when there is none."""
    read: Read
    """The relation by which queries read it; a shared table has more columns."""
    kept_by: str | None = None
    """The column whose values decide how long the rows of the stream are retained."""
    descending: bool = False
    """Whether the retention column falls with time."""
    sliced: SliceStream | None = None
    """The slices of its groups, where windows are assembled from them."""

    @property
    def is_retired(self) -> bool:
        """Whether it receives no more tuples: its slices are kept for windows that contain them."""
        return self.sliced is not None and self.sliced.retired

    @property
    def epoch_text(self) -> str:
        """For groups: the expression of their epoch as text."""
        place = None if self.groups is None else self.groups.epoch
        return "" if place is None else self.texts[place]

    @property
    def layout(self) -> str:
        return digest("|".join(self.texts))

    @property
    def shelf(self) -> str:
        """The name of its file in the store: streams with equal retention share files."""
        return self.key if self.groups is None else self.epoch_text


@dataclass(frozen=True)
class RunningStream:
    """A running aggregate (CLOSING_WHEN). Its rows are computed once, by Spark, and stored like
    those of the low level; its groups that are still alive are stored, too.
    """

    name: str
    key: str
    rel: Running
    text: str
    """The text of the query that contains it."""
    placement: Placement = "spark"

    @property
    def value(self) -> str:
        return self.rel.keys[0][0]


@dataclass(frozen=True)
class WrittenByTasks:
    """Tasks write the rows of a query: of tuples while they read, of groups when a slice closes.
    The reading task writes the groups of a slice that it has alone.
    """

    stream: int
    """The number of the low-level stream that the rows come from."""
    placement: Placement


@dataclass(frozen=True)
class RowPipelines:
    """A task filters, projects and merges stored rows to those of a query."""

    query: str
    inputs: tuple[RowPipeline, ...]
    """For each stored stream, the steps up to the operator at which the query is released."""
    above: RowPipeline
    """The steps after that operator."""
    value: Expr | None
    """The value by which rows are released, over the columns between `inputs` and `above`; None:
    rows are released at once."""
    fields: tuple[Field, ...]
    """The columns that are emitted."""
    order: tuple[tuple[str, bool], ...]
    """The columns by which rows are sorted, hidden columns included."""
    placement: Placement = "close"


@dataclass(frozen=True)
class StoredJoin:
    """A task joins the stored groups of two low-level streams."""

    join: TaskJoin
    tied: tuple[Expr, Expr]
    """Over the rows of either side: the values whose equality bounds the join in time."""
    placement: Placement = "close"


@dataclass(frozen=True)
class InSpark:
    """Catalyst computes a query from stored rows."""

    placement: Placement = "spark"


QueryPlan: TypeAlias = WrittenByTasks | RowPipelines | StoredJoin | StoredWindows | InSpark


@dataclass(frozen=True)
class StreamOutput:
    """The plan of a query whose rows are emitted."""

    output: Output
    fields: tuple[Field, ...]
    text: str
    """The text of the query with all queries that it reads; another text is another query."""
    own: str
    """The text of the query alone, as it was written."""
    release: Release | None
    """How rows that are computed from stored rows are released; None: tasks write them."""
    plan: QueryPlan = InSpark()

    @property
    def name(self) -> str:
        return self.output.stream

    @property
    def placement(self) -> Placement:
        return self.plan.placement

    @property
    def when_large(self) -> Placement:
        """The placement in a micro-batch whose stored rows do not fit into the memory of a task."""
        return "spark" if self.release is not None else self.placement

    @property
    def low(self) -> int | None:
        """The number of the low-level stream whose tasks write the query; None: they do not."""
        return self.plan.stream if isinstance(self.plan, WrittenByTasks) else None

    @property
    def windows(self) -> StoredWindows | None:
        return self.plan if isinstance(self.plan, StoredWindows) else None

    @property
    def ordered(self) -> KeptOrder:
        """The columns in whose order rows are emitted, over all batches."""
        if self.release is not None and self.release.kind == "at_once":
            return ()
        return self.output.ordered


@dataclass(frozen=True)
class StreamPlan:
    job: Job
    deliveries: Deliveries
    low: tuple[LowStream, ...]
    outputs: tuple[StreamOutput, ...]
    trees: Trees
    """The relations of all streams; low-level streams down to their sources."""
    running: tuple[RunningStream, ...] = ()
    slicing: Slicing = field(default_factory=Slicing)
    """The composition of the windows of the set."""
    operators: tuple[Operator, ...] = ()
    """Everything that is done, in the order of the data."""

    @cached_property
    def retention(self) -> RetentionBounds:
        """The rows of stored streams that queries will read again."""
        kept_by: dict[Leaf, str] = {low.name: low.kept_by for low in self.low if low.kept_by}
        kept_by |= {one.name: one.value for one in self.running}
        return RetentionBounds(self.trees, self.leaves, kept_by)

    @cached_property
    def windows(self) -> dict[str, WindowFamily]:
        """By low-level stream: the queries over its windows that tasks assemble."""
        found: dict[str, list[StoredWindows]] = {}
        for output in self.outputs:
            for one in () if output.windows is None else output.windows.by_stream:
                found.setdefault(one.stream, []).append(one)
        return {stream: WindowFamily(tuple(members)) for stream, members in found.items()}

    @cached_property
    def leaves(self) -> dict[str, str]:
        """The keys of the stored streams, by name."""
        found = {low.name: low.key for low in self.low}
        return found | {one.name: one.key for one in self.running}

    def sources(self, output: StreamOutput) -> list[str]:
        """The stored streams whose rows a query reads."""
        match output.plan:
            case WrittenByTasks():
                return []
            case RowPipelines(inputs=inputs):
                return [one.stream for one in inputs]
            case StoredJoin(join=join):
                return [side.program.stream for side in join.sides]
            case StoredWindows() as stored:
                return list(stored.streams)
            case InSpark():
                return list(self.leaves_of(self.trees.streams[output.name]))

    def leaves_of(self, rel: Rel) -> Iterator[str]:
        """The stored streams that a relation reads, through the streams between."""
        for read in reads(rel):
            if read.stream in self.leaves:
                yield read.stream
            else:
                yield from self.leaves_of(self.trees.streams[read.stream])

    @property
    def by_name(self) -> Mapping[str, LowStream]:
        return {low.name: low for low in self.low}

    def slices_of(
        self, family: SliceFamily, retired: bool
    ) -> Iterator[tuple[LowStream, SliceStream]]:
        """The low-level streams whose groups are slices of a family of windows, or of the family
        with more keys.
        """
        tuples, keys = tuples_of_family(family), keys_of_family(family)
        for stream in self.low:
            sliced = stream.sliced
            if sliced is None or sliced.retired != retired:
                continue
            if sliced.tuples == tuples and sliced.keys >= keys:
                yield stream, sliced


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
