"""ULLONG columns with all of their 64 bits in streams: what a batch gives, over restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import Interface
from terascope.diagnostic import OutputError, Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.rel import Field
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row
from terascope.spark.stream.runner import StreamRun
from terascope.streaming.state.state import StateFolder
from terascope.types import BIAS, Type
from tests.agreement import WITHOUT_COMPILING, delivered
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

TEXT = """
PROTOCOL P (ts UINT increasing clock(s), id ULLONG, n UINT);
QUERY chosen: SELECT ts, id, n FROM P WHERE id > 9223372036854775806;
QUERY groups: SELECT tb, id, COUNT(*) AS cnt, MIN(id) AS least FROM P GROUP BY ts/10 AS tb, id;
QUERY extremes: SELECT tb, MIN(id) AS least, MAX(id) AS most, COUNT(DISTINCT id) AS kinds
FROM P GROUP BY ts/10 AS tb;
QUERY above: SELECT tb, MAX(most) AS most FROM extremes WHERE most > 9223372036854775807
GROUP BY tb;
QUERY sliding: SELECT MAX(id) AS most, MIN(id) AS least FROM P [RANGE '20 sec' SLIDE '10 sec'];
QUERY paired: SELECT g.tb, g.id, g.cnt, e.most FROM groups g, extremes e
WHERE g.tb = e.tb AND g.id = e.most;
"""
EDGES = (0, 7, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)


def numbers(row: Row, fields: tuple[Field, ...]) -> Row:
    return tuple(
        v + BIAS if f.type is Type.WIDE and v is not None else v
        for v, f in zip(row, fields, strict=True)
    )


def wide_set(folder: Path) -> Compiled:
    lines = [f"{i // 3},{EDGES[i * i % 7 % 6] if i % 11 else ''},{i}" for i in range(150)]
    (folder / "p.csv").write_text("ts,id,n\n" + "\n".join(lines) + "\n")
    interfaces = {"p": Interface("p", "csv", str(folder / "p.csv"))}
    return compile_set(Source(TEXT, "set.gsql"), Bindings(interfaces, config=WITHOUT_COMPILING))


def run_settings(folder: Path, split_bytes: int, most_bytes: int, tasks: int) -> StreamRun:
    live = LiveSettings(Speed.parse("max"), True, split_bytes=split_bytes, most_bytes=most_bytes)
    return StreamRun(
        folder / "state",
        folder / "out",
        live=live,
        config=config_with(kernels="numpy", tasks=tasks),
    )


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    made, settings, log = wide_set(tmp_path), run_settings(tmp_path, 300, 700, 2), OffsetLog()
    run = PlainRun(made, settings, log)
    run.step()
    run.close()
    states = StateFolder(run.runner.folder.state)
    older = states.newest()
    assert older is not None
    older.version = 0
    states.save(older)
    with pytest.raises(OutputError) as told:
        PlainRun(made, settings, log)
    assert "another version of Terascope" in str(told.value)
    assert "begin anew with another --checkpoint" in str(told.value)


@pytest.mark.parametrize(("split_bytes", "most_bytes", "tasks"), [(300, 700, 2), (4000, 4000, 1)])
def test_batches_cannot_be_seen(
    split_bytes: int, most_bytes: int, tasks: int, tmp_path: Path
) -> None:
    made, settings = wide_set(tmp_path), run_settings(tmp_path, split_bytes, most_bytes, tasks)
    log = OffsetLog()
    ended = False
    while not ended:  # a restart after every second batch
        run = PlainRun(made, settings, log)
        run.step()
        run.step()
        ended = run.ended
        run.close()
    streams = evaluate(made.optimized, ConnectorSources(made.bindings.interfaces))
    for name, answer in delivered(made.optimized, streams).items():
        expected = [numbers(row, answer.fields) for row in answer.rows]
        assert expected, name
        found = rows_of(tmp_path / "out" / name)
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), name
