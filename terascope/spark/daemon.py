"""Spark's daemon of Python workers (`spark.python.daemon.module`), which knows beforehand.

Spark forks a worker for each task that runs at the same time, and ends those that were idle for a
minute. Forked from a daemon that has imported what tasks need, and has loaded the kernels that
earlier workers used (kernels/codegen/preload.py), a worker begins at once, and all of them share
that memory.

A process with threads must not fork: the libraries that start some when they are imported are told
not to.
"""

from __future__ import annotations

import gc
import os
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

QUIET: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
NEEDED: Final = (
    "pyspark.worker",
    "pyarrow.compute",
    "pyarrow.parquet",
    "terascope.spark.engine",
    "terascope.spark.write",
    "terascope.streaming.tasks.read",
)


def prepare() -> None:
    """Import what workers need, and keep it from the sight of their collectors."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for module in NEEDED:
        import_module(module)
    from terascope.kernels.codegen.preload import load_used

    os.register_at_fork(before=load_used)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    manager()
