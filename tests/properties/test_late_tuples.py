"""Tuples that come when their slice is closed: counted, kept apart, in no answer; never lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.settings import config_with

SET = """
PROTOCOL T (time UINT {order} clock(s), v INT);
QUERY counts: SELECT tb, COUNT(*) AS n, SUM(v) AS s FROM T GROUP BY time/10 AS tb;
"""
TIMES = [*range(60), 31, 58, 7, *range(60, 90), 59, 85, *range(90, 120)]
"""31 and 7 belong to closed slices; 58 is of one that is open, and so is 85; 59 is late as well."""


def compiled(folder: Path, order: str) -> Compiled:
    table = pa.table({"time": pa.array(TIMES, pa.int64()), "v": pa.array(TIMES, pa.int64())})
    pq.write_table(table, folder / "x.parquet", row_group_size=3)
    bindings = Bindings(
        {"x": parse_interface(f"x=parquet:{folder / 'x.parquet'}")}, config=WITHOUT_COMPILING
    )
    return compile_set(Source(SET.format(order=order), "set"), bindings)


def streamed(folder: Path, order: str) -> PlainRun:
    live = LiveSettings(Speed.parse("max"), True, split_bytes=1, most_bytes=1)
    settings = StreamRun(
        folder / "state",
        folder / "out",
        live=live,
        config=config_with(late=folder / "late", kernels="numpy", tasks=1),
    )
    run = PlainRun(compiled(folder, order), settings, OffsetLog())
    while run.step():
        pass
    assert run.ended
    run.close()
    return run


def kept_times(folder: Path) -> list[int]:
    return sorted(int(str(row[0])) for row in rows_of(folder / "late" / "x"))


def test_late_tuples_are_kept_apart(tmp_path: Path) -> None:
    run = streamed(tmp_path, "increasing")
    late = kept_times(tmp_path)
    assert late
    assert set(late) <= {31, 7, 59, 58, 85}
    assert run.reports[-1].state.seen["x"].late == len(late)
    left = Counter(TIMES) - Counter(late)
    want: Counter[int] = Counter()
    for time, times in left.items():
        want[time // 10] += times
    assert {row[0]: row[1] for row in rows_of(tmp_path / "out" / "counts")} == dict(want)


def test_disorder_within_the_band_is_exact(tmp_path: Path) -> None:
    run = streamed(tmp_path, "banded_increasing(60)")
    assert kept_times(tmp_path) == []
    state = run.reports[-1].state.seen["x"]
    assert state.late == 0
    assert state.disorder["time"] == 59 - 7, "observed, beside what is declared"
    want = Counter(time // 10 for time in TIMES)
    assert {row[0]: row[1] for row in rows_of(tmp_path / "out" / "counts")} == dict(want)


def test_manifest_of_late_tuples_names_their_interface(tmp_path: Path) -> None:
    streamed(tmp_path, "increasing")
    first = (tmp_path / "late" / "x" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert json.loads(first)["query"] == "late:x"
