"""Sums of FLOATs in streams have the bits that a batch gives, whatever the batches and restarts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from terascope.connectors.live import LiveSettings, Speed
from terascope.reference.interpreter import evaluate
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING, delivered
from tests.kernels.test_float_sums import as_bits, written
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with


@pytest.mark.parametrize(("split_bytes", "most_bytes", "tasks"), [(400, 900, 2), (4000, 4000, 1)])
def test_batches_cannot_be_seen(
    split_bytes: int, most_bytes: int, tasks: int, tmp_path: Path
) -> None:
    made = written(tmp_path, seed=7, most=0.2)
    made = replace(made, bindings=replace(made.bindings, config=WITHOUT_COMPILING))
    live = LiveSettings(Speed.parse("max"), True, split_bytes=split_bytes, most_bytes=most_bytes)
    folder = tmp_path / "out"
    settings = StreamRun(
        tmp_path / "state", folder, live=live, config=config_with(kernels="numpy", tasks=tasks)
    )
    log = OffsetLog()
    batches = 0
    ended = False
    while not ended:  # a restart after every second batch
        run = PlainRun(made, settings, log)
        batches += run.step() + run.step()
        ended = run.ended
        run.close()
    assert batches > 2
    streams = evaluate(made.optimized, ConnectorSources(dict(made.bindings.interfaces)))
    for name, answer in delivered(made.optimized, streams).items():
        assert as_bits(rows_of(folder / name)) == as_bits(answer.rows), name
