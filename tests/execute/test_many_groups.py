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
BESIDE_MB = 300
"""The memory of a process beside its budget: the interpreter, its libraries, the kernels."""
PLAIN = "COUNT(*) AS n, SUM(size) AS total"
SKETCHES = "approx_percentile(size, 95) AS p, heavy_hitters(peer, size, 5) AS h"
LARGE = "heavy_hitters(peer, size, 5) WITH strategy 'low_sketch' AS h"

RUN = """
import sys, threading
from pathlib import Path
from bench.shapes.plain import run_set, source

TEXT = '''
PROTOCOL FLOW (time UINT increasing, host UINT, peer UINT, size UINT);
QUERY all: SELECT tb, {}, {} FROM flows.FLOW GROUP BY time/60 AS tb, {};
'''

def own_mb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

def watch():
    while not over.wait(0.005):
        seen.append(own_mb())

small, large, budget, keys, values = sys.argv[1:]
TEXT = TEXT.format(keys, values, keys)
run_set(TEXT, [source("flows", "parquet", Path(small))])
seen = [own_mb()]
before, over = seen[0], threading.Event()
threading.Thread(target=watch, daemon=True).start()
ran = run_set(TEXT, [source("flows", "parquet", Path(large))], int(budget) << 20)
over.set()
print(ran.rows, max(seen) - before, max(seen))
"""


def write_flows(path: Path, groups: int, each: int = 1) -> None:
    """Flows of one epoch. `each`: the number of flows of a host."""
    random = np.random.default_rng(1)
    hosts = random.permutation(groups * each) % groups
    columns = {
        "time": np.full(len(hosts), 60),
        "host": hosts * 1009 % (1 << 32),
        "peer": hosts % 1000 if each == 1 else random.integers(0, 5000, len(hosts)),
        "size": random.integers(0, 1500, len(hosts)),
    }
    pq.write_table(pa.table(columns), path, row_group_size=1 << 17)


def memory_of(
    folder: Path, groups: int, each: int, keys: str, values: str
) -> tuple[int, float, float]:
    """Run a set in a process of its own: its rows, by how much its memory grew, and the most it
    had, in megabytes.
    """
    paths = [folder / name for name in ("small.parquet", "large.parquet")]
    for path, count in zip(paths, (1000, groups), strict=True):
        write_flows(path, count, each)
    told = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, paths), str(BUDGET_MB), keys, values],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, grown, most = told.stdout.split()
    return int(rows), float(grown), float(most)


linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux tells the memory used"
)


@linux
def test_a_process_keeps_within_its_memory(tmp_path: Path) -> None:
    rows, grown, _ = memory_of(tmp_path, GROUPS, 1, "host, peer", PLAIN)
    assert rows == GROUPS
    # Their keys alone take more: 1.5 million groups of 48 bytes, and dictionaries of 40 a value.
    assert grown < 1.6 * BUDGET_MB


@linux
@pytest.mark.parametrize(
    ("values", "groups", "each"),
    [
        pytest.param(SKETCHES, 200_000, 3, id="sketches"),
        pytest.param(LARGE, 8_000, 3, id="large states"),
        pytest.param(SKETCHES, 1_000_000, 6, id="a million", marks=pytest.mark.soak),
    ],
)
def test_states_keep_within_their_memory(
    values: str, groups: int, each: int, tmp_path: Path
) -> None:
    """States of 200,000 groups take some 80 MB, those of 8,000 large ones 60 MB."""
    rows, grown, most = memory_of(tmp_path, groups, each, "host", values)
    assert rows == groups
    assert most < BUDGET_MB + BESIDE_MB
    assert grown < 2 * BUDGET_MB
