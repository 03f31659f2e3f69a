"""Tasks that end where epochs end: each tuple is taken once, no epoch is in two tasks, and the cost
of reading splits twice is weighed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from terascope.connectors.base import Edge, Split, SplitRange
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.physical.planner import plan_job
from terascope.physical.splits import bundles
from terascope.physical.time_cuts import cut_at_edges
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from tests.agreement import assert_same_answers, delivered, local_answers
from tests.reference.connector_sources import ConnectorSources

STEP = 60


def split(number: int, low: int, high: int) -> Split:
    return Split("parquet", "flows", "f.parquet", 0, number, number + 1, (), (("time", low, high),))


def part_of(split: Split, batch: pa.RecordBatch) -> pa.RecordBatch:
    return split.taken(batch) if isinstance(split, SplitRange) else batch


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 900)), min_size=1, max_size=20),
    st.integers(2, 8),
    st.integers(1, 200),
)
def test_every_tuple_is_taken_once(
    ranges: list[tuple[int, int]], tasks: int, aggregations: int
) -> None:
    splits = [split(n, low, low + size) for n, (low, size) in enumerate(sorted(ranges))]
    made = cut_at_edges(bundles(splits, tasks), Edge("time", STEP), aggregations)
    for number, (low, size) in enumerate(sorted(ranges)):
        # Times beyond the bounds, too: a tuple is never lost, whatever a file says of itself.
        times = pa.RecordBatch.from_pydict({"time": [None, *range(low - 5, low + size + 6)]})
        parts = [one for task in made for one in task if one.start == number]
        taken = [t for one in parts for t in part_of(one, times)[0]]
        assert sorted(map(str, taken)) == sorted(map(str, times[0]))
        assert sum(not isinstance(one, SplitRange) or one.is_first for one in parts) == 1


@given(st.integers(2, 12), st.integers(1, 400))
def test_no_epoch_is_in_two_tasks(tasks: int, length: int) -> None:
    splits = [split(n, n * length, (n + 1) * length) for n in range(4000 // length + 1)]
    before = bundles(splits, tasks)
    made = cut_at_edges(before, Edge("time", STEP), 1000)
    if made == before:
        return
    found: dict[int, int] = {}
    for number, task in enumerate(made):
        for one in task:
            low, high = one.bounds[0][1:]
            for epoch in range(low // STEP, high // STEP + 1):
                assert found.setdefault(epoch, number) == number


def test_costs_decide() -> None:
    long = [split(n, n * 100, n * 100 + 130) for n in range(40)]
    parts = bundles(long, 4)
    assert cut_at_edges(parts, Edge("time", STEP), 50) != parts
    assert cut_at_edges(parts, Edge("time", STEP), 0) == parts
    few = bundles([split(n, n * 1000, n * 1000 + 1100) for n in range(4)], 4)
    assert cut_at_edges(few, Edge("time", STEP), 1) == few  # most would be read twice
    assert cut_at_edges(parts, Edge("time", 100_000), 50) == parts  # there is one epoch
    assert cut_at_edges(parts, None, 50) == parts
    unknown = [*parts[:-1], (Split("parquet", "flows", "f.parquet", 0, 99, 100),)]
    assert cut_at_edges(unknown, Edge("time", STEP), 50) == unknown


QUERIES = """
PROTOCOL FLOW (time UINT banded_increasing(20) clock(s), srcIP UINT, port UINT, bytes UINT);
QUERY sources: SELECT tb, srcIP, COUNT(*) AS cnt, SUM(bytes) AS total
  FROM flows.FLOW GROUP BY time/60 AS tb, srcIP;
QUERY ports: SELECT tb, port, COUNT(*) AS cnt, FIRST(bytes) AS earliest, LAST(bytes) AS latest
  FROM flows.FLOW GROUP BY time/60 AS tb, port;
QUERY pairs: SELECT tb, srcIP, port, COUNT(*) AS cnt
  FROM flows.FLOW GROUP BY time/60 AS tb, srcIP, port;
QUERY steady: SELECT a.tb, a.srcIP, a.cnt, b.cnt AS earlier
  FROM sources a JOIN sources b ON a.srcIP = b.srcIP AND a.tb = b.tb + 1;
QUERY large: SELECT time, srcIP, bytes FROM flows.FLOW WHERE bytes > 1400;
"""


@pytest.mark.parametrize("group", [70, 1000])
def test_row_groups_that_end_anywhere(tmp_path: Path, group: int) -> None:
    rng = np.random.default_rng(group)
    count = 20_000
    columns = {
        # In some disorder, so that the reader cannot end its splits at an edge.
        "time": (np.sort(rng.integers(600, 1500, count)) + rng.integers(0, 15, count)).astype("u4"),
        "srcIP": rng.integers(0, 50, count).astype(np.uint32),
        "port": rng.integers(0, 30, count).astype(np.uint32),
        "bytes": rng.integers(40, 1500, count).astype(np.uint32),
    }
    pq.write_table(pa.table(columns), tmp_path / "f.parquet", row_group_size=group)
    interfaces = {"flows": Interface("flows", "parquet", str(tmp_path / "f.parquet"))}
    plan = compile_set(Source(QUERIES), Bindings(interfaces)).optimized
    (read,) = plan_job(plan, interfaces, 1).reads
    parts = bundles(read.splits, 4, read.edge)
    is_cut = cut_at_edges(parts, read.edge, len(read.aggregations)) != parts
    assert is_cut
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    for tasks in (1, 4, 7):
        found = local_answers(plan, interfaces, tasks, 1, folder=tmp_path / f"parts{tasks}")
        assert_same_answers(expected, found)
