"""Kernels made ready before the tasks need them, by several processes at once.

In: a LowPlan. Out: machine code in the cache on disk, so that neither a task that reads nor one
that merges compiles it: the first run of a query set pays for its shapes, later ones load them.
Left to the tasks is what only tuples can tell: arguments that are NULL.

numba compiles under locks of its process, so that threads do not help; a process of its own does
(`python -m terascope.execute.prepare`), which imports what it needs (0.6 s of processor time) and
then takes one kernel a line. The process that asks compiles as well, and starts others only when
kernels turn out not to be in the cache and enough of them are left.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from threading import Thread
from time import monotonic
from typing import Final, TypeAlias

from terascope.execute.grouping.aggregator import group_fields
from terascope.execute.grouping.tree import AggregateTrees, tree_of
from terascope.kernels.codegen.generated_modules import cache_folder
from terascope.kernels.codegen.program import functions
from terascope.kernels.merge.merge_source import combine_kernel
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.kernels.tables.bounded_tables import compiled as bounded_kernels
from terascope.kernels.tables.open_table_source import insert_kernel, update_kernel
from terascope.kernels.tables.partitioned import group_kernel
from terascope.kernels.tables.slots import Shape
from terascope.physical.low_plan import LowAggregate, LowPlan, programs
from terascope.physical.row_pipeline import Regroup

Told = Callable[[int, int], None]
Kernel: TypeAlias = tuple[Callable[..., object], tuple[Hashable, ...]]
"""The function that compiles a kernel, or loads it, and its arguments."""


def make(kernel: Kernel) -> None:
    function, arguments = kernel
    function(*arguments)


def written_kernel(kernel: Kernel) -> str:
    """A kernel as text, for a process that this one has started."""
    return b64encode(pickle.dumps(kernel)).decode()


def read_kernel(written: str) -> Kernel:
    kernel: Kernel = pickle.loads(b64decode(written))
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
            kernel
            for place, node in enumerate(tree.nodes)
            if node is not None
            for kernel in node_kernels(tree, place, node, place >= len(plan.queries))
        )
    )
    steps = 1 + len(wanted)
    tell(0, steps)
    for made in programs(plan):
        functions(made, True)
    Compilers(processes, lambda taken: tell(taken, steps)).compile(wanted)


def prepare_windows(slices: Regroup, tell: Told) -> None:
    """Compile the kernels that assemble windows from closed slices."""
    prepare(LowPlan((), (), (slices.query,)), tell)
    assemble_kernel(group_fields(slices.query).shape).compile()


def node_kernels(
    tree: AggregateTrees, place: int, node: LowAggregate, is_inner: bool
) -> Iterator[Kernel]:
    """The kernels of a node of a tree, without those that only NULLs need."""
    edge = tree.edges[place]
    if not tree.is_tableless(place):
        read = node if edge is None else edge.query
        some = edge is not None and edge.present != 0  # other groups of the parent have no values
        yield from table_kernels(read, some or any(slot.where for slot in node.slots))
    if not is_inner:
        yield (
            insert_kernel,
            (node.group_shape,),
        )  # what leaves any table of a task meets in this one
        # Which epochs a task has for itself is known only when there are tasks: any may need a
        # merge.
        yield compile_combine, (node.group_shape,)


def compile_combine(shape: Shape) -> None:
    combine_kernel(shape).compile()


def table_kernels(query: LowAggregate, masked: bool) -> Iterator[Kernel]:
    """The kernels that a query's table needs for its kind and for the tuples it takes. `masked`: a
    slot takes only some of the tuples.
    """
    shape = query.shape
    if query.table.kind != "open":
        bounded = replace(query.group_shape, with_epoch=True)
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
"""So many kernels must be left for each process that is started."""
WORKER: Final = "terascope.execute.prepare"
DONE: Final = "done\n"


class Compilers:
    """Compiles kernels in this process and, if they are many, in others."""

    def __init__(self, processes: int, tell: Callable[[int], None]) -> None:
        """`tell` is called with the number of kernels that are taken."""
        self._processes = processes if cache_folder() is not None else 1
        self._tell = tell
        self._pending: deque[Kernel] = deque()
        self._threads: list[Thread] = []
        self._workers: list[subprocess.Popen[str]] = []

    def compile(self, kernels: Sequence[Kernel]) -> None:
        """Make every kernel ready in this process."""
        self._pending.extend(kernels)
        slow = 0
        try:
            while (kernel := self._next(self._pending.popleft)) is not None:
                self._tell(len(kernels) - len(self._pending))
                began = monotonic()
                make(kernel)
                slow += monotonic() - began > SLOW_S
                if slow >= SLOW_KERNELS and not self._workers:
                    self._start()
            for thread in self._threads:
                thread.join()
        finally:
            self._stop()
        for kernel in kernels:  # what others compiled is loaded now; what they could not, compiled
            make(kernel)

    @property
    def started(self) -> int:
        """The number of processes that were started."""
        return len(self._workers)

    def _start(self) -> None:
        number = min(self._processes - 1, len(self._pending) // LEFT_FOR_EACH)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        for _ in range(number):
            worker = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                text=True,
            )
            self._workers.append(worker)
            thread = Thread(target=self._feed, args=(worker,), daemon=True)
            thread.start()
            self._threads.append(thread)

    @staticmethod
    def _next(taken: Callable[[], Kernel]) -> Kernel | None:
        """A pending kernel. There may be none any more: others take some, too."""
        try:
            return taken()
        except IndexError:
            return None

    def _feed(self, worker: subprocess.Popen[str]) -> None:
        """Hand pending kernels to a process until there are none, or it fails."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        reply = DONE
        while reply == DONE and (kernel := self._next(self._pending.pop)) is not None:
            try:
                worker.stdin.write(f"{written_kernel(kernel)}\n")
                worker.stdin.flush()
                reply = worker.stdout.readline()
            except OSError:
                return

    def _stop(self) -> None:
        for worker in self._workers:
            worker.terminate()
            worker.communicate()


def main() -> None:
    for line in sys.stdin:
        make(read_kernel(line))
        sys.stdout.write(DONE)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
