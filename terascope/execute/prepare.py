"""Kernels that are compiled before the tasks need them.

In: a LowPlan. Out: machine code in the cache on disk, so that neither a reading nor a merging task
compiles it: the first run of a query set compiles its shapes, later runs load them. Kernels that
depend on the tuples (arguments that are NULL) are left to the tasks.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, assert_never

from terascope.execute.grouping.aggregator import group_fields
from terascope.execute.grouping.tree import AggregateTrees, tree_of
from terascope.kernels.codegen.compilers import Compilers
from terascope.kernels.codegen.program import functions
from terascope.kernels.merge.merge_source import combine_kernel
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.kernels.tables.bounded_tables import compiled as bounded_kernels
from terascope.kernels.tables.open_table_source import insert_kernel, update_kernel
from terascope.kernels.tables.partitioned import group_kernel
from terascope.kernels.tables.slots import Shape
from terascope.physical.low_plan import LowAggregate, LowPlan, TableKind, programs
from terascope.physical.row_pipeline import Regroup

Told = Callable[[int, int], None]
Use: TypeAlias = TableKind | Literal["masked", "masked_dense", "masked_parts", "insert", "merge"]
"""The use of a kernel: taking tuples into a table (`masked`: into an open one, with NULLs and
overflows; `masked_parts`: into many small ones), groups into an open table, partials into the
merge."""


Wanted: TypeAlias = tuple[Use, Shape]


def written_kernel(kernel: Wanted) -> str:
    """A kernel as text, for a process that this one has started."""
    return b64encode(pickle.dumps(kernel)).decode()


def read_kernel(written: str) -> Wanted:
    kernel: Wanted = pickle.loads(b64decode(written))
    return kernel


def prepare(plan: LowPlan, tell: Told, processes: int = 1) -> None:
    """Compile, or load, every kernel of a plan; `tell` is called with the number of kernels that
    are ready, and of all. `processes`: the number of processes that may compile at once.
    """
    if not plan.compiled:
        return
    tree = tree_of(plan)
    wanted = list(
        dict.fromkeys(
            use
            for place, node in enumerate(tree.nodes)
            if node is not None
            for use in node_uses(tree, place, node, place >= len(plan.queries))
        )
    )
    steps = 1 + len(wanted)
    tell(0, steps)
    for made in programs(plan):
        functions(made, True)
    Compilers[Wanted](
        lambda kernel: make(*kernel), written_kernel, processes, lambda taken: tell(taken, steps)
    ).compile(wanted)


def prepare_windows(slices: Regroup, tell: Told) -> None:
    """Compile the kernels that assemble windows from closed slices."""
    prepare(LowPlan((), (), (slices.query,)), tell)
    assemble_kernel(group_fields(slices.query).shape).compile()


def node_uses(
    tree: AggregateTrees, place: int, node: LowAggregate, is_inner: bool
) -> Iterator[tuple[Use, Shape]]:
    """The kernels of a node of a tree, without those that only NULLs need."""
    edge = tree.edges[place]
    if not tree.is_tableless(place):
        read = node if edge is None else edge.query
        yield from table_uses(read)
        some = edge is not None and edge.present != 0  # other groups of the parent have no values
        if some or any(slot.where is not None for slot in node.slots):
            yield from masked_uses(read)
    if not is_inner:
        groups = Shape(len(node.plain_keys), node.shape.slots)
        yield "insert", groups  # what leaves any table of a task meets in this one
        # Which epochs a task has for itself is known only when there are tasks: any may need a
        # merge.
        yield "merge", groups


def table_uses(query: LowAggregate) -> Iterator[tuple[Use, Shape]]:
    """The kernels that a query's table needs for its kind and for the tuples it takes."""
    if query.table.kind != "open":
        shape = Shape(len(query.plain_keys), query.shape.slots, with_epoch=True)
        yield query.table.kind, shape
    elif query.epoch is None:
        yield "masked", query.shape
        yield "masked_dense", query.shape
    elif query.epoch_in_key:
        yield "masked", query.shape
        yield "insert", query.shape
    else:
        yield "open", query.shape
        yield "insert", query.shape  # a table that grows takes its own groups in


def masked_uses(query: LowAggregate) -> Iterator[tuple[Use, Shape]]:
    """The kernels of an open table in which a slot takes only some of the tuples."""
    if query.table.kind == "open" and query.epoch is not None and not query.epoch_in_key:
        yield "masked", query.shape
        yield "masked_dense", query.shape
        yield "masked_parts", query.shape


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
        case "masked_parts":
            group_kernel(shape, sure=False)
        case "insert":
            insert_kernel(shape)
        case "merge":
            combine_kernel(shape).compile()
        case "direct_mapped" | "second_chance" | "lru":
            bounded_kernels(shape, use)
        case _:
            assert_never(use)
