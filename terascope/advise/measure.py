"""Rates, selectivities and tuple sizes of a query set, measured on a sample of its sources.

In: the basic queries of a set and a sample. Out: a `CostModel`. Every query is computed on the
sample with the operators of the local engine, and its rows are counted. What is not to be had from
a sample has declared defaults: a rate for sources, and a selectivity for each kind of operator.

A sample is bounded, and so is the work on it. Operators that make many rows of few (windows that
overlap, joins of many partners) or that only the reference interpreter has are measured on the
beginning of the sample. Groups of an epoch that is longer than the sample are extrapolated by the
power law that the two halves of the sample show: where twice the tuples have 1.4 times the groups,
they always do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp2, log2
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.advise.sample import Sample
from terascope.analysis.order import FINENESS
from terascope.connectors.base import interface_of
from terascope.execute.relations import ArrowRelations, arrow_operator
from terascope.functions.base import Scalar
from terascope.functions.roles import FloorDivision
from terascope.partitioning.basic_queries import BasicQuery, needs_tuples_together, raw_name
from terascope.partitioning.cost import CostModel, QueryNode, Rate
from terascope.partitioning.normal import fixed_number
from terascope.plan.evaluate import Parameters
from terascope.plan.expr import Call, Col, Expr, columns_of
from terascope.plan.horizon import Horizons
from terascope.plan.rel import (
    Aggregate,
    ClockUnit,
    Field,
    Filter,
    Join,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Sliding,
    Window,
    inputs,
    walk,
)
from terascope.types import Type

DEFAULT_RATE: Final = 100_000.0
"""Tuples per second of a source without a sample: what each tap of P2 6 received."""
DEFAULT_PASSING: Final = 0.5
"""The share of the tuples that pass a condition on tuples."""
DEFAULT_GROUPS: Final = 0.1
"""Groups for each tuple."""
DEFAULT_HAVING: Final = 0.05
"""The share of the groups that pass a condition: of the flows of P2 6.1, 5% were suspicious."""
SIZES: Final[Mapping[Type, float]] = {
    Type.BOOL: 1, Type.INT: 4, Type.UINT: 4, Type.LLONG: 8, Type.ULLONG: 8, Type.WIDE: 8,
    Type.FLOAT: 8, Type.IP: 4, Type.IPV6: 16, Type.STRING: 16, Type.BINARY: 64, Type.NULL: 0,
}  # fmt: skip
"""Bytes of a value; those of texts and addresses are measured where there is a sample."""
MOST_ROWS: Final = 1 << 20
"""Rows that one operator may make of a sample."""
SLOW_ROWS: Final = 4000
"""Rows that the reference interpreter is given."""


@dataclass(frozen=True)
class MeasuredSet:
    """A cost model, and how sure it is."""

    model: CostModel
    unmeasured: tuple[str, ...] = ()
    """Sources whose rates are declared, not measured."""
    extrapolated: tuple[str, ...] = ()
    """Queries with epochs that are longer than the sample."""
    silent: tuple[str, ...] = ()
    """Queries of which no tuple is in the sample."""
    seconds: float | None = None
    """The time that the sample covers."""
    tuples: int = 0


def measured(
    nodes: Sequence[BasicQuery],
    sample: Sample,
    parameters: Parameters,
    weights: Mapping[str, float] | None = None,
) -> MeasuredSet:
    """The cost model of a query set.

    Raises:
        ValueMistake: a query has no answer for the tuples of the sample.
    """
    return SetMeasuring(nodes, sample, parameters).all(weights)


@dataclass
class SetMeasuring:
    nodes: Sequence[BasicQuery]
    sample: Sample
    parameters: Parameters
    batches: dict[str, pa.RecordBatch] = field(default_factory=dict)
    """The rows of raw streams and nodes, by name."""
    spans: dict[str, float | None] = field(default_factory=dict)
    """The time that the rows of each cover."""
    counts: dict[int, int] = field(default_factory=dict)
    """The groups that each aggregation had last."""
    extrapolated: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)

    @cached_property
    def moving(self) -> frozenset[Scan]:
        """The scans below operators that some partitionings make central."""
        return frozenset(
            rel
            for node in self.nodes
            if any(map(needs_tuples_together, walk(node.rel)))
            for rel in walk(node.rel)
            if isinstance(rel, Scan)
        )

    def all(self, weights: Mapping[str, float] | None) -> MeasuredSet:
        scans: dict[str, list[Scan]] = {}
        for node in self.nodes:
            for rel in walk(node.rel):
                if isinstance(rel, Scan):
                    scans.setdefault(raw_name(rel), []).append(rel)
        raw = {name: self._raw(name, some) for name, some in scans.items()}
        made = [self._node(node) for node in self.nodes]
        known = self.sample.sources.values()
        return MeasuredSet(
            CostModel(raw, made, weights),
            tuple(sorted({
                interface_of(i) for some in scans.values() for scan in some
                for i in scan.interfaces if not self.sample.has(scan)
            })),
            tuple(self.extrapolated),
            tuple(self.silent),
            max((one.seconds for one in known if one.seconds is not None), default=None),
            sum(one.tuples.num_rows for one in known),
        )  # fmt: skip

    def _raw(self, name: str, scans: Sequence[Scan]) -> Rate:
        """The rate of a raw stream, with all columns that operators read which may be central. A
        selection is never central, and the payload that it looks at is never moved.
        """
        moved = [scan for scan in scans if raw_name(scan) == name and scan in self.moving] or scans
        fields = {c.read_from: Field(c.name, c.type) for s in moved for c in s.columns}
        visible = {key: f for key, f in fields.items() if not f.hidden}
        size = declared_bytes(visible.values())
        if not self.sample.has(scans[0]):
            self.spans[name] = None
            return Rate(DEFAULT_RATE, size)
        union = {c.name: c for scan in scans for c in scan.columns}
        batch = self.sample.batch(replace(scans[0], columns=tuple(union.values())))
        self.batches[name] = batch
        self.spans[name] = seconds = self.sample.seconds(scans[0])
        size = tuple_bytes(visible.values(), batch)
        return Rate(batch.num_rows / seconds if seconds else float(batch.num_rows), size)

    # ---- nodes

    def _node(self, node: BasicQuery) -> QueryNode:
        spans = [s for s in (self.spans.get(name) for name in node.inputs) if s is not None]
        self.spans[node.name] = max(spans, default=None)
        grouping = aggregation(node.rel)
        if node.inputs and all(name in self.batches for name in node.inputs):
            counted = self._counted(node, grouping)
        else:
            counted = Counted(
                default_selectivity(node.rel),
                declared_bytes(node.rel.visible),
                None if grouping is None else DEFAULT_GROUPS,
            )
        return QueryNode(
            node.name, node.query, node.inputs, counted.selectivity, counted.tuple_bytes,
            node.delivered, counted.groups,
            0.0 if grouping is None else declared_bytes(grouping.visible),
        )  # fmt: skip

    def _counted(self, node: BasicQuery, grouping: Aggregate | None) -> Counted:
        """Compute a node on the rows of the nodes below it."""
        given = {name: self.batches[name] for name in node.inputs}
        taken = sum(batch.num_rows for batch in given.values())
        made, share = self._rows(node.rel, given)
        self.batches[node.name] = made
        size = tuple_bytes(node.rel.visible, made)
        if not taken:
            self.silent.append(node.name)
            return Counted(0.0, size, None if grouping is None else 0.0)
        selectivity = made.num_rows / (taken * share)
        groups = None
        if grouping is not None:
            groups = self.counts.get(id(grouping), made.num_rows) / (taken * share)
        epoch, span = epoch_seconds(node.rel), self.spans[node.name]
        if epoch and span and epoch > span:
            self.extrapolated.append(node.name)
            factor = self._fewer(node.rel, given, share, epoch / span)
            selectivity *= factor
            groups = None if groups is None else groups * factor
        return Counted(selectivity, size, groups)

    def _rows(self, rel: Rel, given: Mapping[str, pa.RecordBatch]) -> tuple[pa.RecordBatch, float]:
        """The rows of a node, and the share of its input that they are made of."""
        share = self._share(rel, given)
        while True:
            some = {name: part(batch, share) for name, batch in given.items()}
            many = matching_rows(self._below(rel, some)) if share > 1e-3 else 0
            if many <= MOST_ROWS:
                return self._computed(rel, some), share
            share *= max(0.05, 0.8 * MOST_ROWS / many)

    def _share(self, rel: Rel, given: Mapping[str, pa.RecordBatch]) -> float:
        """The share of its input that a node is measured on."""
        count = max((batch.num_rows for batch in given.values()), default=0)
        factor = max((repeats(one) for one in walk(rel)), default=1.0)
        share = min(1.0, 2 * MOST_ROWS / max(1.0, count * factor))
        slow = any(
            not isinstance(one, Scan | Read) and arrow_operator(one, self.parameters) is None
            for one in walk(rel)
        )
        return min(share, SLOW_ROWS / max(1, count)) if slow else share

    def _below(
        self, rel: Rel, given: Mapping[str, pa.RecordBatch]
    ) -> list[tuple[Join, pa.RecordBatch, pa.RecordBatch]]:
        """The joins of a node with their inputs."""
        return [
            (one, self._computed(one.left, given), self._computed(one.right, given))
            for one in walk(rel)
            if isinstance(one, Join)
        ]

    def _computed(self, rel: Rel, given: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch:
        horizons = Horizons(
            lambda scan: horizon(given[raw_name(scan)]),
            {node.name: node.rel for node in self.nodes},
            self.parameters,
        )
        return SampledRelations(given, self.parameters, horizons, False, self.counts).rows(rel)

    def _fewer(
        self, rel: Rel, given: Mapping[str, pa.RecordBatch], share: float, times: float
    ) -> float:
        """The factor by which an epoch has fewer groups for each tuple than the sample."""
        grouping = aggregation(rel)
        whole = self.counts.get(id(grouping), 0)
        self._computed(rel, {name: part(batch, share / 2) for name, batch in given.items()})
        half = self.counts.get(id(grouping), 0)
        if not half or not whole:
            return 1.0
        exponent = min(1.0, max(0.0, log2(whole / half)))
        return exp2(log2(times) * (exponent - 1.0))


@dataclass(frozen=True)
class Counted:
    """What is known of the rows of a node."""

    selectivity: float
    tuple_bytes: float
    groups: float | None


def aggregation(rel: Rel) -> Aggregate | None:
    """The aggregation of a node; a running one sends no partial groups."""
    return next((one for one in walk(rel) if isinstance(one, Aggregate)), None)


@dataclass(frozen=True)
class SampledRelations(ArrowRelations):
    """The relations of a query set over a sample. `counts`: the groups of each aggregation."""

    counts: dict[int, int] = field(default_factory=dict)

    def rows(self, rel: Rel) -> pa.RecordBatch:
        if isinstance(rel, Scan):
            return self.streams[raw_name(rel)].select(list(rel.names))
        made = super().rows(rel)
        if isinstance(rel, Aggregate):
            self.counts[id(rel)] = made.num_rows
        return made


def part(batch: pa.RecordBatch, share: float) -> pa.RecordBatch:
    """The beginning of a batch."""
    return batch if share >= 1.0 else batch.slice(0, max(1, int(batch.num_rows * share)))


def horizon(batch: pa.RecordBatch) -> dict[str, int]:
    """The largest number of each column."""
    return {
        name: value
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if pa.types.is_integer(column.type) and (value := pc.max(column).as_py()) is not None
    }


def repeats(rel: Rel) -> float:
    """The rows that an operator makes of each of its own, if that does not depend on them."""
    match rel:
        case Window(spec=Sliding(range, slide)):
            return max(1.0, range / slide)
        case _:
            return 1.0


def matching_rows(joins: Iterable[tuple[Join, pa.RecordBatch, pa.RecordBatch]]) -> float:
    """The most rows that a join of a node makes: pairs with equal columns on both sides."""
    most = 0.0
    for join, left, right in joins:
        pairs = [
            (a.name, b.name)
            for a, b in join.equalities
            if isinstance(a, Col) and isinstance(b, Col)
        ]
        most = max(most, pair_count(left, right, pairs))
    return most


def pair_count(
    left: pa.RecordBatch, right: pa.RecordBatch, pairs: Sequence[tuple[str, str]]
) -> float:
    """The number of pairs of rows with equal values."""
    if not pairs:
        return float(left.num_rows * right.num_rows)
    counted = []
    for batch, place in ((left, 0), (right, 1)):
        names = [pair[place] for pair in pairs]
        columns = [batch.column(name) for name in names]
        table = pa.table(columns, [f"k{i}" for i in range(len(names))])
        grouped = table.group_by(table.column_names).aggregate([([], "count_all")])
        counted.append(grouped)
    keys = [f"k{i}" for i in range(len(pairs))]
    joined = counted[0].join(counted[1], keys, join_type="inner", right_suffix="_right")
    ones = joined.column("count_all").to_numpy().astype(np.float64)
    others = joined.column("count_all_right").to_numpy().astype(np.float64)
    number: float = np.sum(ones * others)
    return number


# ---- sizes and defaults --------------------------------------------------------------------------


def tuple_bytes(fields: Iterable[Field], batch: pa.RecordBatch) -> float:
    """The mean size of a tuple."""
    total = 0.0
    for one in fields:
        size = SIZES[one.type]
        if batch.num_rows and (one.type.is_address or one.type.is_text):
            found = pc.mean(pc.binary_length(batch.column(one.name))).as_py()
            if found is not None:
                size = found - 1 if one.type.is_address else found  # without the version
        total += size
    return total


def declared_bytes(fields: Iterable[Field]) -> float:
    return sum(SIZES[one.type] for one in fields)


def default_selectivity(rel: Rel) -> float:
    """The output tuples for each input tuple, by the kinds of operators."""
    match rel:
        case Filter(source=source):
            above = any(isinstance(one, Aggregate | Running) for one in walk(source))
            share = DEFAULT_HAVING if above else DEFAULT_PASSING
            return share * default_selectivity(source)
        case Aggregate() | Running():
            return DEFAULT_GROUPS * default_selectivity(rel.source)
        case Rank(limit=int()):
            return DEFAULT_HAVING * default_selectivity(rel.source)
        case Join():
            return 1.0
        case _:
            return max((default_selectivity(one) for one in inputs(rel)), default=1.0)


def epoch_seconds(rel: Rel) -> float | None:
    """The length of the epochs of the first aggregation over time of a node."""
    for one in walk(rel):
        if isinstance(one, Aggregate | Running):
            ticks: dict[str, ClockUnit | None] = {
                c.name: c.clock for s in walk(one) if isinstance(s, Scan) for c in s.columns
            }
            for _, key in one.keys:
                found = length_of(key, ticks)
                if found is not None:
                    return found
    return None


def length_of(key: Expr, ticks: Mapping[str, ClockUnit | None]) -> float | None:
    """The seconds of the epochs of a key such as time/60; None: it is of another form."""
    names = columns_of(key)
    unit = ticks.get(next(iter(names))) if len(names) == 1 else None
    if unit is None:
        return None
    match key:
        case Col():
            return 1.0 / FINENESS[unit]
        case Call(Scalar(role=FloorDivision()), (Col(), divisor)):
            step = fixed_number(divisor)
            return step / FINENESS[unit] if step else None
        case _:
            return None
