"""Kernels made ready before the tasks need them, by several processes at once.

In: a LowPlan. Out: machine code in the cache on disk, so that neither a task that reads nor one
that merges compiles it: the first run of a query set pays for its shapes, later ones load them.
Left to the tasks is what only tuples can tell: arguments that are NULL.

numba compiles under locks of its process, so that threads do not help; a process of its own does
(`python -m terascope.execute.prepare`), which imports what it needs (0.6 s of processor time). The
process that asks compiles as well, and starts others only when kernels turn out not to be in the
cache and enough of them are left. All go over the same kernels from different places; one that
another process has compiled takes milliseconds to load.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Final, TypeAlias

from terascope.execute.grouping.tree import AggregateTrees, tree_of
from terascope.kernels.codegen.generated_modules import GeneratedKernel, cache_folder
from terascope.kernels.codegen.program import functions
from terascope.kernels.merge.merge_table import combine_kernel
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.kernels.tables.bounded_tables import compiled as bounded_kernels
from terascope.kernels.tables.open_table import insert_kernel, update_kernel
from terascope.kernels.tables.partitioned import group_kernel
from terascope.physical.low_plan import LowAggregate, LowPlan, programs
from terascope.physical.row_pipeline import Regroup

Told = Callable[[int, int], None]
Kernel: TypeAlias = tuple[Callable[..., object], tuple[Hashable, ...]]
"""The function that compiles a kernel, or loads it, and its arguments."""


def make(kernel: Kernel) -> None:
    function, arguments = kernel
    made = function(*arguments)
    if isinstance(made, GeneratedKernel):
        made.compile()


def prepare(plan: LowPlan, tell: Told, processes: int = 1) -> None:
    """Compile, or load, every kernel of a plan; `tell` is called with the number of kernels that
    are ready, and of all. `processes`: the number of processes that may compile at once.
    """
    if not plan.compiled:
        return
    tree = tree_of(plan)
    wanted = list(
        dict.fromkeys(
            kernel
            for place in tree.nodes
            for kernel in node_kernels(tree, place, place >= len(plan.queries))
        )
    )
    steps = 1 + len(wanted)
    tell(0, steps)
    for made in programs(plan):
        functions(made, True)
    compile_all(wanted, processes, lambda taken: tell(taken, steps))


def prepare_windows(slices: Regroup, tell: Told) -> None:
    prepare(LowPlan((), (), (slices.query,)), tell)
    assemble_kernel(slices.query.groups.shape).compile()


def node_kernels(tree: AggregateTrees, place: int, is_inner: bool) -> Iterator[Kernel]:
    """The kernels of a node of a tree, without those that only NULLs need."""
    node, edge = tree.nodes[place], tree.edges.get(place)
    if not tree.is_tableless(place):
        read = node if edge is None else edge.query
        some = edge is not None and edge.present != 0  # other groups of the parent have no values
        yield from table_kernels(read, some or any(slot.where for slot in node.slots))
    if not is_inner:
        # What leaves any table of a task meets in one table. Which epochs a task has for itself is
        # known only when there are tasks: any may need a merge.
        shape = node.group_shape.for_kernels
        yield from ((combine_kernel, (shape, wide)) for wide in (False, True))


def table_kernels(query: LowAggregate, masked: bool) -> Iterator[Kernel]:
    """The kernels that a query's table needs for its kind and for the tuples it takes. `masked`: a
    slot takes only some of the tuples.
    """
    shape = query.shape.for_kernels
    if query.table.kind != "open":
        bounded = replace(query.group_shape.for_kernels, with_epoch=True)
        yield bounded_kernels, (bounded, query.table.kind)
        return
    in_epochs = query.epoch is not None and not query.epoch_in_key
    if in_epochs:
        yield from ((update_kernel, (shape, True, dense)) for dense in (False, True))
        yield group_kernel, (shape, True)
    if masked and in_epochs:
        yield group_kernel, (shape, False)
    if masked or not in_epochs:
        yield update_kernel, (shape, False, False)
        if not query.epoch_in_key:
            yield update_kernel, (shape, False, True)
    if query.epoch is not None:
        yield insert_kernel, (shape,)  # a table that grows takes its own groups in


SLOW_S: Final = 0.2
"""A kernel that takes longer was not in the cache."""
SLOW_KERNELS: Final = 3
"""The number of slow kernels that indicates a set that was never compiled."""
LEFT_FOR_EACH: Final = 4
"""The least number of kernels that are left for each process that is started."""
WORKER: Final = "terascope.execute.prepare"


def compile_all(kernels: Sequence[Kernel], processes: int, tell: Callable[[int], None]) -> None:
    """Make every kernel ready in this process, with the help of others if many are to be compiled.
    `tell` is called with the number of kernels that are taken.
    """
    workers: list[subprocess.Popen[bytes]] = []
    slow = 0
    try:
        for taken, kernel in enumerate(kernels, 1):
            tell(taken)
            began = monotonic()
            make(kernel)
            slow += monotonic() - began > SLOW_S
            if slow >= SLOW_KERNELS and not workers:
                workers = start_workers(kernels[taken:], processes)
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait()


def start_workers(kernels: Sequence[Kernel], processes: int) -> list[subprocess.Popen[bytes]]:
    """Start processes that compile kernels, while this one takes them from the first on. Each
    process begins elsewhere and goes towards the first.
    """
    most = 0 if cache_folder() is None else processes - 1
    number = min(most, len(kernels) // LEFT_FOR_EACH)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    workers = []
    for place in range(number, 0, -1):
        begin = len(kernels) * (place + 1) // (number + 1)
        worker = subprocess.Popen(
            [sys.executable, "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        workers.append(worker)
        assert worker.stdin is not None
        with suppress(OSError), worker.stdin:  # one that fails is done without
            pickle.dump([*kernels[:begin][::-1], *kernels[begin:][::-1]], worker.stdin)
    return workers


def main() -> None:
    for kernel in pickle.load(sys.stdin.buffer):
        make(kernel)


if __name__ == "__main__":
    main()
