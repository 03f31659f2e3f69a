"""What every task of ours does in a worker of Spark, around its work.

Mistakes leave as one marked line (mistakes.py). And Spark's daemon collects garbage after each
task, before the worker takes another: that walks over everything that was ever imported and
compiled, a third of a second with numba, for tasks that take less. What is there when a task is
done stays for as long as the worker does, so it is taken out of the collector's sight.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from terascope.kernels.codegen.preload import report_used
from terascope.spark.mistakes import telling

_done = 0
"""Tasks of this worker."""


@contextmanager
def working() -> Iterator[None]:
    """Around the work of a task."""
    with telling():
        yield
    settle()


def settle() -> None:
    """After the 1st, 2nd, 4th, 8th .. task: later ones bring kernels and modules too, but ever
    fewer. Garbage goes first, or it would stay for good. What was loaded is told to the daemon.
    """
    global _done
    _done += 1
    report_used()
    if _done & (_done - 1) == 0:
        gc.collect()
        gc.freeze()
