"""Parameters that change while a set runs: at one edge of slices, for all queries alike.

In: a plan, and changes: the time from which on a `$parameter` has another value. Out: the plan in
which the parameter is a function of time: the old value in slices before the edge, the new value
after it. Earlier results stay right, because the edge lies after all tuples read so far.

Where an expression has no column that moves with time, the new value is valid at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.analysis.order import FINENESS, Trees
from terascope.analysis.watermarks import Watermarks
from terascope.functions.base import Scalar, Trend, Value
from terascope.functions.roles import FloorDivision
from terascope.plan.build import call
from terascope.plan.expr import Call, Case, Col, Expr, Lit, Param, transform, walk
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Rel,
    Running,
    Scan,
    Sliding,
    Window,
    inputs,
    with_expressions,
    with_inputs,
)
from terascope.plan.rel import walk as walk_rel
from terascope.types import Type

SECOND = 10**9


@dataclass(frozen=True)
class Change:
    """A new value of a parameter, and the time from which on it is valid."""

    name: str
    before: Value
    value: Value
    edge_ns: int


def with_changes(plan: Plan, changes: Sequence[Change]) -> Plan:
    """The plan with parameters that depend on time; the last value is the one in force."""
    if not changes:
        return plan
    trees = Trees.of_plan(plan)
    rewriting = Rewriting(trees, changes)
    streams = tuple(replace(s, rel=rewriting.rel(s.rel)) for s in plan)
    now = {change.name: change.value for change in changes}
    parameters = tuple(replace(p, value=now.get(p.name, p.value)) for p in plan.parameters)
    return replace(plan, streams=streams, parameters=parameters)


@dataclass(frozen=True)
class Rewriting:
    trees: Trees
    changes: Sequence[Change]

    def rel(self, rel: Rel) -> Rel:
        parts = inputs(rel)
        made = with_inputs(rel, tuple(self.rel(part) for part in parts)) if parts else rel
        return with_expressions(made, self.over, rel)

    def over(self, expr: Expr, below: tuple[Rel, ...]) -> Expr:
        """An expression over some relations, with parameters as functions of their time."""
        names = {change.name for change in self.changes}
        if not any(isinstance(e, Param) and e.name in names for e in walk(expr)):
            return expr

        def changed(e: Expr) -> Expr:
            return self.by_time(e, below) if isinstance(e, Param) and e.name in names else e

        return transform(expr, changed)

    def by_time(self, parameter: Param, below: tuple[Rel, ...]) -> Expr:
        own = sorted((c for c in self.changes if c.name == parameter.name), key=lambda c: c.edge_ns)
        branches: list[tuple[Expr, Expr]] = []
        for change in own:
            edge = self.edge(change.edge_ns, below)
            if edge is not None:
                value = Lit(change.before, parameter.type, parameter.name)
                branches.append((edge, value))
        last = Lit(own[-1].value, parameter.type, parameter.name)
        return Case(tuple(branches), last, parameter.type) if branches else last

    def edge(self, edge_ns: int, below: Iterable[Rel]) -> Expr | None:
        """The condition that a row is of a slice before the edge."""
        watermarks = Watermarks(self.trees, at_time(edge_ns), in_order=True)
        for rel in below:
            for name, value in self.moments(rel, watermarks):
                return call("<", Col(name, rel.type_of(name)), Lit(value, Type.LLONG))
        return None

    def moments(self, rel: Rel, watermarks: Watermarks) -> Iterator[tuple[str, int]]:
        """The columns that move with time, each with its value at the edge; columns of tuples come
        before those of their windows, although windows mix their order.
        """
        if isinstance(rel, Filter):
            yield from self.moments(rel.source, watermarks)
            return
        if isinstance(rel, Window):
            yield from (m for m in self.moments(rel.source, watermarks) if m[0] in rel.names)
        for name, ordered in self.trees.orders(rel).items():
            value = watermarks.of_column(name, rel)
            if ordered.slope.trend is Trend.INCREASING and isinstance(value, int):
                yield name, value


def at_time(moment_ns: int) -> Callable[[Scan], Mapping[str, Value]]:
    """The values of all clocks of a scan at a moment."""

    def told(scan: Scan) -> Mapping[str, Value]:
        return {
            c.name: moment_ns // (SECOND // FINENESS[c.clock])
            for c in scan.columns
            if c.clock is not None and c.slope is not None and c.slope.is_ordered
        }

    return told


def decides_time(plan: Plan, name: str) -> bool:
    """Whether slices depend on a parameter: then it cannot change between two of them."""
    trees = Trees.of_plan(plan)
    for stream in plan:
        for rel in walk_rel(stream.rel):
            if not isinstance(rel, Aggregate | Running):
                continue
            for _, key in rel.keys:
                named = any(isinstance(e, Param) and e.name == name for e in walk(key))
                if named and trees.slope(key, rel.source).is_ordered:
                    return True
    return False


# ---- edges ---------------------------------------------------------------------------------------


def next_edge(plan: Plan, after_ns: int) -> int:
    """The first moment after another one at which slices of all queries end."""
    step = math.lcm(*slice_lengths(plan), 1)
    step = step if step > 1 else SECOND
    return (after_ns // step + 1) * step


def slice_lengths(plan: Plan) -> list[int]:
    """The lengths in nanoseconds of slices that are windows, or cut from a clock by division."""
    trees = Trees.of_plan(plan)
    found: list[int] = []
    for stream in plan:
        for rel in walk_rel(stream.rel):
            match rel:
                case Aggregate() | Running():
                    found += [n for _, key in rel.keys if (n := divided(key, rel.source, trees))]
                case Window(source=source, spec=spec, on=on):
                    length = spec.slide if isinstance(spec, Sliding) else sum(spec.lengths)
                    ordered = trees.orders(source).get(on)
                    if ordered is not None and ordered.clock is not None:
                        found.append(length * (SECOND // FINENESS[ordered.clock]))
                case _:
                    pass
    return found


def divided(key: Expr, source: Rel, trees: Trees) -> int | None:
    """The length of the epochs of `clock div n`."""
    match key:
        case Call(Scalar(role=FloorDivision()), (Col(name), Lit(value=int(step)))):
            ordered = trees.orders(source).get(name)
            if ordered is None or ordered.clock is None or step < 1:
                return None
            return step * (SECOND // FINENESS[ordered.clock])
        case _:
            return None
