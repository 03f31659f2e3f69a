"""Queries that tasks finish themselves have the rows of the reference: projections, HAVING, top-k
and queries over queries, whether their groups were complete where they arose or met in the merge.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Source
from terascope.low.delivery import Sink
from terascope.low.regroup import Regroup
from terascope.low.top import Top
from terascope.physical.job import Job
from terascope.physical.low_planner import TableSettings
from terascope.physical.planner import LowSettings, plan_job
from terascope.pipeline import Bindings, compile_set
from terascope.plan.plan import Plan
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row
from terascope.reference.sources import ConnectorSources
from terascope.spark.low_task import NativeRead, low_rows, native_bundles
from terascope.spark.native import (
    Merging,
    direct_queries,
    part_of,
    stream_numbers,
    stream_targets,
)
from tests.oracle.compare import assert_same_rows
from tests.properties.engines import make_case

SEEDS = range(int(os.environ.get("TERASCOPE_SEEDS", "40")))
DESTINATIONS = 2


def written_rows(job: Job, tasks: int, folder: Path) -> dict[str, list[Row]]:
    """What the tasks of a job, and of its merge, write for every query they finish."""
    direct = direct_queries(job, sorted_later=True)
    targets = stream_targets(job, direct)
    sink = Sink(str(folder), "held", compiled=False)
    parts = []
    payloads: dict[int, list[tuple[int, bytes]]] = {}
    for read in job.reads:
        reading = NativeRead(read, stream_numbers(job, read), targets, sink, DESTINATIONS)
        for bundle in native_bundles(reading, tasks):
            for row in low_rows(reading, bundle):  # type: ignore[arg-type]
                if row.kind == "part":
                    assert row.told is not None
                    parts.append(part_of(row.told))
                elif row.kind == "groups":
                    assert row.payload is not None
                    payloads.setdefault(row.destination, []).append((row.stream, row.payload))
    for some in payloads.values():
        batch = pa.RecordBatch.from_arrays(
            [pa.array([s for s, _ in some], pa.int32()), pa.array([p for _, p in some])],
            ["stream", "payload"],
        )
        for row in Merging(targets, sink, 1 << 28).merged(iter([batch]), folder):
            if row.kind == "part":
                assert row.told is not None
                parts.append(part_of(row.told))
    rows: dict[str, list[Row]] = {name: [] for name in direct}
    for part in parts:
        rows[part.query] += tuples(pq.ParquetFile(part.path).read(), len(direct[part.query].fields))
    return rows


def tuples(table: Any, width: int) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    assert len(columns) == width
    return [tuple(row) for row in zip(*columns, strict=True)]


def check(
    plan: Plan, interfaces: dict[str, Interface], settings: LowSettings, tasks: int, folder: Path
) -> Job:
    job = plan_job(plan, interfaces, 1, settings)
    expected = evaluate(plan, ConnectorSources(interfaces))
    outputs = {output.stream: output for output in job.outputs}
    for name, rows in written_rows(job, tasks, folder).items():
        wanted = expected[name]
        names = [*outputs[name].columns]
        names += [n for n, _ in outputs[name].order if n not in names]
        places = [wanted.names.index(n) for n in names]
        fields = [wanted.fields[i] for i in places]
        assert_same_rows([tuple(t[i] for i in places) for t in wanted.tuples], rows, fields)
    return job


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_random_sets(seed: int, tmp_path: Path) -> None:
    case = make_case(seed, tmp_path, queries=12, rows=60)
    tables = TableSettings(compiled=False, memory_bytes=(1 << 30, 1 << 12)[seed % 2])
    interfaces = dict(case.compiled.bindings.interfaces)
    check(case.compiled.optimized, interfaces, LowSettings(tables=tables), 1 + seed % 3, tmp_path)


SET = """
PROTOCOL FLOW (time UINT increasing, host STRING, port UINT, size UINT, rate FLOAT);
QUERY pairs: SELECT tb, host, port, COUNT(*) AS n, SUM(size) AS total
  FROM flows.FLOW GROUP BY time/10 AS tb, host, port;
QUERY partners: SELECT tb, host, COUNT(*) AS ports, MAX(n) AS most, SUM(total) AS bytes
  FROM pairs GROUP BY tb, host;
QUERY busiest: SELECT tb, host, port, n FROM pairs WHERE n > 1 ORDER BY n DESC, port LIMIT 3;
QUERY quietest: SELECT tb, port, COUNT(*) AS n, MIN(rate) AS least
  FROM flows.FLOW GROUP BY time/10 AS tb, port ORDER BY least LIMIT 2;
QUERY sizes: SELECT tb, bucket, COUNT(*) AS groups FROM pairs GROUP BY tb, total/50 AS bucket;
"""


@pytest.mark.parametrize("memory", [1 << 30, 1 << 12])
@pytest.mark.parametrize("tasks", [1, 3])
def test_ranks_and_queries_over_queries(memory: int, tasks: int, tmp_path: Path) -> None:
    lines = ["time,host,port,size,rate"]
    for i in range(900):
        rate = "" if i % 11 == 0 else f"{(i * 7) % 13 / 4}"
        lines.append(f"{i // 20},{'abcde'[i % 5]},{i * i % 17},{i % 40},{rate}")
    (tmp_path / "flows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    interfaces = {"flows": parse_interface(f"flows=csv:{tmp_path / 'flows.csv'}")}
    made = compile_set(Source(SET, "set.gsql"), Bindings(interfaces))
    settings = LowSettings(tables=TableSettings(compiled=False, memory_bytes=memory))
    job = check(made.optimized, interfaces, settings, tasks, tmp_path)
    found = direct_queries(job, sorted_later=False)
    assert set(found) == {"pairs", "partners", "busiest", "quietest", "sizes"}
    whole = {name: type(direct.program.whole) for name, direct in found.items()}
    assert whole["partners"] is whole["sizes"] is Regroup
    assert whole["busiest"] is whole["quietest"] is Top
