"""A replay gives the rows of a batch, also of a source whose tuples end before those of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING, delivered
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

TEXT = """
PROTOCOL F (time UINT increasing clock(s), a INT);
QUERY living: SELECT tb, a, COUNT(*) AS n, running_count(*) AS r FROM early.F
GROUP BY time/5 AS tb, a CLOSING_WHEN n = 0;
QUERY above: SELECT big, SUM(n) AS n, COUNT(*) AS c FROM living GROUP BY tb/3 AS big;
QUERY merged: MERGE x.time : y.time FROM early.F x, late.F y;
QUERY both: SELECT tb, COUNT(*) AS n FROM merged GROUP BY time/5 AS tb CLOSING_WHEN n = 0;
"""
TIMES = {"early": range(40), "late": range(20, 400, 3)}


@pytest.mark.parametrize("most_bytes", [60, 1 << 20], ids=["small", "whole"])
def test_epochs_after_the_last_tuple_are_those_of_a_batch(most_bytes: int, tmp_path: Path) -> None:
    interfaces = {}
    for name, times in TIMES.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("time,a\n" + "".join(f"{t},{t % 2}\n" for t in times))
        interfaces[name] = Interface(name, "csv", str(path))
    made = compile_set(Source(TEXT, "set.gsql"), Bindings(interfaces, config=WITHOUT_COMPILING))
    live = LiveSettings(Speed.parse("max"), True, split_bytes=most_bytes, most_bytes=most_bytes)
    settings = StreamRun(
        tmp_path / "state",
        tmp_path / "out",
        live=live,
        config=config_with(kernels="numpy", tasks=2),
    )
    run = PlainRun(made, settings, OffsetLog())
    while run.step():
        pass
    assert run.ended
    run.close()
    answers = delivered(made.optimized, evaluate(made.optimized, ConnectorSources(interfaces)))
    for name, answer in answers.items():
        found = rows_of(tmp_path / "out" / name)
        assert sorted(map(repr, found)) == sorted(map(repr, answer.rows)), name
