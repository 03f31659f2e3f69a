"""A Plan as a picture: a box per stream, arrows where one reads another."""

from __future__ import annotations

from terascope.analysis.order import emitted_orders, plan_orders
from terascope.explain.model import Box, Picture
from terascope.explain.operators import operator_node, source_id, stream_id
from terascope.explain.remarks import column_notes
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
        Box(
            stream_id(stream.name),
            stream.name,
            "stream",
            () if stream.visible else ("internal",),
            column_notes(stream.rel.visible, emitted_orders(stream.rel, orders[stream.name])),
            root=operator_node(stream.rel, orders, lambda s: tuple(map(source_id, scanned(s)))),
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
