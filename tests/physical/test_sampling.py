"""Samples of sources: exact when everything was read, unbiased and bounded when not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.queries78 import PROTOCOL
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.physical.low_plan import LowAggregate
from terascope.physical.statistics.sampled_splits import reading
from terascope.physical.statistics.sampling import SampleLimits, SourceSample, sample_source
from terascope.pipeline import Bindings, compile_set
from terascope.plan.show import show_expr
from terascope.traffic.flow_records import generate_flows
from terascope.traffic.profile import FlowProfile
from tests.cli.calls import small_trace
from tests.settings import config_with

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
RECORDS = 60_000
QUERIES = """
QUERY pairs: SELECT tb, srcIP, dstIP, COUNT(*) AS n FROM flows.FLOW
GROUP BY time/300 AS tb, srcIP, dstIP;
QUERY web: SELECT tb, srcAS, dstAS, SUM(bytes) AS total FROM flows.FLOW
WHERE dstPort = 80 AND tos + 1 > 1 GROUP BY time/60 AS tb, srcAS, dstAS;
QUERY nets: SELECT srcIP & 0xFFFF0000 AS net, dstPort, COUNT(*) AS n FROM flows.FLOW
GROUP BY time/900 AS tb, srcIP & 0xFFFF0000, dstPort;
"""
EVERYTHING = SampleLimits(tuples=1 << 20, seconds=60.0)
INNER = "tb > (SELECT min({e}) FROM t) AND tb < (SELECT max({e}) FROM t)"
"""The epochs that a source begins and ends with are left out."""


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flows") / "flows.parquet"
    generate_flows(FlowProfile(records=RECORDS, seed=5), path)
    return path


def sampled(
    source: str, text: str, limits: SampleLimits, split_bytes: int = 100_000
) -> tuple[SourceSample, dict[str, LowAggregate]]:
    interface = parse_interface(source)
    bound = Bindings(
        interfaces={interface.name: interface}, config=config_with(split_bytes=split_bytes)
    )
    (read,) = compile_set(Source(text, "test"), bound).apart().job().reads
    assert read.low is not None
    queries = [query for query in read.low.queries if isinstance(query, LowAggregate)]
    found = {query.name.removesuffix("_low"): query for query in queries}
    return sample_source(read.low, read.splits, limits), found


def counted(table: Path | str, keys: str, epoch: str, where: str = "TRUE") -> tuple[float, float]:
    """Tuples and groups of an inner epoch, by DuckDB."""
    session = duckdb.connect()
    session.execute(f"CREATE TABLE t AS SELECT * FROM '{table}'")
    inner = INNER.format(e=epoch)
    (epochs,) = session.execute(
        f"SELECT count(DISTINCT tb) FROM (SELECT {epoch} AS tb FROM t) WHERE {inner}"
    ).fetchall()[0]
    n, g = session.execute(
        f"SELECT sum(n), count(*) FROM (SELECT {epoch} AS tb, {keys}, count(*) AS n FROM t"
        f" WHERE {where} GROUP BY ALL) WHERE {inner}"
    ).fetchall()[0]
    return n / epochs, g / epochs


def test_everything_read_is_exact(flows: Path) -> None:
    sample, queries = sampled(f"flows=parquet:{flows}", PROTOCOL + QUERIES, EVERYTHING)
    assert sample.is_whole
    assert sample.tuples_total == RECORDS
    web = "dstPort = 80 AND tos + 1 > 1"
    cases = [
        ("pairs", {"srcIP", "dstIP"}, "srcIP, dstIP", "time // 300", "TRUE"),
        ("pairs", {"srcIP", "srcAS", "dstPort"}, "srcIP, srcAS, dstPort", "time // 300", "TRUE"),
        ("web", {"srcAS", "dstAS"}, "srcAS, dstAS", "time // 60", web),
        (
            "nets",
            {"srcIP & 4294901760", "dstPort"},
            "srcIP // 65536, dstPort",
            "time // 900",
            "TRUE",
        ),
    ]
    for name, attributes, keys, epoch, where in cases:
        known = sample.statistics(queries[name])
        tuples, groups = counted(flows, keys, epoch, where)
        assert known.is_whole
        assert known.tuples == pytest.approx(tuples)
        assert known.groups(frozenset(attributes)) == pytest.approx(groups)
        assert known.bounds(frozenset(attributes)) == pytest.approx((groups, groups))


def test_slices_shorter_than_an_epoch_are_counted(flows: Path) -> None:
    sample, queries = sampled(f"flows=parquet:{flows}", PROTOCOL + QUERIES, EVERYTHING)
    known = sample.statistics(queries["pairs"])
    for seconds in (60, 100):
        tuples, groups = counted(flows, "srcIP, dstIP", f"time // {seconds}")
        found = known.groups(frozenset({"srcIP", "dstIP"}), tuples)
        assert found == pytest.approx(groups, rel=0.03)


def test_selectivities_and_rates(flows: Path) -> None:
    sample, queries = sampled(f"flows=parquet:{flows}", PROTOCOL + QUERIES, EVERYTHING)
    session = duckdb.connect()
    (seconds, web, positive) = session.execute(
        f"SELECT max(time) - min(time), count(*) FILTER (dstPort = 80 AND tos > 0),"
        f" count(*) FILTER (dstPort = 80) FROM '{flows}'"
    ).fetchall()[0]
    assert sample.seconds == seconds
    assert sample.rate == pytest.approx(RECORDS / seconds)
    place = sample.plan.queries.index(queries["web"])
    assert sample.selectivity(place) == pytest.approx(web / RECORDS)
    assert sample.statistics(queries["web"]).rate == pytest.approx(web / seconds)
    shares = [sample.predicate_selectivity(bit) for bit in range(len(sample.plan.predicates))]
    assert pytest.approx(positive / RECORDS) in shares


def test_queries_can_be_asked_for_together(flows: Path) -> None:
    sample, queries = sampled(f"flows=parquet:{flows}", PROTOCOL + QUERIES, EVERYTHING)
    keys = frozenset({"srcAS", "dstAS"})
    both = sample.statistics(queries["pairs"], queries["web"])
    tuples, groups = counted(flows, "srcAS, dstAS", "time // 300")
    assert both.tuples == pytest.approx(tuples)
    assert both.groups(keys) == pytest.approx(groups)


@pytest.mark.parametrize("tuples", [2000, 10_000])
def test_a_part_is_within_the_bounds(flows: Path, tuples: int) -> None:
    limits = SampleLimits(tuples=tuples, seconds=60.0)
    sample, queries = sampled(f"flows=parquet:{flows}", PROTOCOL + QUERIES, limits)
    known = sample.statistics(queries["pairs"])
    assert known.sampled <= tuples
    assert not known.is_whole
    for names in ("srcIP, dstIP", "srcIP", "srcAS, dstAS", "dstPort, srcIP, dstIP"):
        count, groups = counted(flows, names, "time // 300")
        attributes = frozenset(names.split(", "))
        low, high = known.bounds(attributes)
        assert low <= groups * 1.1  # epochs differ
        assert groups * 0.9 <= high
        assert known.tuples == pytest.approx(count, rel=0.15)
        assert known.groups(attributes) == pytest.approx(groups, rel=0.5 if tuples < 3000 else 0.25)


@pytest.mark.parametrize("stripes", [10, 20])
def test_a_source_too_long_to_read_is_represented_by_whole_epochs(
    flows: Path, tmp_path: Path, stripes: int
) -> None:
    long = tmp_path / "long.parquet"
    pq.write_table(pq.read_table(flows), long, row_group_size=1000)
    limits = SampleLimits(tuples=1 << 20, seconds=60.0, stripes=stripes)
    sample, queries = sampled(f"flows=parquet:{long}", PROTOCOL + QUERIES, limits, 1000)
    assert sample.splits_read < sample.splits_total / 2
    for name, epoch in (("pairs", "time // 300"), ("web", "time // 60")):
        known = sample.statistics(queries[name])
        assert known.is_whole
        where = "dstPort = 80 AND tos > 0" if name == "web" else "TRUE"
        keys = "srcIP, dstIP" if name == "pairs" else "srcAS, dstAS"
        tuples, groups = counted(flows, keys, epoch, where)
        assert known.tuples == pytest.approx(tuples, rel=0.3)
        assert known.groups(frozenset(keys.split(", "))) == pytest.approx(groups, rel=0.3)


def test_an_epoch_too_long_to_read_is_represented_by_parts_from_all_over_it(
    flows: Path, tmp_path: Path
) -> None:
    long = tmp_path / "long.parquet"
    pq.write_table(pq.read_table(flows), long, row_group_size=500)
    text = PROTOCOL + (
        "QUERY hour: SELECT srcIP, dstPort, COUNT(*) AS n FROM flows.FLOW"
        " GROUP BY time/1800 AS tb, srcIP, dstPort;"
    )
    limits = SampleLimits(tuples=1 << 20, seconds=60.0, stripes=12)
    sample, queries = sampled(f"flows=parquet:{long}", text, limits, 500)
    assert sample.splits_read == 12 < sample.splits_total / 4
    known = sample.statistics(queries["hour"])
    session = duckdb.connect()
    (tuples, groups), *_ = session.execute(
        "SELECT max(n), max(g) FROM (SELECT tb, sum(n) AS n, count(*) AS g FROM (SELECT"
        f" time // 1800 AS tb, srcIP, dstPort, count(*) AS n FROM '{flows}' GROUP BY ALL)"
        " GROUP BY tb)"
    ).fetchall()
    assert not known.is_whole
    assert known.sampled < tuples / 4
    assert known.tuples == pytest.approx(tuples, rel=0.5)
    assert known.groups(frozenset({"srcIP", "dstPort"})) == pytest.approx(groups, rel=0.5)


def test_texts_nulls_and_many_predicates(tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    random = np.random.default_rng(3)
    names = ["", "a", "b", "longer than eight letters", "longer than eight bytes"]
    rows = [
        f"{t // 20},{names[n]},{x if x else ''}"
        for t, (n, x) in enumerate(
            zip(random.integers(0, 5, 4000), random.integers(0, 9, 4000), strict=True)
        )
    ]
    table.write_text("time,name,x\n" + "\n".join(rows) + "\n")
    text = (
        "PROTOCOL LOG (time UINT increasing clock(s), name STRING, x INT);\n"
        + "\n".join(
            f"QUERY q{i}: SELECT tb, name, x, COUNT(*) AS n FROM log.LOG"
            f" WHERE x < {i} AND time != {i}"
            " GROUP BY time/50 AS tb, name, x;"
            for i in range(1, 41)
        )
        + "\nQUERY some: SELECT time, x FROM log.LOG WHERE x = 4;"
    )
    sample, queries = sampled(f"log=csv:{table}", text, EVERYTHING)
    assert len(sample.plan.predicates) > 64
    view = f"read_csv('{table}', nullstr='', types={{'name': 'VARCHAR'}})"
    for i in (2, 7, 40):
        session = duckdb.connect()
        session.execute(f"CREATE TABLE t AS FROM {view}")
        (groups,), *_ = session.execute(
            f"SELECT count(*) / 2 FROM (SELECT DISTINCT time // 50, name, x FROM t WHERE x < {i}"
            f" AND time != {i} AND time // 50 IN (1, 2))"
        ).fetchall()
        known = sample.statistics(queries[f"q{i}"])
        assert known.epochs == 2
        assert known.groups(frozenset({"name", "x"})) == pytest.approx(groups)
    place = next(i for i, q in enumerate(sample.plan.queries) if not isinstance(q, LowAggregate))
    (share,), *_ = session.execute("SELECT avg((x IS NOT DISTINCT FROM 4)::INT) FROM t").fetchall()
    assert sample.selectivity(place) == pytest.approx(share)


def test_selections_alone_have_no_groups(flows: Path) -> None:
    text = PROTOCOL + "QUERY web: SELECT time, srcIP FROM flows.FLOW WHERE dstPort = 80;"
    sample, queries = sampled(f"flows=parquet:{flows}", text, EVERYTHING)
    assert not queries
    assert 0.0 < sample.selectivity(0) < 1.0


def test_files_without_bounds(flows: Path, tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    duckdb.execute(f"COPY (FROM '{flows}' LIMIT 20000) TO '{table}' (HEADER)")
    text = PROTOCOL + QUERIES
    sample, queries = sampled(f"flows=csv:{table}", text, EVERYTHING)
    tuples, groups = counted(table, "srcIP, dstIP", "time // 300")
    known = sample.statistics(queries["pairs"])
    assert known.tuples == pytest.approx(tuples)
    assert known.groups(frozenset({"srcIP", "dstIP"})) == pytest.approx(groups)


@pytest.mark.parametrize("limits", [EVERYTHING, SampleLimits(tuples=10_000, seconds=60.0)])
def test_groups_without_epochs_are_those_of_all_tuples(flows: Path, limits: SampleLimits) -> None:
    text = PROTOCOL + QUERIES
    interface = parse_interface(f"flows=parquet:{flows}")
    bound = Bindings(interfaces={"flows": interface})
    (read,) = compile_set(Source(text, "test"), bound).apart().job().reads
    assert read.low is not None
    query = read.low.queries[0]
    assert isinstance(query, LowAggregate)
    forever = replace(query, keys=query.keys[1:], epoch=None)
    sample = sample_source(replace(read.low, queries=(forever,)), read.splits, limits)
    (groups,), *_ = duckdb.execute(
        f"SELECT count(*) FROM (SELECT DISTINCT srcIP, dstIP FROM '{flows}')"
    ).fetchall()
    known = sample.statistics(forever)
    assert known.tuples == RECORDS
    near = 1e-9 if limits is EVERYTHING else 0.15
    assert known.groups(frozenset({"srcIP", "dstIP"})) == pytest.approx(groups, rel=near)


def test_an_empty_source_has_no_groups(tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    table.write_text("time,srcIP,dstIP,dstPort,srcAS,dstAS,tos,bytes\n")
    text = "PROTOCOL FLOW (time UINT increasing clock(s), srcIP UINT);\n" + (
        "QUERY one: SELECT tb, srcIP, COUNT(*) AS n FROM flows.FLOW GROUP BY time/60 AS tb, srcIP;"
    )
    sample, queries = sampled(f"flows=csv:{table}", text, EVERYTHING)
    assert sample.rate is None
    assert sample.statistics(queries["one"]).groups(frozenset({"srcIP"})) == 0.0


def test_packets_of_two_interfaces(tmp_path: Path) -> None:
    for name in ("a", "b"):
        small_trace(tmp_path / f"{name}.pcap")
    interfaces = {n: parse_interface(f"{n}=pcap:{tmp_path / f'{n}.pcap'}") for n in ("a", "b")}
    text = "SELECT tb, srcIP, COUNT(*) AS n FROM [both].TCP GROUP BY time/5 AS tb, srcIP;"
    bound = Bindings(
        interfaces=interfaces, sets={"both": ("a", "b")}, config=config_with(split_bytes=20_000)
    )
    (read,) = compile_set(Source(text, "test"), bound).apart().job().reads
    assert read.low is not None
    sample = sample_source(read.low, read.splits, EVERYTHING)
    assert sample.is_whole
    alone, _ = sampled(
        f"a=pcap:{tmp_path / 'a.pcap'}",
        "SELECT tb, srcIP, COUNT(*) AS n FROM a.TCP GROUP BY time/5 AS tb, srcIP;",
        EVERYTHING,
        20_000,
    )
    keys = frozenset({"srcIP"})
    both, one = (
        s.statistics(next(q for q in s.plan.queries if isinstance(q, LowAggregate)))
        for s in (sample, alone)
    )
    assert both.tuples == 2 * one.tuples
    assert both.groups(keys) == one.groups(keys) > 1


# ---- what is read --------------------------------------------------------------------------------


@given(
    st.integers(1, 500),
    st.lists(st.none() | st.floats(0.01, 600), max_size=4),
    st.integers(1, 64),
)
def test_runs_are_neighbours_and_long_enough(
    count: int, per_epoch: list[float | None], most: int
) -> None:
    runs = reading(count, per_epoch, most)
    places = [place for run in runs for place in run]
    assert len(set(places)) == len(places)
    assert set(places) <= set(range(count))
    assert all(run == tuple(range(run[0], run[0] + len(run))) for run in runs)
    known = [n for n in per_epoch if n is not None]
    readable = [n for n in known if math.ceil(n) + 1 <= most]
    if readable and count > most:
        assert max(map(len, runs)) >= min(count, math.ceil(max(readable)) + 1)
        assert len(places) <= 2 * most
    assert len(runs[0]) <= most


# ---- real traffic --------------------------------------------------------------------------------


def test_a_real_capture_is_within_the_bounds() -> None:
    capture = DATA / "attack" / "westermo_right.pcap"
    if not capture.exists():
        pytest.skip(f"no capture at {capture.relative_to(DATA.parent)}")
    text = """
    QUERY pairs: SELECT tb, srcIP, destIP, COUNT(*) AS n FROM eth.IPV4
    GROUP BY time/60 AS tb, srcIP, destIP;
    QUERY flows: SELECT tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS n FROM eth.TCP
    GROUP BY time/60 AS tb, srcIP, destIP, srcPort, destPort;
    """
    exact, queries = sampled(f"eth=pcap:{capture}", text, EVERYTHING, 1 << 20)
    assert exact.is_whole
    limits = SampleLimits(tuples=2000, seconds=60.0)
    part, _ = sampled(f"eth=pcap:{capture}", text, limits, 1 << 20)
    for query in queries.values():
        # The same epochs: those with the most tuples are not those of every other sample.
        known, truth = part.statistics(query), exact.statistics(query)
        keys = frozenset(show_expr(expr) for expr in query.plain_keys)
        low, high = known.bounds(keys)
        assert low * 0.8 <= truth.groups(keys) <= high * 1.2
        assert known.groups(keys) == pytest.approx(truth.groups(keys), rel=0.5)
