"""ULLONG columns with all of their 64 bits in the kernels: the same as in the reference, which says
the same as DuckDB with its UBIGINT.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.functions.overflow import Overflow, overflow_message
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.types import INT_MAX, WIDE_MAX
from tests.agreement import WITHOUT_COMPILING, agreed_answers
from tests.execute.low_engine import assert_low_level_agrees, low_rows
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

PROTOCOL = "PROTOCOL T (time UINT increasing, x ULLONG, y ULLONG, u UINT, d LLONG);"
EDGES = (0, 1, INT_MAX - 1, INT_MAX, INT_MAX + 1, INT_MAX + 2, WIDE_MAX - 1, WIDE_MAX)
wide = st.sampled_from(EDGES) | st.integers(0, WIDE_MAX)
signed = st.sampled_from((-1, 0, 1, INT_MAX, -INT_MAX - 1)) | st.integers(-INT_MAX - 1, INT_MAX)
rows = st.lists(
    st.tuples(
        st.none() | wide, st.none() | wide, st.none() | st.integers(0, 3), st.none() | signed
    ),
    min_size=1,
    max_size=12,
)
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
SCHEMA = pa.schema(
    [("time", pa.int64()), ("x", pa.uint64()), ("y", pa.uint64()), ("u", pa.uint32()),
     ("d", pa.int64())]
)  # fmt: skip


def interface(folder: Path, given: Sequence[tuple[int | None, ...]]) -> dict[str, Interface]:
    lines = [(place // 4, *row) for place, row in enumerate(given)]
    columns = [pa.array(c, t) for c, t in zip(zip(*lines, strict=True), SCHEMA.types, strict=True)]
    path = folder / "t.parquet"
    pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), path)
    return {"t": Interface("t", "parquet", str(path))}


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    given_rows=rows,
    operator=operators,
    constant=st.sampled_from((-1, *EDGES)),
    low=wide,
    high=wide,
    listed=st.lists(st.sampled_from((-7, *EDGES)), min_size=1, max_size=4),
)
def test_engines_and_duckdb_agree(
    tmp_path: Path,
    given_rows: list[tuple[int | None, ...]],
    operator: str,
    constant: int,
    low: int,
    high: int,
    listed: list[int],
) -> None:
    members, op = ", ".join(map(str, listed)), operator
    text = f"""{PROTOCOL}
    QUERY compared: SELECT time, x {op} {constant} AS c, x {op} y AS xy, x {op} d AS xd,
        d {op} x AS dx, u {op} x AS ux, x IN ({members}) AS i, d IN ({members}) AS di,
        x BETWEEN {low} AND {high} AS b, NOT (x {op} d) AS n FROM t.T;
    QUERY chosen: SELECT time, x, y FROM t.T WHERE x {op} {constant} OR y NOT IN ({members});
    QUERY groups: SELECT tb, x, COUNT(*) AS n, MIN(y) AS least, MAX(y) AS most,
        COUNT(DISTINCT y) AS kinds FROM t.T GROUP BY time/2 AS tb, x;
    QUERY extremes: SELECT tb, MAX(x) AS most, MIN(x) AS least, COUNT(x) AS n,
        MAX(COALESCE(x, y, u)) AS c FROM t.T WHERE x {op} y GROUP BY time/2 AS tb;
    QUERY casts: SELECT time, CAST(x AS FLOAT) AS f, CAST(x AS STRING) AS s, LLONG(x) AS l,
        UINT(x) AS u, CAST(d AS ULLONG) AS w, CAST(x AS BOOL) AS b,
        CASE WHEN x {op} y THEN x ELSE u END AS c FROM t.T;
    """
    interfaces = interface(tmp_path, given_rows)
    made = compile_set(Source(text, "set.gsql"), Bindings(interfaces))
    sources = ConnectorSources(interfaces)
    agreed_answers(made.plan, sources)
    assert_low_level_agrees(
        made.optimized, interfaces, sources, WITHOUT_COMPILING, 2, 1 << 20, tmp_path
    )


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "machine-code"])
def test_machine_code_agrees(tmp_path: Path, compiled: bool) -> None:
    text = f"""{PROTOCOL}
    SELECT tb, x, u, COUNT(*) AS n, MIN(y) AS least, MAX(y) AS most, MAX(CAST(y AS FLOAT)) AS f,
        MAX(ULLONG(CAST(y AS FLOAT))) AS of_float, SUM(UINT(x)) AS s, MAX(LLONG(y)) AS l
    FROM t.T WHERE x > 0 OR y >= 9223372036854775808 GROUP BY time/8 AS tb, x, u
    """
    given_rows = [
        (EDGES[i % 8], EDGES[(i * 3 + i // 8) % 8], i % 3, -1 if i % 2 else i) for i in range(64)
    ]
    interfaces = interface(tmp_path, given_rows)
    made = compile_set(Source(text, "set.gsql"), Bindings(interfaces))
    settings_ = config_with(kernels="numba" if compiled else "numpy")
    sources = ConnectorSources(interfaces)
    job = assert_low_level_agrees(
        made.optimized, interfaces, sources, settings_, 2, 1 << 20, tmp_path
    )
    assert job.reads[0].low is not None
    assert job.reads[0].low.queries, "it should run next to the source"


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT tb, SUM(x) AS s FROM t.T GROUP BY time AS tb", "x"),
        ("SELECT time, x + 1 AS next FROM t.T", "x + 1"),
        ("SELECT time, x / 60 AS part FROM t.T", "x DIV 60"),
        ("SELECT time, COALESCE(x, -1) AS c FROM t.T", "coalesce(x, -1)"),
    ],
)
def test_computing_with_large_numbers_is_an_overflow(tmp_path: Path, query: str, what: str) -> None:
    """Never a wrong value: the run ends, in the words of the query."""
    interfaces = interface(tmp_path, [(1, 1, 1, 1), (INT_MAX + 1, 1, 1, 1)])
    bindings = Bindings(interfaces, config=WITHOUT_COMPILING)
    made = compile_set(Source(f"{PROTOCOL} QUERY q: {query}", "set.gsql"), bindings)
    with pytest.raises(Overflow) as told:
        evaluate(made.optimized, ConnectorSources(interfaces))
    assert str(told.value) == overflow_message(what, "q")
    with pytest.raises(Overflow) as told:
        low_rows(made.job(), 2, tmp_path)
    assert told.value.what == what


def test_what_fits_is_computed(tmp_path: Path) -> None:
    interfaces = interface(tmp_path, [(INT_MAX, 1, 1, 1), (WIDE_MAX, 1, 1, 1), (5, 2, 1, 1)])
    text = f"{PROTOCOL} SELECT time, x - y AS gap, x / 2.0 AS half FROM t.T WHERE x <= {INT_MAX}"
    made = compile_set(Source(text, "set.gsql"), Bindings(interfaces))
    (answer,) = agreed_answers(made.plan, ConnectorSources(interfaces)).values()
    assert [row[1:] for row in answer.rows] == [(INT_MAX - 1, 2.0**62), (3, 2.5)]
