"""A task of the low level: the queries of a whole set over some splits of a source.

In: a LowPlan, the splits, and for each aggregation the epochs that the task owns. Out: groups and
tuples of each query, as they become ready, and the report of reading. There is one pass: a batch is
read, the prefilter gives every tuple its bit vector, and each query takes the tuples that have its
signature. Selections process each batch at once. Aggregations process many tuples of an epoch
together: their columns stay pending, without payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from terascope.connectors.base import Column, ReadReport, Split, SplitRange
from terascope.connectors.registry import read_split
from terascope.execute.grouping.aggregator import Aggregator
from terascope.execute.grouping.pending_tuples import PendingTuples, TupleVectors
from terascope.execute.grouping.selections import Selection, Selections
from terascope.execute.grouping.tree import tree_of
from terascope.execute.grouping.tree_edges import TablelessNode, TreeEdges
from terascope.execute.reports import Meter, Reports, add_report, note_clocks
from terascope.kernels.codegen.program import functions
from terascope.kernels.columns.arrays import Codes, Flags, Ints, give_back, keep_freed_memory
from terascope.kernels.columns.batch import VectorBatch
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.groups import Block
from terascope.physical.low_plan import LowPlan, LowSelect, programs
from terascope.physical.splits import ALL, Epochs, Timeline, timelines
from terascope.plan.expr import Col

BATCH_ROWS = 1 << 17
"""The number of tuples from which on a batch ends where all epochs end."""
LARGE_ROWS = 1 << 19
"""The number of tuples from which on a batch ends where the epochs of most aggregations end."""
FIXED_BYTES = 64 << 20
"""The memory of a task beside its data, more than that of an idle interpreter."""
BATCH_COST = 3
"""The memory for grouping pending vectors, as a multiple of their own: for sorting them, and for
the groups of one query."""
STATE_COST = 2
"""The same for aggregations with states, which take tuples as they come."""
FIRST_PORTION = 1 << 12
LEAST_PORTION = 1 << 10
MOST_PORTION = 1 << 20
"""Tuples that an aggregation with states takes at a time, before the memory is checked."""
OUTGROWN_BYTES = 1 << 24
"""States that grow by more leave behind arrays that they have outgrown."""


@dataclass(frozen=True)
class Groups:
    """Groups of some epochs. Complete: no other task has any of these, and each occurs once."""

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
SplitReader: TypeAlias = Callable[[Split, Sequence[Column], ReadReport], Iterator[pa.RecordBatch]]
"""Reads the columns of a split."""


@dataclass
class TaskCounters:
    """Counters of the low level, for explain and for tests."""

    tuples: int
    evaluated: Ints
    """Evaluations of each predicate of the prefilter."""
    passed: Ints
    """Tuples that each query took."""
    probes: Ints
    """Tuples, or groups of a parent, that were looked up in the table of each node: of each query,
    then of each intermediate node."""
    evicted: Ints
    """Groups of each node that left their table before their epoch was over."""
    flushed: Ints
    """Groups of each node that left their table at the end of their epoch or of a large batch."""
    partials: Ints
    """Groups of each query that were sent to the merge."""

    @staticmethod
    def of(plan: LowPlan) -> TaskCounters:
        """All zero."""
        queries, nodes = len(plan.queries), len(plan.queries) + len(plan.inner)
        sizes = (len(plan.predicates), queries, nodes, nodes, nodes, queries)
        return TaskCounters(0, *(np.zeros(size, np.int64) for size in sizes))

    def summary(self) -> dict[str, object]:
        return {n: c if isinstance(c, int) else c.tolist() for n, c in vars(self).items()}


class LowTask:
    def __init__(
        self, plan: LowPlan, owned: Mapping[int, Epochs | None], meter: Meter | None = None
    ) -> None:
        """`owned`: the epochs that the task owns, by the place of an aggregation."""
        keep_freed_memory()
        self.plan = plan
        self.reports: Reports = {}
        self._tree = tree_of(plan)
        self.counters = TaskCounters.of(plan)
        self.meter = meter or Meter()
        self._owned = owned
        self._timelines: dict[int, Timeline] = {}
        self._first, self._second = programs(plan)
        self._prefilter, self._derive = functions(self._first, plan.compiled)
        _, self._derive_keys = functions(self._second, plan.compiled)
        self._selections = Selections()
        self._chosen = [self._selections.of(node) for node in (*plan.queries, *plan.inner)]
        self._pending_tuples = PendingTuples(
            [(self._chosen[place], self._tree.nodes[place]) for place in self._tree.roots]
        )
        self._memory_bytes = max(plan.memory_bytes // 2, plan.memory_bytes - FIXED_BYTES)
        self._all_states = all(node.shape.states for node in self._tree.nodes.values())
        """Whether all aggregations have states: large batches are of no use to these."""
        self._portion = FIRST_PORTION
        self._begin()

    def _begin(self) -> None:
        """Make empty dictionaries and tables."""
        self._dictionaries = TaskDictionaries()
        tree = self._tree
        self._aggregators = {place: self._aggregator(place) for place in tree.nodes}
        for place, aggregator in self._aggregators.items():
            below = [(tree.edges[c], self._aggregators[c]) for c in tree.children(place)]
            if below:
                aggregator.below = TreeEdges(aggregator.query, below)
        self._sent_early: dict[int, set[int]] = {}
        """By node: the epochs of which some groups were sent as partials."""
        self._sizes: dict[int, int] = {}
        self._used = 0

    def _aggregator(self, place: int) -> Aggregator | TablelessNode:
        tree, is_inner, compiled = self._tree, not self._is_query(place), self.plan.compiled
        node, edge, known = tree.nodes[place], tree.edges.get(place), self._dictionaries
        if edge is None or not tree.is_tableless(place):
            return Aggregator(node, known, compiled, edge.query if edge else None, is_inner)
        # A bounded table may evict a group again and again.
        once = tree.table_of(place).table.kind == "open" or not compiled
        return TablelessNode(node, tree.nodes[tree.parents[place]], edge, known, once, is_inner)

    def _is_query(self, place: int) -> bool:
        return place < len(self.plan.queries)

    def run(
        self,
        splits: Sequence[Split],
        clocks: Sequence[str] = (),
        see: Callable[[pa.RecordBatch, Split], None] | None = None,
        read: SplitReader = read_split,
    ) -> Iterator[Ready]:
        """Read the splits. Batches are combined into large ones for aggregations, which end where
        epochs end: much of the work is done once for a batch, and groups of a whole epoch leave
        complete. `see` is called with every batch that was read, and its split.
        """
        queries = [aggregator.query for aggregator in self._aggregators.values()]
        self._timelines = dict(zip(self._aggregators, timelines(queries, splits), strict=True))
        for place, split in enumerate(splits):
            report = ReadReport()
            tuples = read(split, self.plan.columns, report)
            for columns in self.meter.over("read", tuples):
                note_clocks(columns, clocks, report)
                if see is not None:
                    see(columns, split)
                if isinstance(split, SplitRange):
                    columns = split.taken(columns)
                if columns.num_rows:
                    yield from self._see(columns)
                if self._is_full():
                    yield from self._take_all(place)
            if not isinstance(split, SplitRange) or split.is_first:
                add_report(self.reports, split.interface, report)
            if place + 1 == len(splits) or self._is_batch(place):
                yield from self._take_all(place + 1)
        for place in self._top_down():
            yield from self._over(place, ALL)
        self._count()

    def _is_full(self) -> bool:
        """Whether there is no memory for another batch as large as the last."""
        size = self._pending_tuples.size + self._pending_tuples.last_size
        if self._all_states:
            return STATE_COST * size > self._memory_bytes // 4
        room = self._memory_bytes * 5 // 8 - self._dictionaries.memory_bytes
        return BATCH_COST * size > room

    def _is_batch(self, place: int) -> bool:
        """Whether a batch should end with a split: a group that is cut has to be merged."""
        if self._pending_tuples.rows < BATCH_ROWS:
            return False
        read = [timeline for query, timeline in self._timelines.items() if self._is_query(query)]
        cut = sum(not timeline.ends_with(place) for timeline in read)
        most = len(read) // 2 if self._pending_tuples.rows >= LARGE_ROWS else 0
        return cut <= most

    # ---- tuples

    def _see(self, columns: pa.RecordBatch) -> Iterator[Ready]:
        """Take a batch as it was read, and select the tuples of each query."""
        batch = VectorBatch(columns, self._dictionaries, self._first, self._derive)
        self.counters.tuples += len(batch)
        with self.meter.timing("prefilter"):
            bits = batch.prefilter_bits(self._prefilter, self.counters.evaluated)
            chosen = self._selections.rows(batch, bits)
        for place, query in enumerate(self.plan.queries):
            rows = chosen[self._chosen[place].entry]
            self.counters.passed[place] += len(rows)
            if isinstance(query, LowSelect) and len(rows):
                with self.meter.timing(f"select {query.name}"):
                    found = project(batch, query, rows)
                yield Tuples(place, found)
        if self._aggregators:
            keyed = VectorBatch(columns, self._dictionaries, self._second, self._derive_keys)
            self._pending_tuples.add(keyed, chosen)

    def _take_all(self, then: int) -> Iterator[Ready]:
        """Group all pending batches as one; the splits from `then` on may have more tuples."""
        if not self._pending_tuples.rows:
            return
        tuples = self._pending_tuples.take()
        for root, aggregator in self._in_good_order():
            yield from self._group(root, aggregator, tuples)
            for place in self._tree.subtree(root):
                over = self._timelines[place].earliest[then]
                if over is not None:
                    yield from self._over(place, over)
                self._aggregators[place].settle()
            self._note_sizes(self._tree.subtree(root))
            yield from self._make_room(self._room_beside(tuples))
        yield from self._forget()

    def _group(self, place: int, aggregator: Aggregator, tuples: TupleVectors) -> Iterator[Ready]:
        """Let an aggregation take its tuples. The states of a group may be some kilobytes: tuples
        that begin many groups are taken a portion at a time, and groups leave in between.
        """
        chosen, name = self._chosen[place], f"group {aggregator.query.name}"
        rows = tuples.chosen[chosen.entry]
        if not aggregator.shape.states:
            with self.meter.timing(name):
                aggregator.take(tuples, chosen)
            return
        room, at = self._state_room(tuples), 0
        while at < len(rows):
            end = min(len(rows), at + self._portion)
            before = self._used
            with self.meter.timing(name):
                aggregator.take(tuples, chosen, rows[at:end])
            self._note_sizes([place])
            grown = self._used - before
            self._portion = next_portion(self._portion, grown, room)
            if grown > OUTGROWN_BYTES:
                give_back()
            if end < len(rows):
                yield from self._make_room(room)
            at = end

    def _in_good_order(self) -> list[tuple[int, Aggregator]]:
        """Nodes that take tuples; those with the same partitioning are neighbours."""
        order: dict[tuple[Selection, int], list[tuple[int, Aggregator]]] = {}
        for place in self._tree.roots:
            aggregator = self._aggregators[place]
            assert isinstance(aggregator, Aggregator), "only a child is a view"
            key = self._chosen[place].entry, aggregator.apart_by()
            order.setdefault(key, []).append((place, aggregator))
        return [one for some in order.values() for one in some]

    def _top_down(self) -> list[int]:
        """All nodes, parents first."""
        return [place for root in self._tree.roots for place in self._tree.subtree(root)]

    # ---- groups

    def _over(self, place: int, epoch: int) -> Iterator[Ready]:
        """The epochs before one are over for a node; its ancestors were flushed before."""
        yield from self._groups(place, None if epoch == ALL else epoch)
        if self._is_query(place):
            yield Reached(place, epoch)

    def _groups(self, place: int, before: int | None, early: bool = False) -> Iterator[Ready]:
        """Groups of a node before an epoch, or all, after its ancestors were flushed."""
        for higher in self._tree.above(place):
            self._aggregators[higher].flush(before)
        aggregator = self._aggregators[place]
        name = f"group {aggregator.query.name}"
        for released in self.meter.over(name, aggregator.release(before)):
            block = released.block
            if early or not released.whole:
                self._sent_early.setdefault(place, set()).update(block.epochs.tolist())
            complete = self._are_complete(place, block.epochs)
            whole, cut = block.where(complete), block.where(~complete)
            self.counters.partials[place] += len(cut.rows)
            if len(whole.rows):
                yield Groups(place, whole, aggregator.key_dictionaries, complete=True)
            if len(cut.rows):
                yield Groups(place, cut, aggregator.key_dictionaries, complete=False)

    def _are_complete(self, place: int, epochs: Ints) -> Flags:
        """The epochs of a node that no other task has, and of which no partials were sent."""
        mine = self._owned.get(place)
        if mine is None:
            return np.zeros(len(epochs), np.bool_)
        complete = mine.contain(epochs)
        given = self._sent_early.get(place)
        if given:
            complete &= ~np.isin(epochs, np.fromiter(given, np.int64, len(given)))
        return complete

    def _count(self) -> None:
        """Add the counts of all aggregators, which are done."""
        totals = self.counters.probes, self.counters.evicted, self.counters.flushed
        for place, aggregator in self._aggregators.items():
            for total, count in zip(totals, aggregator.counts(), strict=True):
                total[place] += count

    def report(self, read: str) -> dict[str, object]:
        """The counters of the task and the figures of its operators, as JSON."""
        count = self.counters
        for place, query in enumerate((*self.plan.queries, *self.plan.inner)):
            if isinstance(query, LowSelect):
                given = int(count.passed[place])
                self.meter.add(f"select {query.name}", taken=count.tuples, given=given)
                continue
            probes, evicted = int(count.probes[place]), int(count.evicted[place])
            is_root = query.parent is None and self._is_query(place)
            self.meter.add(
                f"group {query.name}",
                taken=int(count.passed[place]) if is_root else probes,
                given=evicted + int(count.flushed[place]),
                probes=probes,
                evicted=evicted,
            )
        figures, seen = self.meter.figures, {"taken": count.tuples, "given": count.tuples}
        figures[f"read {read}"] = figures.pop("read", {}) | seen
        prefilter = figures.pop("prefilter", {})
        if self.plan.predicates:
            figures[f"prefilter {read}"] = prefilter | seen
        return count.summary() | self.meter.report(read)

    def _room_beside(self, tuples: TupleVectors) -> int:
        """The memory for groups beside a batch, the dictionaries and the parts being written."""
        if self._all_states:
            return self._state_room(tuples)
        known = self._dictionaries.memory_bytes
        return self._memory_bytes * 3 // 4 - known - BATCH_COST * tuples.size

    def _state_room(self, tuples: TupleVectors) -> int:
        """The same while groups with states take tuples: nothing is sorted meanwhile."""
        known = self._dictionaries.memory_bytes
        return self._memory_bytes * 7 // 8 - known - STATE_COST * tuples.size

    def _make_room(self, most: int) -> Iterator[Ready]:
        """Remove groups for which there is no memory. Groups of a query that owns epochs are
        spilled, others are sent as partials, which they would have to be anyway. Intermediate nodes
        pass theirs to their children first.
        """
        if self._used <= most or self._used_now() <= most:
            return
        for place in self._top_down():
            if not self._is_query(place) and self._aggregators[place].is_open:
                self._aggregators[place].flush(None)
                self._aggregators[place].shrink()
        if self._used_now() > most:
            yield from self._free_tables(most)
            self._used_now()

    def _used_now(self) -> int:
        self._note_sizes(self._aggregators)
        return self._used

    def _free_tables(self, most: int) -> Iterator[Ready]:
        """Empty the largest tables first, until half of the memory is free."""
        used, sizes = self._used, self._sizes
        places = [place for place in self._aggregators if self._is_query(place)]
        for place in sorted(places, key=lambda place: sizes[place], reverse=True):
            if self._owned.get(place) is not None:
                aggregator = self._aggregators[place]
                before = aggregator.spilled_bytes
                aggregator.spill()
                written = aggregator.spilled_bytes - before
                self.meter.add(f"group {aggregator.query.name}", spilled_bytes=written)
            else:
                yield from self._groups(place, None, early=True)
                self._aggregators[place].shrink()
            used -= sizes[place]
            if 2 * used <= most:
                break
        give_back()

    def _note_sizes(self, places: Iterable[int]) -> None:
        """Sizes are updated incrementally: reading all of them costs more than many a table."""
        for place in places:
            size = self._aggregators[place].memory_bytes
            self._used += size - self._sizes.get(place, 0)
            self._sizes[place] = size

    def _forget(self) -> Iterator[Ready]:
        """Start new dictionaries when they are large: best while no groups use their codes."""
        known = self._dictionaries.memory_bytes
        if 4 * known > self._memory_bytes:
            for place in self._top_down():
                yield from self._groups(place, None, early=True)
        elif 8 * known <= self._memory_bytes or not all(
            aggregator.is_empty for aggregator in self._aggregators.values()
        ):
            return
        early = self._sent_early
        self._count()
        self._begin()
        give_back()
        self._sent_early = early


def next_portion(portion: int, grown: int, room: int) -> int:
    """The number of tuples to take next, after a portion for which the states have grown."""
    if 4 * grown > room:
        return max(LEAST_PORTION, portion // 2)
    return min(MOST_PORTION, 2 * portion) if 16 * grown < room else portion


def project(batch: VectorBatch, query: LowSelect, rows: Codes) -> pa.RecordBatch:
    """The columns of a selection; columns of the source are copied together."""
    plain = list(dict.fromkeys(e.name for _, e in query.items if isinstance(e, Col)))
    taken = batch.columns.select(plain).take(pa.array(rows))
    columns = [
        taken.column(expr.name) if isinstance(expr, Col) else batch.column(expr, rows)
        for _, expr in query.items
    ]
    return pa.RecordBatch.from_arrays(columns, [name for name, _ in query.items])
