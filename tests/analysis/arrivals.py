"""A plan whose tuples arrive little by little: a stream engine in plain Python, over the reference.

In: a query set and the tuples of its interfaces in the order they arrive. Out: how far its streams
are complete after a cut, and the rows they let go when nothing is kept that is not needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.analysis.moving import ALL, earlier
from terascope.analysis.order import Trees
from terascope.analysis.release import Release, complete_below, release_of
from terascope.analysis.retention import Leaf, RetentionBounds, retention_columns
from terascope.analysis.watermarks import Seen, Watermarks
from terascope.connectors.base import POSITION, arrow_type
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.functions.base import Trend, Value
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import Bindings, compile_set
from terascope.plan.expr import Col
from terascope.plan.plan import Plan, Stream, reads
from terascope.plan.rel import WEND, Aggregate, Read, Rel, Running, Scan, walk
from terascope.reference.interpreter import tuples_of
from terascope.reference.rows import Evaluation, Row, Rows
from terascope.streaming.release import Range, released
from terascope.types import Type
from tests.reference.memory_sources import MemorySources

COLUMNS = {
    "ts": Type.INT, "a": Type.INT, "b": Type.INT, "ip": Type.STRING, "s": Type.STRING,
    "f": Type.FLOAT, "fine": Type.LLONG, "back": Type.INT, "real": Type.FLOAT,
}  # fmt: skip
Tables = Mapping[str, Sequence[Mapping[str, Value]]]
Store = Mapping[Leaf, list[Row]]
Values = tuple[Value, ...]


def plan_of(text: str, folder: Path, names: Collection[str] = ("left", "right")) -> Plan:
    """The optimised plan of a query set over interfaces that have columns, and no tuples yet."""
    path = folder / "empty.parquet"
    pq.write_table(pa.table({n: pa.array([], arrow_type(t)) for n, t in COLUMNS.items()}), path)
    bound = {name: Interface(name, "parquet", str(path)) for name in names}
    bindings = Bindings(bound, {"both": tuple(names)})
    return compile_set(Source(text, str(folder / "set.gsql")), bindings).optimized


@dataclass(frozen=True)
class Cut:
    """How many tuples of every interface have arrived, and which interfaces have ended."""

    arrived: Mapping[str, int]
    ended: frozenset[str] = frozenset()


def the_end(tables: Tables) -> Cut:
    return Cut({name: len(rows) for name, rows in tables.items()}, frozenset(tables))


@dataclass(frozen=True)
class KeptSources:
    """Scans give what is kept of them, where they are leaves; time moves with all that arrived."""

    kept: Store
    arrived: MemorySources

    def rows(self, scan: Scan) -> list[Row]:
        return self.kept[scan] if scan in self.kept else self.arrived.rows(scan)

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        return self.arrived.horizon(scan)


@dataclass(frozen=True)
class Arrivals:
    """A plan, its leaves, and the tuples that will arrive."""

    plan: Plan
    tables: Tables
    low: frozenset[str] = frozenset()
    """Low-level streams; without any the scans are the leaves."""
    running: frozenset[str] = frozenset()
    """Streams of running groups that are kept as they are made."""

    @classmethod
    def of(cls, plan: Plan, tables: Tables, split: bool, materialised: bool = True) -> Arrivals:
        """`tables` with their positions written down, so that batches do not renumber them."""
        placed = {n: [{**t, POSITION: i} for i, t in enumerate(r)] for n, r in tables.items()}
        low: frozenset[str] = frozenset()
        if split:
            made = split_plan(plan)
            plan, low = made.plan, frozenset(stream.name for stream in made.low)
        lives = {s.name for s in plan if any(isinstance(r, Running) for r in walk(s.rel))}
        return cls(plan, placed, low, frozenset(lives if materialised else ()))

    @cached_property
    def trees(self) -> Trees:
        return Trees.of_plan(self.plan)

    @cached_property
    def releases(self) -> Mapping[str, Release]:
        """Of the visible streams, and of those of running groups."""
        names = [s.name for s in self.plan if s.visible or s.name in self.running]
        return {n: release_of(n, self.trees, self.leaves - {n}) for n in names}

    @property
    def leaves(self) -> frozenset[str]:
        return self.low | self.running

    # ---- rows

    def sources(self, cut: Cut, kept: Store) -> KeptSources:
        arrived = {name: rows[: cut.arrived[name]] for name, rows in self.tables.items()}
        return KeptSources(kept, MemorySources(arrived))

    def rows(
        self, name: str, cut: Cut, kept: Store, trees: Mapping[str, Rel] | None = None
    ) -> Rows:
        """The rows of a stream over what has arrived, with the leaves as they are kept."""
        context_streams: dict[str, Rows] = {}
        wanted = self.below(name)
        for stream in self.plan:
            if stream.name in wanted:
                rel = (trees or self.trees.streams)[stream.name]
                context = Evaluation.of(self.plan, self.sources(cut, kept), context_streams)
                is_kept = stream.name in kept and stream.name != name
                found = kept[stream.name] if is_kept else tuples_of(rel, context)
                context_streams[stream.name] = Rows(rel.fields, found)
        return context_streams[name]

    def below(self, name: str) -> set[str]:
        found = {name}
        for read in reads(self.trees.streams[name]):
            found |= self.below(read.stream)
        return found

    def in_range(self, name: str, cut: Cut, kept: Store, ranges: Sequence[Range]) -> list[Row]:
        """The visible rows that stand in ranges of the release value."""
        trees = released(self.trees.streams, self.releases[name], ranges)
        return self.rows(name, cut, kept, trees).visible().tuples

    # ---- time

    def watermarks(self, cut: Cut) -> Watermarks:
        plain = Watermarks(self.trees, lambda scan: self.seen(scan, cut))
        return replace(plain, present=lambda rel: self.last_present(rel, cut, plain))

    def seen(self, scan: Scan, cut: Cut) -> Seen:
        """The least of what the interfaces that go on have come to."""
        going_on = [n for n in scan.interfaces if n not in cut.ended]
        if not going_on:
            return ALL
        found = {}
        for column in scan.columns:
            if column.slope is None or not column.slope.is_ordered:
                continue
            rising = column.slope.trend is Trend.INCREASING
            furthest, nearest = (max, min) if rising else (min, max)
            each: list[Value] = []
            for name in going_on:
                values = [t.get(column.read_from) for t in self.tables[name][: cut.arrived[name]]]
                each.append(furthest((v for v in values if v is not None), default=None))
            if None not in each:
                found[column.name] = nearest(each)
        return found

    def last_present(self, rel: Aggregate, cut: Cut, watermarks: Watermarks) -> Value:
        """Where the last complete row stands that is made of tuples."""
        name = next((n for n, e in rel.keys if e == Col(WEND, e.type)), rel.keys[0][0])
        full = replace(rel, emit_empty=None)
        value = watermarks.of(Col(name, rel.type_of(name)), full)
        home = next(s.name for s in self.plan if any(r == rel for r in walk(s.rel)))
        context = {s: self.rows(s, cut, {}) for s in self.below(home) - {home}}
        rows = tuples_of(full, Evaluation.of(self.plan, self.sources(cut, {}), context))
        keys = [row[rel.names.index(name)] for row in rows]
        done = [k for k in keys if k is not None and earlier(k, value, Trend.INCREASING)]
        return max(done, default=None)

    def reached(self, name: str, cut: Cut) -> Values:
        return complete_below(self.releases[name], self.watermarks(cut))

    # ---- keeping

    @cached_property
    def kept_by(self) -> Mapping[Leaf, str]:
        return retention_columns(self.releases.values(), self.trees, self.leaves)

    def all_leaves(self, name: str) -> set[Leaf]:
        """The leaves a stream is made of."""
        found: set[Leaf] = set()
        for rel in walk(self.trees.streams[name]):
            if isinstance(rel, Scan):
                found.add(rel)
            elif isinstance(rel, Read) and rel.stream in self.leaves:
                found.add(rel.stream)
            elif isinstance(rel, Read):
                found |= self.all_leaves(rel.stream)
        return found

    def arrived_between(self, leaf: Leaf, before: Cut | None, cut: Cut) -> list[Row]:
        """The rows a leaf is given by one batch; tuples of a batch are grouped on their own."""
        start = before.arrived if before else dict.fromkeys(self.tables, 0)
        batch = {n: rows[start[n] : cut.arrived[n]] for n, rows in self.tables.items()}
        rel = self.trees.streams[leaf] if isinstance(leaf, str) else leaf
        return tuples_of(rel, Evaluation.of(self.plan, MemorySources(batch), {}))

    def without(self, leaf: Leaf, rows: list[Row], bound: Value) -> list[Row]:
        """The rows of a leaf that are not earlier than a bound, or have no value."""
        rel = self.leaf_rel(leaf)
        if bound is None or bound is ALL:
            return rows if bound is None else []
        column = self.kept_by[leaf]
        place = rel.names.index(column)
        trend = self.trees.orders(rel)[column].slope.trend
        return [r for r in rows if r[place] is None or not earlier(r[place], bound, trend)]

    def leaf_rel(self, leaf: Leaf) -> Rel:
        return Read(leaf, self.trees.streams[leaf].fields) if isinstance(leaf, str) else leaf

    def needed(self, name: str, values: Values) -> dict[Leaf, Value]:
        others = self.leaves - {name}
        return RetentionBounds(self.trees, others, self.kept_by).after_release(
            self.releases[name], values
        )


def only_visible(plan: Plan, name: str) -> Plan:
    """The plan with one stream delivered."""
    streams: tuple[Stream, ...] = tuple(replace(s, visible=s.name == name) for s in plan)
    return replace(plan, streams=streams)


def run_stream(arrivals: Arrivals, name: str, cuts: Sequence[Cut]) -> list[Row]:
    """All rows one stream lets go, each cut a micro-batch, keeping nothing that is not needed."""
    release = arrivals.releases[name]
    old: Values = (None,) * len(release.parts)
    store: dict[Leaf, list[Row]] = {leaf: [] for leaf in arrivals.all_leaves(name)}
    given: list[Row] = []
    before: Cut | None = None
    for cut in cuts:
        for leaf in store:
            if leaf in arrivals.running:
                store[leaf] = settled_running(arrivals, str(leaf), cut)
            else:
                store[leaf] = store[leaf] + arrivals.arrived_between(leaf, before, cut)
        new = arrivals.reached(name, cut)
        for part, was, now in zip(release.parts, old, new, strict=True):
            assert not earlier(now, was, part.trend), f"{name} went back from {was} to {now}"
        if release.kind == "ordered":
            given += arrivals.in_range(name, cut, store, list(zip(old, new, strict=True)))
        elif release.kind == "at_once" or len(cut.ended) == len(arrivals.tables):
            given += arrivals.rows(name, cut, store).visible().tuples
        old, before = new, cut
        for leaf, bound in arrivals.needed(name, new).items():
            store[leaf] = arrivals.without(leaf, store[leaf], bound)
    return given


def settled_running(arrivals: Arrivals, name: str, cut: Cut) -> list[Row]:
    """The rows of running groups that are complete, as an engine would keep them."""
    release = arrivals.releases[name]
    ranges = [(None, value) for value in arrivals.reached(name, cut)]
    trees = released(arrivals.trees.streams, release, ranges)
    return arrivals.rows(name, cut, {}, trees).tuples
