"""Long windows over a stream: their rows are those of a batch, and few rows are read for each."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.spark.stream.runner import StreamRun
from terascope.streaming.stored_rows import MARK, StoredRows, StoredStream
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

SET = """PROTOCOL T (time UINT increasing clock(s), k INT, v INT);
QUERY long: SELECT k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS low FROM T [RANGE 400 SLIDE 1]
  GROUP BY k;
QUERY other: SELECT k, MAX(v) AS high, AVG(v) AS mean FROM T [RANGE 101 SLIDE 3] GROUP BY k;
QUERY best: SELECT k, COUNT(*) AS n FROM T [RANGE 400 SLIDE 1] GROUP BY k ORDER BY n DESC LIMIT 1;
"""
SECONDS = 700
QUERIES = ("long", "other", "best")


def link(folder: Path, rng: random.Random) -> Bindings:
    times = sorted(rng.randrange(SECONDS) for _ in range(2 * SECONDS))
    columns = {
        "time": times,
        "k": [rng.randrange(3) for _ in times],
        "v": [rng.randrange(-50, 50) for _ in times],
    }
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    pq.write_table(table, folder / "link.parquet", row_group_size=16)
    interface = parse_interface(f"link=parquet:{folder / 'link.parquet'}")
    return Bindings({"link": interface}, config=WITHOUT_COMPILING)


def test_long_windows_are_put_together_from_spans(tmp_path: Path) -> None:
    bindings = link(tmp_path, random.Random(3))
    made = compile_set(Source(SET, "set"), bindings)
    answers = evaluate(made.plan, ConnectorSources(bindings.interfaces))
    live = LiveSettings(Speed.parse("max"), True, split_bytes=400, most_bytes=900)
    settings = StreamRun(
        tmp_path / "state",
        tmp_path / "out",
        live=live,
        config=config_with(kernels="numpy", tasks=2),
    )
    read: list[int] = []
    batches = StoredRows.batches

    def counted(stored: StoredRows, leaf: StoredStream) -> object:
        read[-1] += leaf.rows
        return batches(stored, leaf)

    log, tiers, slices = OffsetLog(), set[str](), 0
    run = PlainRun(made, settings, log)
    with patch.object(StoredRows, "batches", counted):
        while not run.ended:
            read.append(0)
            assert run.step()
            segments = run.runner.pipeline.state.segments
            tiers |= {s.stream.partition(MARK)[2] for s in segments if MARK in s.stream}
            slices = max(slices, sum(s.rows for s in segments if MARK not in s.stream))
            if len(read) % 20 == 0:  # spans are taken over, as slices are
                run.close()
                run = PlainRun(made, settings, log)
    run.close()
    assert tiers == {"8", "64"}
    steady = sorted(read[len(read) // 2 : -1])
    # Slices that closed together are one segment: the neighbours of a piece are read with it.
    assert steady[len(steady) // 2] < slices / 2, "of each batch: a part of what a window has"
    for name in QUERIES:
        visible = [i for i, f in enumerate(answers[name].fields) if not f.hidden]
        expected = Counter(tuple(r[i] for i in visible) for r in answers[name].tuples)
        assert Counter(rows_of(tmp_path / "out" / name)) == expected, name
