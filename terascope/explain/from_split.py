"""A split plan as a picture: the low parts next to the sources, the high parts above them.

In: `SplitPlan`. Out: a box per stream with its GSQL; low-level ones with what each part costs a
tuple, the others with the expressions that stay in the high part, and why (dissertation 3.4.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from terascope.explain.decisions import slicing_notes
from terascope.explain.from_plan import picture_of_plan
from terascope.explain.gsql import gsql
from terascope.explain.model import Box, Facts, Picture
from terascope.explain.operators import stream_id
from terascope.physical.split.split_plan import LowPart, SplitPlan
from terascope.plan.expr import Col, Expr, conjuncts, is_constant
from terascope.plan.plan import Stream
from terascope.plan.rel import Aggregate, Filter, Project, Rel
from terascope.plan.show import show_expr

LOW, HIGH = "low", "high"


def picture_of_split(split: SplitPlan, title: str) -> Picture:
    low = {stream.name: stream for stream in split.low}
    found = picture_of_plan(split.plan, "split", title)
    streams = {stream_id(stream.name): stream for stream in split.plan}
    boxes = tuple(
        with_part(box, streams[box.id], low.get(box.name), split) if box.id in streams else box
        for box in found.boxes
    )
    return replace(found, boxes=boxes, notes=(about(split), *slicing_notes(split.slicing)))


def about(split: SplitPlan) -> str:
    budget = f"a part may cost {split.costs.budget_ns:.0f} ns a tuple"
    return f"next to the sources: host {split.host.name}, {budget}"


def with_part(box: Box, stream: Stream, low: LowPart | None, split: SplitPlan) -> Box:
    text = gsql(stream.name, stream.rel, stream.visible)
    if low is None:
        kept = [s for s in split.kept_high if s.stream == stream.name]
        notes = tuple(f"{part.text} stays here: {part.reason}" for part in kept)
        return replace(box, text=text, marks=(HIGH, *box.marks), notes=notes)
    costs = dict(part_costs(stream.rel, split))
    facts: Facts = (
        ("form", low.kind),
        ("read by", ", ".join(low.readers)),
        ("cost", f"{sum(costs.values()):.0f} ns a tuple at most"),
    )
    told = tuple(f"{cost:.0f} ns  {part}" for part, cost in costs.items())
    return replace(box, text=text, marks=(LOW, low.kind), facts=facts, notes=told)


def part_costs(rel: Rel, split: SplitPlan) -> Iterator[tuple[str, float]]:
    """Everything a low-level stream computes, with its cost; a bare column is free."""
    for expr in computed(rel):
        if not isinstance(expr, Col) and not is_constant(expr):
            yield show_expr(expr), split.costs.of(expr)


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
