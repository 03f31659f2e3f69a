"""CLOSING_WHEN over a stream: groups that live on from one micro-batch to the next.

In: the tuples of the epochs that close, and the groups that were alive before them. Out: segments:
the rows of these epochs, and the groups that are alive after them, each with the states of its
running aggregates. A group is a row of the slice store while it lives, however many there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.files import is_ours
from terascope.functions.base import Value
from terascope.functions.states import decode_state, decode_values, encode_state, encode_values
from terascope.functions.values import distinct_key
from terascope.kernels.merge.payload import pack_tuples
from terascope.plan.evaluate import Parameters, compile_expr
from terascope.plan.rel import Field, Running
from terascope.spark.catalyst.aggregates import GroupFold
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.frame import Frame
from terascope.spark.catalyst.grouping import Prepared, finished, group_by
from terascope.spark.catalyst.operands import changing
from terascope.spark.catalyst.running import BATCH_ROWS, Machine, member, rows_of
from terascope.spark.mistakes import telling
from terascope.spark.passing import REPORT, report_batch
from terascope.streaming.engine import Report
from terascope.streaming.state.segments import SegmentWriter, Stored
from terascope.streaming.stored_rows import ALIVE, state_fields, state_stream


@dataclass
class LivingGroups:
    """The state machine with groups that were alive before; runs in Python workers."""

    machine: Machine
    fields: tuple[Field, ...]
    """Of the groups alive."""
    until: int
    """All epochs before this one are closed."""
    key: str
    store: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with telling("CLOSING_WHEN"), SegmentWriter(Path(self.store)) as writer:
            rows: list[tuple[Value, ...]] = []
            alive: list[tuple[Value, ...]] = []
            for is_row, values in self.lives(rows_of(batches)):
                (rows if is_row else alive).append(values)
                self.write(writer, rows, alive, BATCH_ROWS)
            self.write(writer, rows, alive, 1)
            writer.close()
            for report in writer.reports():
                yield report_batch(*report)

    def write(
        self,
        writer: SegmentWriter,
        rows: list[tuple[Value, ...]],
        alive: list[tuple[Value, ...]],
        least: int,
    ) -> None:
        epoch = self.machine.fields[0].name
        if len(rows) >= least:
            payload = packed(rows, self.machine.fields)
            writer.append(Stored(self.key, epoch, self.key), "rows", 0, payload)
            rows.clear()
        if len(alive) >= least:
            payload = packed(alive, self.fields)
            writer.append(Stored(state_stream(self.key), None, "alive"), "rows", 0, payload)
            alive.clear()

    def lives(self, rows: Iterator[tuple[Value, ...]]) -> Iterator[tuple[bool, tuple[Value, ...]]]:
        """Rows of epochs (True), and the groups that live on (False). What comes is sorted by
        group, its state before its epochs: group, epoch, one per aggregate, state.
        """
        machine = self.machine
        group: tuple[Value, ...] = ()
        identity: tuple[Value, ...] | None = None
        epoch = 0
        for row in rows:
            key = tuple(distinct_key(v) for v in row[: machine.keys])
            if key != identity:
                yield from self.end(group, epoch)
                group, identity = row[: machine.keys], key
            if row[-1] is not None:
                epoch = self.wake(row[-1])
                continue
            now = row[machine.keys]
            for silent in machine.silence(group, epoch, now):
                yield True, silent
            yield True, machine.step(group, now, row[machine.keys + 1 : -1])
            epoch = now + 1
        yield from self.end(group, epoch)

    def end(self, group: tuple[Value, ...], epoch: int) -> Iterator[tuple[bool, tuple[Value, ...]]]:
        """The epochs that are left for a group; it may live on."""
        machine = self.machine
        for silent in machine.silence(group, epoch, self.until):
            yield True, silent
        if machine.alive:
            yield False, (*group, self.asleep())
        machine.alive = False

    @property
    def folds(self) -> list[GroupFold]:
        return [m.fold for m in self.machine.members if m.fold is not None]

    def asleep(self) -> bytes:
        """The state of the group at hand."""
        folds = [
            [encode_state(fold.function, fold.state), encode_values(fold.seen)]
            for fold in self.folds
        ]
        return json.dumps([self.until, folds], separators=(",", ":")).encode()

    def wake(self, state: bytes) -> int:
        """Go on with a group that was alive: the epoch it has come to."""
        epoch, folds = json.loads(state)
        for fold, (held, seen) in zip(self.folds, folds, strict=True):
            fold.state = decode_state(fold.function, held, self.is_trusted)
            fold.seen = set(decode_values(seen))
        self.machine.alive = True
        return int(epoch)

    @cached_property
    def is_trusted(self) -> bool:
        return is_ours(Path(self.store))


def packed(rows: Sequence[tuple[Value, ...]], fields: Sequence[Field]) -> bytes:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(v, arrow_type(f.type)) for v, f in zip(columns, fields, strict=True)]
    return pack_tuples(pa.RecordBatch.from_arrays(arrays, [f.name for f in fields]))


def running_step(
    rel: Running,
    source: Frame,
    alive: Frame,
    parameters: Parameters,
    low: int | None,
    until: int,
    key: str,
    store: Path,
) -> list[Report]:
    """The epochs from `low` up to, and without, `until`; the reports of the tasks."""
    prepared = Prepared(source, rel.keys, rel.aggs, parameters)
    epoch, *group = prepared.keys
    members, parts = zip(*map(member, prepared.arguments), strict=True) if rel.aggs else ((), ())
    due = epoch < changing(until)
    if low is not None:
        due = due & (epoch >= changing(low))
    epochs = group_by(prepared.df.filter(due), prepared.keys, parts)
    steps = epochs.select(
        *group,
        epoch.alias("epoch"),
        *(value.alias(f"v{i}") for i, value in enumerate(finished(parts))),
    )
    names = [f"k{i + 1}" for i in range(len(group))]
    columns: list[Any] = [c.alias(n) for c, n in zip(alive.columns.values(), names, strict=False)]
    sleeping = alive.df.select(*columns, alive.column(ALIVE).alias("alive"))
    together = steps.unionByName(sleeping, allowMissingColumns=True)
    placed = together.repartition(*(F.col(n) for n in names)) if names else together.repartition(1)
    order = [F.col(n) for n in names]
    ordered = placed.sortWithinPartitions(*order, F.col("epoch").asc_nulls_first())
    machine = Machine(
        rel.fields, len(group), list(members), compile_expr(rel.closing, rel.names, parameters)
    )
    living = LivingGroups(machine, state_fields(rel), until, key, str(store))
    return [(row[0], row[1]) for row in ordered.mapInArrow(living, REPORT).collect()]


def furthest_epoch(rel: Running, source: Frame, parameters: Parameters) -> int | None:
    """The last epoch that has tuples; None: there are none."""
    key = Translator(source.columns, parameters).column(rel.keys[0][1])
    found = source.df.agg(F.max(key)).collect()[0][0]
    return None if found is None else int(found)
