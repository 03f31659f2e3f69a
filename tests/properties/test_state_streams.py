"""States in streams: slices, windows and groups that live over epochs, whatever the restarts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.plan.rel import Field
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row
from terascope.spark.stream.runner import StreamRun
from terascope.types import parse_ip
from tests.agreement import WITHOUT_COMPILING, delivered
from tests.execute.test_states import FUNCTIONS, SET, write_tuples
from tests.oracle.compare import assert_same_rows
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with


@pytest.mark.parametrize("tasks", [1, 3])
def test_restarts_cannot_be_seen(tasks: int, tmp_path: Path) -> None:
    write_tuples(tmp_path / "x.csv", 400, tasks)
    interfaces = {"x": Interface("x", "csv", str(tmp_path / "x.csv"))}
    bindings = Bindings(interfaces=interfaces, functions=FUNCTIONS, config=WITHOUT_COMPILING)
    made = compile_set(Source(SET, "states.gsql"), bindings)
    live = LiveSettings(Speed.parse("max"), True, split_bytes=1500, most_bytes=6000)
    settings = StreamRun(
        tmp_path / "state",
        tmp_path / "out",
        live=live,
        config=config_with(kernels="numpy", tasks=tasks),
    )
    log, batches, ended = OffsetLog(), 0, False
    while not ended:  # a restart after every second batch
        run = PlainRun(made, settings, log)
        batches += run.step() + run.step()
        ended = run.ended
        run.close()
    assert batches > 3
    expected = delivered(made.optimized, evaluate(made.optimized, ConnectorSources(interfaces)))
    for name, answer in expected.items():
        rows = [held(row, answer.fields) for row in rows_of(tmp_path / "out" / name)]
        assert_same_rows(answer.rows, rows, answer.fields)


def held(row: Row, fields: Sequence[Field]) -> Row:
    """A written row, with addresses as the engines hold them."""
    pairs = zip(row, fields, strict=True)
    return tuple(parse_ip(v) if f.type.is_address and v is not None else v for v, f in pairs)
