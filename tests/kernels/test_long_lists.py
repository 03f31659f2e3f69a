"""`IN` with as many values as one likes: a look-up for each tuple, whatever the type."""

from __future__ import annotations

import math
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.execute.rows.steps import admitted
from terascope.functions.members import Members
from terascope.kernels.codegen.lookups import member_vector
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.build import list_call
from terascope.plan.expr import Col
from terascope.syntax.format import format_source
from terascope.types import INT_MAX, INT_MIN, Type
from tests.execute.low_engine import assert_low_level_agrees
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

MANY, SOME = 100_000, 2_000
FLOW = "PROTOCOL FLOW (time UINT increasing, size LLONG, host IP, name STRING);\n"
LISTS = {
    "close": ("size", [str(3 * i) for i in range(SOME)]),
    "very many": ("size", [str(3 * i) for i in range(MANY)]),
    "far apart": ("size * 1000003", [str(3 * i * 1000003) for i in range(SOME)]),
    "addresses": ("host", [f"'10.{i >> 16}.{i >> 8 & 255}.{i & 255}'" for i in range(SOME)]),
    "addresses of both kinds": (
        "host",
        [f"IP '2001:db8::{i:x}'" for i in range(1, 50)] + [f"IP '10.0.0.{i}'" for i in range(99)],
    ),
    "texts": ("name", [f"'n{i}'" for i in range(SOME)]),
}


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lists") / "flows.csv"
    hosts = ["10.0.0.7", "10.200.0.1", "2001:db8::7", "2001:db8:1::7", ""]
    lines = [f"{i // 10},{i * i if i % 7 else ''},{hosts[i % 5]},n{i * 999}" for i in range(300)]
    path.write_text("time,size,host,name\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def compiled(flows: Path, condition: str) -> Compiled:
    text = (
        f"{FLOW}SELECT tb, COUNT(*) AS n FROM flows.FLOW WHERE {condition} GROUP BY time/10 AS tb"
    )
    interface = parse_interface(f"flows=csv:{flows}")
    return compile_set(Source(text, "set.gsql"), Bindings({"flows": interface}))


@pytest.mark.parametrize("word", ["IN", "NOT IN"])
@pytest.mark.parametrize("name", LISTS)
def test_values_are_looked_up(name: str, word: str, flows: Path, tmp_path: Path) -> None:
    operand, items = LISTS[name]
    started = process_time()
    made = compiled(flows, f"{operand} {word} ({', '.join(items)})")
    interfaces = dict(made.bindings.interfaces)
    sources = ConnectorSources(interfaces)
    settings = config_with(kernels="numpy", share_sample="always")
    job = assert_low_level_agrees(
        made.optimized, interfaces, sources, settings, 2, 1 << 20, tmp_path
    )
    assert job.reads[0].low is not None
    assert process_time() - started < 25  # it was minutes, where it ended at all


NUMBERS = [0, 1, -1, 7, 80, 4095, INT_MAX, INT_MIN, INT_MAX - 1, 2**53 + 1]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e-300, 2.0**53]


@pytest.mark.parametrize(
    "listed",
    [[7], [0, 80, 4095], NUMBERS, [INT_MIN, INT_MAX], [7, None], [None], list(range(0, 9999, 7))],
)
def test_integers(listed: list[int | None]) -> None:
    assert_vector(Members.of(listed), np.array(NUMBERS, np.int64), Type.LLONG)


@pytest.mark.parametrize("listed", [[0.0], [-0.0], [math.nan], FLOATS, [1.5, None], [math.inf]])
def test_floats_equal_as_everywhere_else(listed: list[float | None]) -> None:
    assert_vector(Members.of(listed), np.array(FLOATS, np.float64), Type.FLOAT)


def assert_vector(members: Members, values: NDArray[Any], type: Type) -> None:
    found, known = member_vector(members, values, np.ones(len(values), np.uint8))
    expected = [members.has(value) for value in values.tolist()]
    assert [bool(f) if k else None for f, k in zip(found, known, strict=True)] == expected
    batch = pa.RecordBatch.from_arrays([pa.array(values)], ["x"])
    kept = admitted(
        batch, list_call(Col("x", type), (*members.values, *([None] * members.has_null)))
    )
    assert kept.num_rows == expected.count(True)


def test_lists_are_told_apart_by_all_their_values(flows: Path) -> None:
    first, second = (", ".join(map(str, [*range(100), last])) for last in (500, 501))
    plans = [compiled(flows, f"size IN ({some})").plan for some in (first, second, first)]
    assert plans[0] != plans[1]
    assert plans[0] == plans[2]


def test_formatting_keeps_every_value() -> None:
    items = ", ".join(map(str, range(5000)))
    text = format_source(Source(f"SELECT time FROM TCP WHERE len IN ({items});", "x.gsql"))
    assert items.replace(" ", "") in text.replace("\n", "").replace(" ", "")
