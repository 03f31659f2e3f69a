"""Casts to unsigned types in the kernels: what is outside of them is NULL, as in the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from tests.execute.low_engine import assert_low_level_agrees
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

TEXT = """
PROTOCOL T (time UINT increasing, a LLONG, f FLOAT);
SELECT tb, UINT(a) AS u, ULLONG(a) AS l, UINT(f) AS fu, ULLONG(f) AS fl, COUNT(UINT(a)) AS n,
       SUM(UINT(f)) AS s, MIN(ULLONG(a)) AS m
FROM t.T WHERE UINT(a) IS NULL OR UINT(a) >= 0
GROUP BY UINT(time)/4 AS tb, UINT(a), ULLONG(a), UINT(f), ULLONG(f)
"""
NUMBERS = [0, -1, 1, 2**32 - 1, 2**32, 2**63 - 1, -(2**63), 7]
FLOATS = ["0.5", "-0.5", "-1.0", "4294967295.9", "4294967296.0", "1e18", "1e19", "-1e19", ""]


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "machine-code"])
def test_what_is_outside_is_null(tmp_path: Path, compiled: bool) -> None:
    rows = [f"{i},{NUMBERS[i % 8]},{FLOATS[i % 9]}" for i in range(72)]
    (tmp_path / "t.csv").write_text("time,a,f\n" + "\n".join(rows) + "\n")
    interfaces = {"t": parse_interface(f"t=csv:{tmp_path / 't.csv'}")}
    made = compile_set(Source(TEXT, "set.gsql"), Bindings(interfaces))
    job = assert_low_level_agrees(
        made.optimized, interfaces, ConnectorSources(interfaces),
        config_with(kernels="numba" if compiled else "numpy"), 2, 1 << 20, tmp_path,
    )  # fmt: skip
    assert job.reads[0].low is not None
    (aggregate,) = job.reads[0].low.queries
    assert "UINT" in str(aggregate)
