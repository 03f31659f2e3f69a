"""A query set as a stream, as a picture: which slices are kept, what closes them, who emits rows.

In: a compiled set. Out: the picture of its split plan; when its sources are bound each low-level
stream says what closes its slices (dissertation 4.4, 4.5), and each query how its rows are
released.
"""

from __future__ import annotations

from dataclasses import replace

from terascope.analysis.release import Release
from terascope.config import Config
from terascope.connectors.arrival import is_arrival
from terascope.connectors.base import interface_of
from terascope.explain.from_operators import operator_lines
from terascope.explain.from_plan import picture_of_split
from terascope.explain.model import Box, Facts, Picture
from terascope.physical.rules.grow_trees import LEAST_QUERIES, attributes_of
from terascope.physical.stream.plan import LowStream, StreamOutput, StreamPlan
from terascope.physical.stream.rules import SetTexts, plan_stream
from terascope.pipeline import Compiled
from terascope.plan.expr import columns_of
from terascope.plan.rel import Aggregate, SourceField
from terascope.plan.show import show_expr
from terascope.streaming.replan.tree_plans import families_of


def picture_of_stream(compiled: Compiled) -> Picture:
    title = compiled.source.title
    if not compiled.runnable:
        return replace(picture_of_split(compiled.split(live=True), title), stage="stream")
    job, split = compiled.job_and_split(live=True)
    plan = plan_stream(job, SetTexts(compiled.texts()))
    found = picture_of_split(split, title)
    facts = {output.name: release_facts(output, plan) for output in plan.outputs}
    for stream in plan.low:
        shared = sharing_facts(stream, plan, compiled.bindings.config)
        facts[stream.name] = (*slice_facts(stream, plan), *shared)
    boxes = tuple(with_facts(box, facts.get(box.name, ())) for box in found.boxes)
    lines = operator_lines(plan.operators)
    return replace(found, stage="stream", boxes=boxes, operators=lines)


def with_facts(box: Box, facts: Facts) -> Box:
    """The box with further facts, each also as a note."""
    notes = tuple(f"{word}: {value}" for word, value in facts)
    return replace(box, facts=(*box.facts, *facts), notes=(*box.notes, *notes))


def slice_facts(stream: LowStream, plan: StreamPlan) -> Facts:
    """The stored rows or groups of a low-level stream, and the end of their retention."""
    merged = " and ".join(dict.fromkeys(map(interface_of, stream.scan.interfaces)))
    if stream.groups is None:
        kept = f"its rows, by {stream.kept_by}" if stream.kept_by else "nothing"
        return (("of", merged), ("kept", kept))
    rel = plan.job.trees[stream.name]
    assert isinstance(rel, Aggregate)
    key = dict(rel.keys)[stream.value or ""]
    (name,) = columns_of(key)
    column = next(c for c in stream.scan.columns if c.name == name)
    past = f"when {watermark_of(column)} of {merged} is past it"
    closes = f"{stream.value} = {show_expr(key)}, {past}"
    return (("of", merged), ("kept", "partial groups of open slices"), ("slice", closes))


def sharing_facts(stream: LowStream, plan: StreamPlan, config: Config) -> Facts:
    """The tables and trees that a stream may share with others while the set runs."""
    told: list[tuple[str, str]] = []
    for read in plan.deliveries.reads:
        for family in [] if read.low is None else families_of(read.name, read.low):
            mine = [query for query in family.members if query.name == stream.name]
            if not mine:
                continue
            keys, number = attributes_of(mine[0]), len(family.members)
            rivals = [q for q in family.members if attributes_of(q) == keys and q not in mine]
            if rivals and config.share_tables == "cost":
                told.append(("table", f"with {len(rivals)} more by its keys, as the traffic is"))
            if number >= LEAST_QUERIES and config.share_trees != "never":
                mode = config.share_trees
                told.append(
                    ("tree", f"of {number} aggregations, to save {mode}, as the traffic is")
                )
            return tuple(told)
    return ()


def watermark_of(column: SourceField) -> str:
    """The watermark of a column, and what it is made of."""
    band = column.slope.band if column.slope is not None else 0
    told = f"the lowest watermark of {column.name}"
    if band:
        told += f", {band} less than the largest seen,"
    if is_arrival(column.read_from):
        return told + " (the time of day)"
    return told + (" (the clock's, when silent)" if column.clock else "")


def release_facts(output: StreamOutput, plan: StreamPlan) -> Facts:
    """The moment at which the rows of a query are released, and their writer."""
    if output.low is not None:
        stream = plan.low[output.low]
        if stream.groups is None:
            return (("released", "as tuples come, by the tasks that read"),)
        return (
            ("released", f"when {stream.value} of {stream.name} closes, by the tasks that merge"),
        )
    release = output.release
    assert release is not None
    who = "by a task" if output.placement == "close" else "by Spark"
    if output.windows is not None:
        who += f" that assembles windows of {output.windows.stream}"
    if output.when_large != output.placement:
        who += " (by Spark where a task lacks memory)"
    return (("released", f"{how(release)}, {who}"),)


def how(release: Release) -> str:
    match release.kind:
        case "at_once":
            return "as rows come"
        case "at_end":
            return "at the end of the stream"
        case "ordered":
            parts = [show_expr(part.value) for part in release.parts]
            operator = type(release.node).__name__.lower()
            return f"by {' or '.join(parts)} of its {operator}"
