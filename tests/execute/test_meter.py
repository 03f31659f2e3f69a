"""What operators are measured to have done agrees with the rows and with each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from terascope.config import load_config
from terascope.execute.low_level import EngineName
from terascope.execute.reports import Meter
from terascope.physical.operators import Measure, measures_from, summed
from terascope.session import Session
from tests.cli.calls import call, small_trace

TEXT = """
QUERY flows: SELECT tb, srcIP, COUNT(*) AS cnt FROM TCP GROUP BY time/60 AS tb, srcIP;
QUERY many: SELECT tb, srcIP, cnt FROM flows WHERE cnt > 2;
QUERY web: SELECT time, srcIP FROM TCP WHERE destPort = 80;
QUERY sliding: SELECT wend, srcIP, COUNT(*) AS c
FROM TCP [RANGE 60 SLIDE 10 ON time] GROUP BY srcIP;
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Measure], dict[str, int]]:
    capture = small_trace(tmp_path_factory.mktemp("capture") / "a.pcap")
    with Session(engine="local") as session:
        session.source(f"eth0=pcap:{capture}")
        results = session.query(TEXT).run()
        rows = {name: len(result) for name, result in results.items()}
        return dict(results.measures), rows | {"": results.total.tuples}


def test_every_tuple_is_read_once(measured: tuple[dict[str, Measure], dict[str, int]]) -> None:
    figures, rows = measured
    assert figures["read packets"].taken == figures["prefilter packets"].taken == rows[""]


def test_rows_that_are_emitted(measured: tuple[dict[str, Measure], dict[str, int]]) -> None:
    figures, rows = measured
    for query in ("flows", "many", "web", "sliding"):
        assert figures[f"write {query}"].given == rows[query] > 0
        assert figures[f"pipeline {query}"].given == rows[query]


def test_operators_hand_on_what_others_take(
    measured: tuple[dict[str, Measure], dict[str, int]],
) -> None:
    figures, rows = measured
    assert figures["group flows_low"].probes == figures["group flows_low"].taken
    assert figures["pipeline many"].taken == rows["flows"] > rows["many"]
    assert figures["select web_low"].given == rows["web"]
    exchange, merge = figures["exchange sliding_low"], figures["merge sliding_low"]
    assert exchange.exchanged_bytes > 0
    assert merge.taken == exchange.given >= merge.given > 0
    assert all(one.seconds >= 0 for one in figures.values())


RELATIONS = """
QUERY flows: SELECT tb, srcIP, COUNT(*) AS cnt FROM TCP GROUP BY time/10 AS tb, srcIP;
QUERY pairs: SELECT a.tb, a.srcIP, a.cnt, b.cnt AS before
FROM flows a JOIN flows b ON a.srcIP = b.srcIP AND a.tb = b.tb + 1;
QUERY most: SELECT tb, MAX(cnt) AS most, COUNT(*) AS sources FROM pairs GROUP BY tb;
"""


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_relations_are_measured_by_either_engine(
    engine: EngineName, tmp_path: Path, spark: SparkSession
) -> None:
    capture = small_trace(tmp_path / "a.pcap")
    with Session(spark, config=load_config(kernels="numpy")) as session:
        session.source(f"eth0=pcap:{capture}")
        results = session.query(RELATIONS).run(engine=engine)
        figures = results.measures
        rows = {name: len(result.to_arrow()) for name, result in results.items()}
        assert results.measures.keys() == figures.keys()
        shown = results.explain()
    assert rows["most"] > 0
    pairs, most = figures["relation pairs"], figures["relation most"]
    assert (pairs.taken, pairs.given) == (2 * rows["flows"], rows["pairs"])
    assert (most.taken, most.given) == (rows["pairs"], rows["most"])
    assert pairs.seconds > 0
    assert figures["write most"].given == rows["most"]
    (line,) = [one for one in shown.splitlines() if one.startswith("relation most")]
    assert line.split()[2] == ("driver" if engine == "local" else "merge|spark")


def test_figures_add_up_and_travel_as_json() -> None:
    meter = Meter()
    for batch in meter.over("read x", iter([[1, 2], [3]])):
        meter.add("read x", given=len(batch))
        meter.add("group y", taken=len(batch), probes=2 * len(batch))
    told = json.loads(json.dumps(meter.report("x")))
    once = measures_from(told["measures"])
    assert once["read x"].given == 3
    assert once["group y"] == Measure(taken=3, probes=6)
    twice = summed([once, once])
    assert twice["group y"] == Measure(taken=6, probes=12)


def test_explain_analyze(tmp_path: Path) -> None:
    (tmp_path / "set.gsql").write_text(TEXT, encoding="utf-8")
    capture = small_trace(tmp_path / "a.pcap")
    arguments = [str(tmp_path / "set.gsql"), "-s", f"eth0=pcap:{capture}"]
    told = json.loads(call("explain", *arguments, "--analyze", "--format", "json").out)
    operators = {one["name"]: one["measured"] for one in told["operators"]}
    assert operators["read packets"]["in"] == operators["prefilter packets"]["in"]
    assert operators["write web"]["out"] == operators["select web_low"]["out"]
    shown = call("run", *arguments, "--engine", "local", "--explain", "--quiet")
    (line,) = [one for one in shown.err.splitlines() if one.startswith("write web ")]
    assert f"out {operators['write web']['out']}" in line
