"""CLOSING_WHEN over a stream: groups that live from one micro-batch to the next.

In: the tuples of the epochs that close, and the groups that were alive before them. Out: segments:
the rows of these epochs, and the groups that are alive after them, each with the states of its
running aggregates. A living group is a row of the slice store, however many there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.files import is_ours
from terascope.functions.base import Value
from terascope.functions.states import decode_state, decode_values, encode_state, encode_values
from terascope.kernels.merge.payload import pack_tuples
from terascope.physical.stream.plan import RunningStream
from terascope.plan.evaluate import Parameters
from terascope.plan.rel import Field, Running
from terascope.spark.catalyst.aggregates import GroupFold
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.frame import Frame
from terascope.spark.catalyst.operands import changing
from terascope.spark.catalyst.running import BATCH_ROWS, EpochGroups, Machine, batch_of, rows_of
from terascope.spark.mistakes import telling
from terascope.spark.passing import read_reports, report_batch
from terascope.spark.stream.source import REPORT
from terascope.streaming.context import Report
from terascope.streaming.state.segments import SegmentWriter, Stored
from terascope.streaming.stored_rows import ALIVE, state_fields, state_stream


@dataclass(kw_only=True)
class LivingGroups(Machine):
    """The state machine with groups that were alive before, and that stay alive."""

    state_fields: tuple[Field, ...]
    """The columns of living groups."""
    key: str
    store: str
    sleeping: list[tuple[Value, ...]] = field(default_factory=list)
    """Groups that stay alive, with their states."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows and the living groups to the store, and report the segments."""
        epochs = Stored(self.key, self.fields[0].name, self.key)
        alive = Stored(state_stream(self.key), None, "alive")
        with telling("CLOSING_WHEN"), SegmentWriter(Path(self.store)) as writer:
            lives = self.lives(rows_of(batches))
            while rows := list(islice(lives, BATCH_ROWS)):
                writer.append(epochs, "rows", 0, packed(rows, self.fields))
                if len(self.sleeping) >= BATCH_ROWS:
                    self.put_to_sleep(writer, alive)
            self.put_to_sleep(writer, alive)
            writer.close()
            for report in writer.reports():
                yield report_batch(*report)

    def put_to_sleep(self, writer: SegmentWriter, alive: Stored) -> None:
        if self.sleeping:
            writer.append(alive, "rows", 0, packed(self.sleeping, self.state_fields))
            self.sleeping.clear()

    def heed(self, state: Value) -> int | None:
        """Read the last value of a row, the state of a group that was alive before its epochs."""
        if state is None:
            return None
        epoch, folds = json.loads(state)
        for fold, (held, seen) in zip(self.folds, folds, strict=True):
            fold.state = decode_state(fold.function, held, self.is_trusted)
            fold.seen = set(decode_values(seen))
        self.alive = True
        return int(epoch)

    def end(self, group: tuple[Value, ...], epoch: int) -> Iterator[tuple[Value, ...]]:
        """The remaining epochs of a group, which may stay alive."""
        yield from self.silence(group, epoch, self.until)
        if self.alive:
            folds = [
                [encode_state(fold.function, fold.state), encode_values(fold.seen)]
                for fold in self.folds
            ]
            state = json.dumps([self.until, folds], separators=(",", ":")).encode()
            self.sleeping.append((*group, state))
        self.alive = False

    @property
    def folds(self) -> list[GroupFold]:
        return [m.fold for m in self.members if m.fold is not None]

    @cached_property
    def is_trusted(self) -> bool:
        return is_ours(Path(self.store))


def packed(rows: Sequence[tuple[Value, ...]], fields: Sequence[Field]) -> bytes:
    return pack_tuples(batch_of(rows, fields, [f.name for f in fields]))


def running_step(
    running: RunningStream,
    source: Frame,
    alive: Frame,
    parameters: Parameters,
    low: int | None,
    until: int,
    store: Path,
) -> list[Report]:
    """Compute the epochs from `low` up to, and without, `until`; return the tasks' reports."""

    def is_due(epoch: Column) -> Column:
        due = epoch < changing(until)
        return due if low is None else due & (epoch >= changing(low))

    epochs = EpochGroups(running.rel, source, parameters, is_due)
    columns = zip(alive.columns.values(), epochs.names, strict=False)
    groups = [column.alias(name) for column, name in columns]
    sleeping = alive.df.select(*groups, alive.column(ALIVE).alias("alive"))
    together = epochs.df.unionByName(sleeping, allowMissingColumns=True)
    living = epochs.machine(
        LivingGroups,
        until=until,
        state_fields=state_fields(running.rel),
        key=running.key,
        store=str(store),
    )
    ordered = epochs.in_order(together)
    return read_reports(ordered.mapInArrow(living.run, REPORT))


def furthest_epoch(rel: Running, source: Frame, parameters: Parameters) -> int | None:
    """The last epoch with tuples; None: there is none."""
    key = Translator(source.columns, parameters).column(rel.keys[0][1])
    found = source.df.agg(F.max(key)).collect()[0][0]
    return None if found is None else int(found)
