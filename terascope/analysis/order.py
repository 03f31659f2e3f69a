"""The columns that move with time, and their slopes: the timestampness analysis (dissertation 3.1).

In: a relation, and the ordering its sources declare. Out: for every ordered column its slope
(increasing or decreasing, strict or not, with its disorder) and, when it is wall-clock time, its
unit. `Trees` answers for all relations over the named streams of a plan. `sequence` gives columns
that put the rows of a relation in one order whatever the partitions, for FIRST, LAST and LIMIT and
for the order of results: by (clock, interface, position) for tuples that still have these columns,
else by the ordered columns and then all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from terascope.analysis.bounded import (
    JoinBound,
    is_timeless,
    join_bound,
    ordered_equalities,
    stream_side,
    temporal_columns,
)
from terascope.analysis.slopes import Ordered, Orders, expression_slope
from terascope.connectors.arrival import is_arrival
from terascope.functions.base import Slope, Trend
from terascope.plan.evaluate import Parameters
from terascope.plan.expr import Cast, Col, Expr, columns_of
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    TS,
    WEND,
    WSTART,
    Aggregate,
    ClockUnit,
    Filter,
    Join,
    Lookup,
    Merge,
    Named,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Sliding,
    Window,
    inputs,
)

FINENESS: Mapping[ClockUnit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of a clock per second."""


def named_orders(items: tuple[Named, ...], orders: Orders) -> dict[str, Ordered]:
    """The ordering of computed columns. Only a column taken as it is, or cast, stays a clock."""
    found = {}
    for name, expr in items:
        slope = expression_slope(expr, orders)
        if slope.is_ordered:
            below = [orders[column] for column in columns_of(expr) if column in orders]
            found[name] = Ordered(
                slope,
                clock_of(expr, orders),
                any(order.arrival for order in below),
                all(order.emitted for order in below),
            )
    return found


def clock_of(expr: Expr, orders: Orders) -> ClockUnit | None:
    if isinstance(expr, Cast):
        expr = expr.operand
    return orders[expr.name].clock if isinstance(expr, Col) else None


def column_orders(rel: Rel, streams: Mapping[str, Orders]) -> dict[str, Ordered]:
    """The ordered columns of a relation; `streams` has those of the streams it reads."""
    match rel:
        case Scan():
            return scan_orders(rel)
        case Read(stream=stream):
            return dict(streams[stream])
        case Lookup():
            return {}
        case Filter(source=source) | Rank(source=source):
            return column_orders(source, streams)
        case Project(source=source, items=items):
            return named_orders(items, column_orders(source, streams))
        case Window():
            return window_orders(rel, column_orders(rel.source, streams))
        case Aggregate():
            return aggregate_orders(rel, column_orders(rel.source, streams))
        case Running(source=source, keys=keys):
            return settled(named_orders(keys[:1], column_orders(source, streams)))
        case Join():
            return join_orders(
                rel, column_orders(rel.left, streams), column_orders(rel.right, streams)
            )
        case Merge():
            return merge_orders(rel, [column_orders(s, streams) for s in rel.sources])
        case _:
            assert_never(rel)


def scan_orders(scan: Scan) -> dict[str, Ordered]:
    """The declared orders; the merge over several interfaces keeps only clocks in order. Tuples
    that are pending there for another interface are overtaken by tuples that arrived later.
    """
    several = len(scan.interfaces) > 1
    found = {}
    for c in scan.columns:
        if c.slope is None or not c.slope.is_ordered or (several and not c.clock):
            continue
        arrival = is_arrival(c.read_from)
        merged = next((t.read_from for t in scan.columns if t.name == TS), c.read_from)
        is_passed = several and arrival and not is_arrival(merged)
        found[c.name] = Ordered(c.slope, c.clock, arrival, not is_passed)
    return found


def window_orders(window: Window, below: Orders) -> dict[str, Ordered]:
    """Overlapping windows repeat older tuples: only the edges of the windows stay in order."""
    clock = below[window.on].clock if window.on in below else None
    edge = Ordered(Slope(Trend.INCREASING), clock)
    overlapping = isinstance(window.spec, Sliding) and window.spec.range > window.spec.slide
    kept = {} if overlapping else {n: o for n, o in below.items() if n not in (WSTART, WEND)}
    return {**kept, WSTART: edge, WEND: edge}


def aggregate_orders(aggregate: Aggregate, below: Orders) -> dict[str, Ordered]:
    """A key present in every grouping set stays ordered: groups are released epoch by epoch."""
    found = settled(named_orders(aggregate.keys, below))
    if aggregate.sets is None:
        return found
    return {n: o for n, o in found.items() if all(n in s for s in aggregate.sets)}


def settled(orders: Orders) -> dict[str, Ordered]:
    """Closed groups come out in order, whatever the disorder within the band; several per epoch."""
    return {n: replace(o, slope=Slope(o.slope.trend), emitted=True) for n, o in orders.items()}


def join_orders(join: Join, left: Orders, right: Orders) -> dict[str, Ordered]:
    """The fields of the temporal condition stay ordered, and nothing else does."""
    if join.kind == "semi" or is_timeless(join.right):
        return dict(left)
    if is_timeless(join.left):
        return dict(right)
    both = {**left, **right}
    kept = temporal_columns(join, left, right)
    return settled({n: o for n, o in both.items() if n in kept})


def merge_orders(merge: Merge, below: list[dict[str, Ordered]]) -> dict[str, Ordered]:
    """The merge field stays ordered, and with it every clock that is no finer. Groups by the time
    of arrival still close above a merge by another clock, but its rows are not emitted in order.
    """
    kept: dict[str, Ordered] = {}
    common = [
        common_order(
            [o.get(s.fields[place].name) for s, o in zip(merge.sources, below, strict=True)]
        )
        for place in range(len(merge.fields))
    ]
    on = common[merge.names.index(merge.on)]
    if on is None:
        return {}
    for name, known in zip(merge.names, common, strict=True):
        if known is None:
            continue
        coarser = on.clock and known.clock and FINENESS[known.clock] <= FINENESS[on.clock]
        if name == merge.on or (coarser and known.slope.trend is on.slope.trend):
            slope = Slope(known.slope.trend, known.slope.band + merge.slack)
            is_passed = known.arrival is not on.arrival
            kept[name] = replace(known, slope=slope, emitted=known.emitted and not is_passed)
    return kept


def common_order(found: Sequence[Ordered | None]) -> Ordered | None:
    """The common order of a column of several streams: the same way, with the widest band."""
    known = [order for order in found if order is not None]
    if len(known) < len(found) or len({order.slope.trend for order in known}) > 1:
        return None
    clocks = {order.clock for order in known}
    band = max(order.slope.band for order in known)
    return Ordered(
        Slope(known[0].slope.trend, band),
        clocks.pop() if len(clocks) == 1 else None,
        any(order.arrival for order in known),
        all(order.emitted for order in known),
    )


def emitted_orders(rel: Rel, orders: Orders) -> dict[str, Ordered]:
    """The columns of a stream in whose order its rows are emitted. A query with ORDER BY emits the
    rows of a window in that order, so that only columns that distinguish windows stay ordered; all
    others are complete in order, which closes the groups of its readers.
    """
    orders = {name: order for name, order in orders.items() if order.emitted}
    names: dict[str, Expr] = {name: Col(name, rel.type_of(name)) for name in rel.names}
    if isinstance(rel, Project):
        names, rel = dict(rel.items), rel.source
    if not isinstance(rel, Rank) or not rel.order or rel.limit == 1:
        return dict(orders)
    kept = {Col(name, rel.type_of(name)) for name in rel.per}
    return {name: order for name, order in orders.items() if names[name] in kept}


def plan_orders(plan: Plan) -> Mapping[str, Orders]:
    """The ordered columns of every stream of a plan."""
    return Trees.of_plan(plan).stream_orders


@dataclass(frozen=True)
class Trees:
    streams: Mapping[str, Rel]
    """Leaves first, as in a Plan."""
    parameters: Parameters = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Plan) -> Trees:
        return cls({stream.name: stream.rel for stream in plan}, plan.values)

    @cached_property
    def stream_orders(self) -> Mapping[str, Orders]:
        known: dict[str, Orders] = {}
        for name, rel in self.streams.items():
            known[name] = column_orders(rel, known)
        return known

    def orders(self, rel: Rel) -> Orders:
        return column_orders(rel, self.stream_orders)

    def slope(self, expr: Expr, rel: Rel) -> Slope:
        return expression_slope(expr, self.orders(rel))

    def trend(self, expr: Expr, rel: Rel) -> Trend:
        return self.slope(expr, rel).trend

    def temporal_bound(self, rel: Rel) -> JoinBound | None:
        """The condition that bounds a join of two streams; None for any other operator."""
        if not isinstance(rel, Join) or stream_side(rel) is not None:
            return None
        return join_bound(rel, self.orders(rel.left), self.orders(rel.right))

    def temporal_equalities(self, join: Join) -> Iterator[tuple[Rel, Expr, Rel, Expr]]:
        """Every equality of ordered expressions, seen from each side: (side, mine, other side,
        other's) as relation and expression over it.
        """
        for a, b in ordered_equalities(join, self.orders(join.left), self.orders(join.right)):
            yield join.left, a, join.right, b
            yield join.right, b, join.left, a


# ---- one order of all tuples ---------------------------------------------------------------------


def knows_place(rel: Rel) -> bool:
    """Whether the hidden columns of the relation distinguish its tuples."""
    match rel:
        case Scan() | Read():
            return any(f.hidden for f in rel.fields)
        case Filter() | Window() | Rank() | Join() | Merge():
            return all(knows_place(part) for part in inputs(rel))
        case Project(source=source):
            hidden = {f.name for f in source.fields if f.hidden}
            return knows_place(source) and hidden <= set(rel.names)
        case _:
            return False


def sequence(rel: Rel, orders: Orders) -> tuple[tuple[str, bool], ...]:
    """Columns that order the tuples of a relation as its stream does; True: descending.

    Hidden columns always rise (bind/ranking.py).
    """
    hidden = [(f.name, False) for f in rel.fields if f.hidden]
    edges = [n for n in (WEND, WSTART) if n in rel.names]
    known = [(n, False) for n in edges]
    if knows_place(rel):
        return (*known, *hidden)
    visible = [f.name for f in rel.visible if f.name not in edges]
    ordered = [(n, falls(n, orders)) for n in visible if n in orders]
    rest = [(n, False) for n in visible if n not in orders]
    return (*known, *ordered, *rest, *hidden)


def falls(name: str, orders: Orders) -> bool:
    """Whether the values of a column get smaller as the stream goes on."""
    return name in orders and orders[name].slope.trend is Trend.DECREASING
