"""A query set as a picture under the recommended partitioning: where each of its parts runs.

In: an advice. Out: a `Picture` of its basic queries, marked `in partitions` or `central`, with the
bytes per second that each receives and why it is central.
"""

from __future__ import annotations

from dataclasses import replace

from terascope.advise.advice import Advice, JudgedCandidate
from terascope.explain.from_plan import picture_of_plan, source_id
from terascope.explain.model import CENTRAL, PARTITIONED, Box, Facts, Picture
from terascope.plan.plan import Plan, Stream
from terascope.units import readable_bytes


def picture_of_advice(advice: Advice, plan: Plan, title: str) -> Picture:
    """The picture of the recommended partitioning. `plan`: the plan of the set."""
    streams = tuple(
        Stream(node.name, node.rel, node.delivered, plan[node.query].text) for node in advice.nodes
    )
    found = picture_of_plan(replace(plan, streams=streams), "advise", title)
    best = advice.recommended
    costs = advice.measured.model.node_costs(best.candidate.kept)
    boxes = tuple(with_place(box, advice, best, costs.get(box.name, 0.0)) for box in found.boxes)
    sets = "; ".join(f"{source} by {', '.join(t) or 'any set'}" for source, t in best.sets.items())
    about = (f"partitioned: {sets}", *advice.notes)
    return replace(found, boxes=boxes, notes=about)


def with_place(box: Box, advice: Advice, best: JudgedCandidate, cost: float) -> Box:
    if box.kind == "source":
        texts = best.sets.get(box.name)
        if texts is None or box.id != source_id(box.name):
            return box
        facts: Facts = (
            ("split by", ", ".join(texts) or "any set"),
            ("into", f"{advice.wishes.into} partitions"),
        )
        return replace(box, facts=facts)
    is_kept = box.name in best.candidate.kept
    received = f"{readable_bytes(cost)}/s"
    facts = (("sends" if is_kept else "receives", received),) if cost else ()
    why = best.refusals.get(box.name, "")
    return replace(
        box,
        marks=(*box.marks, PARTITIONED if is_kept else CENTRAL),
        facts=facts,
        notes=(why,) if why else (),
    )
