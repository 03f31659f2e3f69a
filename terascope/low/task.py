"""A task of the low level: the queries of a whole set over some splits of a source.

In: a LowPlan, the splits, and for each aggregation the epochs the task has alone. Out: groups and
tuples of each query, as they become ready, and what reading saw. One pass: a batch is read, the
prefilter gives every tuple its bit vector, and each query takes the tuples that have its signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from terascope.connectors.base import ReadReport, Split
from terascope.connectors.registry import read_split
from terascope.low.aggregator import Aggregator
from terascope.low.dictionary import Codes, Dictionary, Hashes, Ints
from terascope.low.groups import Block
from terascope.low.kernels import WORD, column, compiled, output
from terascope.low.lanes import Batch, Dictionaries
from terascope.low.memory import keep_freed_memory
from terascope.low.ownership import ALL, Epochs, earliest, span
from terascope.low.plan import LowAggregate, LowPlan, LowQuery, LowSelect
from terascope.low.program import functions, program
from terascope.low.reports import Reports, add_report, note_clocks

BATCH_ROWS = 1 << 17
"""So many tuples are worth a batch of their own."""
BATCH_SHARE = 16
"""A batch that has this part of the memory is taken as it is, wherever it ends."""


@dataclass(frozen=True)
class Groups:
    """Groups of one epoch. Complete: no other task has any of that epoch, and each stands once."""

    query: int
    block: Block
    dictionaries: Sequence[Dictionary]
    complete: bool


@dataclass(frozen=True)
class Tuples:
    """Tuples that a selection lets pass."""

    query: int
    columns: pa.RecordBatch


@dataclass(frozen=True)
class Reached:
    """No groups of a query follow whose epoch is before this one."""

    query: int
    epoch: int


Ready: TypeAlias = Groups | Tuples | Reached


@dataclass
class Counters:
    """What the low level did, for explain and for proofs."""

    tuples: int = 0
    evaluated: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Evaluations of each predicate of the prefilter."""
    passed: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Tuples that each query took."""
    evicted: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Groups of each query that left their table before their epoch was over."""
    partials: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Groups of each query that went up to be merged."""

    def summary(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "tuples": self.tuples,
            "evaluated": self.evaluated.tolist(),
            "passed": self.passed.tolist(),
            "evicted": self.evicted.tolist(),
            "partials": self.partials.tolist(),
        }


class LowTask:
    """The queries of a plan at work in one task."""

    def __init__(self, plan: LowPlan, owned: Mapping[int, Epochs | None]) -> None:
        """`owned`: by the place of an aggregation among the queries."""
        keep_freed_memory()
        self.plan = plan
        self.reports: Reports = {}
        queries = len(plan.queries)
        self.counters = Counters(
            0,
            np.zeros(len(plan.predicates), np.int64),
            np.zeros(queries, np.int64),
            np.zeros(queries, np.int64),
            np.zeros(queries, np.int64),
        )
        self._owned = owned
        self._earliest: dict[int, list[int | None]] = {}
        """For each aggregation and each place among the splits, the earliest epoch yet to come."""
        self._program = program(plan)
        self._prefilter, self._derive = functions(self._program, plan.compiled)
        self._signatures = [signature_words(q, self._program.words) for q in plan.queries]
        self._begin()

    def _begin(self) -> None:
        """Dictionaries and tables, all empty."""
        self._dictionaries = Dictionaries()
        self._aggregators = {
            place: Aggregator(query, self._dictionaries, self.plan.compiled)
            for place, query in enumerate(self.plan.queries)
            if isinstance(query, LowAggregate)
        }
        self._surrendered: set[tuple[int, int | None]] = set()

    def run(self, splits: Sequence[Split], clocks: Sequence[str] = ()) -> Iterator[Ready]:
        """Read the splits. Batches are put together to large ones, which end where epochs end: much
        of the work is done once for a batch, and groups of a whole epoch leave complete.
        """
        self._earliest = {
            query: earliest(aggregator.query, splits)
            for query, aggregator in self._aggregators.items()
        }
        waiting: list[pa.RecordBatch] = []
        for place, split in enumerate(splits):
            report = ReadReport()
            for columns in read_split(split, self.plan.columns, report):
                note_clocks(columns, clocks, report)
                if columns.num_rows:
                    waiting.append(columns)
                if BATCH_SHARE * size(waiting) >= self.plan.memory_bytes:
                    yield from self._take_all(waiting, place)
            add_report(self.reports, split.interface, report)
            last = place + 1 == len(splits)
            if last or (rows(waiting) >= BATCH_ROWS and self._ends_epoch(splits, place)):
                yield from self._take_all(waiting, place + 1)
        for place in self._aggregators:
            yield from self._groups(place, None)
            yield Reached(place, ALL)

    def _take_all(self, waiting: list[pa.RecordBatch], place: int) -> Iterator[Ready]:
        """The batches that wait, as one; the splits from `place` on may have more tuples."""
        if waiting:
            columns = concatenated(waiting)
            waiting.clear()
            yield from self._take(columns, place)
            yield from self._make_room()

    def _ends_epoch(self, splits: Sequence[Split], place: int) -> bool:
        """Whether no aggregation has an epoch in a split and after it, as far as that is known."""
        for query, aggregator in self._aggregators.items():
            last, first = span(aggregator.query, [splits[place]]), self._earliest[query][place + 1]
            if last is not None and first is not None and last[1] >= first:
                return False
        return True

    # ---- tuples

    def _take(self, columns: pa.RecordBatch, then: int) -> Iterator[Ready]:
        batch = Batch(columns, self._dictionaries, self._program, self._derive)
        self.counters.tuples += len(batch)
        bits = self._bits(batch)
        chosen: dict[tuple[int, ...], Codes] = {}
        for place, query in enumerate(self.plan.queries):
            signature = self._signatures[place]
            key = tuple(signature.tolist())
            if key not in chosen:
                chosen[key] = select(bits, signature, len(batch))
            rows = chosen[key]
            for predicate in query.rest:
                rows = rows[batch.passing(predicate, rows)]
            self.counters.passed[place] += len(rows)
            if isinstance(query, LowAggregate):
                self._aggregators[place].take(batch, rows)
                over = self._earliest[place][then]
                if over is not None:
                    yield from self._groups(place, over)
                    yield Reached(place, over)
                self._aggregators[place].settle()
            elif len(rows):
                yield Tuples(place, project(batch, query, rows))

    def _bits(self, batch: Batch) -> list[Hashes]:
        bits = [np.empty(len(batch), np.uint64) for _ in range(self._program.words)]
        if bits:
            lanes = batch.inputs(self._program.prefilter.inputs)
            with np.errstate(all="ignore"):
                self._prefilter(len(batch), self.counters.evaluated, *lanes, *bits)
        return bits

    # ---- groups

    def _groups(self, place: int, before: int | None, surrendered: bool = False) -> Iterator[Ready]:
        aggregator = self._aggregators[place]
        mine = self._owned.get(place)
        for released in aggregator.release(before):
            epoch = released.block.epoch
            alone = mine is not None and (epoch is None or epoch in mine)
            if epoch is None and mine is not None:
                alone = mine.first is None and mine.last is None
            if surrendered or not released.whole:
                self._surrendered.add((place, epoch))
            complete = alone and (place, epoch) not in self._surrendered
            if not complete:
                self.counters.partials[place] += len(released.block.rows)
            yield Groups(place, released.block, aggregator.key_dictionaries, complete)
        self.counters.evicted[place] = aggregator.evicted

    def _make_room(self) -> Iterator[Ready]:
        """Beyond the memory budget all groups go up as partials, and dictionaries begin anew."""
        used = sum(a.memory_bytes for a in self._aggregators.values())
        if 2 * (used + self._dictionaries.memory_bytes) <= self.plan.memory_bytes:
            return  # the other half is for the batch and for what is being written
        for place in self._aggregators:
            yield from self._groups(place, None, surrendered=True)
            self._aggregators[place].shrink()
        if 4 * self._dictionaries.memory_bytes > self.plan.memory_bytes:
            self._forget()

    def _forget(self) -> None:
        surrendered = self._surrendered
        self._begin()
        self._surrendered = surrendered


def rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def size(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches one behind the other, as one."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)


def project(batch: Batch, query: LowSelect, rows: Codes) -> pa.RecordBatch:
    """The columns of a selection."""
    columns = [batch.column(expr, rows) for _, expr in query.items]
    return pa.RecordBatch.from_arrays(columns, [name for name, _ in query.items])


# ---- the bit vector ------------------------------------------------------------------------------


def signature_words(query: LowQuery, words: int) -> Hashes:
    signature = np.zeros(words, np.uint64)
    for bit in query.signature:
        signature[bit // 64] |= np.uint64(1 << (bit % 64))
    return signature


def select(bits: Sequence[Hashes], signature: Hashes, count: int) -> Codes:
    """The tuples that have all bits of a signature."""
    rows: Codes | None = None
    for vector, wanted in zip(bits, signature, strict=True):
        if not wanted:
            continue
        if rows is None:
            rows = np.empty(count, np.int32)
            rows = rows[: matching(vector, wanted, rows)]
        else:
            rows = rows[(vector[rows] & wanted) == wanted]
    return np.arange(count, dtype=np.int32) if rows is None else rows


@compiled(column(np.uint64), WORD, output(np.int32))
def matching(vector: Hashes, wanted: np.uint64, rows: Codes) -> np.int64:
    """Without a branch: a tuple that does not match is overwritten by the next."""
    count = np.int64(0)
    for i in range(len(vector)):
        rows[count] = i
        count += np.int64((vector[i] & wanted) == wanted)
    return count
