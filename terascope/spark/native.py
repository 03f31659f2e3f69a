"""Streams of a native low level: read, exchanged where need be, and given to Spark or to files.

In: a Job whose reads carry low-level plans. Out: for each low-level stream that the high level
reads a Frame, and for each query that the tasks wrote themselves its parts. The source is read in
one pass; partial groups, if any task had to give some up, then meet in the merge.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.low.delivery import Delivery, Direct, Outgoing, Sink, Target
from terascope.low.groups import GroupFields
from terascope.low.merge import Merger
from terascope.low.payload import unpack_tuples
from terascope.low.plan import LowPlan, LowSelect
from terascope.low.regroup import Regroup
from terascope.low.reports import Reports, reports_from_json
from terascope.low.rows import Compute, Keep, RowProgram, origins, picked, row_program
from terascope.physical.job import Job, SourceRead
from terascope.plan.expr import Col, Expr, substitute
from terascope.plan.plan import reads
from terascope.plan.rel import Field
from terascope.spark.frame import Frame, place, schema_of
from terascope.spark.low_task import OUTGOING, NativeRead, to_arrow
from terascope.spark.mistakes import telling
from terascope.spark.source import source_frame

KEPT = StorageLevel.MEMORY_AND_DISK


@dataclass(frozen=True)
class Part:
    """A file of a result that a task wrote."""

    query: str
    path: Path
    rows: int


@dataclass
class NativeStreams:
    """What the low level gave."""

    frames: dict[str, Frame] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    direct: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The queries that are in parts, with their columns."""
    reports: dict[str, Reports] = field(default_factory=dict)
    """What reading saw, by read and interface."""
    counters: list[dict[str, Any]] = field(default_factory=list)
    kept: list[DataFrame] = field(default_factory=list)


def native_streams(job: Job, spark: SparkSession, sink: Sink | None) -> NativeStreams:
    """Run the low level of a job."""
    result = NativeStreams()
    direct = direct_queries(job, sink.format == "held") if sink is not None else {}
    result.direct = {name: made.fields for name, made in direct.items()}
    targets = stream_targets(job, direct)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)
    sources: dict[int, list[DataFrame]] = {}
    partial: dict[int, list[DataFrame]] = {}
    conditions = {n: c for n, t in targets.items() if (c := first_conditions(t))}
    targets = {n: without_conditions(t, len(conditions.get(n, ()))) for n, t in targets.items()}
    for read in (read for read in job.reads if read.low is not None):
        numbers = stream_numbers(job, read)
        fused = replace(read, low=with_conditions(read.low, numbers, conditions))
        reading = NativeRead(fused, numbers, targets, sink, max(1, partitions // 2))
        df = source_frame(spark, reading, partitions).persist(KEPT)
        result.kept.append(df)
        told = df.filter(F.col("told").isNotNull()).select("kind", "told").collect()
        result.reports[read.name] = reports_from_json(t for kind, t in told if kind == "report")
        result.parts += [part_of(t) for kind, t in told if kind == "part"]
        counted = [json.loads(t) for kind, t in told if kind == "counters"]
        result.counters += counted
        for query, number in enumerate(numbers):
            sources.setdefault(number, []).append(df)
            if any(task["partials"][query] for task in counted):
                partial.setdefault(number, []).append(df)
    if partial:
        budget = max(read.low.memory_bytes for read in job.reads if read.low is not None)
        merging = Merging(targets, sink, budget)
        merged = merge(partial, merging, max(1, partitions // 2)).persist(KEPT)
        result.kept.append(merged)
        told = merged.filter(F.col("kind") == "part").select("told").collect()
        result.parts += [part_of(row[0]) for row in told]
        for number in partial:
            sources[number].append(merged)
    for number, target in targets.items():
        if target.high:
            df = reduce(DataFrame.union, sources[number])
            result.frames[target.name] = exploded(df, number, target)
    return result


def merge(
    partial: Mapping[int, Sequence[DataFrame]], merging: Merging, partitions: int
) -> DataFrame:
    """All partials, each group's at one place, merged there."""
    frames = {id(df): df for some in partial.values() for df in some}
    everything = reduce(DataFrame.union, frames.values()).filter(F.col("kind") == "groups")
    exchanged = everything.repartitionById(partitions, F.col("destination"))
    return exchanged.mapInArrow(merging, OUTGOING)


def exploded(df: DataFrame, number: int, target: Target) -> Frame:
    """The tuples of one stream as columns of Spark."""
    packed = df.filter((F.col("stream") == number) & (F.col("kind") == "rows")).select("payload")
    rows = packed.mapInArrow(Exploding(target.fields), schema_of(target.fields))
    return Frame(rows, target.fields)


def part_of(told: str) -> Part:
    values = json.loads(told)
    return Part(values["query"], Path(values["path"]), values["rows"])


# ---- who takes what ------------------------------------------------------------------------------


def stream_numbers(job: Job, read: SourceRead) -> tuple[int, ...]:
    assert read.low is not None
    numbers = {output.name: i for i, output in enumerate(job.low)}
    return tuple(numbers[query.name] for query in read.low.queries)


def direct_queries(job: Job, sorted_later: bool) -> dict[str, Direct]:
    """The queries that do no more than filter and project a low-level stream. Parts that are sorted
    later have the hidden columns that takes, too.
    """
    low = {output.name: [f.name for f in output.fields] for output in job.low}
    groups = {output.name: output.groups for output in job.low}
    trees = {stage.name: stage.rel for stage in job.streams}
    found: dict[str, Direct] = {}
    for output in job.outputs:
        rel = trees[output.stream]
        program = row_program(rel, trees, job.parameters)
        if program is not None and program.whole is not None:
            program = within_epochs(program, groups[program.stream])
        if program is None or program.stream not in low:
            continue
        names = [*output.columns]
        if sorted_later:
            names += [name for name, _ in output.order if name not in output.columns]
        fields = tuple(Field(name, rel.type_of(name)) for name in names)
        last = Compute(tuple((f.name, Col(f.name, f.type)) for f in fields))
        steps = program.extended(last)
        places = picked(steps, low[program.stream])
        found[output.stream] = Direct(output.stream, steps, fields, places)
    return found


def within_epochs(program: RowProgram, groups: GroupFields | None) -> RowProgram | None:
    """A program that ranks or groups rows of one epoch only, so that one task has all of them."""
    if groups is None or groups.epoch is None:
        return None
    known = origins(program)
    epoch = groups.keys[groups.epoch].name

    renamed = any(isinstance(step, Compute) for step in program.steps)

    def is_epoch(name: str) -> bool:
        return (known.get(name) if renamed else name) == epoch

    whole = program.whole
    if isinstance(whole, Regroup):
        for place, (_, expr) in enumerate(whole.keys):
            if isinstance(expr, Col) and is_epoch(expr.name):
                return replace(program, whole=replace(whole, epoch=place))
        return None
    return program if whole is None or any(map(is_epoch, whole.per)) else None


def stream_targets(job: Job, direct: Mapping[str, Direct]) -> dict[int, Target]:
    """For each low-level stream, by its number, who takes its rows."""
    wanted = needed(job, direct)
    high = {
        read.stream for stage in job.streams if stage.name in wanted for read in reads(stage.rel)
    }
    return {
        number: Target(
            output.name,
            output.fields,
            output.groups,
            output.name in high,
            tuple(d for d in direct.values() if d.program.stream == output.name),
        )
        for number, output in enumerate(job.low)
    }


def needed(job: Job, direct: Collection[str]) -> set[str]:
    """The streams that Spark computes: outputs that nobody wrote, and what these read."""
    trees = {stage.name: stage.rel for stage in job.streams}
    waiting = [o.stream for o in job.outputs if o.stream not in direct]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in trees and name not in found:
            found.add(name)
            waiting += [read.stream for read in reads(trees[name])]
    return found


# ---- conditions of the high half, asked before tuples are copied ------------------------------


def first_conditions(target: Target) -> tuple[Expr, ...]:
    """The conditions a lone query begins with, that has the tuples of a selection for itself."""
    if target.high or target.groups is not None or len(target.direct) != 1:
        return ()
    found: list[Expr] = []
    for step in target.direct[0].program.steps:
        if not isinstance(step, Keep):
            break
        found.append(step.predicate)
    return tuple(found)


def without_conditions(target: Target, number: int) -> Target:
    if not number:
        return target
    (direct,) = target.direct
    program = replace(direct.program, steps=direct.program.steps[number:])
    return replace(target, direct=(replace(direct, program=program),))


def with_conditions(
    low: LowPlan | None, numbers: Sequence[int], conditions: Mapping[int, tuple[Expr, ...]]
) -> LowPlan | None:
    if low is None:
        return None
    queries = list(low.queries)
    for at, query in enumerate(queries):
        if isinstance(query, LowSelect):
            more = conditions.get(numbers[at], ())
            asked = tuple(substitute(c, dict(query.items)) for c in more)
            queries[at] = replace(query, rest=(*query.rest, *asked))
    return replace(low, queries=tuple(queries))


# ---- in the workers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Merging:
    """Merges the partials of all streams that reached one partition."""

    targets: Mapping[int, Target]
    sink: Sink | None
    memory_bytes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with telling(), tempfile.TemporaryDirectory(prefix="terascope-merge-") as folder:
            for row in self.merged(batches, Path(folder)):
                yield to_arrow(row)

    def merged(self, batches: Iterator[pa.RecordBatch], folder: Path) -> Iterator[Outgoing]:
        delivery = Delivery(self.targets, self.sink, 0)
        mergers: dict[int, Merger] = {}
        payloads = ((s, p) for b in batches for s, p in zip(b["stream"], b["payload"], strict=True))
        for stream, payload in payloads:
            number = stream.as_py()
            if number not in mergers:
                mergers[number] = self.merger(number, folder)
            mergers[number].add(payload.as_py())
        for number in sorted(mergers):
            for groups in mergers.pop(number).results():
                for block in groups.blocks:
                    yield from delivery.take_groups(number, block, groups.dictionaries)
        yield from delivery.close()

    def merger(self, number: int, folder: Path) -> Merger:
        fields = self.targets[number].groups
        assert fields is not None
        streams = sum(t.groups is not None for t in self.targets.values())
        share = max(1 << 24, self.memory_bytes // streams)
        return Merger(fields.shape, fields.key_types, share, folder)


@dataclass(frozen=True)
class Exploding:
    """Packed tuples as columns of Spark."""

    fields: Sequence[Field]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [place(i) for i in range(len(self.fields))]
        with telling():
            for batch in batches:
                for payload in batch["payload"]:
                    for rows in unpack_tuples(payload.as_py()):
                        columns = [
                            plain(c, f) for c, f in zip(rows.columns, self.fields, strict=True)
                        ]
                        yield pa.RecordBatch.from_arrays(columns, names)


def plain(column: pa.Array, field: Field) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(arrow_type(field.type))
