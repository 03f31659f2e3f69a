"""An integer overflow is told in the words of the query, the same by the reference and by tasks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.functions.overflow import Overflow, overflow_message
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.types import INT_MAX
from tests.agreement import WITHOUT_COMPILING
from tests.execute.low_engine import low_rows
from tests.reference.connector_sources import ConnectorSources

PROTOCOL = "PROTOCOL F (time UINT increasing clock(s), len LLONG);"


@pytest.mark.parametrize(
    ("text", "what", "query"),
    [
        (
            "QUERY talkers: SELECT tb, SUM(len) AS total FROM F GROUP BY time AS tb;",
            "SUM(len)",
            "talkers",
        ),
        ("QUERY doubled: SELECT time, len * 2 AS twice FROM F;", "len * 2", "doubled"),
        (
            "QUERY one: SELECT time FROM F; QUERY two: SELECT time, len - -3 AS x FROM F;",
            "len - -3",
            "two",
        ),
    ],
)
def test_the_same_message_with_the_query_and_what_it_computes(
    text: str, what: str, query: str, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(f"time,len\n1,{INT_MAX}\n1,{INT_MAX}\n2,6\n")
    interfaces = {"eth0": Interface("eth0", "csv", str(tmp_path / "in.csv"))}
    bindings = Bindings(interfaces, {}, config=WITHOUT_COMPILING)
    compiled = compile_set(Source(f"{PROTOCOL} {text}", "set.gsql"), bindings)
    wanted = overflow_message(what, query)
    with pytest.raises(Overflow) as told:
        evaluate(compiled.optimized, ConnectorSources(interfaces))
    assert str(told.value) == wanted
    with pytest.raises(Overflow) as told:
        low_rows(compiled.job(), 2, tmp_path)
    assert told.value.what == what
    assert told.value.query == "", "one table or selection may be several queries'"


def test_it_says_what_to_do() -> None:
    assert overflow_message("SUM(len)", "talkers") == (
        "integer overflow in SUM(len) of query talkers: a sum of integers is a signed 64-bit"
        " number; write SUM(CAST(len AS FLOAT))"
    )
    assert overflow_message("len * 2") == (
        "integer overflow in len * 2: integers are signed 64-bit numbers;"
        " CAST a part of it to FLOAT"
    )
    assert "SUM(CAST(... AS FLOAT))" in overflow_message("SUM(DISTINCT len)")
    again = pickle.loads(pickle.dumps(Overflow("SUM(len)", "talkers")))
    assert str(again) == overflow_message("SUM(len)", "talkers")
