"""Kernels made ready before the tasks need them.

In: a LowPlan. Out: machine code in the cache on disk, so that neither a task that reads nor one
that merges compiles it: the first run of a query set pays for its shapes, later ones load them.
Left to the tasks is what only tuples can tell: arguments that are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, assert_never

from terascope.low.bounded_tables import compiled as bounded_kernels
from terascope.low.merge_source import combine_kernel
from terascope.low.open_table_source import insert_kernel, update_kernel
from terascope.low.partitioned import group_kernel
from terascope.low.plan import LowAggregate, LowPlan, TableKind
from terascope.low.program import functions, programs
from terascope.low.slots import Shape

Told = Callable[[int, int], None]
Use: TypeAlias = TableKind | Literal["masked", "masked_dense", "insert", "merge"]
"""What a kernel is for: taking tuples into a table (`masked`: into an open one, with NULLs and
overflows in mind), groups into an open table, partials into the merge."""


def prepare(plan: LowPlan, tell: Told) -> None:
    """Compile, or load, every kernel of a plan; `tell` hears how many of how many are ready."""
    if not plan.compiled:
        return
    aggregates = [query for query in plan.queries if isinstance(query, LowAggregate)]
    wanted = list(dict.fromkeys(use for query in aggregates for use in uses(query)))
    steps = 1 + len(wanted)
    tell(0, steps)
    for made in programs(plan):
        functions(made, True)
    for done, (use, shape) in enumerate(wanted, start=1):
        tell(done, steps)
        make(use, shape)


def uses(query: LowAggregate) -> Iterator[tuple[Use, Shape]]:
    """The kernels of an aggregation, but those that only NULLs call for."""
    groups = Shape(len(query.plain_keys), query.shape.slots)
    if query.table.kind != "open":
        yield query.table.kind, Shape(groups.keys, groups.slots, with_epoch=True)
    elif query.epoch is None:
        yield "masked", query.shape
        yield "masked_dense", query.shape
    elif query.epoch_in_key:
        yield "masked", query.shape
        yield "insert", query.shape
    else:
        yield "open", query.shape
    yield "insert", groups  # what leaves any table of a task meets in this one
    # Which epochs a task has for itself is known only when there are tasks: any may need a merge.
    yield "merge", groups


def make(use: Use, shape: Shape) -> None:
    match use:
        case "open":
            update_kernel(shape, sure=True, dense=False)
            update_kernel(shape, sure=True, dense=True)
            group_kernel(shape, sure=True)
        case "masked":
            update_kernel(shape, sure=False, dense=False)
        case "masked_dense":
            update_kernel(shape, sure=False, dense=True)
        case "insert":
            insert_kernel(shape)
        case "merge":
            combine_kernel(shape)
        case "direct_mapped" | "second_chance" | "lru":
            bounded_kernels(shape, use)
        case _:
            assert_never(use)
