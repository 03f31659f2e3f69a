"""Streams above the low level that a task computes: the task of a partition, or one task for all.

In: relations over low-level streams and over each other, in the order they are computed, and the
rows of the streams that are not among them. Out: `Outgoing` rows: reports of the parts that were
written, the rows that others read, and the figures of each relation.

One task for all is the way where relations read little. Catalyst takes 20 ms and more for each
exchange and generates code for each stage, in every executor: 0.5 to 1 s of processor time for a
relation over a few thousand rows, which Arrow computes in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import pyarrow as pa

from terascope.execute.relations import ArrowRelations, arrow_operator
from terascope.execute.reports import DRIVER_BYTES, Meter, Outgoing
from terascope.execute.results.parts import write_part
from terascope.execute.rows.steps import batch_of
from terascope.functions.base import Value
from terascope.functions.overflow import overflow_of
from terascope.kernels.merge.payload import pack_batches, unpack_tuples
from terascope.physical.delivery import InsideStream, Sink, Target
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Read, Rel, walk

SMALL_BYTES: Final = DRIVER_BYTES
"""The bytes of packed rows that one task takes for relations of all sources."""


@dataclass(frozen=True)
class RelationTask:
    """Streams that one task computes."""

    streams: tuple[InsideStream, ...]
    parameters: Mapping[str, Value]
    sink: Sink | None
    """The destination of the parts."""
    remote: frozenset[int] = frozenset()
    """The streams whose rows leave the host of the task, by number."""
    compiled: bool = True

    def outgoing(
        self, rows_of: Callable[[str], pa.RecordBatch], horizons: Horizons, number: int = 0
    ) -> Iterator[Outgoing]:
        """Compute the streams, write their parts, and hand up their rows. `rows_of`: the rows of a
        stream that was computed before. `number`: of the task.
        """
        meter = Meter()
        known: dict[str, pa.RecordBatch] = {}
        relations = ArrowRelations(known, self.parameters, horizons, self.compiled)
        for at, one in enumerate(self.streams):
            for read in reads(one.rel):
                if read.stream not in known:
                    known[read.stream] = rows_of(read.stream)
            taken = sum(known[read.stream].num_rows for read in reads(one.rel))
            start = perf_counter()
            with overflow_of(one.name):
                made = relations.rows(one.rel)
            spent = perf_counter() - start
            meter.add(f"relation {one.name}", taken=taken, given=made.num_rows, seconds=spent)
            if one.written:
                assert self.sink is not None
                rows = made.select([f.name for f in one.written])
                part = write_part(self.sink, one.name, one.written, rows)
                yield Outgoing(-1, number, "part", None, part.to_json())
            if one.number is not None and made.num_rows:
                for payload in pack_batches([made], one.number in self.remote):
                    yield Outgoing(one.number, number, "rows", payload)
            needed = {read.stream for other in self.streams[at + 1 :] for read in reads(other.rel)}
            known[one.name] = made
            for name in [name for name in known if name not in needed]:
                del known[name]
        yield Outgoing(-1, number, "counters", None, json.dumps(meter.report()))


@dataclass(frozen=True)
class FinalTask:
    """The one task that computes relations which read little."""

    task: RelationTask
    targets: Mapping[int, Target]
    """The streams that the relations read, by number."""

    def outgoing(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Outgoing]:
        """`packed`: streams and their packed rows."""
        rows: dict[str, list[pa.RecordBatch]] = {}
        for stream, payload in packed:
            rows.setdefault(self.targets[stream].name, []).extend(unpack_tuples(payload))
        fields = {target.name: target.fields for target in self.targets.values()}

        def rows_of(stream: str) -> pa.RecordBatch:
            return batch_of(rows.pop(stream, []), fields[stream])

        yield from self.task.outgoing(rows_of, Horizons(no_horizon, {}, self.task.parameters))


def small_relations(
    candidates: Sequence[InsideStream], sizes: Mapping[str, int], parameters: Mapping[str, Value]
) -> tuple[InsideStream, ...]:
    """The streams that one task computes: those that read little, and that have an Arrow form. If
    a stream that Spark computes reads one of them, Spark computes that one again. `sizes`: the
    bytes of the low-level streams.
    """
    chosen: dict[str, InsideStream] = {}
    below: dict[str, frozenset[str]] = {}
    """The low-level streams below each chosen one."""
    for one in candidates:
        names = {read.stream for read in reads(one.rel)}
        if names <= sizes.keys() | chosen.keys() and has_arrow_form(one.rel, parameters):
            found = frozenset().union(*(below.get(name, frozenset((name,))) for name in names))
            if sum(sizes[name] for name in found) <= SMALL_BYTES:
                chosen[one.name], below[one.name] = one, found
    wanted: set[str] = set()
    for one in reversed(chosen.values()):
        if one.written or one.name in wanted:
            wanted |= {one.name, *(read.stream for read in reads(one.rel))}
    if sum(sizes[name] for name in wanted & sizes.keys()) > SMALL_BYTES:
        return ()
    return tuple(one for one in chosen.values() if one.name in wanted)


def has_arrow_form(rel: Rel, parameters: Mapping[str, Value]) -> bool:
    """Whether Arrow computes every operator."""
    return all(
        isinstance(one, Read) or arrow_operator(one, parameters) is not None for one in walk(rel)
    )


def no_horizon(scan: object) -> dict[str, int]:
    raise AssertionError(f"a task does not know where the time of {scan} ends")
