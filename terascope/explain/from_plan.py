"""A Plan as a picture: a box per stream, arrows where one reads another (dissertation 3.1, 3.4.1).

In: a Plan, or a `SplitPlan`. Out: boxes whose operators have the labels of terascope.plan.show,
shortened: the hidden columns that carry a tuple's place become `+place`, and a long list of columns
is cut. Remarks of the analyses such as `groups close by tb` stand beside them. The boxes of a split
plan have their GSQL; low-level ones with what each part costs a tuple, the others with the
expressions that stay in the high part, and why.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from terascope.analysis.bounded import closing_key, is_timeless, join_bound
from terascope.analysis.order import column_orders, emitted_orders, plan_orders
from terascope.analysis.slopes import Ordered, Orders
from terascope.explain.decisions import slicing_notes
from terascope.explain.gsql import gsql
from terascope.explain.model import Box, ColumnNote, Facts, Picture, PictureNode, RuleStep
from terascope.optimize.driver import optimize
from terascope.physical.split.split_plan import SplitPlan
from terascope.plan.expr import Col, Expr, conjuncts, is_constant
from terascope.plan.plan import Parameter, Plan, Stream
from terascope.plan.rel import (
    Aggregate,
    Field,
    Filter,
    Join,
    Merge,
    Project,
    Read,
    Rel,
    Running,
    Scan,
    Window,
    inputs,
    walk,
)
from terascope.plan.show import is_hidden, show_expr, show_node, show_value

MOST_COLUMNS = 12
"""Columns of a scan that are named; the rest is counted."""
PLACE = " +place"

StreamOrders = Mapping[str, Orders]
SourcesOf = Callable[[Scan], tuple[str, ...]]
"""The boxes a scan takes its tuples from."""


def picture_of_plan(plan: Plan, stage: str, title: str) -> Picture:
    """Sources are the protocols that are scanned, for a Plan knows no files."""
    orders = plan_orders(plan)
    scans = {
        name: None
        for stream in plan
        for rel in walk(stream.rel)
        if isinstance(rel, Scan)
        for name in scanned(rel)
    }
    sources = tuple(Box(source_id(name), name, "source") for name in scans)
    streams = tuple(
        stream_box(
            stream.name,
            column_notes(stream.rel.visible, emitted_orders(stream.rel, orders[stream.name])),
            operator_node(stream.rel, orders, lambda s: tuple(map(source_id, scanned(s)))),
            () if stream.visible else ("internal",),
            text=stream.text,
        )
        for stream in plan
    )
    return Picture(stage, title, (*sources, *streams), parameter_notes(plan.parameters))


def scanned(scan: Scan) -> tuple[str, ...]:
    """The interfaces of a scan; where none is bound, the protocol itself."""
    return scan.interfaces or (scan.protocol,)


def parameter_notes(parameters: tuple[Parameter, ...]) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (p.name, p.type.label, "?" if p.value is None else show_value(p.value, p.type))
        for p in parameters
    )


def rule_steps(plan: Plan) -> tuple[RuleStep, ...]:
    """A step for every rule that changed something, with the lines it took away and added."""
    steps: list[RuleStep] = []

    def observe(rule: str, before: Plan, after: Plan) -> None:
        old, new = stream_lines(before), stream_lines(after)
        changed = [n for n in dict.fromkeys([*old, *new]) if old.get(n) != new.get(n)]
        lines: list[str] = []
        for name in changed:
            compared = difflib.ndiff(old.get(name, []), new.get(name, []))
            lines += [line for line in compared if line[:2] in ("- ", "+ ")]
        # A rule may change what is not shown, such as the order within a hidden place.
        if changed:
            steps.append(RuleStep(rule, tuple(changed), tuple(lines)))

    optimize(plan, observer=observe)
    return tuple(steps)


def stream_lines(plan: Plan) -> dict[str, list[str]]:
    orders = plan_orders(plan)
    trees = {s.name: operator_node(s.rel, orders, lambda _: ()) for s in plan}
    return {name: list(tree.lines()) for name, tree in trees.items()}


# ---- split plans ---------------------------------------------------------------------------------


def picture_of_split(split: SplitPlan, title: str) -> Picture:
    low = {stream.name for stream in split.low}
    found = picture_of_plan(split.plan, "split", title)
    streams = {stream_id(stream.name): stream for stream in split.plan}
    boxes = tuple(
        with_part(box, streams[box.id], box.name in low, split) if box.id in streams else box
        for box in found.boxes
    )
    budget = f"a part may cost {split.costs.budget_ns:.0f} ns a tuple"
    about = f"next to the sources: host {split.host.name}, {budget}"
    return replace(found, boxes=boxes, notes=(about, *slicing_notes(split.slicing)))


def with_part(box: Box, stream: Stream, is_low: bool, split: SplitPlan) -> Box:
    text = gsql(stream.name, stream.rel, stream.visible)
    if not is_low:
        kept = [s for s in split.kept_high if s.stream == stream.name]
        notes = tuple(f"{part.text} stays here: {part.reason}" for part in kept)
        return replace(box, text=text, marks=("high", *box.marks), notes=notes)
    costs = {
        show_expr(expr): split.costs.of(expr)
        for expr in computed(stream.rel)
        if not isinstance(expr, Col) and not is_constant(expr)  # a bare column is free
    }
    form = "aggregation" if isinstance(stream.rel, Aggregate) else "selection"
    facts: Facts = (
        ("form", form),
        ("read by", ", ".join(split.readers(stream.name))),
        ("cost", f"{sum(costs.values()):.0f} ns a tuple at most"),
    )
    told = tuple(f"{cost:.0f} ns  {part}" for part, cost in costs.items())
    return replace(box, text=text, marks=("low", form), facts=facts, notes=told)


def computed(rel: Rel) -> Iterator[Expr]:
    """Everything that a low-level stream computes."""
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


# ---- operators -----------------------------------------------------------------------------------


def operator_node(rel: Rel, streams: StreamOrders, sources: SourcesOf) -> PictureNode:
    reads: tuple[str, ...] = ()
    if isinstance(rel, Read):
        reads = (stream_id(rel.stream),)
    elif isinstance(rel, Scan):
        reads = sources(rel)
    return PictureNode(
        type(rel).__name__,
        label(rel),
        remarks_on(rel, streams),
        rel.names,
        tuple(operator_node(part, streams, sources) for part in inputs(rel)),
        reads,
    )


def stream_box(
    name: str,
    columns: tuple[ColumnNote, ...],
    root: PictureNode,
    marks: tuple[str, ...],
    facts: Facts = (),
    text: str = "",
) -> Box:
    return Box(stream_id(name), name, "stream", marks, columns, facts, root=root, text=text)


def stream_id(name: str) -> str:
    return f"stream:{name}"


def source_id(name: str) -> str:
    return f"source:{name}"


def label(rel: Rel) -> str:
    """The operator on one line, hidden columns shortened."""
    match rel:
        case Scan(columns=columns):
            shown = [c for c in columns if not is_hidden(c.name)]
            cut = len(shown) - MOST_COLUMNS
            kept = shown if cut <= 1 else shown[:MOST_COLUMNS]
            text = show_node(replace(rel, columns=tuple(kept)))
            if cut > 1:
                text = f"{text[:-1]}, ... {cut} more]"
            return text + (PLACE if len(shown) < len(columns) else "")
        case Project(items=items):
            named = tuple(item for item in items if not is_hidden(item[0]))
            text = show_node(replace(rel, items=named)).rstrip()
            return text + (PLACE if len(named) < len(items) else "")
        case _:
            return show_node(rel)


def remarks_on(rel: Rel, streams: StreamOrders) -> tuple[str, ...]:
    """The key or condition that lets an operator run forever, or the order of its columns."""
    match rel:
        case Scan() | Window() | Merge():
            orders = column_orders(rel, streams)
            return tuple(f"{f.name} {orders[f.name]}" for f in rel.visible if f.name in orders)
        case Aggregate(source=source, keys=keys) | Running(source=source, keys=keys):
            below = column_orders(source, streams)
            key = closing_key(keys, below)
            word = "epochs" if isinstance(rel, Running) else "groups"
            return (f"{word} close by {key}",) if key is not None else ()
        case Join():
            return (join_remark(rel, streams),)
        case _:
            return ()


def join_remark(join: Join, streams: StreamOrders) -> str:
    if is_timeless(join.left) or is_timeless(join.right):
        return "needs no bound: one side is a table"
    left, right = column_orders(join.left, streams), column_orders(join.right, streams)
    bound = join_bound(join, left, right)
    return "not bounded" if bound is None else f"bounded by {bound}"


def column_notes(fields: tuple[Field, ...], orders: Orders) -> tuple[ColumnNote, ...]:
    """Columns as a PROTOCOL would declare them."""
    notes: list[ColumnNote] = []
    for field in fields:
        ordered = orders.get(field.name)
        order = () if ordered is None else (str(Ordered(ordered.slope)), ordered.clock)
        notes.append(ColumnNote(field.name, field.type.label, *order))
    return tuple(notes)
