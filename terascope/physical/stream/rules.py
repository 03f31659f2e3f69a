"""The rules that make the plan of a stream from a Job, in one ordered list.

In: a Job whose sources are live. Out: a complete `StreamPlan`: the stored rows of every low-level
stream and their retention, and for every query its placement and its release. Each rule is a pure
function from a plan to a plan; Spark computes a query that no rule places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from terascope.analysis.order import Trees, falls
from terascope.analysis.release import release_columns, release_of
from terascope.analysis.retention import retention_columns
from terascope.diagnostic import SourceError
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.job import Deliveries, Job, Output
from terascope.physical.low_plan import LowQuery, LowSelect
from terascope.physical.row_pipeline import Compute, RowPipeline, RowPlanner, is_computable
from terascope.physical.rules.check_job import mistakes_of
from terascope.physical.rules.finish_in_tasks import deliveries, task_joins
from terascope.physical.rules.low_planner import scan_use
from terascope.physical.split.slicing import Slicing
from terascope.physical.split.split_windows import without_retired
from terascope.physical.stream.operators import stream_operators
from terascope.physical.stream.plan import (
    InSpark,
    LowStream,
    QueryPlan,
    RowPipelines,
    RunningStream,
    StoredJoin,
    StreamOutput,
    StreamPlan,
    WrittenByTasks,
    digest,
)
from terascope.physical.stream.slice_streams import slice_stream
from terascope.physical.stream.windows import stored_windows
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import (
    Aggregate,
    Field,
    Merge,
    PlanMistake,
    Read,
    Rel,
    Running,
    inputs,
    with_inputs,
)
from terascope.plan.show import full_text, show_expr, spelled
from terascope.types import Type


@dataclass(frozen=True)
class SetTexts:
    """The texts of a query set, by stream, by which a checkpoint identifies its queries."""

    full: Mapping[str, str]
    """The text of a stream with all streams that it reads."""
    own: Mapping[str, str] = field(default_factory=dict)
    """The text of a stream alone, as its user wrote it."""


Rule: TypeAlias = Callable[[StreamPlan, SetTexts], StreamPlan]


def plan_stream(job: Job, texts: SetTexts, slicing: Slicing | None = None) -> StreamPlan:
    """The plan of a Job as a stream. `slicing`: the composition of the windows of the set.

    Raises:
        SourceError: a source cannot be read as a stream.
    """
    nothing = Deliveries({}, {}, {}, ())
    plan = StreamPlan(job, nothing, (), (), Trees({}, job.parameters), (), slicing or Slicing())
    for rule in STREAM_RULES:
        plan = rule(plan, texts)
    return plan


def refuse_other_sources(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    for read in plan.job.reads:
        if read.low is None:
            raise SourceError(
                f"'{read.name}' cannot be streamed: its tuples are Spark's already; set low to"
                " auto, and bind files, folders or the generator"
            )
    return plan


def separate_running_aggregates(plan: StreamPlan, texts: SetTexts) -> StreamPlan:
    """Before: Project (Running (Read low))      After: #running 0 = Running (Read low);
    Project (Read #running 0)
    """
    streams: dict[str, Rel] = {made.name: plan.job.trees[made.name] for made in plan.job.low}
    running: list[RunningStream] = []

    def apart(rel: Rel, text: str) -> Rel:
        parts = tuple(apart(part, text) for part in inputs(rel))
        made = with_inputs(rel, parts) if parts else rel
        if not isinstance(made, Running):
            return made
        name = f"#running {len(running)}"
        # The key is made of the user's text: it must not change when the set is split otherwise.
        key = digest(f"{text}|{sum(one.text == text for one in running)}")
        running.append(RunningStream(name, key, made, text))
        streams[name] = made
        return Read(name, made.fields)

    for name, rel in plan.job.streams.items():
        streams[name] = apart(rel, texts.full.get(name) or full_text(rel, streams))
    return replace(plan, trees=Trees(streams, plan.job.parameters), running=tuple(running))


def store_low_streams(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """Streams of the same tuples and keys are numbered, so that each has a key of its own."""
    queries = {query.name: query for read in plan.job.reads for query in read.queries}
    counted: Counter[str] = Counter()
    streams: list[LowStream] = []
    for number, output in enumerate(plan.job.low):
        stream = low_stream(number, queries[output.name], output.groups, plan.trees)
        counted[stream.key] += 1
        times = counted[stream.key]
        streams.append(stream if times == 1 else replace(stream, key=f"{stream.key}.{times}"))
    return replace(plan, low=tuple(streams))


def low_stream(number: int, query: LowQuery, groups: GroupFields | None, trees: Trees) -> LowStream:
    """A low-level stream in the slice store. `groups`: the layout of its groups, if it has any.

    Checkpoints contain the key and the layout of the stream. These are digests of texts that
    describe its content and not its name, so that a changed query set finds its slices again.
    """
    rel = trees.streams[query.name]
    scan, predicate = scan_use(rel)
    asked = show_expr(spelled(without_retired(predicate)))
    tuples = [scan.protocol, ",".join(sorted(scan.interfaces)), asked]
    read = Read(query.name, rel.fields)
    if isinstance(query, LowSelect):
        key = digest("|".join(["rows", *tuples]))
        texts = tuple(column_text(expr) for _, expr in query.items)
        value = next(iter(release_columns(read, trees)), None)
        return LowStream(number, query.name, key, scan, None, texts, value, read)
    assert isinstance(rel, Aggregate)
    assert groups is not None
    keys = [column_text(expr) for _, expr in query.keys]
    key = digest("|".join(["groups", *tuples, *keys]))
    slots = [f"{slot.kind}({', '.join(map(column_text, slot.arguments))})" for slot in query.slots]
    value, sliced = groups.epoch_name, slice_stream(rel)
    return LowStream(
        number, query.name, key, scan, groups, (*keys, *slots), value, read, sliced=sliced
    )


def column_text(expr: Expr) -> str:
    """The text of a stored column. A WIDE has other bytes than the same number of another type."""
    text = show_expr(spelled(expr))
    return f"{text} {Type.WIDE.value}" if expr.type is Type.WIDE else text


def write_rows_in_tasks(plan: StreamPlan, texts: SetTexts) -> StreamPlan:
    """Tasks write queries that filter, project or rank one low-level stream. Every other query gets
    the operator and the value by which its rows are released.
    """
    job = plan.job
    # The tuples of a selection of several interfaces are merged in order.
    merged = {
        stream.name
        for stream in plan.low
        if stream.groups is None and len(stream.scan.interfaces) > 1 and stream.value is not None
    }
    planned = deliveries(job, writing=True, sorted_later=False, joins=False, held=merged)
    by_name = plan.by_name

    def planned_output(output: Output) -> StreamOutput:
        name = output.stream
        direct = planned.direct.get(name)
        how: QueryPlan = InSpark()
        if direct is not None:
            stream = by_name[direct.program.stream]
            how = WrittenByTasks(stream.number, "task" if stream.groups is None else "close")
        return StreamOutput(
            output,
            output.part_fields(job.streams[name], False),
            texts.full[name],
            (texts.own or texts.full).get(name, ""),
            release_of(name, plan.trees, plan.leaves) if direct is None else None,
            how,
        )

    outputs = tuple(planned_output(output) for output in job.outputs)
    return replace(plan, deliveries=planned, outputs=outputs)


def join_stored_groups(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """A task makes a join whose sides are low-level groups with equal epochs."""
    found = task_joins(plan.job, plan.deliveries.direct, sorted_later=False)

    def placed(output: StreamOutput) -> QueryPlan | None:
        join, release = found.get(output.name), output.release
        if join is None or release is None or len(release.parts) != 1:
            return None
        bound = plan.trees.temporal_bound(release.node)
        if bound is None or bound.band is not None:
            return None
        return StoredJoin(join, (bound.left, bound.right))

    return place(plan, placed)


def pipeline_stored_rows(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """A task computes a query that only filters, projects and merges stored rows: for each stored
    stream the steps below the operator at which the query is released, and the steps above it. For
    these queries Spark's planning alone takes longer than the task.
    """
    streams = plan.trees.streams
    computed = {name: rel for name, rel in streams.items() if name not in plan.leaves}
    planner = RowPlanner(computed, plan.trees.parameters)

    def placed(output: StreamOutput) -> QueryPlan | None:
        release = output.release
        assert release is not None
        if release.kind == "at_end" or len(release.parts) > 1:
            return None
        chain, node = planner.chain(streams[output.name], release.node)
        if node != release.node:
            return None
        above = planner.stepped(chain, RowPipeline("", ()))
        inputs = pipelines_below(node, planner, plan.leaves)
        if above is None or inputs is None:
            return None
        value = None
        for part in release.parts:
            value = planner.bound(part.value)
            if part.only is not None or not is_computable(value):
                return None
        order = output.output.order
        return RowPipelines(output.name, tuple(inputs), above, value, output.fields, order)

    return place(plan, placed)


def pipelines_below(
    rel: Rel, planner: RowPlanner, leaves: Collection[str]
) -> list[RowPipeline] | None:
    """The steps from stored streams up to a relation that only filters, projects and merges
    them.
    """
    chain, bottom = planner.chain(rel)
    found: list[RowPipeline] = []
    match bottom:
        case Read(stream=stream) if stream in leaves:
            found.append(RowPipeline(stream, ()))
        case Merge(sources=sources):
            for source in sources:
                items = renamed(source.fields, bottom.fields)
                programs = pipelines_below(source, planner, leaves)
                if programs is None or items is None:
                    return None
                found += [program.extended(items) for program in programs]
        case _:
            return None
    made = [planner.stepped(chain, program) for program in found]
    there = [program for program in made if program is not None]
    return there if len(there) == len(made) else None


def renamed(have: Sequence[Field], want: Sequence[Field]) -> Compute | None:
    """The columns of a merge's input under the names of the first; None: a value would change."""
    items: list[tuple[str, Expr]] = []
    for own, first in zip(have, want, strict=True):
        if own.type is not first.type and not (own.type.is_integer and first.type.is_integer):
            return None
        items.append((first.name, Col(own.name, own.type)))
    return Compute(tuple(items)) if len({name for name, _ in items}) == len(items) else None


def assemble_stored_windows(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """A task assembles the windows of a query that consists of windows alone."""
    job = plan.job
    stages = {name: plan.trees.streams[name] for name in job.streams}
    unplaced = [
        (one.output, one.release, one.fields)
        for one in plan.outputs
        if isinstance(one.plan, InSpark) and one.release is not None
    ]
    found = {w.query: w for w in stored_windows(job.low, stages, job.parameters, unplaced)}
    return place(plan, lambda output: found.get(output.name))


def place(plan: StreamPlan, placed: Callable[[StreamOutput], QueryPlan | None]) -> StreamPlan:
    """The plan with placements for some of the queries that had none."""
    outputs = tuple(
        replace(one, plan=placed(one) or one.plan) if isinstance(one.plan, InSpark) else one
        for one in plan.outputs
    )
    return replace(plan, outputs=outputs)


def retain_rows(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """Choose the retention column of every stored stream."""
    releases = [output.release for output in plan.outputs if output.release is not None]
    running = [one.rel for one in plan.running]
    kept_by = retention_columns(releases, plan.trees, plan.leaves, running)

    def retained(stream: LowStream) -> LowStream:
        column = kept_by.get(stream.name, stream.value)
        descending = column is not None and falls(column, plan.trees.orders(stream.read))
        return replace(stream, kept_by=column, descending=descending)

    return replace(plan, low=tuple(map(retained, plan.low)))


def list_stream_operators(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """Before: a plan whose parts are decided      After: the same with its operators."""
    return replace(plan, operators=stream_operators(plan))


def check_stream_plan(plan: StreamPlan, _: SetTexts) -> StreamPlan:
    """Refuse a plan whose parts do not fit together.

    Raises:
        PlanMistake: a query has no place, or reads what is not stored.
    """
    mistakes = list(mistakes_of(plan.operators, [output.name for output in plan.outputs]))
    if mistakes:
        raise PlanMistake("the stream is not sane: " + "; ".join(mistakes))
    stored = plan.leaves
    if len(set(stored.values())) < len(stored):
        raise PlanMistake("two stored streams have one key")
    for output in plan.outputs:
        if (output.release is None) != isinstance(output.plan, WrittenByTasks):
            raise PlanMistake(f"{output.name} must be either written by tasks or released")
        missing = set(plan.sources(output)) - stored.keys()
        if missing:
            raise PlanMistake(f"{output.name} reads {sorted(missing)}, not stored")
    return plan


STREAM_RULES: Final[tuple[Rule, ...]] = (
    refuse_other_sources,
    separate_running_aggregates,
    store_low_streams,
    write_rows_in_tasks,
    join_stored_groups,
    pipeline_stored_rows,
    assemble_stored_windows,
    retain_rows,
    list_stream_operators,
    check_stream_plan,
)
"""The rules in order. The first rule that can place a query does so."""
