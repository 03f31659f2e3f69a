"""A Plan as a picture: a box per stream, arrows where one reads another."""

from __future__ import annotations

import difflib

from terascope.analysis.order import emitted_orders, plan_orders
from terascope.explain.model import Box, Picture, RuleStep
from terascope.explain.operators import column_notes, operator_node, source_id, stream_box
from terascope.optimize.driver import optimize
from terascope.plan.plan import Parameter, Plan
from terascope.plan.rel import Scan, walk
from terascope.plan.show import show_value


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
