"""A query set as a stream, as a picture: which slices are kept, what closes them, who lets rows go.

In: a compiled set. Out: the picture of its halves; when its sources are bound each low-level stream
says what closes its slices (dissertation 4.4, 4.5), and each query how its rows are let go.
"""

from __future__ import annotations

from dataclasses import replace

from terascope.analysis.release import Release
from terascope.explain.from_halves import picture_of_halves
from terascope.explain.model import Box, Facts, Picture
from terascope.physical.trees import Mode, plain_families
from terascope.pipeline import Compiled
from terascope.plan.expr import columns_of
from terascope.plan.rel import Aggregate, Rel, SourceField
from terascope.plan.show import show_expr
from terascope.stream.plan import LowStream, StreamOutput, StreamPlan, stream_plan


def picture_of_stream(compiled: Compiled, title: str) -> Picture:
    halves = compiled.halves(live=True)
    if not compiled.runnable:
        return replace(picture_of_halves(halves, title), stage="stream")
    plan = stream_plan(compiled.job(live=True), compiled.texts())
    found = picture_of_halves(halves, title)
    streams = {stream.name: stream for stream in plan.low}
    outputs = {output.name: output for output in plan.outputs}
    mode = compiled.bindings.low.sharing.trees.mode
    boxes = tuple(described(box, streams, outputs, plan, mode) for box in found.boxes)
    return replace(found, stage="stream", boxes=boxes)


def described(
    box: Box,
    streams: dict[str, LowStream],
    outputs: dict[str, StreamOutput],
    plan: StreamPlan,
    mode: Mode,
) -> Box:
    if box.name in streams:
        told = (*slice_facts(streams[box.name], plan), *tree_facts(streams[box.name], plan, mode))
    elif box.name in outputs:
        told = release_facts(outputs[box.name], plan)
    else:
        return box
    notes = tuple(f"{word}: {value}" for word, value in told)
    return replace(box, facts=(*box.facts, *told), notes=(*box.notes, *notes))


def slice_facts(stream: LowStream, plan: StreamPlan) -> Facts:
    """What is kept of a low-level stream, and until when."""
    merged = " and ".join(stream.scan.interfaces)
    if stream.groups is None:
        kept = f"its rows, by {stream.kept_by}" if stream.kept_by else "nothing"
        return (("of", merged), ("kept", kept))
    rel = plan.job.trees[stream.name]
    assert isinstance(rel, Aggregate)
    key = dict(rel.keys)[stream.value or ""]
    (name,) = columns_of(key)
    column = next(c for c in stream.scan.columns if c.name == name)
    closes = f"{stream.value} = {show_expr(key)}, when {promised(column)} of {merged} is past it"
    return (("of", merged), ("kept", "partial groups of open slices"), ("slice", closes))


def tree_facts(stream: LowStream, plan: StreamPlan, mode: Mode) -> Facts:
    """With which others it could be made of intermediate aggregates, while the set runs."""
    if mode == "never":
        return ()
    for read in plan.deliveries.reads:
        for members in [] if read.low is None else plain_families(read.low):
            names = [query.name for query in members]
            if stream.name in names:
                told = f"of {len(names)} aggregations, to save {mode}, as the traffic is"
                return (("tree", told),)
    return ()


def promised(column: SourceField) -> str:
    """What is promised of a column, and by what."""
    band = column.slope.band if column.slope is not None else 0
    told = f"the smallest promise for {column.name}"
    if band:
        told += f", {band} less than the largest seen,"
    return told + (" (the clock's, when silent)" if column.clock else "")


def release_facts(output: StreamOutput, plan: StreamPlan) -> Facts:
    """Who writes the rows of a query, and when."""
    if output.low is not None:
        stream = plan.low[output.low]
        if stream.groups is None:
            return (("let go", "as tuples come, by the tasks that read"),)
        return (
            ("let go", f"when {stream.value} of {stream.name} closes, by the tasks that merge"),
        )
    release = output.release
    assert release is not None
    who = "by a task" if output.is_of_tasks else "by Spark"
    if output.windowing is not None:
        who += f" that puts windows of {output.windowing.stream} together"
    return (("let go", f"{how(release)}, {who}"),)


def how(release: Release) -> str:
    where = operator(release.node)
    match release.kind:
        case "at_once":
            return "as rows come"
        case "at_end":
            return "at the end of the stream"
        case "ordered":
            parts = [show_expr(part.value) for part in release.parts]
            return f"by {' or '.join(parts)} of its {where}"


def operator(rel: Rel) -> str:
    return type(rel).__name__.lower()
