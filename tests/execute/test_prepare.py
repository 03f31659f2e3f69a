"""Kernels are made ready before the tasks ask for them: afterwards no task compiles, neither one
that reads nor one that merges.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.execute.prepare import prepare, prepare_windows
from terascope.execute.rows.collect import Regrouping, Sequences
from terascope.files import CACHE_VARIABLE
from terascope.functions.slots import SUM_INT
from terascope.kernels.codegen import generated_modules
from terascope.kernels.codegen.generated_modules import cache_folder, load_module
from terascope.kernels.merge.merge_table import combine_kernel
from terascope.kernels.merge.window_kernel import assemble_kernel
from terascope.kernels.tables import bounded_tables
from terascope.kernels.tables.open_table import insert_kernel, update_kernel
from terascope.kernels.tables.partitioned import group_kernel
from terascope.physical.job import Job
from terascope.physical.low_plan import Slot, TableKind
from terascope.physical.planner import plan_job
from terascope.physical.row_pipeline import Regroup
from terascope.pipeline import Bindings, compile_set
from terascope.plan.expr import Col
from terascope.sharing.slices import Periodic
from terascope.types import Type
from tests.execute.low_engine import low_rows
from tests.execute.tree_plans import conditional_plan, random_tuples, run, written
from tests.settings import config_with

LONG_EPOCHS = "SELECT tb, host, COUNT(*), SUM(size) FROM flows.FLOW GROUP BY time/100 AS tb, host"
SHORT_EPOCHS = "SELECT time, host, size, COUNT(*) FROM flows.FLOW GROUP BY time, host, size"
FALLING = "SELECT tb, host, COUNT(*), SUM(size) FROM flows.FLOW GROUP BY -time/100 AS tb, host"
"""No epochs for the low level: its keys do not rise with time."""
LITTLE = 1 << 12
"""Tables are emptied while an epoch lasts; what was in them has to meet."""
ENOUGH = 1 << 30
"""Tables grow."""


@pytest.fixture(autouse=True)
def _kernel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))
    monkeypatch.setattr(generated_modules, "FEW_ROWS", -1)  # nothing is interpreted
    forget_kernels()


def forget_kernels() -> None:
    """As in a process that has just begun."""
    for made in (load_module, update_kernel, insert_kernel, group_kernel, combine_kernel):
        made.cache_clear()
    assemble_kernel.cache_clear()
    bounded_tables.compiled.cache_clear()


def on_disk() -> set[str]:
    """Machine code: numba writes a file for every kernel it compiles."""
    folder = cache_folder()
    assert folder is not None
    return {path.name for path in folder.rglob("*.nbc")}


def make_job(query: str, kind: TableKind, memory: int, folder: Path) -> Job:
    """Over two files of the same time, read by different tasks: they have groups in common."""
    for name in ("one", "two"):
        rows = range(9000)
        columns = {
            "time": [i // 90 for i in rows],
            "host": [f"h{i * i % 1009}" for i in rows],
            "size": [i % 40 for i in rows],
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=3000)
    interfaces = {"flows": parse_interface(f"flows=parquet:{folder}/*.parquet")}
    protocol = "PROTOCOL FLOW (time UINT increasing, host STRING, size UINT);"
    made = compile_set(Source(f"{protocol} QUERY q: {query};", "set.gsql"), Bindings(interfaces))
    tables = {"table": kind, "memory_bytes": memory}
    return plan_job(made.optimized, interfaces, 1, config_with(**tables))


@pytest.mark.parametrize(
    ("query", "kind", "memory"),
    [
        (LONG_EPOCHS, "open", LITTLE),
        (SHORT_EPOCHS, "open", ENOUGH),
        (FALLING, "open", LITTLE),
        (LONG_EPOCHS, "direct_mapped", LITTLE),
    ],
    ids=["long epochs", "short epochs", "no epochs", "bounded table"],
)
def test_no_task_compiles_what_was_prepared(
    query: str, kind: TableKind, memory: int, tmp_path: Path
) -> None:
    job = make_job(query, kind, memory, tmp_path)
    (read,) = job.reads
    assert read.low is not None
    told: list[tuple[int, int]] = []
    prepare(read.low, lambda done, steps: told.append((done, steps)))
    ready = on_disk()
    assert any(".combine-" in name for name in ready)
    assert [done for done, _ in told] == list(range(told[-1][1]))
    forget_kernels()
    rows, counters = low_rows(job, 3, tmp_path)
    partials = sum(int(task.partials.sum()) for task in counters)
    assert partials > len(rows["q_low"]) > 0, "nothing was merged"
    assert on_disk() == ready


@pytest.mark.soak
def test_no_task_compiles_what_was_prepared_for_a_tree(tmp_path: Path) -> None:
    plan = conditional_plan("open")
    prepare(plan, lambda *_: None)
    ready = on_disk()
    forget_kernels()
    _, counted = run(plan, written(random_tuples(800, 6, 3), tmp_path))
    assert counted.probes.all(), "every node had something to do"
    assert on_disk() == ready


def test_no_task_compiles_what_was_prepared_for_windows() -> None:
    keys = (("start", Col("start", Type.UINT)), ("host", Col("host", Type.STRING)))
    slots = (Slot("n", SUM_INT, Col("n", Type.ULLONG), Type.ULLONG),)
    slices = Regroup(keys, slots, 0)
    prepare_windows(slices, lambda done, total: None)
    ready = on_disk()
    assert ready
    forget_kernels()
    groups = Regrouping(slices)
    columns = {"start": pa.array([0, 5, 5], pa.int64()), "host": ["a", "a", "b"]}
    groups.take(pa.RecordBatch.from_pydict({**columns, "n": pa.array([1, 2, 3], pa.int64())}))
    sequences = Sequences(groups.blocks(), groups.fields, lambda start: start + 5)
    windows = [wends.tolist() for _, wends in sequences.of(Periodic(10, 5))]
    assert windows == [[5, 10, 15, 10, 15]]
    assert on_disk() == ready


def test_numpy_needs_no_kernels(tmp_path: Path) -> None:
    (read,) = make_job(LONG_EPOCHS, "open", ENOUGH, tmp_path).reads
    assert read.low is not None
    told: list[tuple[int, int]] = []
    prepare(replace(read.low, compiled=False), lambda done, steps: told.append((done, steps)))
    assert told == []
    assert on_disk() == set()
