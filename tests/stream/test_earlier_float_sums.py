"""A checkpoint of a version that rounded sums of FLOATs as tuples came: nothing of it is taken for
an exact sum.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import OutputError, Source
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.rules import SetTexts, plan_stream
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.spark.stream.runner import StreamRun
from terascope.streaming.state.resume import resumed_state
from terascope.streaming.state.state import StreamState
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.settings import config_with

PROTOCOL = "PROTOCOL T (time UINT increasing clock(s), k INT, x FLOAT);\n"
COUNTS = "QUERY counts: SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/10 AS tb, k;\n"
SUMS = "SELECT tb, k, SUM(x) AS s FROM T GROUP BY time/10 AS tb, k;\n"
OVER_SUMS = "QUERY longer: SELECT tb2, MAX(s) AS m FROM sums GROUP BY tb/2 AS tb2;\n"


def bindings(folder: Path) -> Bindings:
    rows = 300
    table = pa.table(
        {
            "time": pa.array([i // 3 for i in range(rows)], pa.int64()),
            "k": pa.array([i % 2 for i in range(rows)], pa.int64()),
            "x": pa.array([0.1 * i for i in range(rows)]),
        }
    )
    pq.write_table(table, folder / "link.parquet", row_group_size=25)
    found = {"link": parse_interface(f"link=parquet:{folder / 'link'}.parquet")}
    return Bindings(found, config=WITHOUT_COMPILING)


def compiled(text: str, folder: Path) -> Compiled:
    return compile_set(Source(PROTOCOL + text, "set"), bindings(folder))


def planned(made: Compiled) -> StreamPlan:
    own = {stream.name: stream.text for stream in made.plan}
    return plan_stream(made.job(live=True), SetTexts(made.texts(), own))


def earlier_state(made: Compiled, folder: Path) -> StreamState:
    """The state after two batches, with the slots that sums had."""
    live = LiveSettings(Speed.parse("max"), True, split_bytes=400, most_bytes=900)
    settings = StreamRun(
        folder / "state", folder / "out", live=live, config=config_with(kernels="numpy", tasks=2)
    )
    run = PlainRun(made, settings, OffsetLog())
    assert run.step()
    assert run.step()
    told = run.runner.pipeline.state.to_text()
    run.close()
    return StreamState.of_text(told.replace('"range(x)"', '"sum_float(x)"'))


@pytest.mark.parametrize("text", [f"QUERY sums: {SUMS}", f"QUERY sums: {SUMS}{OVER_SUMS}"])
def test_a_query_that_sums_floats_is_refused(text: str, tmp_path: Path) -> None:
    made = compiled(text, tmp_path)
    state = earlier_state(made, tmp_path)
    with pytest.raises(OutputError, match=r"sums FLOATs, and the checkpoint .* --checkpoint"):
        resumed_state(planned(made), state, 2)


def test_others_go_on_and_a_renamed_one_begins_with_whole_slices(tmp_path: Path) -> None:
    state = earlier_state(compiled(f"{COUNTS}QUERY sums: {SUMS}", tmp_path), tmp_path)
    plan = planned(compiled(f"{COUNTS}QUERY totals: {SUMS}", tmp_path))
    found = resumed_state(plan, state, 2)
    assert found.queries["counts"] == state.queries["counts"]
    assert "counts" not in found.starts
    seen = max(value for one in state.seen.values() for value in one.largest.values())
    assert found.starts["totals"] > seen // 10
