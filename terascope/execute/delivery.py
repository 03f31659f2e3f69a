"""Delivery of finished rows in a task: written as parts of a result, or sent to the high level.

In: batches of columns of low-level streams, groups merged. Out: `Outgoing`s, the output rows of the
task: packed tuples for the high level, and a report of each part that was written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Final

import pyarrow as pa

from terascope.execute.reports import Meter, Outgoing
from terascope.execute.results.parts import GROUP_BYTES, Part, PartWriter
from terascope.execute.rows.collect import Ranking, Regrouping
from terascope.execute.rows.steps import Early, early, run_steps
from terascope.execute.rows.task_joins import JoinRows, TaskJoins
from terascope.files import make_folder
from terascope.functions.overflow import overflow_of
from terascope.kernels.columns.arrays import Ints
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.kernels.merge.groups import NO_EPOCH, Block, GroupFields
from terascope.kernels.merge.payload import pack_batches
from terascope.physical.delivery import Direct, Sink, Target, TaskJoin
from terascope.physical.row_pipeline import Regroup, Top
from terascope.physical.splits import Epochs

PAYLOAD_BYTES: Final = 8 << 20
LEAST_GROUP_BYTES: Final = 1 << 17


class Delivery:
    """The finished rows of one task, on their way to parts and to the high level."""

    def __init__(
        self,
        targets: Mapping[int, Target],
        sink: Sink | None,
        destination: int,
        joins: Sequence[TaskJoin] = (),
        owned: Mapping[int, Epochs | None] | None = None,
        starts: Mapping[str, int | float] | None = None,
        meter: Meter | None = None,
    ) -> None:
        """`owned`: by stream, the epochs that no other task has; task joins use only these.
        `starts`: by query, the epoch before which it takes no groups.
        """
        self._starts = starts or {}
        self._meter = meter or Meter()
        self._targets = targets
        self._sink = sink
        self._destination = destination
        groups = {n: t.groups for n, t in targets.items() if t.groups is not None}
        memory_bytes = 0 if sink is None else sink.memory_bytes
        self._joins = TaskJoins(joins, groups, owned or {}, memory_bytes)
        self._rest: Counter[str] = Counter()
        self._pending: dict[int, list[pa.RecordBatch]] = {}
        self._pending_bytes: Counter[int] = Counter()
        self._writers: dict[str, PartWriter] = {}
        self._early: dict[str, Early] = {}
        self._collected: dict[str, tuple[Direct, Ranking | Regrouping]] = {}

    def take(self, stream: int, columns: pa.RecordBatch) -> Iterator[Outgoing]:
        target = self._targets[stream]
        if target.handed_on:
            yield from self._wait(stream, columns)
        for direct in target.direct:
            timed = self._meter.timing(f"pipeline {direct.query}", taken=columns.num_rows)
            with overflow_of(direct.query), timed:
                if direct.places is None:
                    self._collect(direct, run_steps(direct.program.steps, columns))
                else:
                    self._collect(direct, columns.select(direct.places))

    def _collect(self, direct: Direct, made: pa.RecordBatch) -> None:
        whole = direct.program.whole
        self._meter.add(f"pipeline {direct.query}", given=made.num_rows)
        if whole is None:
            self._writer(direct).write(made)
        elif made.num_rows:
            if direct.query not in self._collected:
                self._collected[direct.query] = direct, self._collector(whole)
            self._collected[direct.query][1].take(made)

    def _collector(self, whole: Top | Regroup) -> Ranking | Regrouping:
        assert self._sink is not None
        if isinstance(whole, Top):
            return Ranking(whole)
        return Regrouping(whole, self._sink.compiled)

    def take_groups(
        self, stream: int, given: Block, dictionaries: Sequence[Dictionary]
    ) -> Iterator[Outgoing]:
        """Deliver finished groups; a query that only picks columns decodes no others."""
        target = self._targets[stream]
        fields = target.groups
        assert fields is not None
        if stream in self._joins:
            yield from self._joined(self._joins.take(stream, given, dictionaries))
        for direct in target.direct:
            block = self._since_start(direct, given)
            timed = self._meter.timing(f"pipeline {direct.query}", taken=len(block.rows))
            with overflow_of(direct.query), timed:
                self._pipe(direct, block, fields, dictionaries)
        if target.handed_on:
            yield from self._wait(stream, finished_columns([given], fields, dictionaries))

    def _since_start(self, direct: Direct, block: Block) -> Block:
        """The groups without the epochs that a query does not take."""
        start = self._starts.get(direct.query)
        if start is None:
            return block
        return block.where((block.epochs >= start) | (block.epochs == NO_EPOCH))

    def _pipe(
        self, direct: Direct, block: Block, fields: GroupFields, dictionaries: Sequence[Dictionary]
    ) -> None:
        steps = self._early.get(direct.query)
        if steps is None:
            steps = self._early[direct.query] = early(direct.program, fields)
        left = steps.reduced(block, dictionaries)
        if steps.picked is None:
            self._collect(direct, steps.columns(left, dictionaries))
            return
        self._meter.add(f"pipeline {direct.query}", given=len(left.rows))
        self._writer(direct, steps.picked).write_block(left, fields, dictionaries)

    # ---- joins

    def lose(self, stream: int, epochs: Ints) -> None:
        """Groups of some epochs went to the merge as partials."""
        self._joins.lose(stream, epochs)

    def reach(self, stream: int, before: int) -> Iterator[Outgoing]:
        """All groups before an epoch were taken."""
        yield from self._joined(self._joins.reach(stream, before))

    def _joined(self, made: Iterator[JoinRows]) -> Iterator[Outgoing]:
        for one in made:
            query, rows = one.join.query, one.columns.num_rows
            if one.leftover is None:
                self._meter.add(f"join {query}", given=rows)
                self._writer(one.join).write(one.columns)
            elif rows:
                self._rest[query] += one.columns.nbytes
                self._meter.add(f"leftovers {query}", taken=rows)
                yield from self._wait(one.leftover, one.columns)

    # ---- on the way

    def _wait(self, stream: int, columns: pa.RecordBatch) -> Iterator[Outgoing]:
        self._pending.setdefault(stream, []).append(columns)
        self._pending_bytes[stream] += columns.nbytes
        if self._pending_bytes[stream] >= PAYLOAD_BYTES:
            yield from self._hand_up(stream)

    def _hand_up(self, stream: int) -> Iterator[Outgoing]:
        """Pack rows for the high level, many batches in one payload."""
        self._pending_bytes[stream] = 0
        remote = self._targets[stream].remote
        for payload in pack_batches(self._pending.pop(stream, ()), remote):
            yield Outgoing(stream, self._destination, "rows", payload)

    def _writer(
        self, query: Direct | TaskJoin, places: tuple[int, ...] | None = None
    ) -> PartWriter:
        if query.query not in self._writers:
            assert self._sink is not None
            folder = self._sink.folder_of(query.query)
            make_folder(folder, self._sink.mode)
            self._writers[query.query] = PartWriter(
                folder, self._sink.format, query.fields, places, self._part_bytes,
                query.ordered if isinstance(query, Direct) else (), self._sink.mode,
            )  # fmt: skip
        return self._writers[query.query]

    @cached_property
    def _part_bytes(self) -> int:
        assert self._sink is not None
        parts = sum(len(target.direct) for target in self._targets.values())
        share = self._sink.memory_bytes // 8 // max(1, parts)
        return max(LEAST_GROUP_BYTES, min(GROUP_BYTES, share))

    def __enter__(self) -> Delivery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """After a failure no file is left open, or behind."""
        if kind is not None:
            for writer in self._writers.values():
                writer.discard()

    def close(self) -> Iterator[Outgoing]:
        """Deliver the remaining rows; all files are complete then."""
        yield from self._joined(self._joins.close())
        for stream in list(self._pending):
            yield from self._hand_up(stream)
        for direct, collected in self._collected.values():
            with overflow_of(direct.query):
                for batch in collected.results():
                    self._writer(direct).write(run_steps(direct.program.after, batch))
        for query, writer in self._writers.items():
            path, rows = writer.close()
            part = Part(query, path, rows, writer.extents)
            yield Outgoing(-1, self._destination, "part", None, part.to_json())
        for query, size in self._rest.items():
            report = json.dumps({"query": query, "bytes": size})
            yield Outgoing(-1, self._destination, "rest", None, report)
