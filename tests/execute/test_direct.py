"""Queries that tasks finish themselves have the rows of the reference: projections, HAVING, top-k
and queries over queries, whether their groups were complete where they arose or met in the merge.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.config import Config
from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Source
from terascope.execute.merge import LeftoverJoin, Merging
from terascope.execute.reading_task import NativeRead, low_rows, native_bundles
from terascope.execute.reports import Outgoing
from terascope.execute.results.parts import Part
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Sink, TaskJoin, leftover_name
from terascope.physical.job import Job
from terascope.physical.planner import plan_job
from terascope.physical.row_pipeline import Regroup, Top
from terascope.physical.rules.finish_in_tasks import deliveries, direct_queries, stream_numbers
from terascope.pipeline import Bindings, compile_set
from terascope.plan.plan import Plan
from terascope.reference.interpreter import evaluate, tuples_of
from terascope.reference.rows import Evaluation, Row, Rows
from tests.oracle.compare import assert_same_rows
from tests.properties.engines import make_case
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

SEEDS = range(int(os.environ.get("TERASCOPE_SEEDS", "10")))
DESTINATIONS = 2


@dataclass
class Written:
    """What the tasks of a job, and those of its merge, gave."""

    rows: dict[str, list[Row]]
    """Of every query they finish."""
    rest: Counter[str]
    """Of each join, how many rows went up."""


def written_rows(job: Job, plan: Plan, tasks: int, folder: Path, memory: int) -> Written:
    planned = deliveries(job, writing=True, sorted_later=True)
    targets, joins, fields = planned.targets, planned.joins, planned.fields
    sink = Sink(str(folder), "held", compiled=False, memory_bytes=memory)
    outgoing: list[Outgoing] = []
    payloads: dict[int, list[tuple[int, bytes]]] = {}
    for read in planned.reads:
        numbers = stream_numbers(job, read)
        own = tuple(p for p in joins if p.left.stream in numbers)
        reading = NativeRead(read, numbers, targets, sink, DESTINATIONS, own)
        for bundle in native_bundles(reading, tasks):
            for row in low_rows(reading, bundle):
                outgoing.append(row)
                if row.kind == "groups":
                    assert row.payload is not None
                    payloads.setdefault(row.destination, []).append((row.stream, row.payload))
    for some in payloads.values():
        outgoing += Merging(targets, sink, 1 << 28, joins).merged(some)
    rows: dict[str, list[Row]] = {name: [] for name in fields}
    for part in (Part.of(r.report or "") for r in outgoing if r.kind == "part"):
        rows[part.query] += tuples(pq.ParquetFile(part.path).read(), len(fields[part.query]))
    rest: Counter[str] = Counter()
    told = {json.loads(row.report or "")["query"] for row in outgoing if row.kind == "rest"}
    packed = [(r.stream, r.payload) for r in outgoing if r.kind == "rows"]
    for query, made in planned.joined.items():
        sides = {side.leftovers: Rows(side.fields, []) for side in made.sides}
        for row in outgoing:
            if row.kind == "rows" and row.stream in sides:
                for some in unpack_tuples(row.payload or b""):
                    sides[row.stream].tuples.extend(tuples(some, len(sides[row.stream].fields)))
        rest[query] = sum(len(side.tuples) for side in sides.values())
        assert (query in told) == bool(rest[query])
        streams = {leftover_name(query, i): side for i, side in enumerate(sides.values())}
        context = Evaluation.of(plan, ConnectorSources({}), streams)
        found = Rows(made.of_leftovers.fields, tuples_of(made.of_leftovers, context))
        places = [found.names.index(f.name) for f in fields[query]]
        by_reference = [tuple(t[i] for i in places) for t in found.tuples]
        in_one_task = joined_in_one_task(made, sink, packed)
        assert_same_rows(by_reference, in_one_task, fields[query])
        rows[query] += in_one_task
    return Written(rows, rest)


def joined_in_one_task(
    join: TaskJoin, sink: Sink, packed: list[tuple[int, bytes | None]]
) -> list[Row]:
    own = [(s, p) for s, p in packed if p and s in {side.leftovers for side in join.sides}]
    (part,) = LeftoverJoin((join,), sink).parts(own)
    return tuples(pq.ParquetFile(part.path).read(), len(join.fields))


def tuples(table: Any, width: int) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    assert len(columns) == width
    return [tuple(row) for row in zip(*columns, strict=True)]


def check(
    plan: Plan, interfaces: dict[str, Interface], settings: Config, tasks: int, folder: Path
) -> tuple[Job, Written]:
    job = plan_job(plan, interfaces, 1, settings)
    expected = evaluate(plan, ConnectorSources(interfaces))
    outputs = {output.stream: output for output in job.outputs}
    written = written_rows(job, plan, tasks, folder, settings.memory_bytes)
    for name, rows in written.rows.items():
        wanted = expected[name]
        names = [*outputs[name].columns]
        names += [n for n, _ in outputs[name].order if n not in names]
        places = [wanted.names.index(n) for n in names]
        fields = [wanted.fields[i] for i in places]
        assert_same_rows([tuple(t[i] for i in places) for t in wanted.tuples], rows, fields)
    return job, written


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_random_sets(seed: int, tmp_path: Path) -> None:
    case = make_case(seed, tmp_path, queries=12, rows=60)
    tables = {"kernels": "numpy", "memory_bytes": (1 << 30, 1 << 12)[seed % 2]}
    interfaces = dict(case.compiled.bindings.interfaces)
    check(
        case.compiled.optimized,
        interfaces,
        config_with(**tables, share_sample="always"),
        1 + seed % 3,
        tmp_path,
    )


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


@pytest.mark.parametrize(
    ("tasks", "memory"),
    [
        (1, 1 << 30),
        (3, 1 << 12),
        pytest.param(1, 1 << 12, marks=pytest.mark.soak),
        pytest.param(3, 1 << 30, marks=pytest.mark.soak),
    ],
)
def test_ranks_and_queries_over_queries(tasks: int, memory: int, tmp_path: Path) -> None:
    lines = ["time,host,port,size,rate"]
    for i in range(900):
        rate = "" if i % 11 == 0 else f"{(i * 7) % 13 / 4}"
        lines.append(f"{i // 20},{'abcde'[i % 5]},{i * i % 17},{i % 40},{rate}")
    (tmp_path / "flows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    interfaces = {"flows": parse_interface(f"flows=csv:{tmp_path / 'flows.csv'}")}
    made = compile_set(Source(SET, "set.gsql"), Bindings(interfaces))
    tables = {"kernels": "numpy", "memory_bytes": memory}
    settings = config_with(**tables, share_tables="never", share_sample="always")
    job, _ = check(made.optimized, interfaces, settings, tasks, tmp_path)
    found = direct_queries(job, sorted_later=False)
    assert set(found) == {"pairs", "partners", "busiest", "quietest", "sizes"}
    whole = {name: type(direct.program.whole) for name, direct in found.items()}
    assert whole["partners"] is whole["sizes"] is Regroup
    assert whole["busiest"] is whole["quietest"] is Top


JOINS = """
PROTOCOL FLOW (time UINT increasing, host STRING, peer STRING, size UINT);
QUERY sent: SELECT tb, host, COUNT(*) AS n, SUM(size) AS total
  FROM flows.FLOW GROUP BY time/10 AS tb, host;
QUERY got: SELECT tb, peer, MAX(size) AS n
  FROM flows.FLOW WHERE size > 9 GROUP BY time/10 AS tb, peer;
QUERY met: SELECT s.tb, s.host, s.n AS a, g.n AS b FROM sent s JOIN got g
  ON s.tb = g.tb AND s.host = g.peer;
QUERY lonely: SELECT s.tb, s.host, g.n FROM sent s LEFT JOIN got g
  ON s.tb = g.tb AND s.host = g.peer WHERE s.n > 1;
QUERY either: SELECT s.tb, s.host, g.tb AS other, g.peer, s.n + 1 AS more
  OUTER_JOIN FROM sent s, got g WHERE s.tb = g.tb AND s.host = g.peer;
QUERY only_got: SELECT s.n, g.tb, g.peer FROM sent s RIGHT JOIN got g
  ON s.tb = g.tb AND s.host = g.peer;
QUERY steady: SELECT a.tb, a.host, a.n, b.n AS before FROM sent a, sent b
  WHERE a.host = b.host AND a.tb = b.tb + 1;
QUERY returning: SELECT a.tb, a.host, b.n AS later FROM sent a LEFT JOIN sent b
  ON a.host = b.host AND a.tb + 2 = b.tb;
QUERY growing: SELECT a.tb, a.host FROM sent a, got b
  WHERE a.host = b.peer AND a.tb = b.tb AND a.total > b.n;
"""
PAIRED = {"met", "lonely", "either", "only_got", "steady", "returning", "growing"}


def join_case(folder: Path) -> tuple[Plan, dict[str, Interface]]:
    """Row groups of one epoch and a half, whose bounds are known."""
    rows = range(900)
    columns = {
        "time": [i // 9 for i in rows],
        "host": [None if i % 13 == 0 else "abcdefg"[i * i % 7] for i in rows],
        "peer": ["bcdexyz"[i * 3 % 7] for i in rows],
        "size": [i * 7 % 31 for i in rows],
    }
    pq.write_table(pa.table(columns), folder / "flows.parquet", row_group_size=135)
    interfaces = {"flows": parse_interface(f"flows=parquet:{folder / 'flows.parquet'}")}
    return compile_set(Source(JOINS, "set.gsql"), Bindings(interfaces)).optimized, interfaces


@pytest.mark.parametrize("memory", [1 << 30, 1 << 16, 1 << 15, 1 << 12])
@pytest.mark.parametrize("tasks", [1, 3])
def test_joins(memory: int, tasks: int, tmp_path: Path) -> None:
    plan, interfaces = join_case(tmp_path)
    tables = {"kernels": "numpy", "memory_bytes": memory}
    settings = config_with(**tables, share_tables="never", share_sample="always")
    _, written = check(plan, interfaces, settings, tasks, tmp_path)
    assert set(written.rest) == PAIRED
    everything = {"steady": 2 * groups(written, "sent"), "met": groups(written, "sent", "got")}
    if memory == 1 << 12:
        assert {query: written.rest[query] for query in everything} == everything
    if memory == 1 << 30:  # only neighbours in time are in another task
        assert not written.rest["met"]
        assert 0 < written.rest["steady"] < everything["steady"]


def groups(written: Written, *queries: str) -> int:
    return sum(len(written.rows[query]) for query in queries)


SHARED = """
PROTOCOL FLOW (time UINT increasing, host STRING, port UINT, size UINT);
QUERY first: SELECT tb, host, port, COUNT(*) AS n, SUM(size) AS size
  FROM flows.FLOW GROUP BY time/10 AS tb, host, port;
QUERY turned: SELECT minute, p, h, MAX(size) AS largest, COUNT(*) AS n
  FROM flows.FLOW GROUP BY port AS p, time/10 AS minute, host AS h;
QUERY alarm: SELECT tb, host, port, MIN(size) AS size
  FROM flows.FLOW GROUP BY time/10 AS tb, host, port HAVING SUM(size) > 40 AND AVG(size) < 30;
QUERY narrow: SELECT tb, host, port, SUM(size) AS total
  FROM flows.FLOW WHERE size > 3 GROUP BY time/10 AS tb, host, port;
QUERY short: SELECT tb, host, port, SUM(size) AS total
  FROM flows.FLOW GROUP BY time/5 AS tb, host, port;
QUERY most: SELECT tb, host, port, MAX(size) AS top FROM flows.FLOW
  GROUP BY time/10 AS tb, host, port ORDER BY top DESC, host, port LIMIT 2;
QUERY above: SELECT tb, h, SUM(largest) AS all_of_them FROM again GROUP BY tb, h;
DEFINE { query_name 'again'; visibility 'internal'; }
SELECT tb, host AS h, port, MAX(size) AS largest
  FROM flows.FLOW GROUP BY time/10 AS tb, host, port;
"""


@pytest.mark.parametrize("memory", [1 << 30, 1 << 12])
@pytest.mark.parametrize("tasks", [1, 3])
def test_queries_with_the_same_keys_have_one_table(memory: int, tasks: int, tmp_path: Path) -> None:
    rows = range(700)
    columns = {
        "time": [i // 9 for i in rows],
        "host": [None if i % 13 == 0 else "abc"[i * i % 3] for i in rows],
        "port": [i * 5 % 7 for i in rows],
        "size": [None if i % 17 == 0 else i * 7 % 31 for i in rows],
    }
    pq.write_table(pa.table(columns), tmp_path / "flows.parquet", row_group_size=135)
    interfaces = {"flows": parse_interface(f"flows=parquet:{tmp_path / 'flows.parquet'}")}
    made = compile_set(Source(SHARED, "set.gsql"), Bindings(interfaces))
    tables = {"kernels": "numpy", "memory_bytes": memory}
    settings = config_with(**tables, share_tables="never", share_sample="always")
    job, written = check(made.optimized, interfaces, settings, tasks, tmp_path)
    assert len(written.rows) == 7
    (read,) = job.reads
    assert read.low is not None
    slots = {
        q.name: [s.kind.name for s in q.slots] for q in read.low.queries if hasattr(q, "slots")
    }
    assert len(slots) == 3  # of `first` and all with its keys, of `narrow`, of `short`
    assert sorted(slots["first_low"]) == ["count", "count_of", "max_int", "min_int", "sum_int"]
