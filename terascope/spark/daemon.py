"""Spark's daemon of Python workers (`spark.python.daemon.module`), with imports done in advance.

Spark forks a worker for each task that runs at the same time, and ends workers that were idle for a
minute. Forked from a daemon that has imported the modules of tasks, and has loaded the kernels that
earlier workers used (kernels/codegen/generated_modules.py), a worker begins at once, and all of
them share that memory.

A process with threads must not fork: libraries that start threads when they are imported are
configured not to.
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
    """Import the modules of workers, and hide them from their garbage collectors."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for module in NEEDED:
        import_module(module)
    from terascope.kernels.codegen.generated_modules import load_used

    os.register_at_fork(before=load_used)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    manager()
