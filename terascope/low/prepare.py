"""Kernels made ready before the tasks need them.

In: a LowPlan. Out: machine code in the cache on disk, so that no task compiles: the first run of a
query set pays for its shapes, later ones load them.
"""

from __future__ import annotations

from collections.abc import Callable

from terascope.low.bounded_tables import compiled as bounded_kernels
from terascope.low.open_table import table_kernels
from terascope.low.partitioned import group_kernel
from terascope.low.plan import LowAggregate, LowPlan, TableKind
from terascope.low.program import functions, programs
from terascope.low.slots import Shape

Told = Callable[[int, int], None]


def prepare(plan: LowPlan, tell: Told) -> None:
    """Compile, or load, every kernel of a plan; `tell` hears how many of how many are ready."""
    if not plan.compiled:
        return
    shapes: dict[tuple[TableKind, Shape], None] = {}
    for query in plan.queries:
        if isinstance(query, LowAggregate):
            own = Shape(len(query.plain_keys), query.shape.slots)
            shapes["open", own] = None  # what leaves any table is merged by this one
            if query.table.kind == "open":
                shapes["open", query.shape] = None
            else:
                shapes[query.table.kind, Shape(own.keys, own.slots, with_epoch=True)] = None
    steps = 1 + len(shapes)
    tell(0, steps)
    for made in programs(plan):
        functions(made, True)
    for done, (kind, shape) in enumerate(shapes, start=1):
        tell(done, steps)
        if kind == "open":
            table_kernels(shape, True)
            group_kernel(shape, True)
        else:
            bounded_kernels(shape, kind)
