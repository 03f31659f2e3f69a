"""Sums of FLOATs are exact: the same bits whatever the splits, tasks, tables and memory."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.functions.aggregates.spread import PopulationVariance
from terascope.functions.aggregates.total import Sum
from terascope.functions.exact_floats import ROUNDED, from_digits, rounded, to_digits
from terascope.kernels.merge.float_ranges import digits_of, ranges_of, totals
from terascope.physical.planner import plan_job
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from tests.execute.low_engine import answers, low_rows
from tests.reference.connector_sources import ConnectorSources
from tests.settings import Changes, config_with

PROTOCOL = "PROTOCOL p (ts UINT increasing clock(s), k INT, x FLOAT, y FLOAT);"
QUERIES = f"""{PROTOCOL}
QUERY sums:
SELECT tb, k, SUM(x) AS s, AVG(x) AS m, SUM(y) AS t, COUNT(*) AS n, MIN(x) AS a, MAX(x) AS b
FROM src.p GROUP BY ts/10 AS tb, k;
QUERY coarse:
SELECT tb, SUM(x) AS s, MAX(k) AS b FROM src.p WHERE k > 0 GROUP BY ts/10 AS tb;
QUERY distinct_too:
SELECT tb, SUM(x) AS s, COUNT(DISTINCT k) AS n FROM src.p GROUP BY ts/10 AS tb;
QUERY again:
SELECT tb, SUM(s) AS s FROM sums GROUP BY tb;
QUERY sliding:
SELECT wend, k, SUM(x) AS s, AVG(y) AS m FROM src.p [RANGE 30 SLIDE 5] GROUP BY wend, k;
"""
SPECIAL = (1e16, -1e16, 0.1, -0.0, 5e-324, -5e-324, 1e308, -1e308, 2.0**-96, 2.0**-97, 2.0**55)


def bits(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "NaN" if math.isnan(value) else struct.pack("<d", value)


def wild(rng: random.Random, most: float) -> float | None:
    """A value: how often it is extraordinary is `most`."""
    if rng.random() < 0.05:
        return None
    if rng.random() >= most:
        return rng.uniform(-1, 1) * 10 ** rng.uniform(-4, 4)
    kind = rng.random()
    if kind < 0.5:
        return rng.choice((*SPECIAL, rng.uniform(-1, 1) * 1e300))
    if kind < 0.6:
        return rng.choice((math.inf, -math.inf, math.nan))
    return rng.uniform(-1, 1) * 10 ** rng.uniform(-307, 306)


def written(folder: Path, seed: int, most: float, text: str = QUERIES) -> Compiled:
    rows = 400
    rng = random.Random(seed)
    columns = {
        "ts": pa.array(sorted(rng.randrange(60) for _ in range(rows)), pa.uint32()),
        "k": pa.array([rng.randrange(3) for _ in range(rows)], pa.int32()),
        "x": pa.array([wild(rng, most) for _ in range(rows)], pa.float64()),
        "y": pa.array([wild(rng, most / 8) for _ in range(rows)], pa.float64()),
    }
    path = folder / "src.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=rows // 7)
    bindings = Bindings({"src": Interface("src", "parquet", str(path))})
    return compile_set(Source(text, "floats.gsql"), bindings)


def found(compiled: Compiled, tables: Changes, tasks: int, folder: Path) -> dict[str, object]:
    """The rows of all queries, by bits."""
    interfaces = dict(compiled.bindings.interfaces)
    sources = ConnectorSources(interfaces)
    job = plan_job(compiled.optimized, interfaces, 1, config_with(**tables))
    low, _ = low_rows(job, tasks, folder, merge_bytes=1 << 12)
    known = answers(job, low, compiled.optimized, sources)
    return {s.name: as_bits(known[s.name].tuples) for s in compiled.optimized.visible}


def as_bits(rows: Sequence[Sequence[object]]) -> list[str]:
    return sorted(repr(tuple(map(bits, row))) for row in rows)


@pytest.mark.parametrize("most", [0.0, 0.02, 0.5])
def test_all_splits_give_the_same_bits(most: float, tmp_path: Path) -> None:
    compiled = written(tmp_path, seed=int(100 * most), most=most)
    sources = ConnectorSources(dict(compiled.bindings.interfaces))
    expected = evaluate(compiled.optimized, sources)
    wanted = {s.name: as_bits(expected[s.name].tuples) for s in compiled.optimized.visible}
    for tasks in (1, 3):
        assert found(compiled, {"kernels": "numpy"}, tasks, tmp_path) == wanted, tasks


def test_machine_code_gives_the_same_bits(tmp_path: Path) -> None:
    compiled = written(tmp_path, seed=2, most=0.1)
    expected = found(compiled, {"kernels": "numpy"}, 1, tmp_path)
    for tables, tasks in (({}, 2), ({"memory_bytes": 1 << 16}, 3)):
        assert found(compiled, tables, tasks, tmp_path) == expected, (tables, tasks)


def test_many_groups_give_the_bits_of_fsum(tmp_path: Path) -> None:
    """So many that tuples are grouped part by part."""
    rng = np.random.default_rng(5)
    rows, groups = 60_000, 30_000
    keys, values = rng.integers(0, groups, rows), rng.normal(size=rows) * 1e3
    values[::1000] = 1e300
    path = tmp_path / "src.parquet"
    columns = {"ts": np.zeros(rows, np.uint32), "k": keys.astype(np.int32), "x": values}
    pq.write_table(pa.table({**columns, "y": values}), path)
    text = f"{PROTOCOL} QUERY q: SELECT tb, k, SUM(x) FROM src.p GROUP BY ts AS tb, k"
    bindings = Bindings({"src": Interface("src", "parquet", str(path))})
    wanted: dict[int, list[float]] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        wanted.setdefault(key, []).append(value)
    expected = as_bits([(0, key, math.fsum(some)) for key, some in wanted.items()])
    made = found(compile_set(Source(text, "q.gsql"), bindings), {}, 1, tmp_path)
    assert made == {"q": expected}


def test_a_zero_has_no_sign_whichever_came_first(tmp_path: Path) -> None:
    """As the least and the largest value, in the middle and as a key."""
    text = (
        f"{PROTOCOL} QUERY q: SELECT tb, MIN(x) AS a, MAX(x) AS b FROM src.p GROUP BY ts AS tb;"
        "QUERY keys: SELECT tb, x, COUNT(*) AS n FROM src.p GROUP BY ts AS tb, x;"
        "QUERY middle: SELECT tb, MEDIAN(x) AS m FROM src.p GROUP BY ts AS tb;"
    )
    zeros = [-0.0, 0.0, 0.0, -0.0, -0.0, math.nan]
    columns = {"ts": np.array([1, 1, 2, 2, 3, 3], np.uint32), "k": np.zeros(6, np.int32)}
    pq.write_table(pa.table({**columns, "x": zeros, "y": zeros}), tmp_path / "src.parquet")
    bindings = Bindings({"src": Interface("src", "parquet", str(tmp_path / "src.parquet"))})
    compiled = compile_set(Source(text, "q.gsql"), bindings)
    expected = {
        "q": as_bits([(1, 0.0, 0.0), (2, 0.0, 0.0), (3, 0.0, math.nan)]),
        "keys": as_bits([(1, 0.0, 2), (2, 0.0, 2), (3, 0.0, 1), (3, math.nan, 1)]),
        "middle": as_bits([(1, 0.0), (2, 0.0), (3, 0.0)]),
    }
    rows = evaluate(compiled.optimized, ConnectorSources(dict(compiled.bindings.interfaces)))
    assert {name: as_bits(rows[name].tuples) for name in expected} == expected
    for tables in ({}, {"kernels": "numpy"}):
        assert found(compiled, tables, 2, tmp_path) == expected


# ---- the arithmetic ------------------------------------------------------------------------------

FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(SPECIAL)


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(FINITE, min_size=1, max_size=20), st.randoms())
def test_a_sum_is_the_nearest_float_in_any_order(values: list[float], rng: random.Random) -> None:
    expected = float_of(sum(map(Fraction, values), Fraction()))
    aggregate = Sum()
    cut = rng.randrange(len(values) + 1)
    rng.shuffle(values)
    states = []
    for some in (values[:cut], values[cut:]):
        state = aggregate.zero()
        for value in some:
            state = aggregate.reduce(state, value)
        states.append(state)
    assert bits(aggregate.finish(aggregate.merge(*states))) == bits(expected)


def float_of(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.floats() | st.sampled_from(SPECIAL), min_size=1, max_size=30))
def test_lanes_have_the_ranges_and_digits_of_python(values: list[float]) -> None:
    vector = np.array(values)
    ranges = ranges_of(vector)
    expected = [to_digits(value) for value in values]
    if ranges is None:
        assert all(range_ == 0 for range_, _ in expected)
        return
    assert ranges.tolist() == [range_ for range_, _ in expected]
    digits = digits_of(vector, ranges)
    for i, (range_, own) in enumerate(expected):
        if range_:
            assert digits[:, i].tolist() == list(own)


DIGIT = st.integers(-(2**62), 2**62) | st.integers(-3, 3) | st.just(0)


@settings(max_examples=400, deadline=None, database=None)
@given(st.lists(st.tuples(DIGIT, DIGIT, DIGIT, DIGIT, DIGIT), min_size=1, max_size=10))
def test_digits_are_rounded_as_the_integers_they_stand_for(rows: list[tuple[int, ...]]) -> None:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    made = totals(np.zeros(len(rows), np.int64), columns)
    for value, digits in zip(made.tolist(), rows, strict=True):
        assert bits(value) == bits(rounded(from_digits(0, digits)))


def test_a_rounded_sum_is_kept_as_it_is() -> None:
    word = np.array([1.1]).view(np.int64)
    none = np.zeros(1, np.int64)
    assert totals(np.array([ROUNDED]), [word, none, none, none, none]).tolist() == [1.1]


def test_what_is_not_finite() -> None:
    inf, nan = math.inf, math.nan
    for values, expected in (
        ([inf, 1.0], inf), ([-inf, 1e308], -inf), ([inf, -inf], nan), ([nan, inf], nan),
        ([1e308, 1e308, -1e308], 1e308), ([1e308, 1e308], inf), ([-0.0], 0.0), ([-1e308] * 2, -inf),
    ):  # fmt: skip
        for order in (values, values[::-1]):
            state = None
            for value in order:
                state = Sum().reduce(state, value)
            assert bits(Sum().finish(state)) == bits(expected), order


def test_a_variance_is_rounded_once() -> None:
    values = [1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.7, -1e-9]
    function, state = PopulationVariance(), PopulationVariance().zero()
    for value in values:
        state = function.reduce(state, value)
    whole = [Fraction(v) for v in values]
    mean = sum(whole, Fraction()) / len(whole)
    exact = sum(((v - mean) ** 2 for v in whole), Fraction()) / len(whole)
    assert function.finish(state) == float_of(exact)
