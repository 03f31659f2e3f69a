"""Low-level streams -> LowPlan: the prefilter, the signatures, the tables of one source.

In: the low part of a split plan and a read. Out: the work of every task of the read. Cheap
conditions of all queries become the predicates of the prefilter, each once however many queries
have it (dissertation 3.4.2). Conditions that are expensive, or may overflow, are evaluated after
the signature, for the tuples that are left.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from terascope.analysis.costs import Costs
from terascope.analysis.slopes import Ordered, expression_slope
from terascope.config import Config
from terascope.connectors.base import INTERFACE, LAYERS, Column, Edge, Split, interface_of
from terascope.functions.base import Scalar, Slope, Trend
from terascope.functions.roles import FloorDivision, SlicePart
from terascope.functions.slices import parse_slices
from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import (
    LowAggregate,
    LowPlan,
    LowQuery,
    LowSelect,
    TableChoice,
    group_fields,
    slot_of,
)
from terascope.physical.settings import costs_of
from terascope.physical.splits import span
from terascope.plan.build import TRUE, call
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of, conjuncts, substitute, walk
from terascope.plan.plan import Stream
from terascope.plan.rel import IFACE, Aggregate, Field, Filter, PlanMistake, Project, Rel, Scan
from terascope.types import Type

EXPENSIVE_NS: Final = 50
"""The most nanoseconds of a condition of the prefilter."""
MANY_EPOCHS: Final = 16
"""Epochs in one split from which on tuples are not separated by epoch: the epoch becomes a key."""
SAMPLED_SPLITS: Final = 16
RISING: Final = Ordered(Slope(Trend.INCREASING))


@dataclass
class Prefilter:
    """Numbered predicates, each once."""

    costs: Costs
    predicates: dict[Expr, int] = field(default_factory=dict)

    def divide(self, conditions: Iterable[Expr]) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
        """The signature and the rest of a query's conditions."""
        signature: list[int] = []
        rest: list[Expr] = []
        for condition in conditions:
            if self.takes(condition):
                signature.append(self.predicates.setdefault(condition, len(self.predicates)))
            else:
                rest.append(condition)
        return tuple(signature), tuple(sorted(rest, key=self.costs.of))

    def takes(self, condition: Expr) -> bool:
        payload = any(is_payload_test(part) for part in walk(condition))
        cheap = self.costs.of(condition) <= EXPENSIVE_NS
        return cheap and not payload and not can_overflow(condition)


def low_plan(streams: Sequence[Stream], read: SourceRead, config: Config) -> LowPlan:
    """The plan of one read. `streams`: the low-level streams that scan one of its interfaces."""
    prefilter = Prefilter(costs_of(config))
    made = [low_query(stream, read, prefilter) for stream in streams]
    share = table_share(made, config)
    queries = tuple(with_table(query, read.splits, config, share) for query in made)
    predicates = tuple(prefilter.predicates)
    return LowPlan(read.columns, predicates, queries, config.memory_bytes, config.compiled)


def table_share(queries: Sequence[LowQuery], config: Config) -> int:
    """Open tables grow from one pool, each to a quarter at most; fixed ones share half of it."""
    if config.table == "open":
        return config.memory_bytes // 4
    number = sum(isinstance(query, LowAggregate) for query in queries)
    return config.memory_bytes // 2 // max(1, number)


def with_table(query: LowQuery, splits: Sequence[Split], config: Config, share: int) -> LowQuery:
    if isinstance(query, LowSelect):
        return query
    choice = TableChoice(config.table, config.flush, share)
    many = config.table == "open" and query.epoch is not None and has_many_epochs(query, splits)
    return replace(query, table=choice, epoch_in_key=many)


def has_many_epochs(query: LowAggregate, splits: Sequence[Split]) -> bool:
    """Whether the tuples of a split belong to many epochs, or may; some splits are checked."""
    relevant = [s for s in splits if s.interface in query.interfaces]
    sample = relevant[:: max(1, len(relevant) // SAMPLED_SPLITS)]
    spans = [span(query, [split]) for split in sample]
    step = epoch_step(query)
    known = [(last - first) / step + 1 for first, last in filter(None, spans)]
    if len(known) < len(sample):
        return True
    return sum(known) > MANY_EPOCHS * len(known)


def epoch_step(query: LowAggregate) -> float:
    """The mean difference between two successive epochs."""
    match query.epoch_expr:
        case Call(Scalar(role=SlicePart("start")), (_, Lit(value=str(text)))):
            vector = parse_slices(text)
            return vector.period / len(vector.lengths)
    return 1.0


def low_groups(rel: Aggregate) -> GroupFields:
    """The groups of a low-level aggregation as the high level reads them."""
    slots = [slot_of(name, agg, {}) for name, agg in rel.aggs]
    epoch = epoch_key(scanned(rel), [expr for _, expr in rel.keys])
    return group_fields((Field(name, expr.type) for name, expr in rel.keys), slots, epoch)


def scan_use(rel: Rel) -> tuple[Scan, Expr]:
    """The scan of a low-level stream, and the predicate of the filter on it."""
    match rel.source if isinstance(rel, Project | Aggregate) else None:
        case Scan() as scan:
            return scan, TRUE
        case Filter(source=Scan() as scan, predicate=predicate):
            return scan, predicate
        case _:
            raise PlanMistake("a low-level stream is a projection or an aggregation of a source")


def scanned(rel: Rel) -> Scan:
    return scan_use(rel)[0]


MOST_LENGTHS: Final = 12
"""The largest common multiple of epochs that is used as an edge, in lengths of the longest."""


def common_edge(streams: Sequence[Rel]) -> Edge | None:
    """The edge where whole epochs of all aggregations end, on the clock most of them use."""
    steps: dict[str, list[int]] = {}
    for rel in streams:
        if isinstance(rel, Aggregate):
            scan = scanned(rel)
            place = epoch_key(scan, [expr for _, expr in rel.keys])
            found = None if place is None else divided(rel.keys[place][1], scan)
            if found is not None:
                steps.setdefault(found[0], []).append(found[1])
    if not steps:
        return None
    column, lengths = max(steps.items(), key=lambda item: len(item[1]))
    common = math.lcm(*lengths)
    if common > MOST_LENGTHS * max(lengths):
        return Edge(column, max(lengths))
    # Where the epochs of at least half of them end.
    ends = {n: sum(n % m == 0 for m in lengths) for n in lengths}
    often = min((n for n in lengths if 2 * ends[n] >= len(lengths)), default=common)
    return Edge(column, common, often)


def divided(expr: Expr, scan: Scan) -> tuple[str, int] | None:
    """The pair (column of the connector, n) of an expression `column div n`."""
    match expr:
        case Col(name):
            step = 1
        case Call(Scalar(role=FloorDivision()), (Col(name), Lit(value=int(step)))):
            if step < 1:
                return None
        case _:
            return None
    return next(f.read_from for f in scan.columns if f.name == name), step


# ---- queries -------------------------------------------------------------------------------------


def low_query(stream: Stream, read: SourceRead, prefilter: Prefilter) -> LowQuery:
    rel = stream.rel
    scan, predicate = scan_use(rel)
    names = [interface.name for interface in read.interfaces]
    below = connector_columns(scan, names, read.columns)
    conditions = membership(scan, names)
    if predicate != TRUE:
        conditions += [substitute(c, below) for c in conjuncts(predicate)]
    signature, rest = prefilter.divide(conditions)
    if isinstance(rel, Project):
        items = tuple((name, substitute(expr, below)) for name, expr in rel.items)
        return LowSelect(stream.name, scan.interfaces, signature, rest, items)
    assert isinstance(rel, Aggregate)
    keys = tuple((name, substitute(expr, below)) for name, expr in rel.keys)
    slots = tuple(slot_of(name, agg, below) for name, agg in rel.aggs)
    epoch = epoch_key(scan, [expr for _, expr in rel.keys])
    return LowAggregate(stream.name, scan.interfaces, signature, rest, keys, epoch, slots)


def connector_columns(
    scan: Scan, names: Sequence[str], columns: tuple[Column, ...]
) -> dict[str, Expr]:
    """Each column of a scan as an expression over columns of the connector."""
    have = {c.name for c in columns}
    below: dict[str, Expr] = {}
    for f in scan.columns:
        name = f.read_from if f.read_from in have or f.name != IFACE else INTERFACE
        sources = [*{interface_of(one) for one in names}]
        if name not in have and f.name == IFACE and len(sources) == 1:
            below[f.name] = Lit(sources[0], Type.STRING)
        else:
            below[f.name] = Col(name, f.type)
    return below


def membership(scan: Scan, names: Collection[str]) -> list[Expr]:
    """The condition by which a tuple of the read belongs to the scan."""
    conditions: list[Expr] = []
    if scan.layer is not None:
        bit = Lit(scan.layer, Type.LLONG)
        conditions.append(call("!=", call("&", Col(LAYERS, Type.LLONG), bit), Lit(0, Type.LLONG)))
    if set(names) - set(scan.interfaces):
        sources = dict.fromkeys(interface_of(n) for n in scan.interfaces if n in names)
        wanted = [Lit(n, Type.STRING) for n in sources]
        conditions.append(call("in", Col(INTERFACE, Type.STRING), *wanted))
    return conditions


def epoch_key(scan: Scan, keys: Sequence[Expr]) -> int | None:
    """The first key that moves with time and is a monotone function of one column."""
    ordered = {c.name: Ordered(c.slope) for c in scan.columns if c.slope is not None}
    for place, expr in enumerate(keys):
        named = columns_of(expr)
        if len(named) != 1 or not expr.type.is_integer or not named <= set(ordered):
            continue
        declared = expression_slope(expr, ordered)
        on_rising = expression_slope(expr, dict.fromkeys(named, RISING))
        if declared.trend is Trend.INCREASING and on_rising.trend is Trend.INCREASING:
            return place
    return None
