"""Streams of a native low level: read, exchanged where need be, and given to Spark or to files.

In: a Job whose reads carry low-level plans. Out: for each low-level stream that the high level
reads a Frame, and for each query that the tasks wrote themselves its parts. The source is read in
one pass; partial groups, if any task had to give some up, then meet in the merge.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.overflow import overflow_of
from terascope.low.delivery import Delivery, Outgoing, Sink, Target
from terascope.low.float_ranges import finished_blocks
from terascope.low.groups import Block, Groups
from terascope.low.merge import Merger
from terascope.low.pairs import Pairing
from terascope.low.parts import Part
from terascope.low.payload import unpack_tuples
from terascope.low.reports import Reports, reports_from_json
from terascope.low.window_kernel import assemble_kernel
from terascope.low.windows import Sequences
from terascope.physical.job import Job
from terascope.physical.targets import Deliveries, stream_numbers
from terascope.plan.rel import Field, Rel
from terascope.spark.frame import Frame, place, schema_of
from terascope.spark.low_task import OUTGOING, NativeRead, to_arrow
from terascope.spark.passing import HerePass, Kept, Pass, frame_pass, run_pass
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
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)
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
        reading = NativeRead(read, numbers, targets, sink, max(1, partitions // 2), own)
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
            here = [to_arrow(row) for row in merging.merged(groups.batches())]
            merged = HerePass(spark, here)
        else:
            df = merge(partial, merging, max(1, partitions // 2))
            merged = frame_pass(spark, df, Little.of([s.rest for s in sides], partitions))
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
            result.parts += RestJoining(own, sink).parts(rests.batches())
        else:
            having = [one for p in pairings for s in p.sides for one in sources[s.rest]]
            result.parts += join_rests(all_rows(having), own, sink)
    result.rest = {query: joined[query].rest for query in sizes if query not in small}
    unread = {side.rest for p in pairings if p.query not in result.rest for side in p.sides}
    for number, target in targets.items():
        if target.high and number not in unread:
            result.frames[target.name] = exploded(all_rows(sources[number]), number, target)
    return result


def merge(partial: Mapping[int, Sequence[Pass]], merging: Merging, partitions: int) -> DataFrame:
    """All partials, each group's at one place, merged there."""
    everything = all_rows(one for some in partial.values() for one in some)
    groups = everything.filter(F.col("kind") == "groups")
    exchanged = groups.repartitionById(partitions, F.col("destination"))
    return exchanged.mapInArrow(merging, OUTGOING)


def all_rows(passes: Iterable[Pass]) -> DataFrame:
    """The rows of several passes, those of each once."""
    return reduce(DataFrame.union, [one.frame for one in {id(p): p for p in passes}.values()])


def exploded(df: DataFrame, number: int, target: Target) -> Frame:
    """The tuples of one stream as columns of Spark."""
    packed = df.filter((F.col("stream") == number) & (F.col("kind") == "rows")).select("payload")
    rows = packed.mapInArrow(Exploding(target.fields), schema_of(target.fields))
    return Frame(rows, target.fields)


# ---- in the workers ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Merging:
    """Merges the partials of all streams that reached one partition."""

    targets: Mapping[int, Target]
    sink: Sink | None
    memory_bytes: int
    pairings: tuple[Pairing, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for row in self.merged(batches):
                yield to_arrow(row)

    def merged(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Outgoing]:
        delivery = Delivery(self.targets, self.sink, 0, self.pairings)
        mergers: dict[int, Merger] = {}
        payloads = ((s, p) for b in batches for s, p in zip(b["stream"], b["payload"], strict=True))
        for stream, payload in payloads:
            number = stream.as_py()
            if number not in mergers:
                mergers[number] = self.merger(number)
            mergers[number].add(payload.as_py())
        for number in sorted(mergers):
            with overflow_of(self.targets[number].user):
                for groups in mergers.pop(number).results():
                    yield from self.delivered(number, groups, delivery)
        yield from delivery.close()

    def delivered(self, number: int, groups: Groups, delivery: Delivery) -> Iterator[Outgoing]:
        """Groups, and the windows that are made of them."""
        target = self.targets[number]
        blocks: Iterable[Block] = list(groups.blocks) if target.feeds else groups.blocks
        assert target.groups is not None
        several = groups.several and not target.merged_above
        for block in finished_blocks(blocks, target.groups.shape, several):
            yield from delivery.take_groups(number, block, groups.dictionaries)
        if target.feeds:
            sequences = Sequences(list(blocks), target.groups, target.feeds[0][1].vector.end)
            for stream, windows in target.feeds:
                wanted = [f.name for f in self.targets[stream].fields]
                for batch in sequences.batches(windows, groups.dictionaries):
                    yield from delivery.take(stream, batch.select(wanted))

    def merger(self, number: int) -> Merger:
        target = self.targets[number]
        fields = target.groups
        assert fields is not None
        streams = sum(t.groups is not None for t in self.targets.values())
        share = max(1 << 24, self.memory_bytes // streams)
        # What windows are put together from stands in memory beside the merger's own table.
        share = share // 3 if target.feeds else share
        folder = Path(tempfile.gettempdir())
        by_key = bool(target.feeds)
        return Merger(
            fields.shape, fields.key_types, share, folder, by_key=by_key, sums=fields.sums
        )


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
