"""MeasuredSet rates and selectivities, against counts of the same tuples."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.advise.measure import DEFAULT_GROUPS, DEFAULT_RATE, MeasuredSet, measured
from terascope.advise.sample import Limits, read_sample
from terascope.partitioning.basic_queries import basic_queries
from terascope.plan.rel import Scan, walk
from terascope.session import Session

PROTOCOL = "PROTOCOL F (time UINT increasing clock(s), a UINT, b ULLONG, host STRING);\n"
SECONDS, PER_SECOND = 40, 50


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty tuples a second with ten values of a and five of b."""
    path = tmp_path_factory.mktemp("measure") / "f.parquet"
    numbers = range(SECONDS * PER_SECOND)
    rows = {
        "time": [n // PER_SECOND for n in numbers],
        "a": [n % 10 for n in numbers],
        "b": [n % 5 for n in numbers],
        "host": ["x" * (n % 3) for n in numbers],
    }
    pq.write_table(pa.table(rows), path)
    return path


def found(text: str, flows: Path | None, tuples: int = 100_000) -> MeasuredSet:
    session = Session()
    if flows is not None:
        session.source(f"f=parquet:{flows}")
    compiled = session.query(PROTOCOL + text).compiled
    nodes = basic_queries(compiled.optimized)
    scans = [rel for node in nodes for rel in walk(node.rel) if isinstance(rel, Scan)]
    sample = read_sample(scans, session.bindings.interfaces, Limits(tuples))
    return measured(nodes, sample, compiled.optimized.values)


def test_groups_conditions_and_queries_over_them(flows: Path) -> None:
    text = """
    QUERY q: SELECT tb, a, COUNT(*) AS n FROM f.F WHERE a < 5
    GROUP BY time/10 AS tb, a HAVING MAX(b) > 2;
    QUERY r: SELECT tb, MAX(n) AS m FROM q GROUP BY tb;
    """
    known = found(text, flows)
    (raw,) = known.model.raw.values()
    assert raw.tuples == pytest.approx(SECONDS * PER_SECOND / (SECONDS - 1))
    assert raw.tuple_bytes == 16.0  # time, a and b
    q, r = known.model.nodes
    assert q.selectivity == pytest.approx(2 * 4 / 2000)
    assert q.groups == pytest.approx(5 * 4 / 2000)
    assert r.selectivity == pytest.approx(4 / 8)
    assert known.model.output_rate("q") == pytest.approx(raw.tuples * 8 / 2000 * q.tuple_bytes)
    assert (known.unmeasured, known.extrapolated, known.silent) == ((), (), ())
    assert known.tuples == 2000


def test_texts_are_as_long_as_they_are(flows: Path) -> None:
    known = found("QUERY q: SELECT time, host FROM f.F;", flows)
    assert known.model.nodes[0].tuple_bytes == pytest.approx(4 + 1, rel=0.01)


def test_columns_that_only_selections_read_are_never_moved(flows: Path) -> None:
    text = """
    QUERY s: SELECT time, host FROM f.F WHERE b = 1;
    QUERY g: SELECT time, a, COUNT(*) AS n FROM f.F GROUP BY time, a;
    """
    (raw,) = found(text, flows).model.raw.values()
    assert raw.tuple_bytes == 8.0


def test_joins_and_windows(flows: Path) -> None:
    text = """
    QUERY j: SELECT x.time, x.a, y.b FROM f.F x, f.F y WHERE x.time = y.time AND x.a = y.a;
    QUERY w: SELECT a, COUNT(*) AS n FROM f.F [RANGE '20 sec' SLIDE '10 sec'] GROUP BY a;
    """
    known = found(text, flows)
    join, window = known.model.nodes
    assert join.selectivity == pytest.approx(5.0)  # five tuples of a second have the same a
    assert window.selectivity == pytest.approx(10 * 5 / 2000)


def test_a_join_of_too_many_pairs_is_measured_on_less() -> None:
    """Every tuple matches every other one of its second: 2000 x 2000 pairs of one second."""
    import terascope.advise.measure as module

    count = 3000
    rows = pa.record_batch({"k": pa.array([0] * count)})
    assert module.pair_count(rows, rows, [("k", "k")]) == count**2
    assert module.pair_count(rows, rows, []) == count**2


def test_a_sample_shorter_than_an_epoch_is_extrapolated(flows: Path) -> None:
    text = "QUERY q: SELECT tb, a, COUNT(*) AS n FROM f.F GROUP BY time/3600 AS tb, a;"
    known = found(text, flows)
    assert known.extrapolated == ("q",)
    # Half of the sample has the ten groups already: an epoch has ten as well.
    tuples = next(iter(known.model.raw.values())).tuples * 3600
    assert known.model.nodes[0].selectivity * tuples == pytest.approx(10, rel=0.05)


def test_running_aggregates(flows: Path) -> None:
    text = """
    QUERY c: SELECT tb, a, COUNT(*) AS n FROM f.F GROUP BY time/10 AS tb, a CLOSING_WHEN n > 100;
    """
    (node,) = found(text, flows).model.nodes
    assert node.selectivity == pytest.approx(10 * 4 / 2000, rel=0.5)
    assert node.groups is None  # it has no partial groups


def test_without_a_source_rates_are_declared() -> None:
    text = "QUERY q: SELECT time, a, COUNT(*) AS n FROM f.F GROUP BY time, a;"
    known = found(text, None)
    assert known.unmeasured == ("f",)
    (raw,) = known.model.raw.values()
    assert raw.tuples == DEFAULT_RATE
    assert known.model.nodes[0].selectivity == DEFAULT_GROUPS


def test_a_query_that_no_tuple_reaches(flows: Path) -> None:
    text = """
    QUERY q: SELECT time, a FROM f.F WHERE a > 100;
    QUERY r: SELECT time, a, COUNT(*) AS n FROM q GROUP BY time, a;
    """
    known = found(text, flows)
    assert known.silent == ("r",)
    assert known.model.output_rate("r") == 0.0
