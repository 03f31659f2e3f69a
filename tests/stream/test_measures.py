"""What the operators of a stream are measured to have done, in reading and in closing tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.operate.reporting import LowReporter
from terascope.pipeline import Bindings, compile_set
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.settings import config_with

SET = """
PROTOCOL T (time UINT increasing clock(s), v INT);
QUERY counts: SELECT tb, v, COUNT(*) AS n FROM T GROUP BY time/10 AS tb, v;
"""
TUPLES = 400


def test_tasks_report_what_operators_took_and_gave(tmp_path: Path) -> None:
    times = pa.array(range(TUPLES), pa.int64())
    values = pa.array([n % 3 for n in range(TUPLES)], pa.int64())
    pq.write_table(pa.table({"time": times, "v": values}), tmp_path / "x.parquet", row_group_size=7)
    bindings = Bindings(
        {"x": parse_interface(f"x=parquet:{tmp_path / 'x.parquet'}")}, config=WITHOUT_COMPILING
    )
    live = LiveSettings(Speed.parse("max"), True, split_bytes=1, most_bytes=1)
    where = StreamRun(
        tmp_path / "state", tmp_path / "out", live=live, config=config_with(kernels="numpy")
    )
    run = PlainRun(compile_set(Source(SET, "set"), bindings), where, OffsetLog())
    while run.step():
        pass
    run.close()
    plan = run.runner.plan
    report = LowReporter()
    report.follow(plan.low, {})
    for one in run.reports:
        report.ingest(one)
    found = {one.name: one for one in report.operators}
    assert set(found) <= {operator.name for operator in plan.operators}
    rows = len(list(rows_of(tmp_path / "out" / "counts")))
    assert found["read x"].taken == TUPLES
    assert found["group counts_low"].taken == TUPLES
    stored = found["store counts_low"].given
    assert stored == found["group counts_low"].given > rows, "groups of open slices are partial"
    assert found["store counts_low"].exchanged_bytes > 0
    assert found["merge counts_low"].given == found["pipeline counts"].given == rows
