"""The prefilter (dissertation 3.4.2): a shared predicate is evaluated once for each tuple, whether
one query has it or fifty.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.execute.task import LowTask, Reached, TaskCounters
from terascope.physical.job import Job
from terascope.physical.low_plan import LowPlan
from terascope.physical.planner import plan_job
from terascope.pipeline import Bindings, compile_set
from tests.execute.low_engine import low_rows
from tests.settings import config_with

ROWS = 700
FLOW = "PROTOCOL FLOW (time UINT increasing, port UINT, size UINT, name STRING);\n"
SHARED = "port = 80 AND size > 40"


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prefilter") / "flows.csv"
    lines = [f"{i // 10},{(80, 443, 22)[i % 3]},{i % 97},{'ab'[i % 2]}" for i in range(ROWS)]
    path.write_text("time,port,size,name\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def job_of(text: str, flows: Path, compiled: bool = False) -> Job:
    interfaces = {"flows": parse_interface(f"flows=csv:{flows}")}
    made = compile_set(Source(FLOW + text, "set.gsql"), Bindings(interfaces))
    apart = {"share_tables": "never", "share_sample": "always"}
    settings = config_with(kernels="numba" if compiled else "numpy", **apart)
    return plan_job(made.optimized, interfaces, 1 << 20, settings)


def queries(number: int, condition: str = SHARED) -> str:
    return "".join(
        f"QUERY q{i}: SELECT tb, name, COUNT(*) AS n FROM flows.FLOW WHERE {condition}"
        f" AND size != {i} GROUP BY time/10 AS tb, name;\n"
        for i in range(number)
    )


def counters(job: Job, folder: Path) -> tuple[LowPlan, TaskCounters]:
    (read,) = job.reads
    assert read.low is not None
    _, counted = low_rows(job, 1, folder)
    return read.low, counted[0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("number", [1, 50])
def test_a_shared_predicate_is_evaluated_once_for_each_tuple(
    number: int, compiled: bool, flows: Path, tmp_path: Path
) -> None:
    low, counted = counters(job_of(queries(number), flows, compiled), tmp_path)
    assert len(low.queries) == number
    # port = 80 and size > 40 once, whoever asks for them, and the own condition of each query.
    assert len(low.predicates) == 2 + number
    assert counted.evaluated.tolist() == [ROWS] * (2 + number)


def test_signatures_tell_which_predicates_a_query_has(flows: Path) -> None:
    low = job_of(queries(3), flows).reads[0].low
    assert low is not None
    shared = set.intersection(*(set(q.signature) for q in low.queries))
    assert len(shared) == 2
    for query in low.queries:
        assert len(set(query.signature) - shared) == 1
        assert not query.rest


def test_more_predicates_than_a_word_has_bits(flows: Path, tmp_path: Path) -> None:
    low, counted = counters(job_of(queries(70), flows), tmp_path)
    assert len(low.predicates) == 72
    expected = [
        sum(i % 3 == 0 and i % 97 > 40 and i % 97 != k for i in range(ROWS)) for k in range(70)
    ]
    assert counted.passed.tolist() == expected


def test_what_may_overflow_is_asked_only_of_tuples_that_are_left(
    flows: Path, tmp_path: Path
) -> None:
    text = (
        "QUERY q: SELECT tb, COUNT(*) AS n FROM flows.FLOW"
        " WHERE size = 1 AND size * 9000000000000000000 > 5 GROUP BY time/10 AS tb;"
    )
    job = job_of(text, flows)
    low = job.reads[0].low
    assert low is not None
    assert [len(q.rest) for q in low.queries] == [1]
    rows, _ = low_rows(job, 1, tmp_path)
    assert sum(row[1] for row in rows["q_low"]) == sum(i % 97 == 1 for i in range(ROWS))


def test_the_prefilter_remembers_how_far_time_moved(flows: Path, tmp_path: Path) -> None:
    """Of tuples it drops, too (4.4.2)."""
    text = queries(1, "size = 200")
    (read,) = job_of(text, flows).reads
    assert read.low is not None
    task = LowTask(read.low, {})
    ready = list(task.run(read.splits, read.clocks))
    assert not [one for one in ready if not isinstance(one, Reached)]
    assert task.reports["flows"].horizon["time"] == (ROWS - 1) // 10
