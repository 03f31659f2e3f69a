"""Streams of a native low level: read, exchanged where need be, and given to Spark or to files.

In: a Job whose reads carry low-level plans. Out: for each low-level stream that the high level
reads a Frame, and for each query that the tasks wrote themselves its parts. The source is read in
one pass; partial groups, if any task had to give some up, then meet in the merge.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.execute.reports import Reports, reports_from_json
from terascope.execute.results.parts import Part
from terascope.kernels.merge.payload import unpack_tuples
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.physical.delivery import Sink, Target
from terascope.physical.job import Deliveries, Job
from terascope.physical.rules.finish_in_tasks import stream_numbers
from terascope.plan.rel import Field, Rel
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.low_task import NativeRead
from terascope.spark.merging import Merging
from terascope.spark.passing import HerePass, Kept, Pass, all_rows, merge_pass, run_pass, tasks_of
from terascope.spark.rests import RestJoining, join_rests, rest_sizes, small_rests
from terascope.spark.told import Little, Packed
from terascope.spark.worker import working


@dataclass
class NativeStreams:
    """What the low level gave."""

    frames: dict[str, Frame] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    direct: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The queries that are in parts, with their columns."""
    rest: dict[str, Rel] = field(default_factory=dict)
    """Joins that are in parts, but for what no task could join: that, for Spark."""
    reports: dict[str, Reports] = field(default_factory=dict)
    """What reading saw, by read and interface."""
    counters: list[dict[str, Any]] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


def native_streams(
    job: Job, planned: Deliveries, spark: SparkSession, sink: Sink | None
) -> NativeStreams:
    """Run the low level of a job."""
    result = NativeStreams(direct=planned.fields)
    targets, pairings, joined = planned.targets, planned.pairings, planned.joined
    partitions = tasks_of(spark)
    destinations = max(1, partitions // 2)
    sources: dict[int, list[Pass]] = {}
    partial: dict[int, list[Pass]] = {}
    groups, rests = Packed(), Packed()
    budget = max(read.low.memory_bytes for read in planned.reads if read.low is not None)
    sizes: Counter[str] = Counter()
    for target in targets.values():
        if target.feeds and target.groups is not None:  # compiled once, not in every task
            assemble_kernel(target.groups.shape)
    for read in planned.reads:
        numbers = stream_numbers(job, read)
        own = tuple(p for p in pairings if p.left.stream in numbers)
        reading = NativeRead(read, numbers, targets, sink, destinations, own)
        one = run_pass(spark, reading, [s.rest for p in own for s in p.sides], partitions)
        result.kept.append(one.kept)
        told = one.told
        result.reports[read.name] = reports_from_json(told.lines("report"))
        result.parts += map(Part.of, told.lines("part"))
        sizes += rest_sizes(told.lines("rest"))
        result.counters += map(json.loads, told.lines("counters"))
        for number in (*numbers, *(side.rest for p in own for side in p.sides)):
            sources.setdefault(number, []).append(one)
        groups.add(told.packed("groups"))
        rests.add(told.packed("rows"))
        for number in told.streams("groups"):
            partial.setdefault(number, []).append(one)
    made_of: dict[int, Pass] = {}
    merged: Pass
    if partial:
        merging = Merging(targets, sink, budget, pairings)
        sides = [side for p in pairings for side in p.sides]
        if groups.is_little:  # a shuffle takes longer than to merge it here
            merged = HerePass(spark, list(merging.merged(groups.pairs())))
        else:
            little = Little.of([s.rest for s in sides], partitions)
            having = [one for some in partial.values() for one in some]
            merged = merge_pass(having, merging, little, groups.size, destinations)
            result.kept.append(merged.kept)
        told = merged.told
        result.parts += map(Part.of, told.lines("part"))
        sizes += rest_sizes(told.lines("rest"))
        rests.add(told.packed("rows"))
        for number in {*partial, *(side.rest for side in sides if side.stream in partial)}:
            sources[number].append(merged)
        made_of = dict.fromkeys(partial, merged)
    for number, target in targets.items():  # windows come where the merge of their slices is
        for stream, _ in target.feeds:
            sources[stream] = [made_of[number]] if number in made_of else sources[number]
    small = small_rests(sizes, budget)
    if small and sink is not None:
        own = tuple(p for p in pairings if p.query in small)
        if rests.is_little:
            result.parts += RestJoining(own, sink).parts(rests.pairs())
        else:
            having = [one for p in pairings for s in p.sides for one in sources[s.rest]]
            result.parts += join_rests(all_rows(having), own, sink)
    result.rest = {query: joined[query].rest for query in sizes if query not in small}
    unread = {side.rest for p in pairings if p.query not in result.rest for side in p.sides}
    for number, target in targets.items():
        if target.high and number not in unread:
            result.frames[target.name] = exploded(all_rows(sources[number]), number, target)
    return result


def exploded(df: DataFrame, number: int, target: Target) -> Frame:
    """The tuples of one stream as columns of Spark."""
    packed = df.filter((F.col("stream") == number) & (F.col("kind") == "rows")).select("payload")
    rows = packed.mapInArrow(Exploding(target.fields), schema_of(target.fields))
    return Frame(rows, target.fields)


# ---- in the workers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exploding:
    """Packed tuples as columns of Spark."""

    fields: Sequence[Field]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [place(i) for i in range(len(self.fields))]
        with working():
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
