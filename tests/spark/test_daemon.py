"""The daemon that forks workers has imported what they need, and has no threads."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys
from terascope.spark.daemon import prepare
prepare()
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
modules = "numba" in sys.modules, "terascope.execute.task" in sys.modules, "pandas" in sys.modules
if os.fork() == 0:
    import pyarrow as pa, pyarrow.compute as pc
    os._exit(pc.sum(pa.array([3, 4])).as_py())
print(threads, modules, os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_worker_is_forked_from_a_process_that_knows_and_has_no_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "1 (True, True, False) 7"
