"""docs/extending.md, "A built-in aggregate": its one file runs by reference, in compiled kernels
and with numpy, is merged and put together to windows, and runs in Spark.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Source
from terascope.functions.base import AggregateFunction
from terascope.functions.registry import Functions
from terascope.physical.low_plan import LowAggregate
from terascope.pipeline import Bindings, compile_set
from terascope.plan.plan import Plan
from terascope.reference.interpreter import evaluate
from terascope.types import INT_MAX
from tests.agreement import CATALYST, delivered, spark_answers
from tests.docs.blocks import blocks, page
from tests.execute.low_engine import answers, assert_low_level_agrees, low_rows
from tests.reference.connector_sources import ConnectorSources
from tests.settings import Changes, config_with

FILE = "terascope/functions/aggregates/capped_sum.py"
(BLOCK,) = (b for b in blocks(page("extending.md")) if b.option("file") == FILE)
QUERIES = """
PROTOCOL FLOW (time UINT increasing, host STRING, size ULLONG);
QUERY tumbling: SELECT tb, host, capped_sum(size) AS total, COUNT(*) AS n
  FROM flows.FLOW GROUP BY time/10 AS tb, host;
QUERY sliding: SELECT host, wend, capped_sum(size) AS total
  FROM flows.FLOW [RANGE 20 SLIDE 10 ON time] GROUP BY host, wend;
QUERY again: SELECT tb, capped_sum(total) AS total, capped_sum(DISTINCT total) AS different
  FROM tumbling GROUP BY tb;
"""
LARGE = INT_MAX - 5
ROWS: list[tuple[int, str, int | None]] = [
    (t, host, size) for t in range(0, 60, 3) for host, size in (("a", t), ("b", LARGE))
]
ROWS += [(61, "a", None), (62, "b", None), (62, "b", 7)]


@pytest.fixture
def aggregate(monkeypatch: pytest.MonkeyPatch) -> AggregateFunction:
    """The aggregate of the page, as the module that it is meant to be."""
    module = ModuleType(FILE.removesuffix(".py").replace("/", "."))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(BLOCK.text, FILE, "exec"), module.__dict__)
    found = module.__dict__["CappedSum"]()
    assert isinstance(found, AggregateFunction)
    return found


@pytest.fixture
def made(aggregate: AggregateFunction, tmp_path: Path) -> tuple[Plan, dict[str, Interface]]:
    lines = [f"{t},{h},{'' if s is None else s}" for t, h, s in ROWS]
    (tmp_path / "flows.csv").write_text("\n".join(["time,host,size", *lines, ""]))
    interfaces = {"flows": parse_interface(f"flows=csv:{tmp_path / 'flows.csv'}")}
    functions = Functions.builtin().extended([aggregate])
    bindings = Bindings(interfaces, functions=functions)
    return compile_set(Source(QUERIES), bindings).optimized, interfaces


def test_the_file_is_all_there_is() -> None:
    """It imports no engine: engines ask it."""
    imported = {n.module for n in ast.walk(ast.parse(BLOCK.text)) if isinstance(n, ast.ImportFrom)}
    known = ("terascope.functions.", "terascope.types", "typing", "__future__")
    assert all(module is not None and module.startswith(known) for module in imported)


def test_the_reference_folds_it(made: tuple[Plan, dict[str, Interface]]) -> None:
    plan, interfaces = made
    rows = evaluate(plan, ConnectorSources(interfaces))
    assert sorted(rows["tumbling"].tuples)[:2] == [(0, "a", 18, 4), (0, "b", INT_MAX, 4)]
    assert sorted(rows["tumbling"].tuples)[-2:] == [(6, "a", None, 1), (6, "b", 7, 2)]
    assert (0, INT_MAX, INT_MAX) in rows["again"].tuples


@pytest.mark.parametrize(
    "tables",
    [{"kernels": "numpy"}, {}],
    ids=["numpy", "machine-code"],
)
def test_the_low_level_keeps_it_in_a_slot(
    made: tuple[Plan, dict[str, Interface]], tables: Changes, tmp_path: Path
) -> None:
    plan, interfaces = made
    settings = config_with(**tables)
    sources = ConnectorSources(interfaces)
    job = assert_low_level_agrees(plan, interfaces, sources, settings, 3, 200, tmp_path)
    (read,) = job.reads
    assert read.low is not None
    kinds = {
        slot.kind.name for q in read.low.queries if isinstance(q, LowAggregate) for slot in q.slots
    }
    assert "capped" in kinds
    assert any(output.windows for output in job.low)
    low, _ = low_rows(job, 3, tmp_path)
    known, expected = answers(job, low, plan, sources), evaluate(plan, sources)
    for name in ("tumbling", "sliding", "again"):
        assert sorted(map(str, known[name].tuples)) == sorted(map(str, expected[name].tuples))


@pytest.mark.spark
def test_spark_computes_it_by_its_own_form(
    made: tuple[Plan, dict[str, Interface]], request: pytest.FixtureRequest
) -> None:
    plan, interfaces = made
    spark = request.getfixturevalue("spark")
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    for low in (config_with(), CATALYST):
        assert spark_answers(plan, interfaces, spark, 2, 200, low=low) == expected
