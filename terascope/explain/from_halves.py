"""The halves of a query set as a picture: what runs next to the sources, what above.

In: `Halves`. Out: a box per stream with its GSQL; low-level ones with what each part costs a tuple,
the others with what stayed above and why (dissertation 3.4.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from terascope.explain.from_plan import picture_of_plan
from terascope.explain.gsql import gsql
from terascope.explain.model import Box, Facts, Picture
from terascope.explain.operators import stream_id
from terascope.explain.windows import slicing_notes
from terascope.physical.split.halves import Halves, LowStream
from terascope.plan.expr import Col, Expr, conjuncts, is_constant
from terascope.plan.plan import Stream
from terascope.plan.rel import Aggregate, Filter, Project, Rel
from terascope.plan.show import show_expr

LOW, HIGH = "low", "high"


def picture_of_halves(halves: Halves, title: str) -> Picture:
    low = {stream.name: stream for stream in halves.low}
    found = picture_of_plan(halves.plan, "halves", title)
    streams = {stream_id(stream.name): stream for stream in halves.plan}
    boxes = tuple(
        in_its_half(box, streams[box.id], low.get(box.name), halves) if box.id in streams else box
        for box in found.boxes
    )
    return replace(found, boxes=boxes, notes=(about(halves), *slicing_notes(halves.slicing)))


def about(halves: Halves) -> str:
    budget = f"a part may cost {halves.costs.budget_ns:.0f} ns a tuple"
    return f"next to the sources: host {halves.host.name}, {budget}"


def in_its_half(box: Box, stream: Stream, low: LowStream | None, halves: Halves) -> Box:
    text = gsql(stream.name, stream.rel, stream.visible)
    if low is None:
        stayed = [s for s in halves.stayed if s.stream == stream.name]
        notes = tuple(f"{part.text} stays here: {part.reason}" for part in stayed)
        return replace(box, text=text, marks=(HIGH, *box.marks), notes=notes)
    costs = dict(part_costs(stream.rel, halves))
    facts: Facts = (
        ("form", low.kind),
        ("read by", ", ".join(low.readers)),
        ("cost", f"{sum(costs.values()):.0f} ns a tuple at most"),
    )
    told = tuple(f"{cost:.0f} ns  {part}" for part, cost in costs.items())
    return replace(box, text=text, marks=(LOW, low.kind), facts=facts, notes=told)


def part_costs(rel: Rel, halves: Halves) -> Iterator[tuple[str, float]]:
    """Everything a low-level stream computes, with its cost; a bare column is free."""
    for expr in computed(rel):
        if not isinstance(expr, Col) and not is_constant(expr):
            yield show_expr(expr), halves.costs.of(expr)


def computed(rel: Rel) -> Iterator[Expr]:
    match rel:
        case Project(source=source, items=items):
            yield from computed(source)
            yield from (expr for _, expr in items)
        case Aggregate(source=source, keys=keys, aggs=aggs):
            yield from computed(source)
            yield from (expr for _, expr in keys)
            yield from (arg for _, call in aggs for arg in call.args)
        case Filter(predicate=predicate):
            yield from conjuncts(predicate)
