"""Many more groups than there is memory for: a process keeps within what it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

GROUPS = 1_500_000
BUDGET_MB = 48

RUN = """
import sys, threading
from pathlib import Path
from bench.shapes.plain import run_set, source

TEXT = '''
PROTOCOL FLOW (time UINT increasing, host UINT, peer UINT, size UINT);
QUERY all: SELECT tb, host, peer, COUNT(*) AS n, SUM(size) AS total
FROM flows.FLOW GROUP BY time/60 AS tb, host, peer;
'''

def own_mb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

def watch():
    while not over.wait(0.005):
        seen.append(own_mb())

small, large, budget = sys.argv[1:]
run_set(TEXT, [source("flows", "parquet", Path(small))])
seen = [own_mb()]
before, over = seen[0], threading.Event()
threading.Thread(target=watch, daemon=True).start()
ran = run_set(TEXT, [source("flows", "parquet", Path(large))], int(budget) << 20)
over.set()
print(ran.rows, max(seen) - before)
"""


def write_flows(path: Path, groups: int) -> None:
    random = np.random.default_rng(1)
    hosts = random.permutation(groups)
    columns = {
        "time": np.full(groups, 60),
        "host": hosts * 1009 % (1 << 32),
        "peer": hosts % 1000,
        "size": random.integers(0, 1500, groups),
    }
    pq.write_table(pa.table(columns), path, row_group_size=1 << 17)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells the memory used")
def test_a_process_keeps_within_its_memory(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("small.parquet", "large.parquet")]
    for path, groups in zip(paths, (1000, GROUPS), strict=True):
        write_flows(path, groups)
    told = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, paths), str(BUDGET_MB)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, most = told.stdout.split()
    assert int(rows) == GROUPS
    # Their keys alone take more: 1.5 million groups of 48 bytes, and dictionaries of 40 a value.
    assert float(most) < 1.6 * BUDGET_MB
