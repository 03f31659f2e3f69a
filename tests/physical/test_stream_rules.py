"""The rules that plan a stream: every query is placed, and a plan that does not fit is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from terascope import Session
from terascope.physical.stream.plan import InSpark, StreamPlan, WrittenByTasks
from terascope.physical.stream.rules import STREAM_RULES, SetTexts, check_stream_plan, plan_stream
from terascope.plan.rel import PlanMistake
from terascope.streams import planned_stream
from tests.cli.calls import small_trace

SET = """
QUERY here: SELECT tb, srcIP, count(*) AS n FROM eth0.TCP GROUP BY time/3 AS tb, srcIP;
QUERY there: SELECT tb, srcIP, count(*) AS n FROM eth1.TCP GROUP BY time/3 AS tb, srcIP;
QUERY both: MERGE here.tb : there.tb FROM here, there;
QUERY again: SELECT a.tb, a.srcIP, a.n, b.n FROM here a, here b
  WHERE a.srcIP = b.srcIP AND a.tb = b.tb + 1;
QUERY sliding: SELECT wend, count(*) AS n FROM eth0.TCP [RANGE 9 SLIDE 3];
QUERY syns: SELECT time, srcIP FROM eth0.TCP WHERE SYN;
QUERY middle: SELECT median(len) AS m FROM eth0.TCP [RANGE 9 SLIDE 3];
"""
PLACES = {
    "here": ("WrittenByTasks", "close"),
    "there": ("WrittenByTasks", "close"),
    "both": ("RowPipelines", "close"),
    "again": ("StoredJoin", "close"),
    "sliding": ("StoredWindows", "close"),
    "syns": ("WrittenByTasks", "task"),
    "middle": ("StoredWindows", "close"),
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> StreamPlan:
    trace: Path = small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap", 100)
    session = Session()
    session.source(f"eth0=pcap:{trace}")
    session.source(f"eth1=pcap:{trace}")
    return planned_stream(session.query(SET).compiled)


def test_every_query_has_a_plan_and_a_place(plan: StreamPlan) -> None:
    assert {o.name: (type(o.plan).__name__, o.placement) for o in plan.outputs} == PLACES


def test_queries_over_stored_rows_are_computed_by_spark_when_they_are_large(
    plan: StreamPlan,
) -> None:
    large = {o.name: o.when_large for o in plan.outputs}
    assert {name for name, place in large.items() if place == "spark"} == {
        name for name, (how, _) in PLACES.items() if how != "WrittenByTasks"
    }


def test_rules_are_functions_of_the_job(plan: StreamPlan) -> None:
    texts = SetTexts({o.name: o.text for o in plan.outputs}, {o.name: o.own for o in plan.outputs})
    again = plan_stream(plan.job, texts, plan.slicing)
    assert (again.low, again.outputs, again.running) == (plan.low, plan.outputs, plan.running)
    assert STREAM_RULES[-1] is check_stream_plan


def test_a_plan_that_reads_what_is_not_stored_is_refused(plan: StreamPlan) -> None:
    read = next(o.windows for o in plan.outputs if o.windows is not None).stream
    without = replace(plan, low=tuple(s for s in plan.low if s.name != read))
    with pytest.raises(PlanMistake, match="sliding reads"):
        check_stream_plan(without, SetTexts({}))


def test_a_query_is_written_by_tasks_or_released(plan: StreamPlan) -> None:
    first = plan.outputs[0]
    assert isinstance(first.plan, WrittenByTasks)
    wrong = replace(plan, outputs=(replace(first, plan=InSpark()),))
    with pytest.raises(PlanMistake, match="here"):
        check_stream_plan(wrong, SetTexts({}))
