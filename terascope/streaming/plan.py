"""A Job as a stream: what is kept of its low level, and how each query is let go.

In: a Job whose sources are live. Out: a `StreamPlan`, pure data. A low-level stream is known by its
key, which says what it is and not how it is called, so that a changed query set finds its slices
again. A query is *direct* when tasks write its rows from the groups of closed slices, or, when it
only selects tuples of one interface, from the tuples as they come; any other one is computed by
Spark from the rows of closed slices.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from terascope.analysis.needs import Leaf, keeping_columns
from terascope.analysis.release import Release, release_columns, release_of, temporal_bound
from terascope.analysis.trees import Trees
from terascope.diagnostic import SourceError
from terascope.functions.base import Trend
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.job import Deliveries, Job, Output
from terascope.physical.low_plan import LowAggregate, LowQuery
from terascope.physical.row_pipeline import KeptOrder
from terascope.physical.rules.finish_in_tasks import deliveries
from terascope.physical.rules.join_in_tasks import joinings
from terascope.physical.rules.low_planner import scanned, source_of
from terascope.physical.split.slicing import SliceFamily, Slicing
from terascope.physical.split.split_windows import without_retired
from terascope.physical.task_join import Joining, Pairing
from terascope.plan.expr import Expr
from terascope.plan.plan import reads
from terascope.plan.rel import (
    Aggregate,
    Field,
    Project,
    Read,
    Rel,
    Running,
    Scan,
    inputs,
    with_inputs,
)
from terascope.plan.show import show_expr, show_rel
from terascope.streaming.parameters import spelled
from terascope.streaming.replan.slice_streams import (
    SliceStream,
    keys_of_family,
    slice_stream,
    tuples_of_family,
)
from terascope.streaming.strands import Strands, strands_of
from terascope.streaming.windowing import WindowFamily, Windowing, WindowingPlanner
from terascope.types import Type


@dataclass(frozen=True)
class LowStream:
    """A low-level stream as the slice store has it."""

    number: int
    name: str
    key: str
    scan: Scan
    groups: GroupFields | None
    """None for a selection."""
    fields: tuple[Field, ...]
    texts: tuple[str, ...]
    """What each of its columns is: keys first, then slots; or those of a selection."""
    value: str | None
    """The column that tells slices apart; None when nothing does."""
    tree_fields: tuple[Field, ...] = ()
    """Its columns in the plan; those that share a table have more."""
    kept_by: str | None = None
    """The column by which its rows are kept for the high level."""
    descending: bool = False
    """Whether that column falls with time."""
    epoch_text: str = ""
    """Of groups: what their epoch is."""
    sliced: SliceStream | None = None
    """Of groups of slices that windows are made of."""

    @property
    def is_retired(self) -> bool:
        """Whether it gets no more tuples: its slices are kept for windows that have them."""
        return self.sliced is not None and self.sliced.retired

    @property
    def layout(self) -> str:
        return digest("|".join(self.texts))

    @property
    def shelf(self) -> str:
        """Streams whose slices live equally long share files."""
        if self.groups is None:
            return self.key
        return self.epoch_text


@dataclass(frozen=True)
class RunningStream:
    """Groups that live over epochs (CLOSING_WHEN): their rows are made once and kept, as those of
    the low level are, and so are the groups.
    """

    name: str
    key: str
    rel: Running
    text: str
    """Of the query it is a part of."""

    @property
    def value(self) -> str:
        return self.rel.keys[0][0]


@dataclass(frozen=True)
class StreamOutput:
    """A query whose rows are delivered."""

    output: Output
    fields: tuple[Field, ...]
    text: str
    """What the query is, with all that it reads; one that says something else is another one."""
    own: str
    """The query alone, as it was written."""
    low: int | None
    """Of a direct query: the number of the stream its rows are made of."""
    release: Release | None
    """Of any other one."""
    pairing: Pairing | None = None
    """Of a join that tasks can make of closed groups."""
    tied: tuple[Expr, Expr] | None = None
    """Over the rows of either side: what ties them together in time."""
    strands: Strands | None = None
    """Of a query that tasks compute from closed rows one by one."""
    windowing: Windowing | None = None
    """Of a query that tasks compute from the windows of closed slices."""

    @property
    def name(self) -> str:
        return self.output.stream

    @property
    def ordered(self) -> KeptOrder:
        """The columns in whose order rows are emitted, over all batches."""
        if self.release is not None and self.release.kind == "at_once":
            return ()
        return self.output.ordered

    @property
    def is_of_tasks(self) -> bool:
        """Whether tasks can compute it from closed rows."""
        how = self.pairing, self.strands, self.windowing
        return any(one is not None for one in how)


@dataclass(frozen=True)
class StreamPlan:
    job: Job
    deliveries: Deliveries
    low: tuple[LowStream, ...]
    outputs: tuple[StreamOutput, ...]
    trees: Trees
    """Of all streams, low-level ones as they are made of their sources."""
    running: tuple[RunningStream, ...] = ()
    slicing: Slicing = field(default_factory=Slicing)
    """How the windows of the set are composed."""

    @property
    def kept_by(self) -> dict[Leaf, str]:
        found: dict[Leaf, str] = {low.name: low.kept_by for low in self.low if low.kept_by}
        return found | {one.name: one.value for one in self.running}

    @cached_property
    def windows(self) -> dict[str, WindowFamily]:
        """By low-level stream: the queries over windows of it that tasks compute."""
        found: dict[str, list[Windowing]] = {}
        for output in self.outputs:
            for one in () if output.windowing is None else output.windowing.by_stream:
                found.setdefault(one.stream, []).append(one)
        return {stream: WindowFamily(tuple(members)) for stream, members in found.items()}

    @property
    def leaves(self) -> dict[str, str]:
        """The streams that are read from the store, by name: their keys."""
        found = {low.name: low.key for low in self.low}
        return found | {one.name: one.key for one in self.running}

    @property
    def by_name(self) -> Mapping[str, LowStream]:
        return {low.name: low for low in self.low}

    def slices_of(
        self, family: SliceFamily, retired: bool
    ) -> Iterator[tuple[LowStream, SliceStream]]:
        """The low-level streams whose groups are slices of a family of windows, or of it by more
        keys.
        """
        tuples, keys = tuples_of_family(family), keys_of_family(family)
        for stream in self.low:
            sliced = stream.sliced
            if sliced is None or sliced.retired != retired:
                continue
            if sliced.tuples == tuples and sliced.keys >= keys:
                yield stream, sliced


def stream_plan(
    job: Job,
    texts: Mapping[str, str],
    own: Mapping[str, str] | None = None,
    slicing: Slicing | None = None,
) -> StreamPlan:
    """`texts`: by stream, what it says with all that it reads; `own`: what its user wrote;
    `slicing`: how the windows of the set are composed.

    Raises:
        SourceError: a source cannot be read as a stream.
    """
    for read in job.reads:
        if read.low is None:
            raise SourceError(
                f"'{read.name}' cannot be streamed: its tuples are Spark's already; set low to"
                " auto, and bind files, folders or the generator"
            )
    queries = {query.name: query for read in job.reads if read.low for query in read.low.queries}
    low_names = [made.name for made in job.low]
    stages = {stage.name: stage.rel for stage in job.streams}
    streams, running = materialised({n: job.trees[n] for n in low_names}, stages, texts)
    trees = Trees(streams, job.parameters)
    low = tuple(
        with_own_keys(
            low_stream(number, queries[made.name], made.groups, trees)
            for number, made in enumerate(job.low)
        )
    )
    merged = {stream.name for stream in low if needs_order(stream)}
    planned = deliveries(job, writing=True, sorted_later=False, joins=False, held=merged)
    leaves = {*(stream.name for stream in low), *(one.name for one in running)}
    numbers = {stream.name: stream.number for stream in low}
    joined = joinings(job, planned.direct, sorted_later=False)
    outputs: list[StreamOutput] = []
    for output in job.outputs:
        direct = planned.direct.get(output.stream)
        outputs.append(
            StreamOutput(
                output,
                output.part_fields(stages[output.stream], False),
                texts[output.stream],
                (own or texts).get(output.stream, ""),
                None if direct is None else numbers[direct.program.stream],
                None if direct is not None else release_of(output.stream, trees, leaves),
            )
        )
    outputs = [with_pairing(output, joined.get(output.name), trees) for output in outputs]
    outputs = [with_strands(output, trees, leaves) for output in outputs]
    windowing = WindowingPlanner(job.low, {n: streams[n] for n in stages}, job.parameters)
    outputs = [with_windowing(output, windowing) for output in outputs]
    releases = [output.release for output in outputs if output.release is not None]
    kept_by = keeping_columns(releases, trees, leaves, [one.rel for one in running])
    low = tuple(keeping(stream, kept_by, trees) for stream in low)
    return StreamPlan(
        job, planned, low, tuple(outputs), trees, tuple(running), slicing or Slicing()
    )


def with_pairing(output: StreamOutput, joining: Joining | None, trees: Trees) -> StreamOutput:
    """A join that tasks make, if that is what the query waits for."""
    release = output.release
    if joining is None or release is None or len(release.parts) != 1:
        return output
    bound = temporal_bound(release.node, trees)
    if bound is None or bound.band is not None:
        return output
    return replace(output, pairing=joining.pairing, tied=(bound.left, bound.right))


def with_strands(output: StreamOutput, trees: Trees, leaves: Collection[str]) -> StreamOutput:
    """A query that tasks compute, if it does no more than they can."""
    if output.release is None or output.pairing is not None:
        return output
    order = output.output.order
    return replace(
        output,
        strands=strands_of(
            output.name, output.release, trees.streams, leaves, trees.parameters, output.fields,
            order,
        ),
    )  # fmt: skip


def with_windowing(output: StreamOutput, planner: WindowingPlanner) -> StreamOutput:
    """A query over windows that tasks put together, if it is nothing else."""
    if output.release is None or output.is_of_tasks:
        return output
    found = planner.windowing(output.name, output.release, output.fields, output.output.order)
    return replace(output, windowing=found)


def materialised(
    low: Mapping[str, Rel], stages: Mapping[str, Rel], texts: Mapping[str, str]
) -> tuple[dict[str, Rel], list[RunningStream]]:
    """All trees, in which groups that live on are streams of their own."""
    streams: dict[str, Rel] = dict(low)
    running: list[RunningStream] = []

    def apart(rel: Rel, text: str) -> Rel:
        parts = tuple(apart(part, text) for part in inputs(rel))
        made = with_inputs(rel, parts) if parts else rel
        if not isinstance(made, Running):
            return made
        name = f"#running {len(running)}"
        # By what the user wrote: how the set was split must not matter.
        key = digest(f"{text}|{sum(one.text == text for one in running)}")
        running.append(RunningStream(name, key, made, text))
        streams[name] = made
        return Read(name, made.fields)

    for name, rel in stages.items():
        streams[name] = apart(rel, texts.get(name) or full_text(rel, streams))
    return streams, running


def full_text(rel: Rel, streams: Mapping[str, Rel]) -> str:
    """What a relation is, with all that it reads."""
    below = (full_text(streams[read.stream], streams) for read in reads(rel))
    return "\n".join([show_rel(rel), *below])


def low_stream(number: int, query: LowQuery, groups: GroupFields | None, trees: Trees) -> LowStream:
    rel = trees.streams[query.name]
    scan = scanned(rel)
    if isinstance(query, LowAggregate):
        assert isinstance(rel, Aggregate)
        assert groups is not None
        keys = [held_text(expr) for _, expr in query.keys]
        slots = [
            f"{slot.kind}({'' if slot.argument is None else held_text(slot.argument)})"
            for slot in query.slots
        ]
        value = None if groups.epoch is None else groups.keys[groups.epoch].name
        key = digest("|".join(["groups", *tuples_of(rel.source), *keys]))
        return LowStream(
            number, query.name, key, scan, groups, groups.fields, (*keys, *slots), value,
            rel.fields,
            epoch_text="" if groups.epoch is None else keys[groups.epoch],
            sliced=slice_stream(rel),
        )  # fmt: skip
    assert isinstance(rel, Project)
    texts = tuple(held_text(expr) for _, expr in query.items)
    key = digest("|".join(["rows", *tuples_of(rel.source)]))
    read = Read(query.name, rel.fields)
    value = next(iter(release_columns(read, trees)), None)
    return LowStream(number, query.name, key, scan, None, query.fields, texts, value, rel.fields)


def keeping(stream: LowStream, kept_by: Mapping[Leaf, str], trees: Trees) -> LowStream:
    column = kept_by.get(stream.name, stream.value)
    orders = trees.orders(Read(stream.name, stream.tree_fields))
    falling = (
        column is not None and column in orders and orders[column].slope.trend is Trend.DECREASING
    )
    return replace(stream, kept_by=column, descending=falling)


def held_text(expr: Expr) -> str:
    """What a stored column is. A WIDE is held otherwise than the same number of another type."""
    text = show_expr(spelled(expr))
    return f"{text} {Type.WIDE.value}" if expr.type is Type.WIDE else text


def tuples_of(rel: Rel) -> list[str]:
    """Which tuples a low-level stream is made of, or was before it was retired."""
    scan, predicate = source_of(rel)
    asked = show_expr(spelled(without_retired(predicate)))
    return [scan.protocol, ",".join(sorted(scan.interfaces)), asked]


def with_own_keys(streams: Iterable[LowStream]) -> Iterator[LowStream]:
    """Streams of the same tuples that were not made one are told apart by their order."""
    known: Counter[str] = Counter()
    for stream in streams:
        known[stream.key] += 1
        several = known[stream.key] > 1
        yield replace(stream, key=f"{stream.key}.{known[stream.key]}") if several else stream


def needs_order(stream: LowStream) -> bool:
    """Whether tuples of a selection wait for those of other interfaces: it is their merge."""
    return stream.groups is None and len(stream.scan.interfaces) > 1 and stream.value is not None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
